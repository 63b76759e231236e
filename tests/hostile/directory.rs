//! A trace directory that goes out of reach while the program runs.
//!
//! Files are opened by path at each write, so a directory that is gone means that nothing can be written any more. The
//! records stay in the buffers, which stay mapped; where those can still be found, trace-cat prints them.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use super::super::harness::{CommandOutput, Program, TestDirectory};
use super::{
    account, assert_complete, assert_counted, complains_once, merged_by_script, privately, steps, traced_mutexes,
    traced_steps, words,
};

/// The user whose program may do the least.
const NOBODY: u32 = 65534;

/// Renamed: the buffers are there under the new name, with all records.
#[test]
fn renamed_during_the_run() {
    let test = TestDirectory::new("renamed");
    let run = traced_mutexes(&test, &steps()).args(["pairs", "100", "thread", "100", "run", "mv trace other"]);
    let output = run.args(["thread", "400", "pairs", "100"]).noise_expected().run();
    complains_once(&output, "No such file or directory");
    fs::rename(test.directory().join("other"), test.trace_directory()).unwrap();
    assert_complete(&test, 3 * 700);
}

/// Renamed and back again: the files go on, and what was lost meanwhile is counted once.
#[test]
fn renamed_for_a_while() {
    let test = TestDirectory::new("renamed-back");
    let run = traced_mutexes(&test, &steps()).args(words("pairs 3000 threads 4 3000"));
    let run = run.args(["run", "mv trace other", "pairs", "20000", "run", "mv other trace"]);
    let output = run.args(words("pairs 3000 threads 4 3000")).noise_expected().run();
    complains_once(&output, "No such file or directory");
    assert_counted(&test, 3 * (3000 + 12_000 + 20_000 + 3000 + 12_000), libc::ENOENT);
    let files = fs::read_dir(test.trace_directory()).unwrap().map(|file| file.unwrap().file_name());
    let names: Vec<String> = files.map(|name| name.into_string().unwrap()).collect();
    assert!(!names.iter().any(|name| name.starts_with("old.")), "{names:?}");
    let info = names.iter().find(|name| name.starts_with("trinfo.")).unwrap();
    let info = fs::read(test.trace_directory().join(info)).unwrap();
    assert_eq!(spec::info::number(&info, "lost"), Some(account(&test.merged()).lost as i64));
}

/// Removed with all that was in it: the trace is gone, the program is not.
#[test]
fn removed_during_the_run() {
    let test = TestDirectory::new("removed");
    let run = traced_mutexes(&test, &steps()).args(["pairs", "100", "thread", "100", "run", "rm -r trace"]);
    let output = run.args(["threads", "4", "3000", "pairs", "100"]).noise_expected().run();
    complains_once(&output, "No such file or directory");
    assert!(!test.trace_directory().exists(), "the directory is not made again");
}

/// A trace directory that is emptied while programs run: it has everything that is recorded from then on, with a complete trinfo,
/// which says that the buffers are in no file; and so does one line.
#[test]
fn emptied_during_the_run() {
    let test = TestDirectory::new("emptied");
    let run = traced_mutexes(&test, &steps()).args(["thread", "100", "run", "rm trace/*", "thread", "3000"]);
    complains_once(&run.args(["pairs", "100"]).noise_expected().run(), "were removed");
    assert_complete(&test, 3 * 3100);
    let files = fs::read_dir(test.trace_directory()).unwrap().map(|entry| entry.unwrap().path());
    let info = files.into_iter().find(|path| path.file_name().unwrap().to_string_lossy().starts_with("trinfo."));
    let info = fs::read_to_string(info.unwrap()).unwrap();
    for line in ["format 1", "buffer anonymous", "events "] {
        assert_eq!(info.lines().filter(|found| found.starts_with(line)).count(), 1, "'{line}' in {info}");
    }
    assert!(info.contains("hostile_steps"), "its mappings: {info}");
}

/// Read-only from some moment on: no new file can be made. (Root is not held by modes, so the program is not root's.)
#[test]
fn read_only_during_the_run() {
    let test = TestDirectory::new("readonly");
    if !privileged(&test) {
        return;
    }
    open_to_all(&test);
    std::os::unix::fs::chown(test.trace_directory(), Some(NOBODY), None).unwrap();
    let nobody = ["--reuid=65534", "--regid=65534", "--clear-groups"];
    let run = test.traced("setpriv").args(nobody).arg(steps()).env("THR_TRACE_EVENTS", "mutex");
    let run = run.args(["pairs", "100", "run", "chmod 555 \"$THR_TRACE_DIR\"", "thread", "400", "pairs", "100"]);
    complains_once(&run.noise_expected().run(), "Permission denied");
    assert_complete(&test, 3 * 600);
}

