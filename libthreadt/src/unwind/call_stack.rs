//! A stack, frame by frame.

use super::bounded_memory::BoundedMemory;
use super::caller::{FrameRegisters, caller_by_call, caller_by_rule, caller_by_usual_rule};
use super::eh_frame;
use super::frame_pointer::caller_by_frame_pointer;
use super::framed_modules::FramedModules;
use super::loaded_module::LoadedModule;
use super::return_address::StackWords;
use super::rule::{HANDLERS_RETURN, SavedAt, UnwindRule};
use super::rule_cache::{ModuleKey, cache_rule, cached_rule};
use crate::sys::is_readable;

/// The most frames that are visited, with those of this library, which are left out. A longer stack is cut.
const VISITED_MAX: u32 = 128;

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

/// The return addresses of a stack, innermost first, without those into this library. Of a frame that a signal has interrupted, it is
/// the address of the instruction to which the handler returns, plus 1: whoever looks up the byte before an address finds the code that
/// was in progress, whatever the frame is.
pub struct CallStack {
    registers: FrameRegisters,
    /// From the frame's stack pointer to the end of the stack.
    stack: BoundedMemory,
    /// The module that has code at rip.
    module: Option<LoadedModule>,
    /// The frame has been interrupted by a signal, and has not called.
    is_interrupted: bool,
    /// 0 also behind the outermost frame.
    visits_left: u32,
    is_cut: bool,
    code_of_no_module: Option<usize>,
    /// Unwind information has led from the innermost frame to this one, so that it is one.
    is_certain: bool,
    framed: FramedModules,
    /// Nothing of the module may be read, and no rule of it used: it may be closed at any time.
    is_unreadable: bool,
}

