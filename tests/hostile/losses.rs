//! Records that must be dropped: the trace has their number and the reason, and so has one line on stderr.

use std::fs;

use super::super::harness::{CommandOutput, Program, TestDirectory};
use super::limits::limited;
use super::{
    DONE, account, assert_complete, assert_counted, complains_once, merged_by_script, privately, steps, traced_mutexes,
    traced_steps, words,
};

/// Without a free descriptor nothing can be opened. The buffers hold the newest, the others are counted.
#[test]
fn without_a_descriptor() {
    for limit in [0, 3] {
        let test = TestDirectory::new("nofile-many");
        let many = format!("pairs 100 thread 1000 nofile {limit} thread 5000 pairs 100");
        complains_once(&traced_steps(&test, &many).noise_expected().run(), "Too many open files");
        assert_counted(&test, 3 * 6200, libc::EMFILE);
    }
}

/// Where nothing can be opened from the start, nothing is recorded, and one line says so: also in a pipe where the kernel polls no
/// descriptor.
#[test]
fn no_descriptor_from_the_start() {
    for limit in [0, 3] {
        let test = TestDirectory::new("nofile-first");
        let script = format!("{{ \"$0\" nofile {limit} pairs 100 thread 100 2>&1 >/dev/null; echo $? >&2; }} | cat");
        let run = test.traced("sh").args(["-c", &script]).arg(steps()).env("THR_TRACE_EVENTS", "mutex");
        let output = run.noise_expected().run();
        assert_eq!(output.success().stderr_text(), format!("{DONE}\n"));
        let lines: Vec<&str> = output.stdout_text().lines().collect();
        assert!(lines.len() == 1 && lines[0].contains("Too many open files"), "{lines:?}");
    }
}

/// A file system of its own with this much room, a program that writes more, and what trace-cat prints then.
#[track_caller]
fn on_a_disk_of(size: &str, arguments: &str) -> Option<(TestDirectory, CommandOutput)> {
    let test = TestDirectory::new("full");
    let script = format!(
        "mount -t tmpfs -o size={size} none \"$trace\"; status=0; $traced \"$0\" {arguments} || status=$?; \
         \"$cat\" \"$trace\" > \"$test/merged\"; \"$cat\" report -F json \"$trace\" > \"$test/report\" 2> /dev/null; exit $status"
    );
    let output = privately(&test, &script)?.run();
    Some((test, output))
}

/// Files may grow to less than the trbuf's size, or to less than the trace's: what fits is there, the other records are counted.
#[test]
fn files_may_only_grow_so_far() {
    for limit in [100, 4096, 65536, 1 << 20] {
        println!("{limit}");
        let test = TestDirectory::new("fsize");
        let output = limited(&test, &format!("--fsize={limit}"), "pairs 100 thread 8000 pairs 100");
        output.exited(DONE);
        assert!(output.noise().len() <= 1, "{:?}", output.noise());
        if limit > 4096 {
            assert_eq!(output.noise().len(), 1);
            assert_counted(&test, 3 * 8200, libc::EFBIG);
        }
    }
}

/// No memory for further slots: threads that find none go unrecorded, and are counted. The main thread has one.
#[test]
fn no_memory_for_slots() {
    let test = TestDirectory::new("as");
    let output = traced_steps(&test, "pairs 100 as 0 threads 4 3000 pairs 100").noise_expected().run();
    complains_once(&output, "Cannot allocate memory");
    assert_counted(&test, 3 * 12200, libc::ENOMEM);
}

/// More is recorded under the filter than the buffers hold: the newest is there, and the older is counted.
#[test]
fn a_filter_and_more_records_than_room() {
    let test = TestDirectory::new("filter-full");
    let output = traced_steps(&test, "pairs 100 deny thread 3000 pairs 5000").noise_expected().run();
    complains_once(&output, "Operation not permitted");
    assert_counted(&test, 3 * 8100, libc::EPERM);
    // The newest of the main thread: its last unlock is there.
    let trace = test.merged();
    assert!(trace.records.last().is_some_and(|record| record.is("mutex_unlock")));
    assert!(account(&trace).records > 3 * 500, "little is left");
}

/// Recording stops before the last twentieth of the disk is taken. The records and the counted losses make up all calls.
#[test]
fn a_disk_that_fills_up() {
    let Some((test, output)) = on_a_disk_of("4m", "pairs 100 threads 4 10000 pairs 100") else { return };
    complains_once(&output, "recording stops");
    let account = account(&merged_by_script(&test));
    assert!(account.lost > 0 && account.records > 10_000, "{} records, {} lost", account.records, account.lost);
    assert_eq!(account.causes, [i64::from(libc::ENOSPC)]);
    assert_eq!(account.records as u64 + account.lost, 3 * 40_200);
}

