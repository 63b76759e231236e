//! What hooks call to record.

use core::sync::atomic::Ordering::Relaxed;

use spec::RecordKind;
use spec::encode::UntimedRecord;

use super::append::{append, append_all};
use super::{handler, thread_slot};
use crate::first_use::initialise;
use crate::process_state::PROCESS;
use crate::storage::{RECORDS_AT_ONCE, thread_local};

/// Records one line. `time` is a reading of the clock.
#[inline(always)]
pub fn put(kind: &'static RecordKind, time: u64, arguments: [u64; 5]) {
    put_lines(time, &[UntimedRecord { kind, arguments }]);
}

/// Records two lines with one time, such as the entry record and the return record of a call that did not have to wait.
#[inline(always)]
pub fn put_pair(kinds: [&'static RecordKind; 2], time: u64, first: [u64; 5], second: [u64; 5]) {
    put_lines(
        time,
        &[UntimedRecord { kind: kinds[0], arguments: first }, UntimedRecord { kind: kinds[1], arguments: second }],
    );
}

#[inline(never)]
fn put_lines<const N: usize>(time: u64, lines: &[UntimedRecord; N]) {
    const { assert!(N <= RECORDS_AT_ONCE) };
    match thread_local::current() {
        Some(slot) if PROCESS.records_directly.load(Relaxed) != 0 => append(slot, time, lines),
        _ => put_elsewhere(time, lines),
    }
}

/// Records up to [`RECORDS_AT_ONCE`] lines with one time.
#[inline(always)]
pub fn put_all(time: u64, lines: &[UntimedRecord]) {
    match thread_local::current() {
        Some(slot) if PROCESS.records_directly.load(Relaxed) != 0 => append_all(slot, time, lines),
        _ => put_elsewhere(time, lines),
    }
}

/// The thread has no slot yet, or shares it with another task, or there is a handler.
#[cold]
#[inline(never)]
fn put_elsewhere(time: u64, lines: &[UntimedRecord]) {
    initialise();
    if (thread_local::is_other_task() || !handler::takes(time, lines))
        && let Some(slot) = thread_slot::slot_or_claim(lines.len() as u32, time, lines)
    {
        append_all(slot, time, lines);
    }
}
