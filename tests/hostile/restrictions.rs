//! Programs that forbid their own threads what a recorder does: to read the processor's counter, or every system call.

use std::time::{SystemTime, UNIX_EPOCH};

use super::super::harness::{CommandOutput, Program, TestCommand, TestDirectory, library, repository};
use super::super::order::checker;
use super::{DONE, assert_complete, words};

/// Records of `pairs N`, and of `timed N`.
const fn pairs(count: usize) -> usize {
    1 + 6 * count
}
const fn timed(count: usize) -> usize {
    3 * count
}

/// The ways to forbid something that the program knows.
const WAYS: [&str; 3] = ["prctl", "syscall", "seccomp"];
/// The ways to record.
const MODES: [(&str, &str); 3] = [("THR_TRACE_DETAIL", "1"), ("THR_TRACE_BUF", "1"), ("THR_TRACE_RING", "1M")];

fn restricted() -> Program {
    Program::c("hostile/restricted.c")
}

fn traced<'a>(test: &'a TestDirectory, program: &Program, steps: &str, mode: (&str, &str)) -> TestCommand<'a> {
    test.traced(program).args(words(steps)).env("THR_TRACE_EVENTS", "mutex:sema").env(mode.0, mode.1)
}

/// Nanoseconds since the Epoch.
fn now() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos()
}

/// Fails unless these records are there, in an order that can have happened, and with times of this test.
#[track_caller]
fn assert_recorded(test: &TestDirectory, records: usize, began: u128) {
    let trace = assert_complete(test, records);
    let times = trace.records.iter().map(|record| {
        let time: u128 = record.line[..20].replace(':', "").parse().unwrap();
        time
    });
    let ended = now();
    for time in times {
        assert!((began..=ended).contains(&time), "{began} {time} {ended}");
    }
    if let Err(impossible) = checker::check(trace.records.iter().map(|record| &record.fields)) {
        panic!("{impossible}: {}", trace.records[impossible.at].line);
    }
}

#[test]
fn a_program_that_forbids_itself_the_counter_is_recorded() {
    for mode in MODES {
        for way in &WAYS[..2] {
            println!("{way} {mode:?}");
            let steps = format!("pairs 10 tsc {way} pairs 1500 timed 5 thread 10 fork 10 pairs 10");
            let test = TestDirectory::new("no-counter");
            test.native(restricted()).args(words(&steps)).run().exited(DONE);
            let began = now();
            traced(&test, &restricted(), &steps, mode).run().exited(DONE);
            assert_recorded(&test, 4 * pairs(10) + pairs(1500) + timed(5), began);
        }
    }
}

/// So it is in a program that inherits it from the one that executes it, too; but there the dynamic linker of many releases
/// of glibc reads the counter itself.
#[test]
fn the_counter_is_forbidden_before_the_first_hook() {
    let program = Program::with_flags("hostile/restricted.c", &["-DEARLY"]);
    for mode in MODES {
        let test = TestDirectory::new("no-counter-early");
        let steps = "pairs 1500 thread 10 fork 10";
        test.native(&program).args(words(steps)).run().exited(DONE);
        let began = now();
        traced(&test, &program, steps, mode).run().exited(DONE);
        assert_recorded(&test, pairs(1500) + 2 * pairs(10), began);
    }
}

/// The thread may read, write and leave. What it recorded before is in the trace, and what it did afterwards is counted.
#[test]
fn a_program_under_strict_seccomp_ends_as_it_would() {
    for mode in MODES {
        for way in WAYS {
            println!("{way} {mode:?}");
            let test = TestDirectory::new("strict");
            let steps = format!("pairs 10 handler strict {way} pairs 3000 timed 5 say leave");
            let native = test.native(restricted()).args(words(&steps)).run();
            let traced = traced(&test, &restricted(), &steps.replace("handler ", ""), mode).run();
            native.exited(DONE);
            traced.exited(DONE);
            assert_eq!(traced.stdout_text(), native.stdout_text());
            let output = test.trace_cat().run();
            output.success();
            assert_eq!(output.stdout_text().lines().count(), pairs(10));
            let lost = format!("lost {} records before it died (EPERM)", pairs(3000) + timed(5));
            assert!(output.stderr_text().contains(&lost), "{}", output.stderr_text());
        }
    }
}

#[test]
fn signal_handlers_go_on_under_strict_seccomp() {
    for mode in MODES {
        let test = TestDirectory::new("strict-handlers");
        let steps = "handler pairs 2000 strict prctl pairs 300000 say leave";
        let output = traced(&test, &restricted(), steps, mode).run();
        output.exited(DONE);
        assert_eq!(output.stdout_text(), "still here\n");
    }
}