/// Buffers that were made before a change of the root have no space yet when the disk fills up. Who touched them would be killed,
/// at the end of the program or after an exec, too.
#[test]
fn a_disk_that_fills_up_in_a_sandbox() {
    for exec in ["", "exec"] {
        println!("{exec}");
        let fill = "run \"head -c 64m /dev/zero > $trace/fill 2> /dev/null || true\"";
        let steps = format!("pairs 100 chroot / {fill} {exec} threads 8 50 pairs 100");
        let Some((test, output)) = on_a_disk_of("8m", &steps) else { return };
        output.exited(DONE);
        assert!(output.noise().iter().any(|line| line.contains("recording stops")), "{:?}", output.noise());
        let account = account(&merged_by_script(&test));
        // The executed program may find no buffer with space, and then no room to say so.
        let least = if exec.is_empty() { 3 * 600 } else { 3 * 100 };
        assert!((least..=3 * 600).contains(&(account.records as u64 + account.lost)));
    }
}

/// No room for the buffers' file even: they are anonymous memory, and what can be written is. The threads' files may take all the
/// room, and leave none for a loss record of another thread's: trinfo has the whole count, and the report shows it.
#[test]
fn a_disk_that_is_full_from_the_start() {
    let Some((test, output)) = on_a_disk_of("64k", "pairs 100 threads 2 3000 pairs 100") else { return };
    complains_once(&output, "");
    let trace = merged_by_script(&test);
    if !trace.records.is_empty() {
        let account = account(&trace);
        assert_eq!(account.records as u64 + lost_in_report(&test), 3 * 6200, "{} in loss records", account.lost);
    }
}

/// The last thread ends the process, and has no buffers: it began after recording had stopped, and main has left.
#[test]
fn the_last_thread_began_too_late() {
    let test = TestDirectory::new("max-last");
    let run = traced_steps(&test, "pairs 10000 leave 5000").env("THR_TRACE_MAX", "200K").noise_expected().run();
    assert!(run.success().stderr_text().contains("THR_TRACE_MAX"), "{}", run.stderr_text());
    assert_counted(&test, 3 * 15_000, libc::EDQUOT);
}

/// How many records a process lost according to the report of a script of [`on_a_disk_of`].
#[track_caller]
fn lost_in_report(test: &TestDirectory) -> u64 {
    let text = fs::read(test.directory().join("report")).unwrap();
    let report: serde_json::Value = serde_json::from_slice(&text).unwrap();
    report["processes"][0]["lost"].as_u64().unwrap()
}

/// The trace may exceed THR_TRACE_MAX by the buffer that was full, and by the loss record.
#[test]
fn a_trace_of_a_given_size() {
    for (max, bytes) in [("0", 0), ("1", 1), ("200K", 200 << 10), ("1m", 1 << 20)] {
        println!("THR_TRACE_MAX={max}");
        let test = TestDirectory::new("max");
        let run = traced_steps(&test, "pairs 100 threads 2 10000 pairs 100").env("THR_TRACE_MAX", max);
        complains_once(&run.noise_expected().run(), "THR_TRACE_MAX");
        let trace = test.merged();
        let account = account(&trace);
        assert_eq!(account.records as u64 + account.lost, 3 * 20_200, "{max}");
        assert_eq!(account.causes, [i64::from(libc::EDQUOT)], "{max}");
        // Three threads, each with a buffer that was being filled.
        let text = trace.text().len() as u64;
        assert!((bytes..bytes + 3 * (144 << 10) + 4096).contains(&text), "{max}: {text}");
    }
}

/// Threads that begin once recording has stopped get no buffer. If the process is killed, the trbuf has the number of their records.
#[test]
fn losses_of_threads_without_a_buffer_outlive_a_kill() {
    let test = TestDirectory::new("max-killed");
    let run = traced_steps(&test, "pairs 1000 threads 2 3000 pairs 1000 kill").env("THR_TRACE_MAX", "1");
    run.noise_expected().run().killed(libc::SIGKILL);
    let output = test.trace_cat().noise_expected().run();
    let records = output.stdout_text().lines().count();
    let told = output
        .stderr_text()
        .split_once(" lost ")
        .and_then(|(_, rest)| rest.split_once(" records before it died (EDQUOT)"));
    let lost: usize = told.expect("the losses are not told").0.parse().unwrap();
    println!("{records} records, {lost} lost");
    assert_eq!(records + lost, 3 * 8000);
}

