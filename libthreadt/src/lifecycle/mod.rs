//! What begins and ends while the program runs: threads, forked children, other programs, the process itself.

mod exec;
mod final_flush;
mod fork;
mod process_exit;
mod thread_end;
mod thread_start;

#[cfg(test)]
mod interleaving_tests;

pub use exec::{after_failed_exec, before_exec};
pub use final_flush::finish;
pub use fork::begin_child;
#[cfg(not(test))]
pub use process_exit::at_exit;
pub use process_exit::record_process_exit;
pub use thread_end::record_thread_exit;
pub use thread_start::{ThreadStart, run};
