//! `-F text`, with exact lines.

use std::fs;

use super::known_threads::OpenCall;
use super::line_writer::WIDTH;
use super::short_text::ShortText;
use super::*;
use crate::calls::pairing::CallKey;
use crate::calls::process_ends::{OpenReason, OpenUntil};
use crate::testing::test_trace::record;

/// A Friday, 03:39 in Greenwich.
const START: u64 = 1_795_174_740_000_000_000;

/// Lines of the file for records of process 1, given as time, LWP, event and arguments.
fn records_text(records: &[(u64, u32, &str, &str)]) -> Vec<String> {
    let line = |&(time, lwp, event, arguments): &(u64, u32, &str, &str)| {
        let line = record(START + time, lwp, event, 0);
        let head = line.len() - "0:0:0:0:0\n".len();
        format!("{}{arguments}{}\n", &line[..head], ":0".repeat(4 - arguments.matches(':').count()))
    };
    records.iter().map(line).collect()
}

fn text_format(time: TimeStyle) -> TextFormat {
    TextFormat::new(time, false, Vec::new(), OpenCallTable::default())
}

/// The lines that `format` writes for records.
fn lines_by(format: &mut TextFormat, records: &[(u64, u32, &str, &str)]) -> Vec<String> {
    let mut out = Vec::new();
    records_text(records).iter().for_each(|line| format.record(line.as_bytes(), &mut out));
    format.pause(&mut out);
    String::from_utf8(out).unwrap().lines().map(str::to_owned).collect()
}

fn lines(records: &[(u64, u32, &str, &str)]) -> Vec<String> {
    lines_by(&mut text_format(TimeStyle::Rel), records)
}

#[test]
fn a_call_without_other_records_between_is_one_line() {
    let lines = lines(&[
        (0, 2, "02:02:1", "0x559469ed90a0"),
        (1_234_567, 2, "02:02:2", "0:1"),
        (2_000_000_000, 2, "02:04:0", "0x559469ed90a0:0:1"),
        (2_000_000_010, 2, "02:02:1", "0x559469ed90a0"),
        (2_000_000_010, 2, "02:02:2", "0"),
        (2_000_000_020, 2, "02:02:1", "0x559469ed90a0"),
        (2_000_000_129, 2, "02:02:2", "35"),
    ]);
    let expected = [
        "  0.000000000 1/2               mutex_lock(0x559469ed90a0)            = 0           1.234 ms blocked",
        "  2.000000000 1/2               mutex_unlock(0x559469ed90a0)          = 0                    waiters",
        "  2.000000010 1/2               mutex_lock(0x559469ed90a0)            = 0",
        "  2.000000020 1/2               mutex_lock(0x559469ed90a0)            = EDEADLK       109 ns",
    ];
    assert_eq!(lines, expected);
    assert!(lines.iter().all(|line| line.len() <= WIDTH));
}

#[test]
fn a_call_with_other_records_between_is_two_lines() {
    let lines = lines(&[
        (0, 2, "03:04:1", "0x10:0x20"),
        (5, 3, "03:02:0", "0x10:0:1"),
        (8, 2, "03:04:2", "0"),
        (9, 2, "03:04:1", "0x10:0x20"),
    ]);
    let expected = [
        "  0.000000000 1/2             > cond_wait(0x10, 0x20)",
        "  0.000000005 1/3               cond_signal(0x10)                     = 0                    waiters",
        "  0.000000008 1/2             < cond_wait(0x10)                       = 0               8 ns",
        "  0.000000009 1/2             > cond_wait(0x10, 0x20)",
    ];
    assert_eq!(lines, expected);
}