/// A write beyond RLIMIT_FSIZE raises SIGXFSZ, which ends a program that does not expect it; so the library asks first.
/// The line on stderr is a write as well, and stderr is a file here.
#[test]
fn no_file_may_be_written() {
    let test = TestDirectory::new("fsize0");
    let output = limited(&test, "--fsize=0", "pairs 100 thread 3000 pairs 100");
    output.exited(DONE);
    assert_eq!(output.stderr_text(), "");
    let test = TestDirectory::new("fsize0-late");
    traced_steps(&test, "pairs 100 fsize 0 thread 200 pairs 100 kill").noise_expected().run().killed(libc::SIGKILL);
    assert_complete(&test, 3 * 400);
}

/// Further threads get buffers that are no file's when none can be opened: their records are lost when the process ends,
/// which the trace and stderr report.
#[test]
fn buffers_of_anonymous_memory() {
    let test = TestDirectory::new("anonymous");
    let output = traced_steps(&test, "pairs 100 deny threads 6 400 pairs 100").noise_expected().run();
    complains_once(&output, "Operation not permitted");
    let account = account(&test.merged());
    assert_eq!(account.records as u64 + account.lost, 3 * 2600, "{} and {} lost", account.records, account.lost);
}

/// A program may lower the limit at any moment, by any function of libc, in any thread, and in a handler that interrupts a
/// write; with THR_TRACE_BUF the kernel is not asked before each write. Nothing is written beyond the new limit.
#[test]
fn the_limit_changes_during_writes() {
    for (arguments, unbuffered) in
        [("threads 1500 100000000", true), ("handler 3000 100", true), ("threads 300 100000000", false)]
    {
        println!("{arguments}, THR_TRACE_BUF {unbuffered}");
        let test = TestDirectory::new("fsize-changes");
        let run = traced_mutexes(&test, &Program::c("hostile/limiting.c")).args(words(arguments));
        let run = run.unbuffered_if(unbuffered);
        let output = run.noise_expected().run();
        output.exited(DONE);
        let pairs: usize = output.stdout_text().trim().parse().unwrap();
        let account = account(&test.merged());
        assert_eq!(account.records as u64 + account.lost, 3 * pairs as u64, "{} lost", account.lost);
    }
}

/// All processes together may exceed a THR_TRACE_MAX of the directory by the buffers that were full. Programs that begin afterwards
/// record next to nothing, and count. Once trctl is removed, recording goes on.
#[test]
fn a_directory_of_a_given_size() {
    const MAX: u64 = 400 << 10;
    let test = TestDirectory::new("max-dir");
    let run = |script: &str| {
        let command = test.traced("sh").args(["-c", script]).arg(steps()).env("THR_TRACE_EVENTS", "mutex");
        command.env("THR_TRACE_MAX", "400K/dir").noise_expected().run().exited(DONE);
    };
    // Alone each would have 3.3 MB.
    run("\"$0\" thread 20000 & \"$0\" thread 20000; status=$?; wait; exit $status");
    let written = || {
        let files = fs::read_dir(test.trace_directory()).unwrap().map(|entry| entry.unwrap());
        let records = files.filter(|file| file.file_name().to_string_lossy().starts_with("tr."));
        records.map(|file| file.metadata().unwrap().len()).sum::<u64>()
    };
    let first = written();
    assert!((MAX - (8 << 10)..MAX + 4 * (144 << 10)).contains(&first), "{first}");
    let count = test.trace_directory().join("trctl");
    let counted = (fs::metadata(&count).unwrap().len() - 4096) * 4096;
    assert!(counted >= MAX && counted.abs_diff(first) <= 64 << 10, "{counted} counted, {first} written");
    let both = account(&test.merged());
    assert_eq!(both.records as u64 + both.lost, 3 * 40_000);
    assert_eq!(both.causes, [i64::from(libc::EDQUOT)]);

    run("exec \"$0\" thread 20000");
    let second = written();
    assert!(second - first < 16 << 10, "{first}, {second}");
    let all = account(&test.merged());
    assert_eq!(all.records as u64 + all.lost, 3 * 60_000);

    fs::remove_file(&count).unwrap();
    run("exec \"$0\" pairs 1000");
    assert_eq!(account(&test.merged()).records, all.records + 3 * 1000);
}
