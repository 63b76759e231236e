//! Real programs, with and without the library: the same output and exit status, and a trace of which every record
//! decodes, is merged once and in a possible order.

mod futexes;
mod servers;

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use super::harness::{CommandOutput, Program, TestCommand, TestDirectory, Trace};
use super::lifecycle::names;
use super::order::checker;

/// A program of `tests/programs/real_programs`.
fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("programs/real_programs").join(name)
}

/// Writes pseudo-random 32-bit numbers, always the same, one a line.
fn write_numbers(path: &Path, count: usize) {
    let numbers = std::iter::successors(Some(1u64), |&number| Some(number * 16807 % 2_147_483_647));
    let text: String = numbers.take(count).map(|number| format!("{number}\n")).collect();
    fs::write(path, text).unwrap();
}

/// Runs a program without and with the library, which must not differ, and returns the trace.
#[track_caller]
fn compared<'a>(
    test: &'a TestDirectory,
    program: impl AsRef<OsStr>,
    status: i32,
    threads: Threads,
    prepare: impl Fn(TestCommand<'a>) -> TestCommand<'a>,
) -> Trace {
    let native = prepare(test.native(&program)).run();
    let traced = prepare(test.traced(&program)).run();
    native.exited(status);
    same(&native, &traced);
    timeline(test, threads)
}

#[track_caller]
fn same(native: &CommandOutput, traced: &CommandOutput) {
    assert_eq!(native.status, traced.status, "{}", traced.command);
    assert_eq!(native.stderr_text(), traced.stderr_text(), "{}", traced.command);
    // Megabytes, for some: not for a message.
    assert!(native.stdout == traced.stdout, "another output: {}", traced.command);
}

/// Whether the threads of a program have all ended when its process does, or may be interrupted by its end.
#[derive(Clone, Copy, PartialEq)]
enum Threads {
    End,
    AreCut,
}

/// The merged trace. Fails unless it has every record of the files once and is a possible timeline. It has more only if the process
/// left its trbuf: a thread that runs on when its process ends may have recorded what it could not write any more.
#[track_caller]
fn timeline(test: &TestDirectory, threads: Threads) -> Trace {
    let (raw, merged) = (test.trace(), test.merged());
    assert!(!merged.records.is_empty(), "nothing was recorded");
    let sorted = |trace: &Trace| {
        let mut lines: Vec<String> = trace.records.iter().map(|record| record.line.clone()).collect();
        lines.sort_unstable();
        lines
    };
    let mut in_files = sorted(&raw).into_iter().peekable();
    let mut more = sorted(&merged);
    more.retain(|line| in_files.next_if_eq(line).is_none());
    assert_eq!(in_files.next(), None, "is not in the merged trace");
    let has_trbuf = || names(&test.trace_directory()).iter().any(|name| name.starts_with("trbuf."));
    assert!(more.is_empty() || has_trbuf(), "merged, but in no file: {more:#?}");
    let fields = merged.records.iter().map(|record| &record.fields);
    let census = if threads == Threads::End { checker::check(fields) } else { checker::check_interrupted(fields) };
    match census {
        Ok(census) => println!("{} records, {census:?}", merged.records.len()),
        Err(impossible) => panic!("{impossible}: {}", merged.records[impossible.at].line),
    }
    merged
}

/// How many calls of this event were successful.
fn succeeded(trace: &Trace, event: &str) -> usize {
    trace.of(event).iter().filter(|record| record.fields.which != 1 && record.rval() == 0).count()
}

/// As many threads began, exited and were joined as were created.
#[track_caller]
fn every_thread_was_joined(trace: &Trace, at_least: usize) {
    let created = succeeded(trace, "thr_create");
    assert!(created >= at_least, "{created} threads");
    let ends = [succeeded(trace, "thr_join"), trace.of("thr_begin").len(), trace.of("thr_exit").len()];
    assert_eq!(ends, [created; 3], "joined, begun, exited");
}

#[test]
fn sort() {
    let test = TestDirectory::new("sort");
    let numbers = test.directory().join("numbers");
    // sort starts a thread for 131,072 lines and more.
    write_numbers(&numbers, 600_000);
    let trace =
        compared(&test, "sort", 0, Threads::End, |run| run.args(["--parallel=4", "-S", "100M", "-n"]).arg(&numbers));
    every_thread_was_joined(&trace, 2);
    assert!(succeeded(&trace, "mutex_lock") > 100 && succeeded(&trace, "cond_signal") > 10);
}

#[test]
fn xz() {
    let test = TestDirectory::new("xz");
    let plain = test.directory().join("plain");
    write_numbers(&plain, 600_000);
    let arguments = ["-T2", "-1", "--block-size=1MiB", "-c"];
    let trace = compared(&test, "xz", 0, Threads::AreCut, |run| run.args(arguments).arg(&plain));
    // xz exits without a join.
    let created = succeeded(&trace, "thr_create");
    assert!(created >= 2 && trace.of("thr_begin").len() == created);
    assert!(succeeded(&trace, "mutex_lock") > 10 && succeeded(&trace, "cond_signal") > 0);
}