#[test]
fn calls_nest_in_each_thread() {
    let lines = lines(&[
        (0, 2, "04:02:1", "0x10:3"),
        (1, 3, "04:02:1", "0x30:3"),
        (2, 2, "04:02:1", "0x20:2"),
        (3, 2, "04:02:2", "0"),
        (4, 2, "04:02:2", "4"),
        (5, 3, "04:02:2", "0"),
        (6, 3, "04:02:2", "0"),
    ]);
    let calls: Vec<String> =
        lines[2..].iter().map(|line| line[28..].split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    assert_eq!(
        calls,
        [
            "sema_wait(0x20, s_count=2) = 0 1 ns",
            "< sema_wait(0x10) = EINTR 4 ns",
            "< sema_wait(0x30) = 0 4 ns",
            "< sema_wait() = 0"
        ]
    );
}

#[test]
fn a_call_that_is_too_wide_is_two_lines() {
    let first = (377_392, 2, "01:01:1", "0x7ffe1888f998:0:0x5608f78406c0:0x7ffe1888f9a0");
    let lines = lines(&[(0, 2, "01:16:0", "0"), first, (407_614, 2, "01:01:2", "0:0x7f671ba016c0")]);
    let expected = [
        "  0.000000000 1/2               thr_yield()",
        "  0.000377392 1/2             > thr_create(0x7ffe1888f998, start=0x5608f78406c0, arg=0x7ffe1888f9a0)",
        "  0.000407614 1/2             < thr_create(0x7ffe1888f998, new_tid=0x7f671ba016c0) = 0 30.222 us",
    ];
    assert_eq!(lines, expected);
    assert!(lines.iter().all(|line| line.len() <= WIDTH));
    // The line that was too wide did not advance the clock.
    let lines =
        lines_by(&mut text_format(TimeStyle::Delta), &[(0, 2, "01:16:0", "0"), first, (407_614, 2, "01:01:2", "0:1")]);
    assert!(lines[1].starts_with(" +0.000377392 ") && lines[2].starts_with(" +0.000030222 "), "{lines:?}");
}

/// The text for one record after process and LWP, with single spaces.
fn call(event: &str, arguments: &str) -> String {
    let lines = lines(&[(0, 2, event, arguments)]);
    lines[0][32..].split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn arguments_results_and_names() {
    for (event, arguments, expected) in [
        ("01:01:2", "0:0x7fc5de3f86c0", "thr_create(new_tid=0x7fc5de3f86c0) = 0"),
        ("01:02:0", "0", "thr_exit(status=0)"),
        (
            "01:03:2",
            "0x7fc5de3f86c0:0xffffffffffffffff:3",
            "thr_join(0x7fc5de3f86c0, status=0xffffffffffffffff) = ESRCH",
        ),
        ("01:04:0", "0", "thr_self()"),
        ("01:09:0", "4", "thr_getconcurrency(level=4)"),
        ("01:10:0", "0x7fc5de3f86c0:10:0", "thr_kill(0x7fc5de3f86c0, signal=SIGUSR1) = 0"),
        ("01:10:0", "0x7fc5de3f86c0:40:22", "thr_kill(0x7fc5de3f86c0, signal=40) = EINVAL"),
        (
            "01:39:0",
            "0x7fc5de3f86c0:0x776f726b65722d31:0x3200000000000000:0",
            "thr_setname(0x7fc5de3f86c0, name=\"worker-12\") = 0",
        ),
        ("01:39:0", "0x7fc5de3f86c0:0x610a220000000000", "thr_setname(0x7fc5de3f86c0, name=\"a\\n\\\"\") = 0"),
        ("07:02:2", "-1", "barrier_wait() = -1"),
        ("04:01:0", "0x10:0:5:0:22", "sema_init(0x10, pshared=0, value=5) = EINVAL"),
        ("09:02:2", "1", "spin_lock() blocked"),
        ("09:04:0", "0x10", "spin_unlock(0x10)"),
        ("00:01:0", "12:28", "trace_lost(lost=12, cause=ENOSPC)"),
        ("00:04:0", "204:0x10", "trace_inflight(call=mutex_unlock, object=0x10)"),
        ("00:04:0", "299:0x10", "trace_inflight(call=299, object=0x10)"),
        ("11:03:2", "2", "proc_exec(errno=ENOENT)"),
        ("02:04:0", "0x10:0:0:0:0x401136", "mutex_unlock(0x10) = 0 from 0x401136"),
        ("02:02:1", "0x10:0:0:26705:0x401136", "mutex_lock(0x10, holder=26705) from 0x401136"),
        ("05:04:0", "0x10:0:0:1", "rw_unlock(0x10, write=1) = 0"),
        ("01:18:0", "0x10:0:0:5:0x401136", "thr_keycreate(0x10, destructor=0, key=5) = 0 from 0x401136"),
        ("02:02:2", "0:0:0:7:8", "mutex_lock(a4=7, a5=8) = 0"),
        ("02:01:0", "0x10:0:3:0", "mutex_init(0x10, type=3) = 0"),
        ("02:01:0", "0x10:0x20:3:0", "mutex_init(0x10, attr=0x20, type=3) = 0"),
        ("12:05:0", "0x5:0:-7", "user.05(0x5, 0, -7)"),
        ("12:99:1", "0", "user.99()"),
        ("02:04:2", "3", "mutex_unlock(3)"),
        ("02:77:0", "0:1", "mutex.77(0, 1)"),
        ("10:01:1", "0x10:0x189:2", "futex_wait(0x10, FUTEX_WAIT_BITSET_PRIVATE|FUTEX_CLOCK_REALTIME, val=2)"),
        ("10:01:2", "-1:110", "futex_wait() = ETIMEDOUT"),
        ("10:01:2", "1:0", "futex_wait() = 1"),
        ("10:02:0", "0x10:0x81:2147483647:3", "futex_wake(0x10, FUTEX_WAKE_PRIVATE, count=2147483647) = 3"),
        ("10:02:0", "0x10:0x1c6:1:-1:22", "futex_wake(0x10, futex_wake, count=1) = EINVAL"),
        ("10:03:1", "0x10:0x4:1:0x20", "futex_op(0x10, FUTEX_CMP_REQUEUE, val=1, uaddr2=0x20)"),
        ("10:03:1", "0x10:0x63:1", "futex_op(0x10, 0x63, val=1, uaddr2=0)"),
        ("50:01:0", "0", "50.01()"),
    ] {
        assert_eq!(call(event, arguments), expected);
    }
}

#[test]
fn time_limits_are_relative_to_the_record() {
    for (event, arguments, expected) in [
        ("03:05:1", "0x10:0x20:1795174740:100000000", "cond_timedwait(0x10, 0x20, limit=+100.000 ms)"),
        ("03:05:1", "0x10:0x20:1795174739:0", "cond_timedwait(0x10, 0x20, limit=-1.000 s)"),
        // CLOCK_MONOTONIC's.
        ("03:05:1", "0x10:0x20:5000:7000", "cond_timedwait(0x10, 0x20, limit=5000.000007)"),
        ("02:30:1", "0x10:0:1795174740000001500", "mutex_timedlock(0x10, limit=+1.500 us)"),
        ("02:30:1", "0x10:1:5000000007000", "mutex_timedlock(0x10, clock=1, limit=5000.000007)"),
    ] {
        assert_eq!(call(event, arguments), expected);
    }
}

#[test]
fn threads_have_the_names_that_they_were_given() {
    let set_name = "0x7fc5de3f86c0:0x776f726b65722d31:0x3200000000000000:0";
    let label = |line: &String| line[14..].split(' ').next().unwrap().to_owned();
    let lines = lines(&[
        (0, 2, "01:16:0", "0"),
        (1, 2, "01:39:0", set_name),
        (2, 2, "01:16:0", "0"),
        // A call that failed gives no name.
        (3, 2, "01:39:0", "0x7fc5de3f86c0:0x7800000000000000:0:34"),
        (4, 2, "01:16:0", "0"),
    ]);
    assert_eq!(
        lines.iter().map(label).collect::<Vec<_>>(),
        ["1/2", "1/2", "worker-12/2", "worker-12/2", "worker-12/2"]
    );
    // A thread without a record gets its name from another one; control characters are replaced.
    let (mut format, mut out) = (text_format(TimeStyle::Rel), Vec::new());
    let given = "0x000000000abc:0x1b5b324a61000000:0:0";
    let first = records_text(&[(0, 2, "01:39:0", given)]).concat();
    let second = records_text(&[(1, 3, "01:16:0", "0")]).concat().replace("0x7fc5de3f86c0", "0x000000000abc");
    format.record(first.as_bytes(), &mut out);
    format.record(second.as_bytes(), &mut out);
    let text = String::from_utf8(out).unwrap();
    assert!(text.lines().nth(1).unwrap().contains(" ?[2Ja/3 "), "{text}");
}

#[test]
fn processes_have_the_names_of_their_programs() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("trinfo.0000001"), "exe /bin/sh\npid 1\nexe /opt/a\\x20very\\x20long\\x20name\n")
        .unwrap();
    let mut format =
        TextFormat::new(TimeStyle::Rel, false, vec![directory.path().to_owned().into()], OpenCallTable::default());
    let lines = lines_by(&mut format, &[(0, 1234567, "01:16:0", "0"), (1, 2, "01:16:0", "0")]);
    let expected =
        ["  0.000000000 a very long nam/1234567   thr_yield()", "  0.000000001 a very long nam/2         thr_yield()"];
    assert_eq!(lines, expected);
    fs::write(directory.path().join("trinfo.0000001"), "exe /bin/sh\ncomm sh\nexe /opt/check-rdb\ncomm x/server\n")
        .unwrap();
    let mut format =
        TextFormat::new(TimeStyle::Rel, false, vec![directory.path().to_owned().into()], OpenCallTable::default());
    assert_eq!(lines_by(&mut format, &[(0, 2, "01:16:0", "0")]), ["  0.000000000 x/server/2        thr_yield()"]);
}