/// A read-only file system in the directory's place, as where a container's volume goes.
#[test]
fn a_read_only_file_system_comes_in_between() {
    let test = TestDirectory::new("readonly-mount");
    let script = "$traced \"$0\" pairs 100 thread 100 run \"mount -t tmpfs -o ro none $trace\" thread 400 pairs 100";
    let Some(run) = privately(&test, script) else { return };
    complains_once(&run.run(), "Read-only file system");
    assert_complete(&test, 3 * 700);
}

/// Runs the steps `then` after 200 pairs and a chroot. There is no way to the directory from the new root, and its absolute path leads
/// elsewhere. `None` for others than root.
fn behind_a_chroot(test: &TestDirectory, then: &[&str]) -> Option<CommandOutput> {
    let root = test.directory().join("root");
    fs::create_dir(&root).unwrap();
    if !privileged(test) {
        return None;
    }
    Some(traced_steps(test, "pairs 100 thread 100 chroot").arg(&root).args(then).noise_expected().run())
}

/// What cannot be written any more stays in the buffers, for trace-cat, and is nothing to complain of.
#[test]
fn chroot_during_the_run() {
    let test = TestDirectory::new("chroot");
    let Some(output) = behind_a_chroot(&test, &["thread", "400", "pairs", "100"]) else { return };
    assert_eq!(output.stderr_text(), "");
    assert_complete(&test, 3 * 700);
}

/// A thread's file that was made just before cannot be found, either, which is no sign that somebody has removed the files.
#[test]
fn chroot_while_a_thread_begins() {
    let test = TestDirectory::new("chroot-creation");
    let root = test.directory().join("root");
    fs::create_dir(&root).unwrap();
    if !privileged(&test) {
        return;
    }
    let run = test.traced(Program::c("hostile/chroot_after_creation.c")).arg(&root);
    let output = run.env("THR_TRACE_EVENTS", "sema").run();
    if output.is_permitted("to stop a thread") {
        assert_eq!(output.success().stderr_text(), "");
        assert_eq!(test.merged().of("sema_post").len(), 2);
    }
}

/// As servers do that begin their workers in a new root: more threads than there have been before it.
#[test]
fn threads_that_begin_after_a_chroot_and_are_killed() {
    let test = TestDirectory::new("chroot-threads");
    let Some(output) = behind_a_chroot(&test, &["threads", "8", "50", "pairs", "100", "kill"]) else { return };
    output.killed(libc::SIGKILL);
    assert_complete(&test, 3 * (300 + 8 * 50));
}

/// A sandbox that forbids to open files, in place before the first record or after it.
#[test]
fn a_filter_that_forbids_to_open() {
    for (arguments, pairs) in [
        ("pairs 100 deny thread 400 pairs 100", 600),
        ("pairs 100 thread 2000 deny thread 400 pairs 100", 2600),
        ("deny thread 400 pairs 100", 500),
    ] {
        let test = TestDirectory::new("filter");
        complains_once(&traced_steps(&test, arguments).noise_expected().run(), "Operation not permitted");
        assert_complete(&test, 3 * pairs);
    }
}

/// A filter that kills for everything that the program does not do itself, but for what rings need.
#[test]
fn a_filter_that_kills_for_all_but_what_rings_need() {
    for (arguments, pairs) in [
        ("pairs 100 thread 100 allow rings pairs 20000", 20_200),
        ("pairs 100 thread 100 allow threads thread 300 threads 8 50 pairs 20000", 20_900),
    ] {
        let test = TestDirectory::new("filter-kills");
        traced_steps(&test, arguments).env("THR_TRACE_RING", "8M").run().exited(super::DONE);
        assert_complete(&test, 3 * pairs);
    }
}

