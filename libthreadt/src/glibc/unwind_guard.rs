//! Calls that may end by unwinding.
//!
//! A thread that is cancelled in `cond_wait`, or an exception that leaves a `pthread_once` routine, unwinds through the
//! frames of this library. Something still has to be done then, such as to write the call's return record. A
//! personality routine does it: the unwinder calls that routine for the frame of `threadt_guarded_call`, which keeps
//! the address of its [`UnwindGuard`] in `rbx`. It needs no cleanup handler of the host and no thread-specific data,
//! and costs calls that return nothing.
//!
//! The Rust frames between the stub and the host are `extern "C-unwind"`. With `panic = "abort"` the compiler gives
//! such a frame a landing pad that ends the process. The personality routine of Rust frames decides whether the
//! unwinder enters it, and ours always lets the unwinder go on: cancellation, `pthread_exit` and exceptions are the
//! host's, and none of these frames has anything to drop.

use core::arch::{global_asm, naked_asm};
use core::ffi::{c_int, c_void};

use crate::sys::elf;
use crate::sys::stack_alignment::{enter_aligned, shift_arguments};

/// What is done if the call unwinds. Usually the first field of a struct that holds what `unwound` needs.
#[repr(C)]
pub struct UnwindGuard {
    /// Called with the guard's address when the unwinder leaves the frame.
    pub unwound: unsafe extern "C" fn(*const UnwindGuard),
}

unsafe extern "C-unwind" {
    /// Calls `function(a, b, c, d)` and returns its result.
    ///
    /// # Safety
    /// `function` must be callable with these arguments, integers or pointers, and `guard` with its own address. No
    /// frame between this one and the host's may have something to drop.
    #[link_name = "threadt_guarded_call"]
    pub fn guarded_call(function: *const (), guard: *const UnwindGuard, a: u64, b: u64, c: u64, d: u64) -> u64;
}

global_asm!(
    ".pushsection .text.threadt_guarded_call,\"ax\",@progbits",
    ".globl threadt_guarded_call",
    ".hidden threadt_guarded_call",
    ".type threadt_guarded_call,@function",
    "threadt_guarded_call:",
    // The personality belongs to the instructions during which rbx holds the guard. Before and behind them rbx is the
    // caller's, and an asynchronous cancellation may come at any instruction.
    ".cfi_startproc",
    "push rbx",
    ".cfi_adjust_cfa_offset 8",
    ".cfi_rel_offset rbx, 0",
    "mov rbx, rsi",
    ".cfi_endproc",
    ".cfi_startproc",
    // DW_EH_PE_pcrel | DW_EH_PE_sdata4
    ".cfi_personality 0x1b, {personality}",
    ".cfi_def_cfa_offset 16",
    ".cfi_offset rbx, -16",
    "mov rax, rdi",
    shift_arguments!(),
    "call rax",
    ".cfi_endproc",
    ".cfi_startproc",
    ".cfi_def_cfa_offset 16",
    ".cfi_offset rbx, -16",
    "pop rbx",
    ".cfi_def_cfa_offset 8",
    ".cfi_restore rbx",
    "ret",
    ".cfi_endproc",
    ".size threadt_guarded_call, . - threadt_guarded_call",
    ".popsection",
    personality = sym personality,
);

// The personality routine of all Rust frames: returns `_URC_CONTINUE_UNWIND`, whatever the phase.
#[cfg(not(test))]
global_asm!(
    ".pushsection .text.rust_eh_personality,\"ax\",@progbits",
    ".globl rust_eh_personality",
    ".hidden rust_eh_personality",
    ".type rust_eh_personality,@function",
    "rust_eh_personality:",
    ".cfi_startproc",
    "mov eax, {continue_unwind}",
    "ret",
    ".cfi_endproc",
    ".size rust_eh_personality, . - rust_eh_personality",
    ".popsection",
    continue_unwind = const CONTINUE_UNWIND,
);

/// `_UA_CLEANUP_PHASE`: the frames are being left, not only searched for a handler (Itanium C++ ABI, level 1).
const CLEANUP_PHASE: c_int = 2;
/// `_URC_CONTINUE_UNWIND`.
const CONTINUE_UNWIND: c_int = 8;
/// The DWARF number of `rbx` on x86-64.
const RBX: c_int = 3;

/// The personality routine of `threadt_guarded_call`. It has five arguments; the sixth register passes on the address
/// that called it: there may be several unwinders in a process, and only the one that called understands its context.
#[unsafe(naked)]
unsafe extern "C" fn personality() {
    naked_asm!("mov r9, qword ptr [rsp]", enter_aligned!("{unwinding}"), unwinding = sym unwinding)
}

/// Calls the guard's function and lets the unwinder go on; catches nothing.
unsafe extern "C" fn unwinding(
    _version: c_int,
    actions: c_int,
    _class: u64,
    _exception: *mut c_void,
    context: *mut c_void,
    unwinder: usize,
) -> c_int {
    if actions & CLEANUP_PHASE != 0
        // A statically linked unwinder may not export the function; then nothing is done.
        && let Some(get_register) = elf::definition_beside(unwinder, c"_Unwind_GetGR")
    {
        // SAFETY: the unwinder's function, with its own context; while the stub's frame is left, its rbx holds the
        // guard's address, and the frame above, which owns the guard, still stands.
        unsafe {
            let get_register: unsafe extern "C" fn(*mut c_void, c_int) -> usize =
                core::mem::transmute(get_register.address);
            let guard = get_register(context, RBX) as *const UnwindGuard;
            ((*guard).unwound)(guard);
        }
    }
    CONTINUE_UNWIND
}
