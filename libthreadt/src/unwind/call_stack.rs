//! A stack, frame by frame.

use super::bounded_memory::BoundedMemory;
use super::eh_frame;
use super::loaded_module::LoadedModule;
use super::rule::{CfaBase, PackedRule, SavedAt, SavedRegister, UnwindRule, UsualRule};
use super::rule_cache::{cache_rule, cached_rule};
use crate::sys::stack::end_of_stack_above;

/// The most frames that are visited, with those of this library, which are left out.
const VISITED_MAX: u32 = 128;

/// The registers of a frame by which its caller's are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameRegisters {
    /// The address at which the frame's function goes on.
    pub rip: usize,
    pub rsp: usize,
    pub rbp: Option<usize>,
    pub rbx: Option<usize>,
}

/// What the visit of a frame's caller results in.
enum Visit {
    /// The caller's registers are known.
    Caller,
    /// The frame is the outermost one.
    Outermost,
    /// The caller cannot be found.
    Lost,
}

/// The return addresses of a stack, innermost first, without those into this library.
pub struct CallStack {
    registers: FrameRegisters,
    /// From the frame's stack pointer to the end of the stack.
    stack: BoundedMemory,
    /// The module that has code at rip.
    module: Option<LoadedModule>,
    /// The frame has been interrupted by a signal, and has not called.
    is_interrupted: bool,
    visits_left: u32,
    is_cut: bool,
}

impl CallStack {
    /// The stack above a frame of this thread whose function has called the present one.
    pub fn above(registers: FrameRegisters) -> CallStack {
        CallStack {
            registers,
            stack: BoundedMemory::beginning_readable(registers.rsp..end_of_stack_above(registers.rsp)),
            module: LoadedModule::at(registers.rip.wrapping_sub(1)),
            is_interrupted: false,
            visits_left: VISITED_MAX,
            is_cut: false,
        }
    }

    /// Whether the stack ended where it could not be followed further.
    pub fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// Goes from the frame to its caller's.
    fn visit_caller(&mut self) -> Visit {
        let address = if self.is_interrupted { self.registers.rip } else { self.registers.rip.wrapping_sub(1) };
        let cached = self.module.as_ref().and_then(|module| cached_rule(module, address));
        match cached.and_then(PackedRule::usual) {
            Some(rule) => match caller_by_usual_rule(&mut self.stack, &self.registers, &rule) {
                Some(caller) => self.enter(caller, false, true),
                None => Visit::Lost,
            },
            None => self.visit_unusual_caller(address, cached),
        }
    }

    /// As [`CallStack::visit_caller`], for any rule.
    fn visit_unusual_caller(&mut self, address: usize, cached: Option<PackedRule>) -> Visit {
        let new_rule = || new_rule_in(self.module.as_ref()?, address);
        let rule = cached.and_then(PackedRule::unpack).or_else(new_rule);
        let caller = match rule {
            Some(rule) if rule.return_address.place == SavedAt::Undefined => return Visit::Outermost,
            Some(rule) => caller_by_rule(&mut self.stack, &self.registers, &rule).map(|it| (it, rule.is_signal_frame)),
            None => caller_by_frame_pointer(&mut self.stack, &self.registers).map(|it| (it, false)),
        };
        match caller {
            Some((caller, is_interrupted)) => self.enter(caller, is_interrupted, rule.is_some()),
            None => Visit::Lost,
        }
    }

    /// Makes the caller's frame the present one. `is_by_rule`: its registers follow from unwind information.
    #[inline(always)]
    fn enter(&mut self, caller: FrameRegisters, is_interrupted: bool, is_by_rule: bool) -> Visit {
        if caller.rip == 0 && is_by_rule {
            return Visit::Outermost;
        }
        let address = if is_interrupted { caller.rip } else { caller.rip.wrapping_sub(1) };
        // A module with a frame on the stack stays loaded: one that has been found has not to be looked up again.
        if !self.module.as_ref().is_some_and(|module| module.range.contains(&address)) {
            self.module = LoadedModule::at(address);
        }
        if !is_by_rule && self.module.is_none() {
            // What has no unwind information may have used rbp for something else.
            return Visit::Lost;
        }
        self.stack.begin_at(caller.rsp);
        (self.registers, self.is_interrupted) = (caller, is_interrupted);
        Visit::Caller
    }
}

