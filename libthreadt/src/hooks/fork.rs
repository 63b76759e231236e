//! `fork`, `_Fork`, `forkpty` and `daemon`, which fork this process.

use core::ffi::c_int;
use core::sync::atomic::Ordering::Relaxed;

use spec::id;

use crate::config::detail;
use crate::first_use::{KnownToParent, Origin, after_fork_in_child, records_nothing};
use crate::lifecycle::{self, Daemon};
use crate::process_state::PROCESS;
use crate::recorder::records;
use crate::sys::errno::errno;
use crate::sys::noted_forks;
use crate::{clock, recorder};

/// The column `kind` of `daemon`. The other functions' kinds only stand in `functions.tsv`.
const DAEMON: u64 = 6;

/// Forks by `call_next`.
pub fn proc_fork(kind: u64, caller: u64, call_next: impl Fn() -> c_int) -> c_int {
    put_entry_record(kind, caller);
    let known = if records(id::PROC_BEGIN) { KnownToParent::ask() } else { KnownToParent::default() };
    if !records_nothing() {
        // Before: a handler of `pthread_atfork` may make the child's first hooked call.
        noted_forks::note();
    }
    let (child, is_child) = if kind == DAEMON {
        let Daemon { result, is_child } = lifecycle::daemon(call_next);
        (result, is_child)
    } else {
        let child = call_next();
        (child, child == 0)
    };
    if is_child {
        PROCESS.has_begun_trace.store(1, Relaxed);
        after_fork_in_child(Origin::FORK);
        noted_forks::forget();
        if records(id::PROC_BEGIN) {
            // With its slot the thread writes the child's first record, which names the parent.
            known.while_used(|| recorder::slot_or_claim(1, clock::now_fenced(), &[]));
        }
    } else {
        noted_forks::forget();
        put_return_record(kind, child);
    }
    child
}

pub fn put_entry_record(kind: u64, caller: u64) {
    if records(id::PROC_FORK) {
        recorder::put(&id::PROC_FORK_1, clock::now_fenced(), [kind, 0, 0, 0, detail(caller)]);
    }
}

/// Writes the parent's second record. `child` is -1 if there is none, and errno then has the cause.
pub fn put_return_record(kind: u64, child: c_int) {
    if records(id::PROC_FORK) {
        let time = clock::now_fenced();
        let columns = if child < 0 { [0, errno() as u64, kind, 0, 0] } else { [child as u64, 0, kind, 0, 0] };
        recorder::put_result(&id::PROC_FORK_2, time, columns, child < 0);
    }
}
