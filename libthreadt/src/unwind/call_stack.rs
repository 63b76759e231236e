//! A stack, frame by frame.

use super::bounded_memory::BoundedMemory;
use super::loaded_module::LoadedModule;
use super::rule::{CfaBase, SavedAt, SavedRegister, UnwindRule};
use super::{eh_frame, rule_cache};
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
        let rule = self.module.as_ref().and_then(|module| rule_in(module, address));
        let caller = match rule {
            Some(rule) if rule.return_address.place == SavedAt::Undefined => return Visit::Outermost,
            Some(rule) => caller_by_rule(&mut self.stack, &self.registers, &rule).map(|it| (it, rule.is_signal_frame)),
            None => caller_by_frame_pointer(&mut self.stack, &self.registers).map(|it| (it, false)),
        };
        let Some((caller, is_interrupted)) = caller else { return Visit::Lost };
        if caller.rip == 0 && rule.is_some() {
            return Visit::Outermost;
        }
        self.module = LoadedModule::at(if is_interrupted { caller.rip } else { caller.rip.wrapping_sub(1) });
        if rule.is_none() && self.module.is_none() {
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
                Visit::Caller if self.module.as_ref().is_some_and(LoadedModule::is_own) => {}
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

/// The rule of an address in a module; `None` if the module has no unwind information there.
fn rule_in(module: &LoadedModule, address: usize) -> Option<UnwindRule> {
    if let Some(rule) = rule_cache::cached_rule(module, address) {
        return Some(rule);
    }
    let rule = eh_frame::rule_of(&mut module.unwind_sections(), module.eh_frame_header, address)?;
    rule_cache::cache_rule(module, address, &rule);
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
    // A caller's frame is above. Its end may be the stack's.
    if cfa <= registers.rsp || cfa > stack.end() || !cfa.is_multiple_of(8) {
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
