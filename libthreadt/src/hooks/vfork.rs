//! `vfork`. It returns twice, to the same place: first in the child, which then uses the stack, and later in the parent.
//! So nothing of the hook may stand on the stack meanwhile. The return address stays in a register, as libc has it, and
//! the system call is made here; another interposer's `vfork` is jumped to, and then there is no record of the call.
//!
//! The child is in its parent's memory until it runs a program or ends, and records nothing of its own before. The call
//! of this hook initialises the parent, so that the child is recognised.

use core::arch::naked_asm;
use core::ffi::c_int;
use core::ptr::null;

use spec::id;

use super::fork::{put_entry_record, put_return_record};
use crate::glibc::next_functions;
use crate::recorder::records;
use crate::sys::errno::set_errno;
use crate::sys::stack_alignment::call_aligned;

/// The column `kind`.
const VFORK: u64 = 1;

/// `pid_t vfork(void);`
#[cfg_attr(not(test), unsafe(no_mangle))]
#[unsafe(naked)]
unsafe extern "C-unwind" fn vfork() {
    naked_asm!(
        ".cfi_startproc",
        "mov rdi, qword ptr [rsp]",
        call_aligned!("{before}"),
        "test rax, rax",
        "jz 2f",
        "jmp rax",
        "2:",
        "pop rdi",
        ".cfi_def_cfa_offset 0",
        ".cfi_register rip, rdi",
        "mov eax, {vfork}",
        // The kernel keeps all registers but rax, rcx and r11.
        "syscall",
        "push rdi",
        ".cfi_def_cfa_offset 8",
        ".cfi_offset rip, -8",
        "test rax, rax",
        "jz 3f",
        "mov rdi, rax",
        call_aligned!("{after}"),
        "3:",
        "ret",
        ".cfi_endproc",
        before = sym before_call,
        vfork = const libc::SYS_vfork,
        after = sym after_call_in_parent,
    )
}

/// Writes the entry record. Returns the function that is to be jumped to; null if the hook makes the system call.
unsafe extern "C-unwind" fn before_call(caller: u64) -> *const () {
    let next = next_functions::vfork.address();
    if !records(id::PROC_FORK) || !next_functions::vfork.is_libc() {
        return next;
    }
    put_entry_record(VFORK, caller);
    null()
}

/// Writes the return record, and returns what `vfork` returns.
unsafe extern "C-unwind" fn after_call_in_parent(result: isize) -> c_int {
    let child = if result < 0 {
        set_errno(-result as c_int);
        -1
    } else {
        result as c_int
    };
    put_return_record(VFORK, child);
    child
}
