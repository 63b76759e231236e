//! Programs of all kinds, followed: what is printed is what the trace has at the end.

use std::time::Duration;

use super::{assert_all, follow_all, go, posts};
use crate::harness::{Program, TestCommand, TestDirectory};
use crate::kill::finished;

/// Follows a program from before its start. How many records it made.
#[track_caller]
fn from_the_start(name: &str, program: impl FnOnce(&TestDirectory) -> TestCommand<'_>) -> usize {
    println!("{name}");
    let test = TestDirectory::new("follow-start");
    let follower = follow_all(&test);
    let output = program(&test).run();
    assert!(output.status.code().is_some(), "{output:?}");
    let records = assert_all(&test, &follower.wait());
    println!("{records} records");
    records
}

/// `counting` until each of four workers has finished `calls` calls; `ending` is the way in which it ends.
fn counting<'a>(test: &'a TestDirectory, ending: &str, calls: u64) -> TestCommand<'a> {
    let counts = test.directory().join("counts");
    test.traced(Program::c("kill/counting.c")).arg(counts).args(["steady", ending, &calls.to_string()])
}

#[test]
fn threads_at_full_speed_are_followed() {
    for ending in ["return", "_exit", "quick_exit"] {
        let records = from_the_start(ending, |test| counting(test, ending, 60_000));
        assert!(records > 240_000);
    }
    assert!(
        from_the_start("each record at once", |test| counting(test, "exit", 3_000).env("THR_TRACE_BUF", "1")) > 9_000
    );
}

#[test]
fn short_threads_are_followed() {
    assert!(
        from_the_start("a thousand short threads", |test| test.traced(Program::c("lifecycle/short_threads.c"))) >= 3000
    );
    assert!(
        from_the_start("the same, each record at once", |test| test
            .traced(Program::c("lifecycle/short_threads.c"))
            .env("THR_TRACE_BUF", "1"))
            >= 3000
    );
    assert!(
        from_the_start("two threads with one file", |test| test
            .traced(Program::c("hostile/shared_number.c"))
            .arg("20000"))
            > 40_000 * 3
    );
}

#[test]
fn many_threads_at_once_are_followed() {
    let all = (0..110).map(|count| format!("stay {} ", 1 + count % 7)).collect::<String>();
    let test = TestDirectory::new("follow-many");
    let follower = follow_all(&test);
    let mut programs: Vec<_> = (0..2).map(|_| posts(&test, &format!("{all} go posts 9")).spawn()).collect();
    // Following ends when one has ended before the other has begun.
    programs.iter_mut().for_each(|program| program.wait_for("ready\n"));
    go(&test);
    for program in programs {
        program.wait().exited(7);
    }
    let made: usize = (0..110).map(|count| 1 + count % 7).sum();
    assert_eq!(assert_all(&test, &follower.wait()), 2 * (made + 9));
}

#[test]
fn forks_execs_and_many_short_processes_are_followed() {
    let family = "posts 100 fork 50 thread 20 exec - posts 70 fork 3000 thread 9 fork 1 exec - fork 2 stay 5";
    assert_eq!(
        from_the_start("forks and execs", |test| posts(test, family)),
        100 + 50 + 20 + 70 + 3000 + 9 + 1 + 2 + 5
    );
    assert!(
        from_the_start("a shell", |test| {
            let line =
                "for i in 1 2 3 4 5 6 7 8; do /bin/true; (exit $i); /bin/echo $i | /bin/cat; done; exec /bin/echo end";
            test.traced("/bin/sh").args(["-c", line])
        }) > 100
    );
    assert!(
        from_the_start("python", |test| {
            let line = "import subprocess, threading\n\
                    for i in range(6): subprocess.run(['/bin/echo', str(i)])\n\
                    [thread.start() for thread in [threading.Thread(target=print) for i in range(20)]]";
            test.traced("/usr/bin/python3").args(["-c", line])
        }) > 100
    );
}

#[test]
fn storms_of_signals_are_followed() {
    for mode in ["posts", "jumps", "altjumps", "forks"] {
        from_the_start(mode, |test| test.traced(Program::c("hostile/storm.c")).args([mode, "400"]));
    }
    from_the_start("each record at once", |test| {
        test.traced(Program::c("hostile/storm.c")).args(["posts", "200"]).env("THR_TRACE_BUF", "1")
    });
}

#[test]
fn what_a_level_or_a_set_of_events_leaves_is_followed() {
    let records = from_the_start("blocked", |test| counting(test, "exit", 3_000).env("THR_TRACE_LEVEL", "blocked"));
    assert!((4..100).contains(&records), "{records}");
    assert!(
        from_the_start("detail", |test| counting(test, "exit", 3_000)
            .env("THR_TRACE_DETAIL", "1")
            .env("THR_TRACE_EVENTS", "mutex"))
            > 8_000
    );
}

/// In the directory: a process that was killed, one that waits with records in buffers and in files, one whose threads record
/// at full speed, and some that come later.
#[test]
fn following_may_begin_at_any_moment() {
    for calls in [1_000u64, 30_000, 90_000] {
        println!("from {calls} calls on");
        let test = TestDirectory::new("follow-middle");
        posts(&test, "posts 5000 thread 300 kill").run().killed(libc::SIGKILL);
        posts(&test, "posts 4000 fork 7").run().exited(7);
        let mut waits = posts(&test, "posts 6000 stay 400 thread 5 go posts 5000 fork 6").spawn();
        waits.wait_for("ready\n");
        let counts = test.directory().join("counts");
        let mut busy = counting(&test, "exit", 150_000).spawn();
        let has_begun = || finished(&counts).iter().sum::<u64>() >= calls;
        while !has_begun() {
            assert!(!busy.has_ended() || has_begun());
            std::thread::sleep(Duration::from_micros(50));
        }
        let follower = follow_all(&test);
        busy.wait().exited(40);
        posts(&test, "fork 8 posts 3 thread 2").run().exited(7);
        go(&test);
        waits.wait().exited(7);
        assert!(assert_all(&test, &follower.wait()) > 600_000);
    }
}
