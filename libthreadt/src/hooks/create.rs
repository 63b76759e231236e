//! `pthread_create` and `thrd_create`. How the new thread begins is in [`crate::lifecycle::run`].

use core::ffi::c_int;

use spec::id;

use super::result::{CallResult, ThrdStatus};
use crate::config::detail;
use crate::first_use::is_recording;
use crate::glibc::object_words::Ptr;
use crate::glibc::{self, next_functions};
use crate::lifecycle::{self, ThreadStart};
use crate::recorder::records;
use crate::{clock, recorder};

hook! {
    /// `int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start_routine)(void *), void *arg);`
    fn pthread_create(thread: Ptr, attr: Ptr, start_routine: Ptr, arg: Ptr; caller) -> c_int {
        // SAFETY: the next function with the host's arguments, or with this library's in the place of some.
        unsafe {
            create([thread, attr, start_routine, arg], caller, false, |thread, start_routine, arg| {
                call_next!(pthread_create(thread: Ptr, attr: Ptr, start_routine: Ptr, arg: Ptr) -> c_int)
            })
        }
    }
}

hook! {
    /// `int thrd_create(thrd_t *thread, thrd_start_t start_routine, void *arg);`
    fn thrd_create(thread: Ptr, start_routine: Ptr, arg: Ptr; caller) -> ThrdStatus {
        // SAFETY: as above.
        unsafe {
            create([thread, core::ptr::null_mut(), start_routine, arg], caller, true, |thread, start_routine, arg| {
                call_next!(thrd_create(thread: Ptr, start_routine: Ptr, arg: Ptr) -> ThrdStatus)
            })
        }
    }
}

/// Creates a thread by `call_next`, which takes the thread's variable, the routine and its argument.
///
/// # Safety
/// The arguments are those of `pthread_create`.
unsafe fn create<R: CallResult>(
    arguments: [Ptr; 4],
    caller: u64,
    is_c11: bool,
    call_next: impl Fn(Ptr, Ptr, Ptr) -> R,
) -> R {
    let [thread, attr, start_routine, arg] = arguments;
    if next_functions::must_be_looked_up_again() {
        next_functions::look_up_all();
        glibc::calibrate();
    }
    if !is_recording() {
        return call_next(thread, start_routine, arg);
    }
    // Without memory for it the thread begins as it would without this library.
    let start = ThreadStart::new(start_routine as usize, arg as usize, thread as usize, is_c11);
    let recorded = records(id::THR_CREATE);
    if recorded {
        let columns = [thread as u64, attr as u64, start_routine as u64, arg as u64, detail(caller)];
        let time = clock::now_fenced();
        lifecycle::note_recorded_code();
        recorder::put(&id::THR_CREATE_1, time, columns);
        recorder::put_stack(time);
    }
    let mut made = 0u64;
    let result = match start {
        Some(start) => call_next((&raw mut made).cast(), lifecycle::run as Ptr, (&raw const *start).cast_mut().cast()),
        None => call_next(thread, start_routine, arg),
    };
    let time = clock::now_fenced();
    let is_made = result.rval() == 0;
    let tid = match start {
        Some(start) if is_made => {
            start.publish_tid(made);
            made
        }
        Some(start) => {
            start.release();
            0
        }
        // SAFETY: the caller's variable, which the call has filled.
        None if is_made => unsafe { thread.cast::<u64>().read() },
        None => 0,
    };
    if recorded {
        recorder::put(&id::THR_CREATE_2, time, [result.rval(), tid, 0, 0, 0]);
    }
    result
}
