//! `pthread_once` and `call_once`: of a call that finds the routine ended, one clock reading serves both records.

use spec::id;

use super::result::CallResult;
use crate::clock;
use crate::config::detail;
use crate::glibc::next_functions::NextFunction;
use crate::glibc::object_words::{self, Ptr};
use crate::lifecycle;
use crate::process_state::Switch;
use crate::recorder::{self, ReturnRecord};
use crate::sys::stack_alignment::call_in_place;

/// Calls `next`, which is what `call_next` calls. `place` is where the host's call has put its return address.
///
/// # Safety
/// The arguments are what the host passed, and `next` takes them.
#[inline(always)]
pub unsafe fn thr_once<R: CallResult>(
    switch: Switch,
    once_control: Ptr,
    init_routine: Ptr,
    next: &NextFunction,
    caller: u64,
    place: *const u64,
    call_next: impl Fn() -> R,
) -> R {
    let entry = [once_control as u64, init_routine as u64, 0, 0, detail(caller)];
    // SAFETY: the next function reads it.
    if unsafe { object_words::once_is_done(once_control) } {
        let result = call_next();
        if !switch.is_selective() {
            let kinds = [&id::THR_ONCE_1, &id::THR_ONCE_2];
            recorder::put_pair(kinds, clock::now_fenced(), entry, [result.rval(), 0, 0, 0, 0]);
        }
        return result;
    }
    let time = clock::now_unfenced();
    lifecycle::note_recorded_code();
    recorder::put(&id::THR_ONCE_1, time, entry);
    // SAFETY: the next function reads it.
    if unsafe { object_words::once_is_running(once_control) } {
        recorder::put_stack(time);
    }
    // The routine may be cancelled or throw, and finds the stack in its place.
    let unwound = ReturnRecord::new(&id::THR_ONCE_2, [libc::ECANCELED as u64, 0, 0, 0, 0]);
    let arguments = [next.address() as u64, place as u64, once_control as u64, init_routine as u64];
    // SAFETY: the caller's.
    let result: R = unsafe { unwound.call(call_in_place as *const (), arguments) };
    recorder::put(&id::THR_ONCE_2, clock::now_fenced(), [result.rval(), 0, 0, 0, 0]);
    result
}