impl CallStack {
    /// The stack above a frame of this thread whose function has called the present one.
    pub fn above(registers: FrameRegisters) -> CallStack {
        let module = LoadedModule::at(registers.rip.wrapping_sub(1));
        let mut framed = FramedModules::default();
        if let Some(module) = &module {
            framed.add(module.identity);
        }
        CallStack {
            registers,
            stack: BoundedMemory::of_stack(registers.rsp, true),
            module,
            is_interrupted: false,
            visits_left: VISITED_MAX,
            is_cut: false,
            code_of_no_module: None,
            is_certain: true,
            framed,
            is_unreadable: false,
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
                Stop::Full => {
                    self.is_cut = self.visits_left == 0;
                    continue;
                }
                Stop::OtherModule => self.enter(self.registers, false, true),
                Stop::Unusual => self.visit_caller(),
            };
            // The usual rules may have gone a little too far.
            self.visits_left = self.visits_left.saturating_sub(1);
            match visit {
                Visit::Caller if self.module.as_ref().is_some_and(|module| module.is_own) => {}
                Visit::Caller => {
                    let address = self.registers.rip.wrapping_add(self.is_interrupted.into()) as u64;
                    // In a record 0 and 1 are no addresses: a null pointer was called, or one of which all bits are set.
                    if let Some(place) = places.get_mut(taken).filter(|_| address > 1) {
                        *place = address;
                        taken += 1;
                    }
                }
                Visit::Outermost => {
                    self.visits_left = 0;
                    break;
                }
                Visit::Lost => self.is_cut = true,
            }
            self.is_cut |= self.visits_left == 0;
        }
        taken
    }

    /// Goes from frame to frame as long as nothing has to be found out: the rule is known and a usual one, and the memory has been
    /// probed. Puts the callers' addresses into `places`, and returns how many there are.
    #[inline(never)]
    fn follow_usual_rules(&mut self, places: &mut [u64]) -> (usize, Stop) {
        let mut frame = self.registers;
        let is_usual = self.is_certain && !self.is_interrupted && frame.rsp.is_multiple_of(8);
        let module = self.module.as_ref().filter(|_| is_usual);
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
        if self.is_unreadable {
            return Visit::Lost;
        }
        let address = if self.is_interrupted { self.registers.rip } else { self.registers.rip.wrapping_sub(1) };
        let key = self.module.as_ref().and_then(ModuleKey::of);
        let cached = key.and_then(|key| cached_rule(key, address.wrapping_add(1)));
        let new_rule = || new_rule_in(self.module.as_ref()?, &self.framed, key, address);
        let rule = cached.and_then(|(rule, _)| rule.unpack()).or_else(new_rule);
        let caller = match rule {
            Some(rule) if rule.return_address.place == SavedAt::Undefined => return Visit::Outermost,
            Some(rule) => caller_by_rule(&mut self.stack, &self.registers, &rule).map(|it| (it, rule.is_signal_frame)),
            // Whether it has unwind information is not known.
            None if self.module.as_ref().is_some_and(|module| !module.can_be_read(&self.framed)) => return Visit::Lost,
            None if self.is_return_from_handler() => {
                caller_by_rule(&mut self.stack, &self.registers, &HANDLERS_RETURN).map(|it| (it, true))
            }
            None if self.is_nowhere() => {
                caller_by_call(&mut self.stack, &self.registers, &self.framed).map(|it| (it, false))
            }
            None => {
                let module = self.module.as_ref();
                caller_by_frame_pointer(&mut self.stack, &self.registers, module, &self.framed).map(|it| (it, false))
            }
        };
        match caller {
            Some((caller, is_interrupted)) => self.enter(caller, is_interrupted, rule.is_some() || is_interrupted),
            None => Visit::Lost,
        }
    }

    /// Whether the frame is a signal's: its code, without unwind information, is what a handler returns to.
    #[cold]
    #[inline(never)]
    fn is_return_from_handler(&self) -> bool {
        !self.is_interrupted && StackWords::new(&self.framed).is_return_from_handler(self.registers.rip)
    }

    /// Whether the frame has executed nothing: the signal was raised because there is no code where it was called.
    fn is_nowhere(&self) -> bool {
        self.is_interrupted && self.module.is_none() && !is_readable(self.registers.rip & !7)
    }

    #[cold]
    #[inline(never)]
    fn is_no_return_address(&self, address: usize) -> bool {
        StackWords::new(&self.framed).is_return_address(address) == Some(false)
    }

    /// Makes the caller's frame the present one. `is_by_rule`: its registers follow from unwind information.
    fn enter(&mut self, caller: FrameRegisters, is_interrupted: bool, is_by_rule: bool) -> Visit {
        self.is_certain &= is_by_rule;
        if caller.rip == 0 && is_by_rule && !is_interrupted {
            // What a wrong frame leads to is often 0.
            return if self.is_certain { Visit::Outermost } else { Visit::Lost };
        }
        if !self.is_certain && !is_interrupted && self.is_no_return_address(caller.rip) {
            return Visit::Lost;
        }
        let address = if is_interrupted { caller.rip } else { caller.rip.wrapping_sub(1) };
        // A module with a frame on the stack stays loaded: one that has been found has not to be looked up again.
        if !self.module.as_ref().is_some_and(|module| module.range.contains(&address)) {
            self.module = LoadedModule::at(address);
            match &self.module {
                // What a coroutine's stack has behind its outermost frame may be any word.
                Some(module) if self.is_certain && !self.stack.is_copied() => self.framed.add(module.identity),
                module => self.is_unreadable = module.as_ref().is_some_and(|module| !module.can_be_read(&self.framed)),
            }
            if self.module.is_none() && self.code_of_no_module.is_none() && caller.rip != 0 {
                self.code_of_no_module = Some(address);
            }
        }
        if !is_by_rule && self.module.is_none() {
            // What has no unwind information may have used rbp for something else.
            return Visit::Lost;
        }
        if is_interrupted {
            // On another stack, if the handler is on the alternate one.
            self.stack = BoundedMemory::of_interrupted_stack(caller.rsp);
        } else {
            self.stack.begin_at(caller.rsp);
        }
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
fn new_rule_in(
    module: &LoadedModule,
    framed: &FramedModules,
    key: Option<ModuleKey>,
    address: usize,
) -> Option<UnwindRule> {
    let mut sections = module.unwind_sections();
    if !module.allow(&mut sections, framed) {
        return None;
    }
    let rule = eh_frame::rule_of(&mut sections, module.eh_frame_header, address)?;
    if let (Some(key), Some(packed)) = (key, rule.pack()) {
        cache_rule(key, address.wrapping_add(1), packed);
    }
    Some(rule)
}

#[cfg(test)]
mod tests {
    use std::arch::asm;
    use std::hint::black_box;

    use super::*;
    use crate::glibc::next_functions;

    /// The address of this code and its registers.
    #[inline(always)]
    fn registers_here() -> FrameRegisters {
        let (rip, rsp, rbp, rbx);
        // SAFETY: registers are read.
        unsafe {
            asm!(
                "mov {rbx_value}, rbx",
                "lea {rip}, [rip]",
                "mov {rsp}, rsp",
                "mov {rbp}, rbp",
                rbx_value = out(reg) rbx,
                rip = out(reg) rip,
                rsp = out(reg) rsp,
                rbp = out(reg) rbp,
                options(nomem, nostack)
            );
        }
        FrameRegisters { rip, rsp, rbp, rbx, scratch: [0; 2] }
    }

    /// How many addresses of other modules are found below so many frames of this one, and whether the stack is cut.
    #[inline(never)]
    fn addresses_below(depth: usize) -> (usize, bool) {
        let memory = black_box([depth; 20]);
        let result = if memory[7] > 0 {
            addresses_below(depth - 1)
        } else {
            let mut stack = CallStack::above(registers_here());
            let taken = stack.take_into(&mut [0; 64]);
            (taken, stack.is_cut())
        };
        black_box(memory);
        result
    }

    /// Frames of this library count, too, though they are left out: hooks may be nested.
    #[test]
    #[cfg_attr(miri, ignore = "needs unwind information")]
    fn a_stack_with_too_many_frames_is_cut() {
        next_functions::look_up_all();
        let limit = VISITED_MAX as usize;
        let results: Vec<(usize, bool)> = (0..3 * limit).map(addresses_below).collect();
        let whole = results.iter().take_while(|(_, is_cut)| !is_cut).count();
        assert!((limit / 2..limit + 4).contains(&whole), "{whole} {results:?}");
        assert!(results[..whole].iter().all(|(taken, _)| *taken > 0), "{results:?}");
        assert!(results[whole + 4..].iter().all(|result| *result == (0, true)), "{results:?}");
    }
}
