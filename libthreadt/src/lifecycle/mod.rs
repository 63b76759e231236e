mod daemon;
mod exec;
mod final_flush;
mod libraries;
mod namespace;
mod open_files;
mod process_exit;
mod restriction;
mod sandbox;
mod shared_thread;
mod thread_end;
mod thread_start;
mod user_change;

#[cfg(test)]
mod interleaving_tests;
#[cfg(test)]
mod late_record_tests;
#[cfg(test)]
mod left_records_tests;

pub use crate::process_state::note_renumbering;
pub use crate::storage::RunsAfter;
pub use daemon::{Daemon, daemon};
pub use exec::exec;
pub use final_flush::finish;
pub use libraries::{after_close, before_close, note_recorded_code};
pub use namespace::{change_namespace, note_time_namespace};
pub use open_files::{
    change_file_size_limit, change_within, close_descriptor, close_descriptors_from, leave_descriptor_table,
    reopen_within, replace_descriptor,
};
#[cfg(not(test))]
pub use process_exit::{at_exit, at_quick_exit, note_quick_exit_handler};
pub use process_exit::{before_quick_exit, initialise_interrupted, record_process_exit};
pub use restriction::{Restriction, restrict};
pub use sandbox::{prepare_for_departure, prepare_for_sandbox};
pub use shared_thread::share_thread;
pub use thread_end::{end_by_unwinding, record_thread_exit};
pub use thread_start::{ThreadStart, run};
pub use user_change::{NewUser, change_user};
