//! `clone`, by libc's function or by `syscall`. These hooks record nothing: a child that is forked finds out by itself. They
//! prepare for children in other namespaces, for those that run beside this thread in its memory, and for those that use
//! its table of descriptors.

use core::arch::naked_asm;
use core::ffi::{c_int, c_long};
use core::ptr::with_exposed_provenance;

use super::sandbox::MOVES_FILES;
use crate::first_use::after_fork_in_child;
use crate::glibc::next_functions::{self, NextFunction};
use crate::lifecycle::{prepare_for_sandbox, share_thread};
use crate::sys::stack_alignment::call_aligned;
use crate::sys::{self, descriptor_table};

/// Defines hooks of `int clone(int (*fn)(void *), void *stack, int flags, void *arg, ...);`
///
/// The next function finds registers and stack as the caller left them, so that nothing of the hook is on a stack that the
/// child may use, too.
macro_rules! clone_functions {
    ($($name:ident, $look_up:ident;)+) => {$(
        #[cfg_attr(not(test), unsafe(no_mangle))]
        #[unsafe(naked)]
        unsafe extern "C-unwind" fn $name() {
            naked_asm!(
                ".cfi_startproc",
                save_registers!(),
                "mov edi, edx",
                call_aligned!("{prepare}"),
                restore_registers!(),
                jump_to_next_with_registers!(),
                ".cfi_endproc",
                prepare = sym prepare_for_clone,
                next = sym next_functions::$name,
                address = const NextFunction::ADDRESS_OFFSET,
                look_up = sym $look_up,
            )
        }

        extern "C" fn $look_up() -> *const () {
            next_functions::$name.address()
        }
    )+};
}

clone_functions! {
    clone, look_up_clone;
    __clone, look_up_old_name;
}

extern "C" fn prepare_for_clone(flags: c_int) {
    descriptor_table::note_clone(flags);
    if flags & MOVES_FILES != 0 {
        prepare_for_sandbox();
    }
    // A vfork child's parent waits for it, and a thread has thread-local variables of its own.
    if flags & (libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_SETTLS) == libc::CLONE_VM {
        share_thread();
    }
}

/// Forks by `call_next`, which is not recorded. The child is initialised at once: if a signal handler has forked it, it may return into a
/// record of its parent's, whose buffer is its own memory then.
pub fn fork_by_number(call_next: impl Fn() -> c_long) -> c_long {
    descriptor_table::note_fork();
    let child = call_next();
    if child == 0 {
        after_fork_in_child();
    } else {
        descriptor_table::forget_noted();
    }
    child
}

/// Prepares for `clone` or `clone3` by `syscall`. The argument is the flags, or the address of a structure that begins with them.
pub extern "C" fn prepare_for_clone_by_number(number: c_long, argument: u64) {
    let flags = match number {
        libc::SYS_clone3 => sys::read_pair(with_exposed_provenance(argument as usize)).map_or(0, |[flags, _]| flags),
        _ => argument,
    };
    // Flags that only clone3 has are above these.
    prepare_for_clone(flags as c_int);
}