impl Iterator for CallStack {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        while !self.is_cut && self.visits_left > 0 {
            self.visits_left -= 1;
            match self.visit_caller() {
                Visit::Caller if self.module.as_ref().is_some_and(|module| module.is_own) => {}
                Visit::Caller => return Some(self.registers.rip),
                Visit::Outermost => {
                    self.visits_left = 0;
                    return None;
                }
                Visit::Lost => self.is_cut = true,
            }
        }
        None
    }
}

/// The rule of an address in a module, from its unwind information; `None` if it has none there.
fn new_rule_in(module: &LoadedModule, address: usize) -> Option<UnwindRule> {
    let rule = eh_frame::rule_of(&mut module.unwind_sections(), module.eh_frame_header, address)?;
    if let Some(packed) = rule.pack() {
        cache_rule(module, address, packed);
    }
    Some(rule)
}

/// The registers of the caller of a frame whose rule is known.
fn caller_by_rule(stack: &mut BoundedMemory, registers: &FrameRegisters, rule: &UnwindRule) -> Option<FrameRegisters> {
    let plus = |base: Option<usize>, offset: i32| Some(base?.wrapping_add_signed(offset as isize));
    let cfa = match rule.base {
        CfaBase::Rsp => plus(Some(registers.rsp), rule.cfa_offset)?,
        CfaBase::Rbp => plus(registers.rbp, rule.cfa_offset)?,
        CfaBase::Rbx => plus(registers.rbx, rule.cfa_offset)?,
        CfaBase::AtRsp => stack.word(plus(Some(registers.rsp), rule.cfa_offset)?)?,
        CfaBase::AtRbp => stack.word(plus(registers.rbp, rule.cfa_offset)?)?,
        CfaBase::Plt => {
            let is_second_half = registers.rip & 15 >= rule.cfa_offset as usize;
            registers.rsp.wrapping_add(if is_second_half { 16 } else { 8 })
        }
        CfaBase::Other => return None,
    };
    if !is_above(cfa, registers, stack) {
        return None;
    }
    let mut restored = |saved: SavedRegister, unchanged: Option<usize>| {
        let base = match saved.place {
            SavedAt::Same => return unchanged,
            SavedAt::Cfa => Some(cfa),
            SavedAt::Rsp => Some(registers.rsp),
            SavedAt::Rbp => registers.rbp,
            SavedAt::Undefined | SavedAt::Lost => None,
        };
        stack.word(plus(base, saved.offset)?)
    };
    Some(FrameRegisters {
        rip: restored(rule.return_address, None)?,
        rsp: cfa,
        rbp: restored(rule.rbp, registers.rbp),
        rbx: restored(rule.rbx, registers.rbx),
    })
}

/// As [`caller_by_rule`].
#[inline(always)]
fn caller_by_usual_rule(
    stack: &mut BoundedMemory,
    registers: &FrameRegisters,
    rule: &UsualRule,
) -> Option<FrameRegisters> {
    let base = if rule.is_from_rbp { registers.rbp? } else { registers.rsp };
    let cfa = base.wrapping_add_signed(rule.cfa_offset as isize);
    if !is_above(cfa, registers, stack) {
        return None;
    }
    let mut saved_at = |offset: isize| stack.word(cfa.wrapping_add_signed(offset));
    Some(FrameRegisters {
        rip: saved_at(rule.return_address_offset.into())?,
        rsp: cfa,
        rbp: rule.rbp_offset.map_or(registers.rbp, |offset| saved_at(offset as isize)),
        rbx: rule.rbx_offset.map_or(registers.rbx, |offset| saved_at(offset.into())),
    })
}

/// Whether `cfa` can be the stack pointer of the caller of a frame. Its end may be the stack's.
#[inline(always)]
fn is_above(cfa: usize, registers: &FrameRegisters, stack: &BoundedMemory) -> bool {
    cfa > registers.rsp && cfa <= stack.end() && cfa.is_multiple_of(8)
}

