//! The program changes how large its files may be (RLIMIT_FSIZE).

use core::ffi::c_long;

use crate::process_state::{is_initialised, is_vfork_child};
use crate::sys::{file_size, finish_writes, stack, thread_id};

/// Changes the limit to `limit` bytes by `call_next`, in such a way that no write of this library goes beyond it: the
/// signal would be the host's.
pub fn change_file_size_limit(limit: u64, call_next: impl FnOnce() -> c_long) -> c_long {
    // A vfork child's limit is its own, though it shares the memory; and it writes nothing meanwhile.
    let is_of_others = is_initialised() && !is_vfork_child();
    file_size::begin_change(if is_of_others { limit } else { u64::MAX });
    if is_of_others {
        finish_writes(thread_id(), stack::stack_pointer());
    }
    let result = call_next();
    file_size::end_change();
    result
}