/// A command of git's that knows nothing of the machine's own settings.
fn git<'a>(run: TestCommand<'a>, repository: &Path) -> TestCommand<'a> {
    run.env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_AUTHOR_DATE", "1700000000 +0000")
        .env("GIT_COMMITTER_DATE", "1700000000 +0000")
        .args(["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "gc.auto=0", "-c", "pack.threads=2"])
        .current_dir(repository)
}

/// Files that resemble each other, so that the repack has something to search.
fn write_files(directory: &Path, version: usize) {
    for file in 0..300 {
        let lines: String =
            (0..120).map(|line| format!("{line} of {file}, {}\n", line * (file + version) % 977)).collect();
        fs::write(directory.join(format!("file{file}")), lines).unwrap();
    }
}

#[test]
fn git_repack() {
    let test = TestDirectory::new("git");
    let repository = test.directory().join("native");
    fs::create_dir(&repository).unwrap();
    let run = |arguments: &[&str]| git(test.native("git"), &repository).args(arguments).run();
    run(&["init", "-q"]).success();
    for version in 0..3 {
        write_files(&repository, version);
        run(&["add", "."]).success();
        run(&["commit", "-q", "-m", "version"]).success();
    }
    let copy = test.directory().join("traced");
    test.native("cp").arg("-a").args([&repository, &copy]).run().success();

    let arguments = ["repack", "-a", "-d", "-f", "-q"];
    let native = git(test.native("git"), &repository).args(arguments).run();
    let traced = git(test.traced("git"), &copy).args(arguments).run();
    native.success();
    same(&native, &traced);
    // Which deltas two threads find is up to the scheduler; the objects are not.
    for arguments in [
        &["fsck", "--full", "--strict"][..],
        &["cat-file", "--batch-all-objects", "--batch"],
        &["log", "--format=%H %T"],
    ] {
        let ask = |repository: &PathBuf| git(test.native("git"), repository).args(arguments).run();
        let (native, traced) = (ask(&repository), ask(&copy));
        native.success();
        same(&native, &traced);
    }

    let trace = timeline(&test, Threads::End);
    every_thread_was_joined(&trace, 2);
    assert!(succeeded(&trace, "mutex_lock") > 100 && succeeded(&trace, "cond_signal") > 0);
    assert!(!trace.of("proc_begin").is_empty() && !trace.of("proc_exec").is_empty(), "git runs pack-objects");
}

#[test]
fn python() {
    let test = TestDirectory::new("python");
    // The first python3 of the path may be a shell script that looks for the real one.
    let real = Path::new("/usr/bin/python3");
    let python = if real.exists() { real } else { Path::new("python3") };
    let trace = compared(&test, python, 5, Threads::End, |run| run.arg(script("threads.py")));
    // Python detaches its threads.
    let created = succeeded(&trace, "thr_create");
    assert_eq!(
        [created, trace.of("thr_begin").len(), trace.of("thr_exit").len(), succeeded(&trace, "thr_detach")],
        [4; 4]
    );
    assert!(
        succeeded(&trace, "sema_wait") + succeeded(&trace, "sema_trywait") + succeeded(&trace, "mutex_lock") > 1000
    );
}

#[test]
fn node() {
    let test = TestDirectory::new("node");
    let trace = compared(&test, "node", 6, Threads::AreCut, |run| run.arg(script("pool.js")));
    assert!(succeeded(&trace, "thr_create") >= 4, "libuv's pool has four threads");
    assert!(succeeded(&trace, "mutex_lock") > 100 && succeeded(&trace, "cond_wait") > 0);
}

#[test]
fn java() {
    let test = TestDirectory::new("java");
    let trace = compared(&test, "java", 7, Threads::AreCut, |run| run.arg(script("Pool.java")));
    assert!(succeeded(&trace, "thr_create") >= 4, "the pool has four threads");
    assert!(succeeded(&trace, "mutex_lock") > 100 && succeeded(&trace, "cond_signal") > 0);
}

#[test]
fn the_cpp_standard_library() {
    let test = TestDirectory::new("cpp");
    let trace = compared(&test, Program::c("real_programs/standard.cpp"), 3, Threads::End, |run| run);
    every_thread_was_joined(&trace, 7);
    let rvals = |event: &str| -> Vec<i64> {
        trace.of(event).iter().filter(|record| record.fields.which == 2).map(|record| record.rval()).collect()
    };
    assert_eq!(rvals("cond_clockwait").iter().filter(|&&rval| rval == i64::from(libc::ETIMEDOUT)).count(), 1);
    assert_eq!(succeeded(&trace, "rw_wrlock"), 1000);
    assert_eq!(succeeded(&trace, "rw_rdlock"), 3000);
    assert_eq!(succeeded(&trace, "rmutex_timedlock"), 5);
    // Two calls of std::call_once were left by an exception, before one came back; std::async makes its own.
    let left = rvals("thr_once").iter().filter(|&&rval| rval == i64::from(libc::ECANCELED)).count();
    assert_eq!(left, 2, "{:?}", rvals("thr_once"));
    assert!(succeeded(&trace, "mutex_lock") >= 5000 && succeeded(&trace, "cond_signal") == 5000);
}
