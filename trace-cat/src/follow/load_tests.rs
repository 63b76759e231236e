//! Following much at a time: what it keeps in memory and open, and what it says when it cannot keep up.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::time::{SystemTime, UNIX_EPOCH};

use super::tests::FollowFixture;
use super::*;
use crate::options::Printing;
use crate::support::diagnostics::tests::recorded_diagnostics;
use crate::testing::test_trace::{TestTrace, record};

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
        follow.release((1000, monotonic()), false, &mut printer).unwrap();
        assert!(follow.intake.window.size() <= ROOM + 2 * ROOM, "{}", follow.intake.window.size());
    }
    follow.release((u64::MAX, monotonic()), true, &mut printer).unwrap();
    let late = printer.late;
    printer.end(&[]).unwrap();
    let printed = fs::read_to_string(fixture.journal.path()).unwrap();
    assert_eq!((printed.lines().count() as u64, messages.text()), (2 * COUNT + 1, String::new()));
    assert_eq!(late.count, 0);
    let others = printed.lines().filter(|line| !line.contains("0000004"));
    assert!(others.is_sorted_by_key(|line| &line[..20]));
}

/// On a busy machine a round may take longer than records wait.
#[test]
fn a_record_that_a_long_round_does_not_find_is_in_order_or_late() {
    const HOLD: u64 = 100_000_000;
    let fixture = FollowFixture::empty();
    let (options, (diagnostics, _messages)) = (fixture.options(), recorded_diagnostics());
    let (mut follow, texts) = Follower::start(&options, HOLD, &diagnostics).unwrap_or_else(|error| panic!("{error:?}"));
    let mut printer = Printer::new(&options.printing, &options.selection, &options.paths, &diagnostics).unwrap();
    follow.catch_up(texts, 0, &mut printer).unwrap();
    let time = present(&follow);
    fixture.trace.file("tr.0000001.002", record(time, 2, "02:04:0", 1));
    for duration in [0, HOLD] {
        let began = monotonic();
        let horizon = follow.horizon(began);
        follow.read_new();
        sleep(Duration::from_nanos(duration));
        follow.release((horizon, began), false, &mut printer).unwrap();
    }
    fixture.trace.file("tr.0000001.003", record(time - 1, 3, "02:04:0", 2));
    follow.read_new();
    follow.release((u64::MAX, monotonic()), true, &mut printer).unwrap();
    let late = printer.late;
    printer.end(&[]).unwrap();
    let printed = fs::read_to_string(fixture.journal.path()).unwrap();
    assert_eq!(printed.lines().count(), 2);
    assert!(printed.lines().is_sorted() || late.count == 1, "{printed}");
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
        follow.release((now - HOLD, monotonic()), false, &mut printer).unwrap();
    }
    follow.read_last();
    follow.release((u64::MAX, monotonic()), true, &mut printer).unwrap();
    printer.end(&[]).unwrap();
    let printed = fs::read_to_string(fixture.journal.path()).unwrap();
    assert_eq!((printed.lines().count() as u64, messages.text()), (3 * COUNT + 1, String::new()));
    assert!(printed.lines().is_sorted_by_key(|line| &line[..20]));
}

#[test]
fn a_process_that_records_more_than_can_be_read_is_reported_at_once() {
    let fixture = FollowFixture::empty();
    let steps = |follow: &mut Follower| {
        let text: String = (0..40_000).map(|time| record(time, 2, "02:04:0", time)).collect();
        fixture.trace.file("tr.0000001.002", text).file("tr.0000003.002", record(1, 3, "02:04:0", 1));
        let mut printer =
            Printer::new(&Printing::default(), &fixture.options().selection, &[], follow.diagnostics).unwrap();
        for number in ["tr.0000001.002", "tr.0000003.002"] {
            let path = fixture.trace.path(number);
            let index = follow.files.open(&path, &mut follow.intake, follow.diagnostics).unwrap().unwrap();
            follow.files.get(index).unwrap().owned = true;
        }
        for _ in 0..5 {
            follow.read_sources();
            follow.release((0, monotonic()), false, &mut printer).unwrap();
        }
    };
    let (_, messages) = fixture.follow_steps(|| (), steps);
    assert!(messages.starts_with("trace-cat: --follow: more is recorded than can be read: "), "{messages}");
    assert_eq!(messages.lines().count(), 1, "{messages}");
}

