//! The time that the encoder takes for a record: `make bench-parts`. `free_lock` encodes the two records of a call.

use std::hint::black_box;

use divan::Bencher;
use divan::counter::{BytesCount, ItemsCount};
use spec::encode::{Template, UntimedRecord, encode_room};
use spec::{RecordKind, id};

/// A time in November 2026, in nanoseconds since the Epoch.
const START: u64 = 1_795_174_740_544_763_329;
const MUTEX: u64 = 0x5594_69ed_90a0;

fn main() {
    divan::main();
}

fn template() -> Template {
    Template::new(19955, 19953, 0x7fc5_de3f_86c0)
}

fn record(kind: &'static RecordKind, arguments: [u64; 5]) -> UntimedRecord {
    UntimedRecord { kind, arguments }
}

/// Encodes records again and again at the same place, `step` nanoseconds later each time.
fn encode<const N: usize>(bencher: Bencher, step: u64, records: [UntimedRecord; N]) {
    let (mut template, mut time, mut out) = (template(), START, [0u8; 1024]);
    assert!(encode_room(N) <= out.len());
    // SAFETY: the assertion above has checked the room.
    let length = unsafe { template.encode(out.as_mut_ptr(), time, &records) };
    bencher.counter(ItemsCount::new(N)).counter(BytesCount::new(length)).bench_local(|| {
        time += step;
        // SAFETY: as above; all times of a run have ten digits of seconds.
        unsafe { template.encode(black_box(out.as_mut_ptr()), black_box(time), black_box(&records)) }
    });
}

/// The entry record of a lock: one address.
#[divan::bench]
fn one_address(bencher: Bencher) {
    encode(bencher, 60, [record(&id::MUTEX_LOCK_1, [MUTEX, 0, 0, 0, 0])]);
}

/// A record whose arguments are all 0.
#[divan::bench]
fn no_arguments(bencher: Bencher) {
    encode(bencher, 60, [record(&id::MUTEX_LOCK_2, [0; 5])]);
}

/// Both records of a lock that was free.
#[divan::bench]
fn free_lock(bencher: Bencher) {
    encode(bencher, 60, [record(&id::MUTEX_LOCK_1, [MUTEX, 0, 0, 0, 0]), record(&id::MUTEX_LOCK_2, [0; 5])]);
}

/// Two addresses and two decimal numbers.
#[divan::bench]
fn timed_wait(bencher: Bencher) {
    encode(bencher, 60, [record(&id::COND_TIMEDWAIT_1, [MUTEX, MUTEX + 40, 1_795_174_741, 544_763_329, 0])]);
}

/// The widest record.
#[divan::bench]
fn five_addresses(bencher: Bencher) {
    encode(bencher, 60, [record(&id::MUTEX_LOCK_1, [u64::MAX; 5])]);
}

/// A record after a pause: every digit of the time changes.
#[divan::bench]
fn after_a_second(bencher: Bencher) {
    encode(bencher, 1_000_000_007, [record(&id::MUTEX_LOCK_1, [MUTEX, 0, 0, 0, 0])]);
}