/// `exit` writes what stdio has buffered before the kernel kills the program for its last system call.
#[test]
fn exits_under_strict_seccomp_die_where_they_would() {
    for mode in MODES {
        for (ending, prints) in [("exit", "left in stdio's buffer\n"), ("_exit", "")] {
            let steps = format!("pairs 10 strict prctl pairs 10 {ending}");
            let test = TestDirectory::new("strict-exit");
            let died = |output: CommandOutput| {
                output.killed(libc::SIGKILL);
                assert_eq!(output.stdout_text(), prints);
            };
            died(test.native(restricted()).args(words(&steps)).run());
            died(traced(&test, &restricted(), &steps, mode).run());
        }
    }
}

#[test]
fn the_other_threads_of_a_strict_one_are_recorded() {
    for way in WAYS {
        let test = TestDirectory::new("strict-thread");
        let began = now();
        let steps = format!("pairs 10 strictthread {way} 500 thread 10 pairs 1500 fork 10");
        traced(&test, &restricted(), &steps, MODES[0]).run().exited(DONE);
        let trace = test.merged();
        let lost = trace.of("trace_lost");
        assert_eq!((lost.len(), lost[0].fields.arguments[0].bits()), (1, pairs(500) as u64));
        assert_eq!(trace.records.len() - 1, 3 * pairs(10) + pairs(500) + pairs(1500));
        let late =
            trace.records.iter().filter(|record| record.line[..20].replace(':', "").parse::<u128>().unwrap() < began);
        assert_eq!(late.count(), 0);
    }
}

/// The slots of threads that ended unnoticed are used again; each one's losses stay its own.
#[test]
fn the_losses_of_many_strict_threads_are_theirs() {
    const THREADS: usize = 40;
    let test = TestDirectory::new("strict-threads");
    let steps = "strictthread prctl 500 ".repeat(THREADS);
    traced(&test, &restricted(), &steps, MODES[0]).run().exited(DONE);
    let trace = test.merged();
    let lost = trace.of("trace_lost");
    assert!(lost.iter().all(|record| record.fields.arguments[0].bits() == pairs(500) as u64));
    let mut threads: Vec<u32> = lost.iter().map(|record| record.fields.lwpid).collect();
    threads.sort_unstable();
    threads.dedup();
    assert_eq!((lost.len(), threads.len()), (THREADS, THREADS));
}

/// Under a filter strict mode is refused with EINVAL: the thread goes on and is recorded.
#[test]
fn a_refused_restriction_changes_nothing() {
    for way in WAYS {
        let test = TestDirectory::new("strict-refused");
        let began = now();
        traced(&test, &restricted(), &format!("pairs 10 refused {way} pairs 1500"), MODES[0]).run().exited(DONE);
        assert_recorded(&test, pairs(10) + pairs(1500), began);
    }
}

/// The kernel refuses a filter for all threads where one has a filter that the others have not, and returns that thread's ID: it is
/// recorded as before.
#[test]
fn a_filter_that_was_refused_because_of_a_thread_forbids_nothing() {
    let test = TestDirectory::new("sync-refused");
    super::traced_steps(&test, "pairs 100 refusedsync 5000 pairs 100").run().exited(DONE);
    assert_complete(&test, 3 * 5200);
}

/// A filter that kills for closing what is above the program's own descriptors: nothing is opened any more, so that nothing stays
/// open. One that keeps the standard descriptors does not matter.
#[test]
fn a_filter_may_judge_close_by_the_descriptor() {
    let records = 3 * 2200;
    for keeps in ["10 1000", "0 2"] {
        let test = TestDirectory::new("kept-open");
        let steps = format!("descriptors before pairs 100 keep {keeps} threads 2 1000 pairs 100 descriptors after");
        let run = super::traced_steps(&test, &steps).env("THR_TRACE_BUF", "1");
        if keeps == "0 2" {
            run.run().exited(DONE);
            assert_complete(&test, records);
        } else {
            super::complains_once(&run.noise_expected().run(), "Operation not permitted");
            super::assert_counted(&test, records, libc::EPERM);
        }
    }
}

/// A thread whose opens another one answers, under a lock that the thread takes and gives back: it is not asked about the
/// library's, or both would wait for ever.
#[test]
fn another_thread_answers_only_the_programs_own_calls() {
    let test = TestDirectory::new("asked");
    let run = super::traced_mutexes(&test, &Program::c("hostile/asked.c")).arg("300").env("THR_TRACE_BUF", "1");
    let output = run.noise_expected().run();
    super::complains_once(&output, "Operation not permitted");
    assert_complete(&test, 3 * 301);
}