#[test]
fn following_that_is_stopped_while_records_are_unread_is_reported_as_that() {
    let stopped = "trace-cat: --follow: stopped before all records were read; those that were not are in the trace\n";
    // The signal comes while following, or during the merge before it.
    for (records, is_cut_short, expected) in [(40_000, false, stopped), (1, false, ""), (1, true, stopped)] {
        let fixture = FollowFixture::empty();
        let steps = |follow: &mut Follower| {
            let text: String = (0..records).map(|time| record(time, 2, "02:04:0", time)).collect();
            fixture.trace.file("tr.0000001.002", text);
            follow.is_cut_short = is_cut_short;
            follow.read_new();
            follow.read_last();
        };
        let (printed, messages) = fixture.follow_steps(|| (), steps);
        assert_eq!(messages, expected);
        assert_eq!(printed.lines().count() as u64 == records, records == 1);
    }
}

/// How many descriptors of this process lead to record files of the trace.
fn open_record_files(trace: &TestTrace) -> usize {
    let descriptors = fs::read_dir("/proc/self/fd").unwrap().flatten();
    let paths = descriptors.filter_map(|entry| fs::read_link(entry.path()).ok());
    paths.filter(|path| path.starts_with(trace.path("")) && path.to_string_lossy().contains("/tr.")).count()
}

#[test]
fn files_of_ended_processes_are_closed_and_not_inspected() {
    const FILES: u64 = 50;
    let name = |number: u64| format!("tr.{number:07x}.002");
    let line = |number: u64, time: u64| record(time, number as u32, "02:04:0", number);
    let fixture = FollowFixture::empty();
    for number in 1..FILES {
        fixture.trace.file(&name(number), line(number, 1));
    }
    let elsewhere = tempfile::tempdir_in(fixture.trace.path("").parent().unwrap()).unwrap();
    let steps = |follow: &mut Follower| {
        for number in FILES..2 * FILES {
            fixture.trace.file(&name(number), line(number, 1));
        }
        for _ in 0..150 {
            follow.read_new();
        }
        assert_eq!(open_record_files(&fixture.trace), 0);
        // What is written by another name of a file is not reported: it is read when the file's turn comes.
        for number in 1..2 * FILES {
            let link = elsewhere.path().join(name(number));
            fs::hard_link(fixture.trace.path(&name(number)), &link).unwrap();
        }
        follow.read_new();
        let count = follow.intake.window.count;
        for number in 1..2 * FILES {
            let mut file = OpenOptions::new().append(true).open(elsewhere.path().join(name(number))).unwrap();
            file.write_all(line(number, 2).as_bytes()).unwrap();
        }
        follow.read_new();
        assert!(follow.intake.window.count <= count + 1, "no file is inspected without a reason but one");
        for _ in 0..2 * FILES {
            follow.read_new();
        }
        assert_eq!(follow.intake.window.count, count + 2 * FILES - 1);
        // What is reported is read at once.
        let mut file = OpenOptions::new().append(true).open(fixture.trace.path(&name(7))).unwrap();
        file.write_all(line(7, 3).as_bytes()).unwrap();
        drop(file);
        follow.read_sources();
        assert_eq!(follow.intake.window.count, count + 2 * FILES);
    };
    let (records, messages) = fixture.follow_steps(|| (), steps);
    assert_eq!((records.lines().count() as u64, &*messages), (2 * (2 * FILES - 1) + 1, ""));
}