/// The registers of the caller of a frame whose function has no unwind information, but perhaps a frame pointer: rbp holds the
/// address of the caller's rbp, which the return address follows. A caller's stack is aligned to 16 bytes.
fn caller_by_frame_pointer(stack: &mut BoundedMemory, registers: &FrameRegisters) -> Option<FrameRegisters> {
    let rbp = registers.rbp.filter(|rbp| *rbp >= registers.rsp && rbp.is_multiple_of(16))?;
    let rsp = rbp.checked_add(16)?;
    if rsp > stack.end() {
        return None;
    }
    Some(FrameRegisters { rip: stack.word(rbp + 8)?, rsp, rbp: Some(stack.word(rbp)?), rbx: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A usual rule is followed in two ways, by [`caller_by_usual_rule`] and by [`caller_by_rule`].
    #[test]
    fn usual_rules_lead_to_the_same_caller_in_both_ways() {
        let words: Vec<usize> = (1000..1064).collect();
        let begin = words.as_ptr().addr();
        let range = begin..begin + 8 * words.len();
        let registers = |rbp| FrameRegisters { rip: 1, rsp: begin + 8, rbp, rbx: Some(77) };
        let same_or_saved = [SavedRegister::SAME, SavedRegister { place: SavedAt::Cfa, offset: -16 }];
        let mut callers = 0;
        for rbp in [Some(begin + 80), None, Some(range.end + 8)] {
            for base in [CfaBase::Rsp, CfaBase::Rbp] {
                for cfa_offset in [-80, 0, 4, 8, 64, 600] {
                    for saved in
                        [[0, 0], [0, 1], [1, 0], [1, 1]].map(|[rbp, rbx]| [same_or_saved[rbp], same_or_saved[rbx]])
                    {
                        let return_address = SavedRegister { place: SavedAt::Cfa, offset: -8 };
                        let [saved_rbp, saved_rbx] = saved;
                        let rule = UnwindRule {
                            base,
                            cfa_offset,
                            rbp: saved_rbp,
                            rbx: saved_rbx,
                            return_address,
                            is_signal_frame: false,
                        };
                        let usual = rule.pack().and_then(PackedRule::usual).unwrap();
                        let stack = || BoundedMemory::new(range.clone());
                        let caller = caller_by_rule(&mut stack(), &registers(rbp), &rule);
                        assert_eq!(caller_by_usual_rule(&mut stack(), &registers(rbp), &usual), caller, "{rule:?}");
                        callers += usize::from(caller.is_some());
                    }
                }
            }
        }
        assert!(callers >= 16, "{callers}");
    }

    #[test]
    fn what_is_not_usual_is_not_taken_for_it() {
        let at_cfa = SavedRegister { place: SavedAt::Cfa, offset: -8 };
        let usual = UnwindRule { base: CfaBase::Rsp, cfa_offset: 16, return_address: at_cfa, ..UnwindRule::UNKNOWN };
        let is_usual = |rule: UnwindRule| rule.pack().and_then(PackedRule::usual).is_some();
        assert!(is_usual(usual));
        for base in [CfaBase::Rbx, CfaBase::AtRsp, CfaBase::AtRbp, CfaBase::Plt, CfaBase::Other] {
            assert!(!is_usual(UnwindRule { base, ..usual }), "{base:?}");
        }
        for place in [SavedAt::Rsp, SavedAt::Rbp, SavedAt::Undefined, SavedAt::Lost] {
            let saved = SavedRegister { place, offset: 0 };
            let rules = [
                UnwindRule { rbp: saved, ..usual },
                UnwindRule { rbx: saved, ..usual },
                UnwindRule { return_address: saved, ..usual },
            ];
            assert!(!rules.into_iter().any(is_usual), "{place:?}");
        }
        assert!(!is_usual(UnwindRule { return_address: SavedRegister::SAME, ..usual }));
        assert!(!is_usual(UnwindRule { is_signal_frame: true, ..usual }));
        assert!(PackedRule([0, 0]).usual().is_none());
    }
}
