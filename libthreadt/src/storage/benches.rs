//! What the buffer and its way to the file cost a record: `make bench-parts`.
//!
//! The library is a cdylib, which no bench target can link: so these stand among its unit tests, as one that is
//! ignored.

use std::hint::black_box;
use std::sync::atomic::Ordering::Relaxed;

use divan::counter::{BytesCount, ItemsCount};
use divan::{Bencher, Divan};
use spec::buffer::unpack_range;
use spec::encode::UntimedRecord;
use spec::id;

use super::layout::capacity;
use super::slot::Slot;
use super::tests::{new_entry, new_slot};

#[test]
#[ignore = "measures; run by make bench-parts"]
fn costs() {
    Divan::default().run_benches();
}

const LINES: [UntimedRecord; 2] = [
    UntimedRecord { kind: &id::MUTEX_LOCK_1, arguments: [0x5594_69ed_90a0, 0, 0, 0, 0] },
    UntimedRecord { kind: &id::MUTEX_LOCK_2, arguments: [0; 5] },
];

/// Appends pairs of records until the region is full, and returns how many.
fn fill(slot: Slot, time: &mut u64) -> usize {
    let mut records = 0;
    while unpack_range(slot.regions[0].write_position.load(Relaxed)).end <= capacity(0) {
        *time += 60;
        // SAFETY: the slot is this thread's, and there is room.
        unsafe { slot.append(0, *time, black_box(&LINES)) };
        records += LINES.len();
    }
    records
}

fn empty(slot: Slot) {
    slot.regions[0].write_position.store(0, Relaxed);
}

/// Encoded into the region and published; a sample is a complete region. The encoder's share is known from its own
/// benchmark.
#[divan::bench]
fn buffer(bencher: Bencher) {
    let directory = tempfile::tempdir().unwrap();
    let (slot, mut time) = (new_slot(directory.path(), 5), 1_795_174_740_544_763_329);
    let records = fill(slot, &mut time);
    bencher.counter(ItemsCount::new(records)).bench_local(|| {
        empty(slot);
        fill(slot, &mut time)
    });
}

/// A full region to its file: range taken and noted, opened, written, closed.
#[divan::bench]
fn flush(bencher: Bencher) {
    let directory = tempfile::tempdir().unwrap();
    let (slot, entry, mut time) = (new_slot(directory.path(), 5), new_entry(), 1_795_174_740_544_763_329);
    let records = fill(slot, &mut time);
    let full = slot.regions[0].write_position.load(Relaxed);
    bencher
        .counter(ItemsCount::new(records))
        .counter(BytesCount::new(unpack_range(full).len()))
        .with_inputs(|| slot.regions[0].write_position.store(full, Relaxed))
        .bench_local_values(|()| slot.write(0, Some(0), &entry).unwrap());
}
