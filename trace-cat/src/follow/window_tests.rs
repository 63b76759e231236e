//! Which records wait for others, and which do not because they are ahead of the clock.

use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

use super::tests::FollowFixture;
use super::*;
use crate::support::diagnostics::tests::recorded_diagnostics;
use crate::testing::test_trace::record;

/// A time that is ahead of any computer's clock, nanoseconds since the Epoch.
const AHEAD: u64 = 9_000_000_000_000_000_000;

/// The processes' time, as far as it is known without processes.
fn present(follow: &Follower) -> u64 {
    monotonic().saturating_add_signed(follow.clock_offset)
}

/// The trace has times that are after this computer's.
#[test]
fn a_trace_that_is_ahead_of_the_clock_is_not_held_in_memory() {
    const COUNT: u64 = 300_000;
    let lines =
        |times: std::ops::Range<u64>| -> String { times.map(|time| record(time, 2, "02:04:0", time)).collect() };
    let fixture = FollowFixture::empty();
    fixture.trace.file("tr.0000001.002", lines(AHEAD..AHEAD + COUNT));
    let (options, (diagnostics, messages)) = (fixture.options(), recorded_diagnostics());
    let (mut follow, texts) = Follower::start(&options, 0, &diagnostics).unwrap_or_else(|error| panic!("{error:?}"));
    let mut printer = Printer::new(&options.printing, &options.selection, &options.paths, &diagnostics).unwrap();
    follow.catch_up(texts, 1000, &mut printer).unwrap();
    assert!(follow.intake.window.size() <= ROOM + 1000, "{}", follow.intake.window.size());
    // The same is true for a file that is made meanwhile. A record of the present is not late.
    let of_the_present = record(present(&follow), 4, "02:04:0", 0);
    fixture
        .trace
        .file("tr.0000003.002", lines(AHEAD + COUNT..AHEAD + 2 * COUNT))
        .file("tr.0000003.004", of_the_present);
    for _ in 0..40 {
        follow.read_new();
        follow.release(1000, false, &mut printer).unwrap();
        assert!(follow.intake.window.size() <= ROOM + 2 * ROOM, "{}", follow.intake.window.size());
    }
    follow.release(u64::MAX, true, &mut printer).unwrap();
    printer.end().unwrap();
    let printed = fs::read_to_string(fixture.journal.path()).unwrap();
    assert_eq!((printed.lines().count() as u64, messages.text()), (2 * COUNT + 1, String::new()));
    assert_eq!(follow.intake.window.late.count, 0);
    let others = printed.lines().filter(|line| !line.contains("0000004"));
    assert!(others.is_sorted_by_key(|line| &line[..20]));
}

/// The window may hold more than files that are ahead of the clock may: a busy server records that much in a moment.
#[test]
fn records_of_the_present_wait_for_others_however_many_they_are() {
    const COUNT: u64 = 260_000;
    const HOLD: u64 = 1_000_000_000_000;
    let fixture = FollowFixture::empty();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64;
    let lines = |number: u32, first: u64| -> String {
        (0..COUNT).map(|count| record(now - COUNT * 10 + count * 10 + first, number, "02:04:0", count)).collect()
    };
    fixture.trace.file("tr.0000001.002", lines(2, 0));
    let (options, (diagnostics, messages)) = (fixture.options(), recorded_diagnostics());
    let (mut follow, texts) = Follower::start(&options, HOLD, &diagnostics).unwrap_or_else(|error| panic!("{error:?}"));
    let mut printer = Printer::new(&options.printing, &options.selection, &options.paths, &diagnostics).unwrap();
    follow.catch_up(texts, now - HOLD, &mut printer).unwrap();
    assert!(follow.intake.window.size() > ROOM);
    // Two more are read in chunks. The last one has the earliest record of all.
    fixture.trace.file("tr.0000001.003", lines(3, 1)).file("tr.0000001.004", lines(4, 2));
    for round in 0..60 {
        if round == 5 {
            assert!(follow.files.behind().is_some());
            fixture.trace.file("tr.0000001.005", record(now - COUNT * 10 - 1, 5, "02:04:0", 0));
        }
        follow.read_new();
        follow.release(now - HOLD, false, &mut printer).unwrap();
    }
    follow.read_last();
    follow.release(u64::MAX, true, &mut printer).unwrap();
    printer.end().unwrap();
    let printed = fs::read_to_string(fixture.journal.path()).unwrap();
    assert_eq!((printed.lines().count() as u64, messages.text()), (3 * COUNT + 1, String::new()));
    assert!(printed.lines().is_sorted_by_key(|line| &line[..20]));
}