#[test]
fn times_are_absolute_relative_or_from_line_to_line() {
    let day = 24 * 3600 * 1_000_000_000;
    let records = [(5, 2, "01:16:0", "0"), (1_000_000_007, 2, "01:16:0", "0"), (day, 2, "01:16:0", "0")];
    let columns = |lines: Vec<String>| -> Vec<String> {
        lines.iter().map(|line| line.split(" 1/2").next().unwrap().to_owned()).collect()
    };
    let relative = columns(lines(&records));
    assert_eq!(relative, ["  0.000000000", "  1.000000002", " 86399.999999995"]);
    let delta = columns(lines_by(&mut text_format(TimeStyle::Delta), &records));
    assert_eq!(delta, [" +0.000000000", " +1.000000002", "+86398.999999993"]);
    // The local time depends on where the test runs; time zones differ by multiples of a quarter of an hour.
    let absolute = columns(lines_by(&mut text_format(TimeStyle::Abs), &records));
    assert_eq!(absolute.len(), 5, "{absolute:?}");
    assert!(absolute[0].starts_with("2026-11-2") && absolute[3].starts_with("2026-11-2") && absolute[0] != absolute[3]);
    assert!(absolute[1].ends_with(":00.000000005") && absolute[2].ends_with(":01.000000007"), "{absolute:?}");
    assert_eq!(absolute[1][..6], absolute[4][..6], "{absolute:?}");
}

