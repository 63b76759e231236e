//! The caller of code without unwind information, by its frame pointer.
//!
//! If the code has set up a frame, rbp holds the address of its caller's rbp, which the return address follows. If it has left rbp
//! alone, as assembly and generated code do, that is the frame of a function further out, and its caller would be missing. Its own
//! return address is below that frame then. So rbp is believed only if no word between rsp and the frame may be a return address. One
//! that an earlier call has left there ends a stack that could have been followed: it is marked, and not wrong.

use super::bounded_memory::BoundedMemory;
use super::caller::FrameRegisters;
use super::framed_modules::FramedModules;
use super::loaded_module::LoadedModule;
use super::return_address::is_return_address;

/// How large a frame may be, bytes: each word of it is examined.
const FRAME_MAX: usize = 4096;

/// The registers of the caller of a frame whose function has no unwind information, if it has certainly set up a frame. A caller's stack
/// is aligned to 16 bytes.
///
/// The outermost function of a coroutine may have the rbp of who made the coroutine. So what is not on this stack is not followed.
pub fn caller_by_frame_pointer(
    stack: &mut BoundedMemory,
    registers: &FrameRegisters,
    framed: &FramedModules,
) -> Option<FrameRegisters> {
    let FrameRegisters { rip, rsp, rbp, .. } = *registers;
    if rbp < rsp || rbp - rsp > FRAME_MAX || !rbp.is_multiple_of(16) {
        return None;
    }
    let caller_rsp = rbp.checked_add(16)?;
    if caller_rsp > stack.end() || !stack.is_readable_up_to(caller_rsp) {
        return None;
    }
    let is_generated = LoadedModule::at(rip.wrapping_sub(1)).is_none();
    let generated_code = is_generated.then_some(rip);
    for place in (rsp..rbp).step_by(8) {
        if may_be_return_address(stack.word(place)?, generated_code, framed) {
            return None;
        }
    }
    let caller = FrameRegisters { rip: stack.word(rbp + 8)?, rsp: caller_rsp, rbp: stack.word(rbp)?, rbx: 0 };
    // Here what is not known must not count: rbp may be any number.
    let module = LoadedModule::at(caller.rip.wrapping_sub(1))?;
    is_return_address(&module, caller.rip, framed)?.then_some(caller)
}

/// Whether a word may be one. `generated_code`: where code of no module is that may have been called.
///
/// Code that a compiler generates at run time calls other such code. It may be removed at any time, so its instructions are not read:
/// any address near it may be one.
fn may_be_return_address(word: usize, generated_code: Option<usize>, framed: &FramedModules) -> bool {
    const NEAR: usize = 1 << 20;
    match LoadedModule::at(word.wrapping_sub(1)) {
        Some(module) => is_return_address(&module, word, framed) != Some(false),
        None => generated_code.is_some_and(|code| word.abs_diff(code) < NEAR),
    }
}
