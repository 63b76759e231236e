//! `pthread_create` and `thrd_create`: see [`crate::start`] for how the new thread begins.

use core::ffi::c_int;

use spec::id;

use super::{Outcome, ThrdStatus};
use crate::config::detail;
use crate::measure::Ptr;
use crate::start::{self, Start};
use crate::{clock, process, real, record};

hook! {
    /// `int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start_routine)(void *), void *arg);`
    fn pthread_create(thread: Ptr, attr: Ptr, start_routine: Ptr, arg: Ptr; caller) -> c_int {
        type Function = unsafe extern "C" fn(Ptr, Ptr, Ptr, Ptr) -> c_int;
        // SAFETY: the real function with the host's arguments, or with ours in the place of some.
        unsafe {
            let real: Function = core::mem::transmute(real::pthread_create.address());
            create([thread, attr, start_routine, arg], caller, false, |thread, start_routine, arg| {
                real(thread, attr, start_routine, arg)
            })
        }
    }
}

hook! {
    /// `int thrd_create(thrd_t *thread, thrd_start_t start_routine, void *arg);`
    fn thrd_create(thread: Ptr, start_routine: Ptr, arg: Ptr; caller) -> ThrdStatus {
        type Function = unsafe extern "C" fn(Ptr, Ptr, Ptr) -> ThrdStatus;
        // SAFETY: as above.
        unsafe {
            let real: Function = core::mem::transmute(real::thrd_create.address());
            create([thread, core::ptr::null_mut(), start_routine, arg], caller, true, |thread, start_routine, arg| {
                real(thread, start_routine, arg)
            })
        }
    }
}

/// Creates a thread by `really`, which takes the thread's variable, the routine and its argument.
///
/// # Safety
/// The arguments are those of `pthread_create`.
unsafe fn create<R: Outcome>(arguments: [Ptr; 4], caller: u64, is_c11: bool, really: impl Fn(Ptr, Ptr, Ptr) -> R) -> R {
    let [thread, attr, start_routine, arg] = arguments;
    let start = if process::is_recording() {
        Start::new(start_routine as usize, arg as usize, thread as usize, is_c11)
    } else {
        None
    };
    let Some(start) = start else { return really(thread, start_routine, arg) };
    let recorded = process::records(id::THR_CREATE);
    if recorded {
        let columns = [thread as u64, attr as u64, start_routine as u64, arg as u64, detail(caller)];
        record::put(&id::THR_CREATE_1, clock::now(), columns);
    }
    let mut tid = 0u64;
    let result = really((&raw mut tid).cast(), start::run as Ptr, (&raw const *start).cast_mut().cast());
    let time = clock::now();
    if result.rval() == 0 {
        start.meet(tid);
    } else {
        start.give_back();
        tid = 0;
    }
    if recorded {
        record::put(&id::THR_CREATE_2, time, [result.rval(), tid, 0, 0, 0]);
    }
    result
}
