//! The program changes something that concerns the files which this library has open at that moment: how large files may be
//! (RLIMIT_FSIZE), or what a descriptor's number stands for.

use core::ffi::{c_int, c_long};

use crate::process_state::{is_initialised, is_vfork_child};
use crate::sys::{file_size, finish_writes, host_numbers, stack, thread_id};

/// Changes the limit to `limit` bytes by `call_next`, in such a way that no write of this library goes beyond it: the
/// signal would be the host's.
pub fn change_file_size_limit(limit: u64, call_next: impl FnOnce() -> c_long) -> c_long {
    let is_concerned = is_concerned();
    file_size::begin_change(if is_concerned { limit } else { u64::MAX });
    if is_concerned {
        finish_writes(thread_id(), stack::stack_pointer());
    }
    let result = call_next();
    file_size::end_change();
    result
}

/// Gives the program the descriptor `number` by `call_next`, in such a way that it does not replace one of this library.
pub fn replace_descriptor(number: c_int, call_next: impl FnOnce() -> c_long) -> c_long {
    if is_concerned() { host_numbers::with_number(number, thread_id(), call_next) } else { call_next() }
}

/// Whether the process's own files are concerned. A vfork child's limits and descriptors are its own, though it shares the
/// memory; and it writes nothing meanwhile.
fn is_concerned() -> bool {
    is_initialised() && !is_vfork_child()
}