/// A filter that kills, or traps, for all but the program's own calls: the library makes none of its own any more. What the
/// buffers hold is in the trace, and the rest is counted, also where nothing was recorded before.
#[test]
fn a_filter_that_kills_for_all_but_the_programs_own_calls() {
    for mode in [("THR_TRACE_DETAIL", "1"), ("THR_TRACE_BUF", "1"), ("THR_TRACE_RING", "8M")] {
        for (arguments, pairs) in
            [("pairs 100 thread 100 allow host pairs 20000", 20_200), ("trap host pairs 20000", 20_000)]
        {
            println!("{mode:?} {arguments}");
            let test = TestDirectory::new("filter-kills-all");
            test.native(steps()).args(words(arguments)).run().exited(super::DONE);
            traced_steps(&test, arguments).env(mode.0, mode.1).run().exited(super::DONE);
            if mode.0 == "THR_TRACE_RING" {
                assert_complete(&test, 3 * pairs);
            } else {
                assert_counted(&test, 3 * pairs, libc::EPERM);
            }
        }
    }
}

/// The other threads of one that puts itself under such a filter are recorded completely.
#[test]
fn a_filter_that_kills_one_thread_only() {
    let test = TestDirectory::new("filter-kills-one");
    let arguments = "pairs 100 allowthread threads 200 pairs 20000 thread 3000";
    test.native(steps()).args(words(arguments)).run().exited(super::DONE);
    traced_steps(&test, arguments).run().exited(super::DONE);
    assert_complete(&test, 3 * 23_300);
    let arguments = "allowthread threads 20000 pairs 20000";
    traced_steps(&test, arguments).run().exited(super::DONE);
    let trace = test.merged();
    for lost in trace.of("trace_lost") {
        assert_ne!(lost.fields.lwpid, lost.fields.pid, "records of the thread without a filter");
    }
    let lost: u64 = trace.of("trace_lost").iter().map(|record| record.fields.arguments[0].bits()).sum();
    let recorded = trace.records.len() - trace.of("trace_lost").len();
    assert_eq!(recorded as u64 + lost, 3 * (23_300 + 40_000));
    assert_ne!(lost, 0);
}

/// Such a filter of a vforked child's, which records as its parent, does not concern the parent: also where that has one of its own,
/// and after other children's. What fits into the parent's buffer is complete.
#[test]
fn a_filter_that_kills_a_vforked_child_only() {
    for before in ["", "keep 900 901 "] {
        let arguments =
            format!("{before}pairs 100 vforkkill 5 pairs 100 vforkkill 5 thread 100 vforkkill 5 pairs 20000");
        let test = TestDirectory::new("filter-vfork");
        let run = traced_steps(&test, &arguments).env("THR_TRACE_BUF", "1");
        complains_once(&run.noise_expected().run(), "Operation not permitted");
        assert_complete(&test, 3 * 20_315);
        let test = TestDirectory::new("filter-vfork-lost");
        let run = traced_steps(&test, &format!("{before}pairs 100 vforkkill 20000 pairs 20000"));
        complains_once(&run.noise_expected().run(), "Operation not permitted");
        assert_counted(&test, 3 * 40_100, libc::EPERM);
        let recorded = test.merged().of("mutex_lock").len();
        assert!(recorded > 2 * 20_000, "{recorded} calls and returns: the parent's are not lost");
    }
}

/// Lets every user write to the trace directory.
pub fn open_to_all(test: &TestDirectory) {
    fs::set_permissions(test.directory(), fs::Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(test.trace_directory(), fs::Permissions::from_mode(0o777)).unwrap();
}

/// True if the tests run as root. Prints a line if not.
pub fn privileged(test: &TestDirectory) -> bool {
    let root = test.native("id").arg("-u").run().stdout_text() == "0\n";
    if !root {
        println!("skipped: only root may do this");
    }
    root
}

/// A file system that refuses new files only: no inodes are left.
#[test]
fn no_file_can_be_made_any_more() {
    let test = TestDirectory::new("inodes");
    // The root directory, trbuf, trclock with its second link's temporary name, trinfo: none is left for a tr file.
    let script = "mount -t tmpfs -o size=8m,nr_inodes=4 none \"$trace\"; \
                  status=0; $traced \"$0\" pairs 100 thread 400 pairs 100 || status=$?; \
                  \"$cat\" \"$trace\" > \"$test/merged\"; exit $status";
    let Some(run) = privately(&test, script) else { return };
    complains_once(&run.run(), "No space left on device");
    let account = account(&merged_by_script(&test));
    assert_eq!((account.records, account.lost), (3 * 600, 0));
}
