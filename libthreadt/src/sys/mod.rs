mod announcements;
mod call;
mod copied_files;
mod decimal;
mod descriptor;
pub mod descriptor_table;
pub mod diagnostics;
pub mod elf;
pub mod errno;
mod fd;
mod fd_number;
mod file_notes;
pub mod file_size;
pub mod function_symbols;
mod hold;
pub mod host_numbers;
mod inherited;
#[cfg(test)]
pub mod interleaving;
mod judgements;
mod left_files;
mod left_work;
mod mapping_query;
mod membarrier;
mod memory;
pub mod memory_group;
pub mod noted_forks;
mod once;
mod open;
mod open_files;
#[cfg(test)]
mod open_files_tests;
mod opened_before;
mod openers;
pub mod own_exports;
pub mod own_relocations;
pub mod path;
mod pidfd;
mod pool;
pub mod preloaded;
mod process;
mod process_name;
mod reserve_limit;
pub mod seccomp;
mod seccomp_filter;
mod signals;
pub mod stack;
pub mod stack_alignment;
pub mod standard_numbers;
mod stat_line;
mod thread_progress;
pub mod thread_word;
mod time;
mod unasked_call;
pub mod unwind_sections;
pub mod user_dispatch;

pub use call::{Errno, Result};
pub use copied_files::{close_inherited, leave_table};
pub use decimal::decimal;
pub use fd::Fd;
pub use hold::Hold;
pub use inherited::INHERITED;
#[cfg(test)]
pub use interleaving::observable_step;
pub use judgements::end_judgements;
pub use left_files::{close_abandoned, finish_writes};
pub use left_work::LeftWork;
pub use mapping_query::executable_size;
pub use membarrier::{barrier, register_barrier};
pub use memory::{
    IMPOSSIBLE_HOW, PAGE, SET_SIZE, copied_words, has_bytes, has_bytes_alone, is_readable, is_resident, map_anonymous,
    map_for_process, read_ahead, remove_pages, replace_by_private, reserve_pages, touch, unmap, wipe_on_fork,
};
pub use once::{Once, Reentry, SetOnce};
pub use open::{
    FileIdentity, Repetitions, give_directory_to, is_directory_of, is_own_directory, read_proc, repeat_if_closed,
    set_owner_of_new_files,
};
pub use open_files::{Openings, is_foreign};
pub use pidfd::pid_of_pidfd;
pub use pool::{Pool, PoolHead, Pooled};
pub use process::{
    as_file_system_user, counter_is_forbidden, end_borrowed_user, file_system_user, is_alone_in_memory, is_only_thread,
    is_or_may_become_root, parent_id, process_id, shares_memory, signal_stack, system_name, thread_exists, thread_id,
    thread_name, user_id, user_ids,
};
pub use process_name::process_name;
pub use reserve_limit::reserve_limit;
pub use signals::BlockedSignals;
pub use stat_line::stat_field;
pub use time::{UnknownClockError, clock_gettime, monotonic, read_pair, read_timespec, sleep, wait, wall_clock_error};

/// Marks a place between two accesses that another thread, a signal handler or a reader of the files can observe. Tests
/// try every order of such steps (`interleaving`); otherwise it is nothing.
#[cfg(not(test))]
#[inline(always)]
pub fn observable_step() {}