#[test]
fn colours_take_no_columns() {
    let records = [
        (0, 2, "02:02:1", "0x559469ed90a0"),
        (1_234_567, 2, "02:02:2", "35:1"),
        (2_000_000, 3, "02:02:1", "0x559469ed90a0"),
        (2_000_000, 2, "02:04:0", "0x559469ed90a0:0:1"),
        (2_000_100, 3, "02:02:2", "0:1"),
    ];
    let coloured = lines_by(&mut TextFormat::new(TimeStyle::Rel, true, Vec::new(), OpenCallTable::default()), &records);
    assert!(coloured[0].starts_with("\x1b[2m  0.000000000\x1b[m \x1b[36m1/2\x1b[m "), "{:?}", coloured[0]);
    assert!(coloured[0].contains("\x1b[1mmutex_lock\x1b[m(0x559469ed90a0)"), "{:?}", coloured[0]);
    assert!(coloured[0].contains("= \x1b[31mEDEADLK\x1b[m     1.234 ms \x1b[33mblocked\x1b[m"), "{:?}", coloured[0]);
    assert!(coloured[1].contains("\x1b[32m1/3\x1b[m"), "{:?}", coloured[1]);
    let plain = |line: &String| -> String {
        let mut texts = line.split('\x1b');
        let first = texts.next().unwrap().to_owned();
        texts.fold(first, |text, next| text + &next[next.find('m').unwrap() + 1..])
    };
    assert_eq!(coloured.iter().map(plain).collect::<Vec<_>>(), lines(&records));
}

#[test]
fn a_line_that_is_not_a_record_is_escaped() {
    let (mut format, mut out) = (text_format(TimeStyle::Rel), Vec::new());
    format.record(records_text(&[(0, 2, "02:02:1", "0x10")])[0].as_bytes(), &mut out);
    format.record(b"rub\x1b[2Jbish\n", &mut out);
    let text = String::from_utf8(out).unwrap();
    assert_eq!(text.lines().collect::<Vec<_>>(), [lines(&[(0, 2, "02:02:1", "0x10")])[0].as_str(), "rub\\x1b[2Jbish"]);
}

#[test]
fn durations_have_units() {
    for (nanoseconds, text) in [
        (0, "0 ns"),
        (999, "999 ns"),
        (1_000, "1.000 us"),
        (999_999, "999.999 us"),
        (1_234_567, "1.234 ms"),
        (61_000_000_000, "61.000 s"),
        (u64::MAX, "18446744073.709 s"),
    ] {
        let mut buffer = [0; 24];
        let length = crate::support::duration::write_duration(nanoseconds, &mut buffer);
        assert_eq!(std::str::from_utf8(&buffer[..length]), Ok(text));
    }
}

#[test]
fn open_calls_are_bounded() {
    let mut threads = KnownThreads::new(Vec::new());
    let call = |time| OpenCall { event: (2, 2), time, object: ShortText::new(b"0") };
    let line = record(START, 1, "02:02:1", 0);
    let thread = threads.add(&Fields::new(line.as_bytes()).unwrap());
    (0..known_threads::OPEN_CALLS_MAX as u64 + 10).for_each(|time| threads.begin_call(thread, call(time)));
    let ret = record(START, 1, "02:02:2", 0);
    let ret = Fields::new(ret.as_bytes()).unwrap();
    // The newest are kept: they return first.
    let ends: Vec<u64> = std::iter::from_fn(|| threads.end_call(thread, &ret)).map(|call| call.time).collect();
    assert_eq!(
        (ends.len(), ends[0], ends[ends.len() - 1]),
        (known_threads::OPEN_CALLS_MAX, known_threads::OPEN_CALLS_MAX as u64 + 9, 10)
    );
}

