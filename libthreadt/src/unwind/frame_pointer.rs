//! The caller of code without unwind information, by its frame pointer.
//!
//! If the code has set up a frame, rbp holds the address of its caller's rbp, which the return address follows. If it has left rbp
//! alone, as assembly and generated code do, that is the frame of a function further out, and its caller would be missing. Its own
//! return address is below that frame then. So rbp is believed only if no word between rsp and the frame may be a return address. One
//! that an earlier call has left there ends a stack that could have been followed: it is marked, and not wrong.
//!
//! Nor must the code use rbp for frames at all: it may hold any number, such as the address of a struct that has a pointer to a function
//! where the return address would be. So that must be behind a call which may have led to the code.

use super::bounded_memory::BoundedMemory;
use super::caller::FrameRegisters;
use super::framed_modules::FramedModules;
use super::loaded_module::LoadedModule;
use super::return_address::StackWords;

/// How large a frame may be, bytes: each word of it is examined.
const FRAME_MAX: usize = 4096;

/// The registers of the caller of a frame whose function has no unwind information, if it has certainly set up a frame. A caller's stack
/// is aligned to 16 bytes.
///
/// The outermost function of a coroutine may have the rbp of who made the coroutine. So what is not on this stack is not followed.
#[cold]
#[inline(never)]
pub fn caller_by_frame_pointer(
    stack: &mut BoundedMemory,
    registers: &FrameRegisters,
    module: Option<&LoadedModule>,
    framed: &FramedModules,
) -> Option<FrameRegisters> {
    let FrameRegisters { rip, rsp, rbp, .. } = *registers;
    if rbp < rsp || rbp - rsp > FRAME_MAX || !rbp.is_multiple_of(16) {
        return None;
    }
    let caller_rsp = rbp.checked_add(16)?;
    if caller_rsp > stack.end() || !stack.can_read(rsp..caller_rsp) {
        return None;
    }
    // Code that a compiler generates at run time may be removed at any time.
    let generated_code = module.is_none().then_some(rip);
    let mut words = StackWords::new(framed);
    for place in (rsp..rbp).step_by(8) {
        let word = stack.word(place)?;
        if !(rsp..caller_rsp).contains(&word) && words.may_be_return_address(word, generated_code) {
            return None;
        }
    }
    let caller =
        FrameRegisters { rip: stack.word(rbp + 8)?, rsp: caller_rsp, rbp: stack.word(rbp)?, rbx: 0, scratch: [0; 2] };
    // Here what is not known must not count: rbp may be any number.
    words.is_of_call_to(module, caller.rip).then_some(caller)
}
