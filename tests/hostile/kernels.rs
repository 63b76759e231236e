//! Kernels that lack what newer ones have, and process IDs of seven digits. `hostile/refuse.c` answers as such a kernel does.

use super::super::harness::{Program, TestCommand, TestDirectory};
use super::{DONE, assert_complete, steps, traced_mutexes, words};

/// `steps`, with its mutex calls recorded, on a kernel that lacks these things.
fn without<'a>(test: &'a TestDirectory, missing: &str, arguments: &str) -> TestCommand<'a> {
    let run = traced_mutexes(test, &Program::c("hostile/refuse.c"));
    run.arg(missing).arg(steps()).args(words(arguments))
}

/// The lines of a trinfo about the clock, without the figures: the state, and whether there is an error.
fn clock_states(test: &TestDirectory) -> Vec<(String, bool)> {
    let files = std::fs::read_dir(test.trace_directory()).unwrap().map(|entry| entry.unwrap());
    let files = files.filter(|entry| entry.file_name().to_string_lossy().starts_with("trinfo."));
    let texts = files.map(|entry| std::fs::read_to_string(entry.path()).unwrap());
    let words = |line: &str| {
        let words: Vec<String> = line.split(' ').skip(1).map(str::to_owned).collect();
        assert_eq!(words.len(), 5, "{line}");
        (words[1].clone(), words[0].parse::<u64>().is_ok())
    };
    let lines =
        |text: String| text.lines().filter(|line| line.starts_with("clock_error ")).map(words).collect::<Vec<_>>();
    texts.flat_map(lines).collect()
}

/// systemd's filters for services that set no clock kill for the question, although it changes nothing.
#[test]
fn the_clock_is_not_asked_for_its_error_where_that_kills() {
    let test = TestDirectory::new("clock-filter");
    without(&test, "adjtimex", "pairs 100").run().exited(DONE);
    assert_complete(&test, 3 * 100);
    let refused = ("not_asked".to_owned(), false);
    assert_eq!(clock_states(&test).last_chunk(), Some(&[refused.clone(), refused]), "at the start and at the end");
}

/// Without a filter it is asked, and the answer is the kernel's.
#[test]
fn the_clocks_error_is_in_trinfo() {
    let state = || {
        // SAFETY: zeros are valid, and with no modes the kernel only fills the struct.
        let state = unsafe {
            let mut state: libc::timex = std::mem::zeroed();
            assert!(libc::adjtimex(&mut state) >= 0);
            state
        };
        let name = if state.status & libc::STA_UNSYNC == 0 { "synchronized" } else { "unsynchronized" };
        (name.to_owned(), true)
    };
    let test = TestDirectory::new("clock-error");
    let before = state();
    traced_mutexes(&test, &steps()).args(words("pairs 100")).run().exited(DONE);
    let after = state();
    assert_complete(&test, 3 * 100);
    let found = clock_states(&test);
    // A time daemon may have changed it in between.
    assert!(found.len() == 2 && found.iter().all(|state| [&before, &after].contains(&state)), "{found:?}");
}

/// gVisor and old kernels: a raw clone is then not recognised, and its records stand under its parent's number.
#[test]
fn a_kernel_without_a_barrier_or_pages_that_forks_wipe() {
    for missing in ["membarrier", "wipeonfork", "membarrier,wipeonfork", "prctl"] {
        let test = TestDirectory::new("kernel");
        let arguments = "pairs 100 threads 4 3000 vfork 50 clone 2000 thread 100 exec pairs 200 vforkexec 30 pairs 1";
        without(&test, missing, arguments).run().exited(DONE);
        assert_complete(&test, 3 * (100 + 4 * 3000 + 50 + 2000 + 100 + 200 + 30 + 30 + 1));
    }
}

/// Space cannot be reserved on every file system: the buffers are then anonymous memory. The program that an exec begins
/// knows the files of the one before for its own all the same.
#[test]
fn a_file_system_that_reserves_no_space() {
    for (unbuffered, last) in [(false, ""), (true, ""), (true, " kill")] {
        let test = TestDirectory::new("no-fallocate");
        let arguments =
            "pairs 100 threads 4 3000 clone 2000 thread 100 exec pairs 200 thread 50 exec pairs 7".to_owned() + last;
        let run = without(&test, "fallocate", &arguments);
        let output = run.unbuffered_if(unbuffered).run();
        if last.is_empty() {
            output.exited(DONE);
        }
        assert_complete(&test, 3 * (100 + 4 * 3000 + 2000 + 100 + 200 + 50 + 7));
        let names = std::fs::read_dir(test.trace_directory()).unwrap().map(|entry| entry.unwrap().file_name());
        assert!(names.into_iter().all(|name| !name.to_string_lossy().starts_with("old.")));
    }
}

/// Where a file cannot be renamed on condition that the new name is free, an earlier process's files are kept all the same.
#[test]
fn a_file_system_that_cannot_rename_conditionally() {
    let test = TestDirectory::new("no-renameat2");
    let unshare = || test.native("unshare").args(["--pid", "--fork", "--kill-child"]);
    if !unshare().arg("true").run().status.success() {
        return println!("skipped: no PID namespaces here");
    }
    // In each namespace the program has the same number.
    for _ in 0..3 {
        let run = unshare().arg("env");
        let run = run.arg(format!("LD_PRELOAD={}", super::super::harness::library().display()));
        let run = run.arg(format!("THR_TRACE_DIR={}", test.trace_directory().display())).arg("THR_TRACE_EVENTS=mutex");
        let run = run.arg(Program::c("hostile/refuse.c")).arg("renameat2").arg(steps()).args(["pairs", "100"]);
        run.run().exited(DONE);
    }
    assert_complete(&test, 3 * 100);
    let earlier = std::fs::read_dir(test.trace_directory()).unwrap().map(|entry| entry.unwrap().file_name());
    let earlier = earlier.filter(|name| name.to_string_lossy().starts_with("old.")).count();
    assert_eq!(earlier, 2 * 2, "a record file and a trinfo of each earlier process");
}

/// The largest process IDs that Linux has. The limit belongs to the PID namespace only from Linux 6.14 on.
#[test]
fn process_ids_of_seven_digits() {
    let test = TestDirectory::new("pid-max");
    let script = "printf '6.14\\n%s\\n' \"$(uname -r)\" | sort -C -V || exit 77; \
                  echo 4194304 >/proc/sys/kernel/pid_max || exit 77; \
                  echo 4194290 >/proc/sys/kernel/ns_last_pid || exit 77; \
                  export LD_PRELOAD=\"$library\"; \"$@\"";
    let run =
        test.native("unshare").args(["--pid", "--fork", "--mount-proc", "--kill-child", "sh", "-c", script, "sh"]);
    let run = run.env("library", super::super::harness::library()).env("THR_TRACE_DIR", test.trace_directory());
    let run =
        run.env("THR_TRACE_EVENTS", "mutex").arg(steps()).args(words("pairs 100 thread 50 clone 2000 threads 3 9"));
    let output = run.run();
    if output.status.code() != Some(DONE) && output.stdout_text().is_empty() {
        return println!("skipped: no PID namespace with a limit of its own here: {}", output.stderr_text());
    }
    output.exited(DONE);
    let trace = assert_complete(&test, 3 * (100 + 50 + 2000 + 27));
    let numbers = trace.records.iter().map(|record| (record.fields.pid, record.fields.lwpid));
    assert!(numbers.into_iter().all(|(pid, lwp)| pid > 4_194_290 && lwp > 4_194_290));
}