#[test]
fn many_threads_are_forgotten_and_their_calls_are_shown() {
    let (mut format, mut out) = (text_format(TimeStyle::Rel), Vec::new());
    let count = known_threads::THREADS_MAX as u64 + 3;
    for time in 0..count {
        format.record(record(START + time, time as u32, "02:02:1", 16).as_bytes(), &mut out);
    }
    format.pause(&mut out);
    // The first thread was forgotten with its call, the last one was not.
    for (time, lwp) in [(count, 0), (count + 1, count - 1)] {
        format.record(record(START + time, lwp as u32, "02:02:2", 0).as_bytes(), &mut out);
    }
    let text = String::from_utf8(out).unwrap();
    let words = |line: &str| line.split_whitespace().skip(1).collect::<Vec<_>>().join(" ");
    let lines: Vec<String> = text.lines().skip(count as usize - 1).map(words).collect();
    let expected = ["1/262146 > mutex_lock(16)", "1/0 < mutex_lock() = 0", "1/262146 < mutex_lock(16) = 0 2 ns"];
    assert_eq!(lines, expected);
}

#[test]
fn a_call_that_does_not_return_is_open() {
    let mut table = OpenCallTable::default();
    let reasons = [OpenReason::Ended, OpenReason::Runs, OpenReason::LastSeen, OpenReason::CutOff];
    let records: Vec<(u64, u32, &str, &str)> = (0..4).map(|at| (at, 2, "02:02:1", "0x10")).collect();
    for (time, reason) in reasons.into_iter().enumerate() {
        let call = CallKey { pid: 1, lwp: 2, tid: 0x7fc5_de3f_86c0, category: 2, number: 2, name: 0 };
        table.add_call(call, START + time as u64, OpenUntil { time: START + 6_001_000_000, reason });
    }
    let lines = lines_by(&mut TextFormat::new(TimeStyle::Rel, false, Vec::new(), table), &records);
    let expected = [
        "  0.000000000 1/2             > mutex_lock(0x10)                      open           6.001 s at end",
        "  0.000000001 1/2             > mutex_lock(0x10)                      open           6.000 s running",
        "  0.000000002 1/2             > mutex_lock(0x10)                      open           6.000 s or more",
        "  0.000000003 1/2             > mutex_lock(0x10)                      open           6.000 s cut off",
    ];
    assert_eq!(lines, expected);
    assert!(lines.iter().all(|line| line.len() <= WIDTH));
}

#[test]
fn what_is_in_spans_and_functions_is_indented() {
    let records = [
        (0, 2, "12:90:1", "0x10"),
        (1, 2, "12:91:0", "0x20:-5"),
        (2, 2, "12:90:1", "0x11"),
        (3, 2, "12:90:2", "0x10"),
        (4, 2, "12:90:2", "0x11"),
        (5, 2, "13:01:0", "0x100:0x1"),
        (6, 2, "13:01:0", "0x200:0x101"),
        (7, 2, "02:02:1", "0x10"),
        (8, 2, "02:02:2", "0"),
        // The function at 0x200 was left without a record.
        (9, 2, "13:02:0", "0x100:0x1"),
        (10, 2, "12:90:1", "0x10"),
        (11, 2, "12:90:2", "0x11"),
    ]
    .map(|(time, lwp, event, arguments)| (time, lwp, event, arguments));
    let lines = lines_by(&mut text_format(TimeStyle::Rel), &records);
    let calls: Vec<&str> = lines.iter().map(|line| line[29..].trim_end()).collect();
    let expected = [
        " > user_span(0x10)",
        "     user_mark(0x20, value=-5)",
        "   > user_span(0x11)",
        "   < user_span(0x10)                                       3 ns",
        " < user_span(0x11)                                         2 ns",
        "   func_enter(0x100, call_site=0x1)",
        "     func_enter(0x200, call_site=0x101)",
        "       mutex_lock(0x10)                  = 0               1 ns",
        "   func_leave(0x100, call_site=0x1)",
        " > user_span(0x10)",
        "   < user_span(0x11)",
    ];
    assert_eq!(calls, expected, "{}", lines.join("\n"));
}
