//! A stack, frame by frame.

use super::bounded_memory::BoundedMemory;
use super::eh_frame;
use super::loaded_module::LoadedModule;
use super::rule::{CfaBase, PackedRule, SavedAt, SavedRegister, UnwindRule, UsualShape};
use super::rule_cache::{LikelyCaller, ModuleKey, cache_rule, cached_rule};
use crate::sys::stack::end_of_stack_above;

/// The most frames that are visited, with those of this library, which are left out.
const VISITED_MAX: u32 = 128;

/// The registers of a frame by which its caller's are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameRegisters {
    /// The address at which the frame's function goes on.
    pub rip: usize,
    pub rsp: usize,
    /// 0 if it is not known: nothing is found from there.
    pub rbp: usize,
    /// As rbp.
    pub rbx: usize,
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

/// Why [`CallStack::follow_usual_rules`] goes no further.
enum Stop {
    /// There is no place left.
    Full,
    /// The frame's registers are known, but not whether they are those of the module, or of any.
    OtherModule,
    /// The frame's caller is to be found in another way.
    Unusual,
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
    code_of_no_module: Option<usize>,
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
            code_of_no_module: None,
        }
    }

    /// An address of the stack that was in no module at that time; `None` also if not all modules are known.
    pub fn code_of_no_module(&self) -> Option<usize> {
        self.code_of_no_module.filter(|_| LoadedModule::are_all_known())
    }

    /// Whether the stack ended where it could not be followed further.
    pub fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// Puts the next return addresses into `places`, and returns how many there are. If these are fewer, the stack has ended.
    pub fn take_into(&mut self, places: &mut [u64]) -> usize {
        let mut taken = 0;
        while !self.is_cut
            && self.visits_left > 0
            && let Some(free) = places.get_mut(taken..).filter(|free| !free.is_empty())
        {
            let is_own = self.module.as_ref().is_some_and(|module| module.is_own);
            let left_out = &mut [0; 4];
            let (count, stop) = self.follow_usual_rules(if is_own { left_out } else { free });
            if !is_own {
                taken += count;
            }
            let visit = match stop {
                Stop::Full => continue,
                Stop::OtherModule => self.enter(self.registers, false, true),
                Stop::Unusual => self.visit_caller(),
            };
            self.visits_left -= 1;
            match visit {
                Visit::Caller if self.module.as_ref().is_some_and(|module| module.is_own) => {}
                Visit::Caller => {
                    if let Some(place) = places.get_mut(taken) {
                        *place = self.registers.rip as u64;
                        taken += 1;
                    }
                }
                Visit::Outermost => self.visits_left = 0,
                Visit::Lost => self.is_cut = true,
            }
        }
        taken
    }

    /// Goes from frame to frame as long as nothing has to be found out: the rule is known and a usual one, and the memory has been
    /// probed. Puts the callers' addresses into `places`, and returns how many there are.
    #[inline(never)]
    fn follow_usual_rules(&mut self, places: &mut [u64]) -> (usize, Stop) {
        let mut frame = self.registers;
        let module = self.module.as_ref().filter(|_| !self.is_interrupted && frame.rsp.is_multiple_of(8));
        let Some(key) = module.and_then(ModuleKey::of) else {
            return (0, Stop::Unusual);
        };
        let end = self.stack.readable_end();
        let mut cached = cached_rule(key, frame.rip);
        let (mut count, mut stop) = (0, Stop::Full);
        for place in places {
            let by_usual_rule = |(rule, likely_caller)| caller_by_usual_rule(&frame, rule, likely_caller, end);
            let Some(caller) = cached.and_then(by_usual_rule) else {
                stop = Stop::Unusual;
                break;
            };
            frame = caller;
            cached = cached_rule(key, frame.rip);
            if cached.is_none() {
                stop = Stop::OtherModule;
                break;
            }
            // What the module has a rule for is an address in it.
            *place = frame.rip as u64;
            count += 1;
        }
        self.registers = frame;
        self.stack.begin_at(frame.rsp);
        self.visits_left = self.visits_left.saturating_sub(count as u32);
        (count, stop)
    }

    /// Goes from the frame to its caller's.
    fn visit_caller(&mut self) -> Visit {
        let address = if self.is_interrupted { self.registers.rip } else { self.registers.rip.wrapping_sub(1) };
        let key = self.module.as_ref().and_then(ModuleKey::of);
        let cached = key.and_then(|key| cached_rule(key, address.wrapping_add(1)));
        let new_rule = || new_rule_in(self.module.as_ref()?, key, address);
        let rule = cached.and_then(|(rule, _)| rule.unpack()).or_else(new_rule);
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
    fn enter(&mut self, caller: FrameRegisters, is_interrupted: bool, is_by_rule: bool) -> Visit {
        if caller.rip == 0 && is_by_rule {
            return Visit::Outermost;
        }
        let address = if is_interrupted { caller.rip } else { caller.rip.wrapping_sub(1) };
        // A module with a frame on the stack stays loaded: one that has been found has not to be looked up again.
        if !self.module.as_ref().is_some_and(|module| module.range.contains(&address)) {
            self.module = LoadedModule::at(address);
            if self.module.is_none() && self.code_of_no_module.is_none() {
                self.code_of_no_module = Some(address);
            }
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
        let mut place = [0];
        (self.take_into(&mut place) == 1).then_some(place[0] as usize)
    }
}

/// The rule of an address in a module, from its unwind information; `None` if it has none there. It is cached by the module's key.
fn new_rule_in(module: &LoadedModule, key: Option<ModuleKey>, address: usize) -> Option<UnwindRule> {
    let rule = eh_frame::rule_of(&mut module.unwind_sections(), module.eh_frame_header, address)?;
    if let (Some(key), Some(packed)) = (key, rule.pack()) {
        cache_rule(key, address.wrapping_add(1), packed);
    }
    Some(rule)
}

/// The registers of the caller of a frame whose rule is known.
fn caller_by_rule(stack: &mut BoundedMemory, registers: &FrameRegisters, rule: &UnwindRule) -> Option<FrameRegisters> {
    let plus = |base: usize, offset: i32| base.wrapping_add_signed(offset as isize);
    let cfa = match rule.base {
        CfaBase::Rsp => plus(registers.rsp, rule.cfa_offset),
        CfaBase::Rbp => plus(registers.rbp, rule.cfa_offset),
        CfaBase::Rbx => plus(registers.rbx, rule.cfa_offset),
        CfaBase::AtRsp => stack.word(plus(registers.rsp, rule.cfa_offset))?,
        CfaBase::AtRbp => stack.word(plus(registers.rbp, rule.cfa_offset))?,
        CfaBase::Plt => {
            let is_second_half = registers.rip & 15 >= rule.cfa_offset as usize;
            registers.rsp.wrapping_add(if is_second_half { 16 } else { 8 })
        }
        CfaBase::Other => return None,
    };
    // The end of the frame may be the stack's.
    if cfa <= registers.rsp || cfa > stack.end() || !cfa.is_multiple_of(8) {
        return None;
    }
    let mut restored = |saved: SavedRegister, unchanged: usize| {
        let base = match saved.place {
            SavedAt::Same => return Some(unchanged),
            SavedAt::Cfa => cfa,
            SavedAt::Rsp => registers.rsp,
            SavedAt::Rbp => registers.rbp,
            SavedAt::Undefined | SavedAt::Lost => return None,
        };
        stack.word(plus(base, saved.offset))
    };
    Some(FrameRegisters {
        rip: restored(rule.return_address, 0)?,
        rsp: cfa,
        rbp: restored(rule.rbp, registers.rbp).unwrap_or(0),
        rbx: restored(rule.rbx, registers.rbx).unwrap_or(0),
    })
}

/// As [`caller_by_rule`], for a frame whose rsp is a multiple of 8 and from whose rsp to `end` the stack can be read. `None` also if
/// the caller is not found so.
#[inline(always)]
fn caller_by_usual_rule(
    frame: &FrameRegisters,
    rule: PackedRule,
    likely_caller: &LikelyCaller,
    end: usize,
) -> Option<FrameRegisters> {
    // SAFETY: what is read below lies within the frame, by the shape of its rule or because it is compared, and so below `end`: it is
    // this thread's stack, which has been probed.
    let word = |address: usize| unsafe { (address as *const usize).read_volatile() };
    let (cfa, lowest) = match rule.shape()? {
        UsualShape::OnRsp => (frame.rsp.wrapping_add_signed(rule.cfa_offset() as isize), 0),
        UsualShape::OnRbp if frame.rbp >= frame.rsp && frame.rbp.is_multiple_of(8) => {
            (frame.rbp.checked_add(16)?, frame.rsp)
        }
        UsualShape::OnRbp => return None,
    };
    if cfa > end {
        return None;
    }
    let saved = |offset: Option<isize>, unchanged: usize| match offset.map(|offset| cfa.wrapping_add_signed(offset)) {
        None => Some(unchanged),
        Some(address) => (address >= lowest).then(|| word(address)),
    };
    Some(FrameRegisters {
        rbp: saved(rule.rbp_offset(), frame.rbp)?,
        rbx: saved(rule.rbx_offset(), frame.rbx)?,
        rip: likely_caller.confirmed(word(cfa.wrapping_sub(8))),
        rsp: cfa,
    })
}

/// The registers of the caller of a frame whose function has no unwind information, but perhaps a frame pointer: rbp holds the
/// address of the caller's rbp, which the return address follows. A caller's stack is aligned to 16 bytes.
fn caller_by_frame_pointer(stack: &mut BoundedMemory, registers: &FrameRegisters) -> Option<FrameRegisters> {
    let rbp = registers.rbp;
    if rbp < registers.rsp || !rbp.is_multiple_of(16) {
        return None;
    }
    let rsp = rbp.checked_add(16)?;
    if rsp > stack.end() {
        return None;
    }
    Some(FrameRegisters { rip: stack.word(rbp + 8)?, rsp, rbp: stack.word(rbp)?, rbx: 0 })
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
        let same_or_saved = [SavedRegister::SAME]
            .into_iter()
            .chain([-16, -24, -64].map(|offset| SavedRegister { place: SavedAt::Cfa, offset }));
        let same_or_saved: Vec<SavedRegister> = same_or_saved.collect();
        let return_address = SavedRegister { place: SavedAt::Cfa, offset: -8 };
        let (mut callers, mut unusual) = (0, 0);
        for rbp in [begin + 80, begin + 84, begin, 0, range.end - 16, range.end - 8, range.end + 8, usize::MAX - 7] {
            for (base, cfa_offset) in [
                (CfaBase::Rsp, 8),
                (CfaBase::Rsp, 64),
                (CfaBase::Rsp, 600),
                (CfaBase::Rsp, 8 * words.len() as i32 - 8),
                (CfaBase::Rbp, 16),
            ] {
                for rbp_rule in &same_or_saved {
                    for rbx_rule in &same_or_saved {
                        let rule = UnwindRule {
                            base,
                            cfa_offset,
                            rbp: *rbp_rule,
                            rbx: *rbx_rule,
                            return_address,
                            is_signal_frame: false,
                        };
                        let packed = rule.pack().unwrap();
                        if packed.shape().is_none() {
                            unusual += 1;
                            continue;
                        }
                        let registers = FrameRegisters { rip: 1, rsp: begin + 8, rbp, rbx: 77 };
                        let likely_caller = LikelyCaller::new();
                        let usual = caller_by_usual_rule(&registers, packed, &likely_caller, range.end);
                        let caller = caller_by_rule(&mut BoundedMemory::new(range.clone()), &registers, &rule);
                        // What is not within the frame is found by the slower way only.
                        let is_whole = caller.is_some_and(|it| it.rbp != 0 && it.rbx != 0) && rbp >= registers.rsp;
                        assert_eq!(usual, caller.filter(|_| usual.is_some() || is_whole), "{rule:?} {rbp:#x}");
                        callers += usize::from(usual.is_some());
                    }
                }
            }
        }
        assert!(callers >= 16 && unusual >= 16, "{callers} {unusual}");
    }

    /// A caller that was noted is not taken for the one that the stack has.
    #[test]
    fn another_caller_than_the_likely_one_is_found() {
        let likely_caller = LikelyCaller::new();
        for found in [5, 5, 6, 5, 7, 0] {
            assert_eq!(likely_caller.confirmed(found), found);
        }
    }

    #[test]
    fn what_is_not_usual_is_not_taken_for_it() {
        let at_cfa = |offset| SavedRegister { place: SavedAt::Cfa, offset };
        let usual =
            UnwindRule { base: CfaBase::Rsp, cfa_offset: 32, return_address: at_cfa(-8), ..UnwindRule::UNKNOWN };
        let framed = UnwindRule { base: CfaBase::Rbp, cfa_offset: 16, rbp: at_cfa(-16), ..usual };
        let shape = |rule: UnwindRule| rule.pack().and_then(PackedRule::shape);
        assert_eq!([shape(usual), shape(framed)], [Some(UsualShape::OnRsp), Some(UsualShape::OnRbp)]);
        assert_eq!(shape(UnwindRule { rbp: at_cfa(-32), rbx: at_cfa(-24), ..usual }), Some(UsualShape::OnRsp));
        for base in [CfaBase::Rbx, CfaBase::AtRsp, CfaBase::AtRbp, CfaBase::Plt, CfaBase::Other] {
            assert_eq!(shape(UnwindRule { base, ..usual }), None, "{base:?}");
        }
        // Below the frame, over the return address, not at a word.
        for offset in [-40, -8, 0, 8, -20] {
            assert_eq!(shape(UnwindRule { rbp: at_cfa(offset), ..usual }), None, "{offset}");
            assert_eq!(shape(UnwindRule { rbx: at_cfa(offset), ..usual }), None, "{offset}");
        }
        for cfa_offset in [0, 4, -8, 12] {
            assert_eq!(shape(UnwindRule { cfa_offset, ..usual }), None, "{cfa_offset}");
        }
        assert_eq!(shape(UnwindRule { cfa_offset: 24, ..framed }), None);
        for place in [SavedAt::Rsp, SavedAt::Rbp, SavedAt::Undefined, SavedAt::Lost] {
            let saved = SavedRegister { place, offset: -16 };
            let rules = [
                UnwindRule { rbp: saved, ..usual },
                UnwindRule { rbx: saved, ..usual },
                UnwindRule { return_address: saved, ..usual },
            ];
            assert!(!rules.into_iter().any(|rule| shape(rule).is_some()), "{place:?}");
        }
        assert_eq!(shape(UnwindRule { return_address: SavedRegister::SAME, ..usual }), None);
        assert_eq!(shape(UnwindRule { return_address: at_cfa(-16), ..usual }), None);
        assert_eq!(shape(UnwindRule { is_signal_frame: true, ..usual }), None);
        assert!(PackedRule([0, 0]).shape().is_none());
    }
}
