//! Calls that may end by unwinding.
//!
//! A thread that is cancelled in `cond_wait`, or an exception that leaves a `pthread_once` routine, unwinds through our
//! frame. The record of such a call still gets its second half. Without touching the host's cleanup handlers or
//! thread-specific data, and at no cost for calls that return, this is done by a personality routine: the unwinder calls
//! it for the frame of `threadt_guarded_call`, which keeps the address of its [`Guard`] in `rbx`.

use core::arch::{global_asm, naked_asm};
use core::ffi::{c_int, c_void};

use spec::RecordKind;

use crate::{clock, elf, record};

/// What is done if the call unwinds.
#[repr(C)]
pub struct Guard {
    /// Called in the frame's place.
    pub unwound: extern "C" fn(&Guard),
    /// The second record of the call.
    pub form: &'static RecordKind,
    /// Its arguments.
    pub arguments: [u64; 5],
}

impl Guard {
    /// A guard that writes the second record with these arguments.
    pub const fn record(form: &'static RecordKind, arguments: [u64; 5]) -> Guard {
        Guard { unwound: put_second, form, arguments }
    }

    /// Calls `function` with up to four arguments and returns what it returned.
    ///
    /// # Safety
    /// `function` must be callable with these arguments, each an integer or a pointer. No frame between this one and
    /// the host's may have something to drop.
    #[inline(always)]
    pub unsafe fn call(&self, function: *const (), a: u64, b: u64, c: u64, d: u64) -> u64 {
        // SAFETY: the caller's.
        unsafe { threadt_guarded_call(function, self, a, b, c, d) }
    }
}

extern "C" fn put_second(guard: &Guard) {
    record::put(guard.form, clock::now(), guard.arguments);
}

#[expect(improper_ctypes, reason = "the stub passes the guard's address on and does not look behind it")]
unsafe extern "C" {
    /// Calls `function(a, b, c, d)`; see below.
    fn threadt_guarded_call(function: *const (), guard: *const Guard, a: u64, b: u64, c: u64, d: u64) -> u64;
}

global_asm!(
    ".pushsection .text.threadt_guarded_call,\"ax\",@progbits",
    ".globl threadt_guarded_call",
    ".hidden threadt_guarded_call",
    ".type threadt_guarded_call,@function",
    "threadt_guarded_call:",
    // The personality belongs to the instructions that have the guard in rbx; before and behind them rbx is the caller's,
    // and an asynchronous cancellation may come at any of them.
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
    "mov rdi, rdx",
    "mov rsi, rcx",
    "mov rdx, r8",
    "mov rcx, r9",
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

/// `_UA_CLEANUP_PHASE`: frames are really being left (Itanium C++ ABI, level 1).
const CLEANUP_PHASE: c_int = 2;
/// `_URC_CONTINUE_UNWIND`.
const CONTINUE_UNWIND: c_int = 8;
/// The DWARF number of `rbx` on x86-64.
const RBX: c_int = 3;

/// The personality routine of `threadt_guarded_call`. It has five arguments; the sixth register takes along from where it
/// was called: there may be several unwinders in a process, and only the one that calls us understands its context.
#[unsafe(naked)]
unsafe extern "C" fn personality() {
    naked_asm!("mov r9, qword ptr [rsp]", "jmp {unwinding}", unwinding = sym unwinding)
}

/// Catches nothing, records, lets the unwinder go on.
unsafe extern "C" fn unwinding(
    _version: c_int,
    actions: c_int,
    _class: u64,
    _exception: *mut c_void,
    context: *mut c_void,
    unwinder: usize,
) -> c_int {
    if actions & CLEANUP_PHASE != 0
        // An unwinder that is linked statically may not have the function; then the record is missing.
        && let Some(get_register) = elf::beside(unwinder, c"_Unwind_GetGR")
    {
        // SAFETY: the unwinder's function, with its own context; while the stub's frame is left, its rbx holds the
        // guard's address, and the frame above, which owns the guard, still stands.
        unsafe {
            let get_register: unsafe extern "C" fn(*mut c_void, c_int) -> usize =
                core::mem::transmute(get_register.address);
            let guard = &*(get_register(context, RBX) as *const Guard);
            (guard.unwound)(guard);
        }
    }
    CONTINUE_UNWIND
}
