//! The thread makes a task that runs beside it and has its memory (`clone` with CLONE_VM), thread-local variables included.

use crate::first_use::is_recording;
use crate::sys::thread_word;
use crate::{clock, process_state, recorder};

/// Lets this thread ask the kernel from now on, before it uses its slot, whether it is the one that has claimed it. The
/// other task gets none, because its process is another one: its records are counted as lost.
pub fn share_thread() {
    if process_state::is_unrecorded() {
        return;
    }
    if is_recording() && !process_state::is_vfork_child() {
        // So that it is this task which has claimed the slot.
        recorder::slot_or_claim(0, clock::now_fenced(), &[]);
    }
    thread_word::set_shared(true);
}
