//! What hooks call to record.

use spec::RecordKind;
use spec::encode::UntimedRecord;

use super::append::append;
use super::thread_slot;
use crate::storage::RECORDS_AT_ONCE;

/// Records one line. `time` is a reading of the clock.
#[inline(always)]
pub fn put(kind: &'static RecordKind, time: u64, arguments: [u64; 5]) {
    put_lines(time, &[UntimedRecord { kind, arguments }]);
}

/// Records the entry record and the return record of a call that did not have to wait, with one time.
#[inline(always)]
pub fn put_pair(kinds: [&'static RecordKind; 2], time: u64, entry: [u64; 5], result: [u64; 5]) {
    put_lines(
        time,
        &[UntimedRecord { kind: kinds[0], arguments: entry }, UntimedRecord { kind: kinds[1], arguments: result }],
    );
}

#[inline(never)]
fn put_lines<const N: usize>(time: u64, lines: &[UntimedRecord; N]) {
    const { assert!(N <= RECORDS_AT_ONCE) };
    if let Some(slot) = thread_slot::slot_or_claim(N as u32, time) {
        append(slot, time, lines);
    }
}