/// System calls that the kernel hands to the program by a SIGSYS, which it does not expect where it makes none: there are none
/// while its byte forbids them. What the buffer does not hold meanwhile is counted.
#[test]
fn no_call_goes_to_a_program_that_has_its_own_dispatched() {
    for (blocked, mode) in [(100, ("THR_TRACE_BUF", "1")), (5000, MODES[0]), (5000, ("THR_TRACE_BUF", "1"))] {
        let test = TestDirectory::new("dispatched");
        let program = Program::c("hostile/dispatched.c");
        let run = super::traced_mutexes(&test, &program).args(["300", &blocked.to_string()]).env(mode.0, mode.1);
        let output = run.noise_expected().run();
        if !output.is_permitted("to have system calls dispatched") {
            return;
        }
        output.exited(DONE);
        let account = super::account(&test.merged());
        assert_eq!(account.records as u64 + account.lost, 3 * (4 * 300 + 2 * blocked), "{blocked} {mode:?}");
        assert!(blocked > 100 || account.lost == 0);
    }
}

/// Nothing shows what such a filter forbids. A program that the filter leaves alone natively is left alone with the library, too, unless the
/// call is one that docs/limits.md names.
#[test]
fn a_filter_that_was_there_before_must_allow_what_is_documented() {
    const NUMBERS: std::ops::Range<libc::c_long> = 0..463;
    let documented = [
        ("gettid", libc::SYS_gettid),
        ("tgkill", libc::SYS_tgkill),
        ("openat", libc::SYS_openat),
        ("fstat", libc::SYS_fstat),
        ("prlimit64", libc::SYS_prlimit64),
        ("fallocate", libc::SYS_fallocate),
        ("mmap", libc::SYS_mmap),
        ("madvise", libc::SYS_madvise),
        ("close", libc::SYS_close),
        ("write", libc::SYS_write),
        ("pwrite64", libc::SYS_pwrite64),
        ("fstatfs", libc::SYS_fstatfs),
        ("fcntl", libc::SYS_fcntl),
        ("prctl", libc::SYS_prctl),
        ("getpid", libc::SYS_getpid),
        ("getppid", libc::SYS_getppid),
        ("geteuid", libc::SYS_geteuid),
        ("uname", libc::SYS_uname),
        ("readlink", libc::SYS_readlink),
        ("unlink", libc::SYS_unlink),
        ("renameat2", libc::SYS_renameat2),
        ("membarrier", libc::SYS_membarrier),
        ("nanosleep", libc::SYS_nanosleep),
        ("mkdir", libc::SYS_mkdir),
        ("rt_sigprocmask", libc::SYS_rt_sigprocmask),
        ("futex", libc::SYS_futex),
    ];
    let limits = std::fs::read_to_string(repository().join("docs/limits.md")).unwrap();
    for (name, _) in documented {
        assert!(limits.contains(&format!("`{name}`")), "{name}");
    }
    let (launcher, program) = (Program::c("hostile/inherits.c"), Program::c("hostile/inherited.c"));
    let mut killed = Vec::new();
    for number in NUMBERS {
        let test = TestDirectory::new("inherited-filter");
        let run = || test.native(&launcher).arg(number.to_string()).arg(program.path());
        if !run().run().status.success() {
            continue;
        }
        let traced = run().env("PRELOAD", library()).env("THR_TRACE_DIR", test.trace_directory());
        if !traced.env("THR_TRACE_STACK", "8").run().status.success() {
            killed.push(number);
        }
    }
    let unknown: Vec<_> =
        killed.iter().filter(|number| !documented.iter().any(|(_, known)| known == *number)).collect();
    assert!(unknown.is_empty() && killed.contains(&libc::SYS_pwrite64), "{unknown:?} of {killed:?}");
}

/// A filter may permit one change of the signal mask and refuse the other, or answer as if it had been made.
#[test]
fn the_signal_mask_stays_where_a_filter_refuses_to_change_it() {
    let program = Program::c("hostile/refused_mask.c");
    for (how, errno) in [(libc::SIG_BLOCK, libc::EPERM), (libc::SIG_BLOCK, 0), (libc::SIG_SETMASK, libc::EPERM)] {
        for (number, mode) in [(20_000, ("", "")), (5, ("", "")), (50, MODES[1]), (20_000, MODES[2])] {
            let test = TestDirectory::new("refused-mask");
            let arguments = [how, errno, number].map(|number| number.to_string());
            test.native(&program).args(&arguments).run().exited(DONE);
            let run = test.traced(&program).args(&arguments).env("THR_TRACE_EVENTS", "mutex");
            let run = if mode.0.is_empty() { run } else { run.env(mode.0, mode.1) };
            run.run().exited(DONE);
            if mode != MODES[2] {
                assert_complete(&test, 3 * number as usize);
            }
        }
    }
}
