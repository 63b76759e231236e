//! From the registers of a frame to those of its caller.

use super::bounded_memory::BoundedMemory;
use super::framed_modules::FramedModules;
use super::return_address::StackWords;
use super::rule::{CfaBase, PackedRule, SavedAt, SavedRegister, UnwindRule, UsualShape};
use super::rule_cache::LikelyCaller;
use crate::sys::signal_stack;
use crate::sys::stack::SS_AUTODISARM;

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
    /// r10 and r11, where a signal has interrupted the function; 0 as in rbp.
    pub scratch: [usize; 2],
}

/// Where the frame of a signal, with rsp at the kernel's `struct ucontext`, has r10 and r11.
const SCRATCH_SAVED_AT: [SavedRegister; 2] =
    [SavedRegister { place: SavedAt::Rsp, offset: 56 }, SavedRegister { place: SavedAt::Rsp, offset: 64 }];

/// The registers of the caller of a frame whose rule is known.
pub fn caller_by_rule(
    stack: &mut BoundedMemory,
    registers: &FrameRegisters,
    rule: &UnwindRule,
) -> Option<FrameRegisters> {
    let plus = |base: usize, offset: i32| base.wrapping_add_signed(offset as isize);
    let mut in_memory = |base: usize| {
        let word = stack.word(plus(base, rule.cfa_offset))?;
        Some(word.wrapping_add(rule.cfa_addend.into()))
    };
    let cfa = match rule.base {
        CfaBase::Rsp => plus(registers.rsp, rule.cfa_offset),
        CfaBase::Rbp => plus(registers.rbp, rule.cfa_offset),
        CfaBase::Rbx => plus(registers.rbx, rule.cfa_offset),
        CfaBase::AtRsp => in_memory(registers.rsp)?,
        CfaBase::AtRbp => in_memory(registers.rbp)?,
        CfaBase::Plt => {
            let is_second_half = registers.rip & 15 >= rule.cfa_offset as usize;
            registers.rsp.wrapping_add(if is_second_half { 16 } else { 8 })
        }
        CfaBase::R10 => plus(registers.scratch[0], rule.cfa_offset),
        CfaBase::R11 => plus(registers.scratch[1], rule.cfa_offset),
        CfaBase::Other => return None,
    };
    // The end of the frame may be the stack's.
    let is_on_stack = cfa > registers.rsp && cfa <= stack.end();
    let is_reached =
        if rule.is_signal_frame { is_interrupted(stack, registers.rsp, cfa, is_on_stack) } else { is_on_stack };
    if !cfa.is_multiple_of(8) || !is_reached {
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
    let [rip, rbp, rbx] = [(rule.return_address, 0), (rule.rbp, registers.rbp), (rule.rbx, registers.rbx)]
        .map(|(saved, unchanged)| restored(saved, unchanged));
    let scratch =
        if rule.is_signal_frame { SCRATCH_SAVED_AT.map(|saved| restored(saved, 0).unwrap_or(0)) } else { [0; 2] };
    Some(FrameRegisters { rip: rip?, rsp: cfa, rbp: rbp.unwrap_or(0), rbx: rbx.unwrap_or(0), scratch })
}

/// Whether what a signal's frame has interrupted at `interrupted` goes on when its handler returns; rsp is at the frame's `struct
/// ucontext`. `is_on_stack`: it is above the frame, and may be on the same stack.
///
/// A frame on the alternate stack has interrupted another one, which may be anywhere: it is where the thread goes on, and so a stack of
/// this thread. But a coroutine may have been begun by a handler, which has returned; it has the handler's stack, and the frame leads to
/// functions that have returned long ago, maybe of another thread. Then the kernel does not know that stack any more.
#[cold]
fn is_interrupted(stack: &mut BoundedMemory, rsp: usize, interrupted: usize, is_on_stack: bool) -> bool {
    let mut field = |offset: usize| stack.word(rsp.wrapping_add(offset));
    let [start, flags, size] = [16, 24, 32].map(&mut field);
    let (Some(start), Some(flags), Some(size)) = (start, flags, size) else { return false };
    let alternate = start..start.saturating_add(size);
    if !alternate.contains(&rsp) || is_on_stack && alternate.contains(&interrupted) {
        return is_on_stack;
    }
    // The kernel does not write the padding behind the flags. The frame has what was in force before; with this flag it is forgotten
    // while the handler runs.
    let is_disarmed = flags as u32 & SS_AUTODISARM != 0;
    signal_stack().is_ok_and(|present| {
        if present.ss_flags & libc::SS_DISABLE != 0 {
            is_disarmed
        } else {
            (present.ss_sp.addr(), present.ss_size) == (start, size)
        }
    })
}

/// As [`caller_by_rule`], for a frame whose rsp is a multiple of 8 and from whose rsp to `end` the stack can be read. `None` also if
/// the caller is not found so.
#[inline(always)]
pub fn caller_by_usual_rule(
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
        scratch: [0; 2],
    })
}

/// The registers of the caller of code that is not there: the call has put the return address on the stack, and nothing was executed
/// since. `None` if it was not called by a module: a function may have returned to there.
#[cold]
#[inline(never)]
pub fn caller_by_call(
    stack: &mut BoundedMemory,
    registers: &FrameRegisters,
    framed: &FramedModules,
) -> Option<FrameRegisters> {
    let rip = stack.word(registers.rsp)?;
    StackWords::new(framed).is_known_return_address(rip).then_some(FrameRegisters {
        rip,
        rsp: registers.rsp + 8,
        scratch: [0; 2],
        ..*registers
    })
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
                            cfa_addend: 0,
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
                        let registers = FrameRegisters { rip: 1, rsp: begin + 8, rbp, rbx: 77, scratch: [0; 2] };
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
