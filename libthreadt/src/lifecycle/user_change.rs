//! The program becomes another user, as daemons do that root has started.
//!
//! Afterwards the files of this process cannot be opened any more, so that others are begun before, in the subdirectory of
//! the new user (`trace_dir::user_directory`): with a trbuf, record files and a trinfo of their own. Every thread notices at
//! its next record that its slot is stale, and claims one in the new trbuf. What the stale slots hold is written while the
//! files can still be opened; what cannot be written stays in the trbuf there, for trace-cat.

use core::ffi::c_long;
use core::sync::atomic::Ordering::{Relaxed, SeqCst};

use super::final_flush::{begin_alone, end_alone, flush_stale_slots};
use crate::first_use::{begin_files_of_user, is_recording, process_info};
use crate::process_state::{self, PROCESS};
use crate::storage::{self, slot_layout};
use crate::sys;
use crate::trace_dir::{directory, names_owner, user_directory};

/// The user IDs that a call sets: real, effective and saved; `None` for one that stays.
pub type NewUser = [Option<u32>; 3];

/// Makes a call that sets these user IDs.
pub fn change_user(new: NewUser, call_next: impl FnOnce() -> c_long) -> c_long {
    let begun = begin(new);
    let result = call_next();
    if begun {
        PROCESS.changing_user.store(0, SeqCst);
        end_alone();
    }
    result
}

/// Prepares the change. `true` if other files have been begun: then this thread has the sole right to flush until the call
/// has been made.
fn begin(new: NewUser) -> bool {
    // Only a user who may become any other may lose rights.
    let Some(ids) = sys::user_ids().filter(|ids| ids.contains(&0)) else { return false };
    let [real, effective, saved] = core::array::from_fn(|at| new[at].unwrap_or(ids[at]));
    if effective == 0 || !is_recording() {
        return false;
    }
    // A vfork child shares the memory of a process that stays what it is; what it executes finds the directory.
    let is_guest = process_state::is_vfork_child();
    if is_guest && !PROCESS.files.is_done() || !directory::resolve() {
        return false;
    }
    user_directory::make(effective);
    // As long as there is a way back, the records stay in the buffers; of threads that begin meanwhile, in those made now.
    let is_final = real != 0 && saved != 0;
    if !is_final && !is_guest && PROCESS.files.is_done() {
        storage::grow_for_sandbox();
    }
    if is_guest
        || !is_final
        || process_state::sandboxed().is_some()
        || !PROCESS.files.is_done()
        || process_state::generation() != 0
        || !begin_alone()
    {
        return false;
    }
    PROCESS.changing_user.store(1, SeqCst);
    // SAFETY: the files are ready, and this thread has the sole right to make and remove trbufs.
    let begun = sys::as_file_system_user(effective, || unsafe { begin_files_of_user(effective) }) == Some(true);
    if begun {
        // Rings stay where they are: only a crash or the end brings them to their files.
        if ids[1] == 0 && !slot_layout().is_ring() && flush_stale_slots() {
            // SAFETY: as above.
            unsafe { names_owner::remove_first_trbuf() };
        }
        // What root still makes is the new user's from here on. Root may have given up the right to use others' directories.
        sys::set_owner_of_new_files(effective);
        let _ = sys::as_file_system_user(effective, process_info::write_at_first_record);
    } else {
        PROCESS.changing_user.store(0, Relaxed);
        end_alone();
        // The directory is out of the new user's reach: also for threads that begin later.
        storage::grow_for_sandbox();
    }
    begun
}
