//! A new thread's beginning and end.
//!
//! `pthread_create` is given [`run`] instead of the program's routine. What to run is in a [`Start`], a small piece of
//! memory from a pool: neither on the creator's stack, which it may leave at once, nor allocated, nor in the thread's
//! slot, which comes with its first record.
//!
//! The creator's `pthread_t` variable is filled by whichever of the two threads comes first; afterwards it may be gone,
//! because a detached thread may free it (glibc itself fills it before the thread runs).

use core::ffi::c_void;
use core::sync::atomic::{
    AtomicU32, AtomicU64, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};

use spec::id;

use crate::config::detail;
use crate::guard::Guard;
use crate::pool::Pooled;
use crate::process::{self, PROCESS};
use crate::{clock, record, sys, thread};

/// What a new thread is to run.
#[repr(C, align(64))]
pub struct Start {
    link: AtomicU64,
    routine: AtomicUsize,
    argument: AtomicUsize,
    /// Where the creator wants the new thread's ID.
    target: AtomicUsize,
    is_c11: AtomicU32,
    /// Who fills `target`: see the constants.
    state: AtomicU32,
}

/// Neither thread has come.
const OPEN: u32 = 0;
/// One of them is filling it.
const FILLING: u32 = 1;
/// It is filled.
const FILLED: u32 = 2;

impl Pooled for Start {
    fn link(&self) -> &AtomicU64 {
        &self.link
    }
}

impl Start {
    /// Notes what a thread is to run; `None` if there is no memory for it.
    pub fn new(routine: usize, argument: usize, target: usize, is_c11: bool) -> Option<&'static Start> {
        let start = PROCESS.starts.take().or_else(|| {
            const PAGE: usize = 4096;
            let page = sys::anonymous(PAGE).ok()?.cast::<Start>();
            for index in 1..PAGE / size_of::<Start>() {
                // SAFETY: zeroed memory of the page, which is never unmapped, is a valid Start.
                PROCESS.starts.put(unsafe { &*page.add(index) });
            }
            // SAFETY: as above.
            Some(unsafe { &*page })
        })?;
        start.routine.store(routine, Relaxed);
        start.argument.store(argument, Relaxed);
        start.target.store(target, Relaxed);
        start.is_c11.store(is_c11.into(), Relaxed);
        // ORDERING: creating the thread orders all this before what the thread does.
        start.state.store(OPEN, Relaxed);
        Some(start)
    }

    /// Fills the creator's variable with the new thread's ID, which is `tid`; called once by each of the two threads.
    ///
    /// When it returns, the variable is filled. Whoever comes second gives the memory back.
    pub fn meet(&'static self, tid: u64) {
        // ORDERING: Acquire pairs with the other one's Release: it will not touch the memory any more.
        if self.state.compare_exchange(OPEN, FILLING, Acquire, Acquire).is_ok() {
            // SAFETY: pthread_create's caller grants a pthread_t that stays until the call has returned, and before
            // that the new thread runs none of the program's code: both come here first.
            unsafe { (self.target.load(Relaxed) as *mut u64).write(tid) };
            self.state.store(FILLED, Release);
            return;
        }
        // A single store is waited for, however the two threads are scheduled.
        while self.state.load(Acquire) == FILLING {
            sys::wait(&self.state, FILLING, 1_000_000);
        }
        self.give_back();
    }

    /// Ends its use; for the creator if no thread was made.
    pub fn give_back(&'static self) {
        PROCESS.starts.put(self);
    }
}

/// The routine of every thread that the program creates: begins its trace, runs the program's routine, ends the trace.
pub extern "C" fn run(start: *mut c_void) -> *mut c_void {
    // SAFETY: `pthread_create`'s hook passed a Start, and nobody gives it back before both threads have met.
    let start: &'static Start = unsafe { &*start.cast::<Start>() };
    let (routine, argument) = (start.routine.load(Relaxed) as u64, start.argument.load(Relaxed) as u64);
    let is_c11 = start.is_c11.load(Relaxed) != 0;
    if process::records(id::THR_BEGIN) {
        record::put(&id::THR_BEGIN_0, clock::now(), [routine, argument, 0, 0, 0]);
    }
    start.meet(thread::tid());
    // pthread_exit has recorded its status; cancellation has none but PTHREAD_CANCELED.
    let guard = Guard { unwound: end_by_unwinding, form: &id::THR_EXIT_0, arguments: [0; 5] };
    // SAFETY: the program's routine with its argument; this frame has nothing to drop.
    let result = unsafe { guard.call(routine as *const (), argument, 0, 0, 0) };
    // A thrd_start_t returns an int.
    let status = if is_c11 { i64::from(result as i32) as u64 } else { result };
    thread::end(&id::THR_EXIT_0, status);
    status as *mut c_void
}

/// `PTHREAD_CANCELED`.
const CANCELED: u64 = u64::MAX;

extern "C" fn end_by_unwinding(guard: &Guard) {
    match thread::slot_if_any() {
        // pthread_exit or thrd_exit has recorded it.
        Some(slot) if slot.exit_recorded.load(Relaxed) != 0 => thread::write_out(),
        _ => thread::end(guard.form, CANCELED),
    }
}

/// A thread calls `pthread_exit` or `thrd_exit`: what it records afterwards, in cleanup handlers and destructors, still
/// belongs to it. `caller` is where the call returns to, or would.
pub fn tell_exit(status: u64, caller: u64) {
    if process::records(id::THR_EXIT) {
        record::put(&id::THR_EXIT_0, clock::now(), [status, 0, 0, 0, detail(caller)]);
    }
    if let Some(slot) = thread::slot_if_any() {
        // ORDERING: read by this thread only.
        slot.exit_recorded.store(1, Relaxed);
    }
    thread::write_out();
}
