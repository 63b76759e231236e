//! The program's `main`: a cancelled main thread has its `thr_exit` as any other.
//!
//! The hook of `__libc_start_main` puts a function before `main` that gives the thread a cleanup handler. Earlier is too early:
//! glibc takes what is in the list then for an outer frame's. Both functions jump, so that no frame of theirs is on the stack.

use core::arch::naked_asm;
use core::ffi::c_void;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering::Relaxed};

use crate::glibc::cleanup_handler::{CleanupBuffer, push};
use crate::glibc::next_functions::{self, NextFunction};
use crate::lifecycle::end_by_unwinding;

/// The program's own `main`.
static MAIN: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
/// Room for the handler. It has to be on the stack above all frames: by the address glibc knows which handlers a
/// `longjmp` leaves behind.
static BUFFER: AtomicPtr<CleanupBuffer> = AtomicPtr::new(null_mut());

/// `int __libc_start_main(int (*main)(), int argc, char **argv, void (*init)(), void (*fini)(), void (*rtld_fini)(), void
/// *stack_end);`
///
/// It never returns, so that the stack may be moved. The seventh argument is there.
#[cfg_attr(not(test), unsafe(no_mangle))]
#[unsafe(naked)]
pub unsafe extern "C-unwind" fn __libc_start_main() {
    naked_asm!(
        ".cfi_startproc",
        ".cfi_undefined rip",
        "mov qword ptr [rip + {main}], rdi",
        "lea rdi, [rip + {before_main}]",
        "pop r10",
        "pop r11",
        "sub rsp, {size}",
        "mov qword ptr [rip + {buffer}], rsp",
        "push r11",
        "push r10",
        jump_to_next_with_registers!(),
        ".cfi_endproc",
        main = sym MAIN,
        before_main = sym before_main,
        size = const size_of::<CleanupBuffer>().next_multiple_of(16),
        buffer = sym BUFFER,
        next = sym next_functions::__libc_start_main,
        address = const NextFunction::ADDRESS_OFFSET,
        look_up = sym look_up,
    )
}

extern "C" fn look_up() -> *const () {
    next_functions::__libc_start_main.address()
}

#[unsafe(naked)]
extern "C" fn before_main() {
    naked_asm!(
        ".cfi_startproc",
        "push rdi",
        "push rsi",
        "push rdx",
        ".cfi_adjust_cfa_offset 24",
        "call {prepare}",
        "pop rdx",
        "pop rsi",
        "pop rdi",
        ".cfi_adjust_cfa_offset -24",
        "jmp qword ptr [rip + {main}]",
        ".cfi_endproc",
        prepare = sym prepare,
        main = sym MAIN,
    )
}

extern "C" fn prepare() {
    // SAFETY: the room stays as long as the thread; nothing else uses it.
    unsafe { push(BUFFER.load(Relaxed), main_left) };
}

extern "C" fn main_left(_argument: *mut c_void) {
    end_by_unwinding();
}
