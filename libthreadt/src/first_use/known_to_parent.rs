//! What a forked child need not ask the kernel for, because its parent knows it.
//!
//! A child asks for its PID namespace, when it began, its mappings and its command line when it makes its files, which takes it five to
//! twenty microseconds each. The hook that forks asks in the parent, which takes less, or knows already. Only what the hook itself has in its
//! frame is the child's: words in memory may be those of a grandparent, or older than the fork.

use core::cell::Cell;
use core::sync::atomic::Ordering::Relaxed;

use spec::info::TICK_NS;

use super::process_info;
use crate::clock;
use crate::process_state::{self, PROCESS};
use crate::storage::slot_layout;
use crate::sys::{self, seccomp};
use crate::trace_dir::{command_line, executable_maps, info_file};

/// What a process knows before it forks.
#[derive(Clone, Copy, Debug, Default)]
pub struct KnownToParent {
    id: u32,
    /// 0 if it is not known.
    pid_namespace: u64,
    /// A reading of the clock in which the kernel notes when a process began, just before the fork; 0 if there is none.
    asked_at: u64,
    /// What is kept of the parent's mappings and of its command line is what it has now.
    has_lines: bool,
}

impl KnownToParent {
    /// Asks, before a fork. A process with rings makes no system call for that, nor one under a filter of its own: it may be killed for
    /// opening a file. In a process with several threads each of them may map a library at any time.
    pub fn ask() -> KnownToParent {
        let has_lines = Cell::new(false);
        let may_ask = PROCESS.files.is_done() && !slot_layout().is_ring() && process_info::may_write();
        let may_ask = may_ask && !seccomp::has_new_filter();
        if may_ask && sys::is_only_thread() {
            // SAFETY: the kernel has just said so.
            let is_known = || unsafe { command_line::is_known(|| true) };
            let ask = || has_lines.set(executable_maps::has_size_of_last_read() && is_known());
            info_file::in_turn(ask);
        }
        let pid_namespace = PROCESS.pid_namespace.load(Relaxed);
        let asked_at = if may_ask && clock::is_in_initial_namespace() { clock::since_boot() } else { 0 };
        KnownToParent { id: process_state::id(), pid_namespace, has_lines: has_lines.get(), asked_at }
    }

    /// In the child: makes its files by `work`, which uses this.
    pub fn while_used<T>(self, work: impl FnOnce() -> T) -> T {
        // In another PID namespace its parent has the ID 0.
        if self.id != 0 && self.id == sys::parent_id() {
            PROCESS.pid_namespace.store(self.pid_namespace, Relaxed);
        }
        // It began between the two readings, which are of one clock.
        let tick = |time: u64| time / TICK_NS as u64;
        let began = tick(self.asked_at);
        if began != 0 && clock::is_in_initial_namespace() && began == tick(clock::since_boot()) {
            PROCESS.start_time.store(began, Relaxed);
        }
        PROCESS.parent_has_looked.store(self.has_lines.into(), Relaxed);
        let result = work();
        PROCESS.parent_has_looked.store(0, Relaxed);
        result
    }
}
