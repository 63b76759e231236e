//! The view for people, with exact lines.

use super::*;
use crate::trial::record;

/// The lines that are shown for records of process 1, given as time, LWP, event and arguments.
fn shown(records: &[(u64, u32, &str, &str)]) -> Vec<String> {
    let (mut view, mut out) = (Text::default(), Vec::new());
    for &(time, lwp, event, arguments) in records {
        let line = record(1_795_174_740_000_000_000 + time, lwp, event, 0);
        let head = line.len() - "0:0:0:0:0\n".len();
        let zeros = ":0".repeat(4 - arguments.matches(':').count());
        view.record(format!("{}{arguments}{zeros}\n", &line[..head]).as_bytes(), &mut out);
    }
    String::from_utf8(out).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn a_call_of_two_records() {
    let lines = shown(&[
        (0, 2, "02:02:1", "0x559469ed90a0"),
        (1_234_567, 2, "02:02:2", "0:1"),
        (2_000_000_000, 2, "02:04:0", "0x559469ed90a0:0:1"),
        (2_000_000_010, 2, "02:02:1", "0x559469ed90a0"),
        (2_000_000_119, 2, "02:02:2", "35"),
    ]);
    let expected = [
        "  0.000000000 1/2           mutex_lock(mutex=0x559469ed90a0)             ...",
        "  0.001234567 1/2           mutex_lock(mutex=0x559469ed90a0)             = 0       1.234 ms blocked",
        "  2.000000000 1/2           mutex_unlock(mutex=0x559469ed90a0)           = 0                waiters",
        "  2.000000010 1/2           mutex_lock(mutex=0x559469ed90a0)             ...",
        "  2.000000119 1/2           mutex_lock(mutex=0x559469ed90a0)             = EDEADLK   109 ns",
    ];
    assert_eq!(lines, expected);
    assert!(lines.iter().all(|line| line.len() < 100));
}

#[test]
fn calls_nest_and_threads_are_told_apart() {
    let lines = shown(&[
        (0, 2, "04:02:1", "0x10:3"),
        (1, 3, "04:02:1", "0x30:3"),
        (2, 2, "04:02:1", "0x20:2"),
        (3, 2, "04:02:2", "0"),
        (4, 2, "04:02:2", "4"),
        (5, 3, "04:02:2", "0"),
        (6, 3, "04:02:2", "0"),
    ]);
    let calls: Vec<String> =
        lines[3..].iter().map(|line| line[28..].split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    assert_eq!(
        calls,
        [
            "sema_wait(sem=0x20) = 0 1 ns",
            "sema_wait(sem=0x10) = EINTR 4 ns",
            "sema_wait(sem=0x30) = 0 4 ns",
            "sema_wait() = 0"
        ]
    );
}

/// What is shown of one record behind process and LWP, with single spaces.
fn call(event: &str, arguments: &str) -> String {
    let lines = shown(&[(0, 2, event, arguments)]);
    lines[0][28..].split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn arguments_results_and_names() {
    for (event, arguments, expected) in [
        ("01:01:2", "0:0x7fc5de3f86c0", "thr_create(new_tid=0x7fc5de3f86c0) = 0"),
        ("01:02:0", "0", "thr_exit(exit_status=0)"),
        (
            "01:03:2",
            "0x7fc5de3f86c0:0xffffffffffffffff:3",
            "thr_join(thread=0x7fc5de3f86c0, exit_status=0xffffffffffffffff) = ESRCH",
        ),
        ("01:04:0", "0", "thr_self()"),
        ("01:09:0", "4", "thr_getconcurrency(level=4)"),
        ("01:10:0", "0x7fc5de3f86c0:10:0", "thr_kill(thread=0x7fc5de3f86c0, signal=SIGUSR1) = 0"),
        ("01:10:0", "0x7fc5de3f86c0:40:22", "thr_kill(thread=0x7fc5de3f86c0, signal=40) = EINVAL"),
        (
            "01:39:0",
            "0x7fc5de3f86c0:0x776f726b65722d31:0x3200000000000000:0",
            "thr_setname(thread=0x7fc5de3f86c0, name=\"worker-12\") = 0",
        ),
        ("01:39:0", "0x7fc5de3f86c0:0x610a220000000000", "thr_setname(thread=0x7fc5de3f86c0, name=\"a\\n\\\"\") = 0"),
        ("07:02:2", "-1", "barrier_wait() = -1"),
        ("04:01:0", "0x10:0:5:0:22", "sema_init(sem=0x10, pshared=0, value=5) = EINVAL"),
        ("09:02:2", "1", "spin_lock() blocked"),
        ("09:04:0", "0x10", "spin_unlock(spin=0x10)"),
        ("00:01:0", "12:28", "trace_lost(lost=12, cause=ENOSPC)"),
        ("11:03:2", "2", "proc_exec(errno=ENOENT)"),
        ("02:04:0", "0x10:0:0:0:0x401136", "mutex_unlock(mutex=0x10, a5=0x401136) = 0"),
        ("12:05:0", "0x5:0:-7", "user.05(0x5, 0, -7)"),
        ("12:99:1", "0", "user.99() ..."),
        ("02:04:2", "3", "mutex_unlock(3)"),
        ("02:77:0", "0:1", "mutex.77(0, 1)"),
        ("10:03:2", "-11", "futex_op(result=-11)"),
        ("50:01:0", "0", "50.01()"),
    ] {
        assert_eq!(call(event, arguments), expected);
    }
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
        assert_eq!(duration(nanoseconds), text);
    }
}

#[test]
fn what_is_remembered_is_bounded() {
    let mut view = Text::default();
    let mut out = Vec::new();
    for serial in 0..DEPTH as u64 + 10 {
        view.record(record(serial, 1, "02:02:1", serial).as_bytes(), &mut out);
    }
    let calls = &view.begun[&(1, 1, 2, 2)];
    assert_eq!(calls.len(), DEPTH);
    // The newest are kept: they end first.
    assert_eq!((calls[0].time, calls[DEPTH - 1].time), (10, DEPTH as u64 + 9));
    for lwp in 0..REMEMBERED as u32 + 10 {
        view.record(record(0, lwp, "02:02:1", 0).as_bytes(), &mut out);
        out.clear();
    }
    assert!(view.begun.len() <= REMEMBERED);
}
