//! Programs that root starts and that become another user, as daemons do: nothing is lost, and the new user's files are in
//! a subdirectory that no third user may enter. Only root may do this: elsewhere these tests print a message and test nothing.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::Path;

use super::super::harness::{Program, TestDirectory, Trace, trace_cat};
use super::directory::{open_to_all, privileged};
use super::{DONE, account, assert_complete, steps, traced_mutexes, traced_steps};

const NOBODY: u32 = 65534;

/// A trace directory that is root's, as the launcher makes it; the way to it is open to all. `None` for others than root.
fn closed(name: &str) -> Option<TestDirectory> {
    let test = TestDirectory::new(name);
    if !privileged(&test) {
        return None;
    }
    open_to_all(&test);
    fs::set_permissions(test.trace_directory(), fs::Permissions::from_mode(0o755)).unwrap();
    Some(test)
}

/// A trace directory that no other user can reach. `None` for others than root.
fn unreachable(name: &str) -> Option<TestDirectory> {
    let test = TestDirectory::new(name);
    if !privileged(&test) {
        return None;
    }
    fs::set_permissions(test.directory(), fs::Permissions::from_mode(0o700)).unwrap();
    Some(test)
}

/// Fails unless the subdirectory and all that is in it belong to the new user alone, and all beside it to root.
#[track_caller]
fn assert_separate(test: &TestDirectory) {
    let owners = |directory: &Path| -> Vec<(String, u32, u32)> {
        let entries = fs::read_dir(directory).unwrap().map(Result::unwrap);
        let described = entries.map(|entry| (entry.file_name(), entry.metadata().unwrap()));
        described.map(|(name, file)| (name.into_string().unwrap(), file.uid(), file.mode() & 0o777)).collect()
    };
    for (name, owner, mode) in owners(&test.trace_directory()) {
        let expected = if name == "u65534" { (NOBODY, 0o700) } else { (0, 0o600) };
        assert_eq!((owner, mode), expected, "{name}");
    }
    for (name, owner, mode) in owners(&test.trace_directory().join("u65534")) {
        assert_eq!((owner, mode), (NOBODY, 0o600), "{name}");
    }
}

/// Threads that record before, during and after the change, in every way to make it.
#[test]
fn threads_record_while_root_is_given_up() {
    for way in ["setuid", "setreuid", "setresuid", "syscall", "capset"] {
        println!("{way}");
        let Some(test) = closed("drops-root") else { return };
        let run = traced_mutexes(&test, &Program::c("hostile/drops_root.c")).args([way, "65534", "20000"]);
        let output = run.run();
        output.exited(DONE);
        assert_eq!(output.stderr_text(), "");
        assert_complete(&test, 3 * (8 * 20_000 + 20));
        assert_separate(&test);
        let names = fs::read_dir(test.trace_directory().join("u65534")).unwrap();
        let names: Vec<_> = names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        assert!(!names.iter().any(|name| name.starts_with("trbuf.")), "left behind: {names:?}");
        let trinfo = names.iter().find(|name| name.starts_with("trinfo.")).expect("the new user has a trinfo");
        let trinfo = fs::read_to_string(test.trace_directory().join("u65534").join(trinfo)).unwrap();
        assert!(trinfo.contains("\ncmdline ") && trinfo.contains("\nmap "), "{trinfo}");
    }
}

/// What counts the directory's bytes is the new user's, too.
#[test]
fn a_limit_for_the_directory_is_counted_by_both_users() {
    let Some(test) = closed("drops-root-limited") else { return };
    let run = traced_mutexes(&test, &Program::c("hostile/drops_root.c")).args(["setuid", "65534", "20000"]);
    let output = run.env("THR_TRACE_MAX", "4G/dir").run();
    output.exited(DONE);
    assert_eq!(output.stderr_text(), "");
    assert_complete(&test, 3 * (8 * 20_000 + 20));
    assert_separate(&test);
    assert!(test.trace_directory().join("u65534/trctl").exists());
}

/// As a server's workers do: the subdirectory is made once, and each finds it complete.
#[test]
fn many_children_become_the_same_user_at_the_same_time() {
    for _ in 0..50 {
        let Some(test) = closed("drops-root-workers") else { return };
        traced_mutexes(&test, &Program::c("hostile/workers.c")).args(["65534", "2"]).run().exited(DONE);
        assert_complete(&test, 3 * 10 * (1 + 2 * 2));
        assert_separate(&test);
    }
}

/// While there is a way back the records stay in the buffers; when it is given up, they are left in root's trbuf.
#[test]
fn root_is_given_up_for_a_while_and_then_for_good() {
    let Some(test) = closed("drops-root-twice") else { return };
    let run = traced_mutexes(&test, &Program::c("hostile/drops_root.c")).args(["back", "65534", "400"]);
    run.run().exited(DONE);
    assert_complete(&test, 3 * (8 * 400 + 30));
    assert_separate(&test);
}

/// A thread that begins while root is another user makes its file as that user, where all may make files: it goes on with it when
/// the program is root again and has made other files.
#[test]
fn threads_that_begin_while_root_is_another_user_for_a_while() {
    for mode in [0o777, 0o755] {
        let Some(test) = closed("other-user") else { return };
        fs::set_permissions(test.trace_directory(), fs::Permissions::from_mode(mode)).unwrap();
        let run = traced_mutexes(&test, &Program::c("hostile/other_user.c")).args(["65534", "500"]);
        let output = run.env("THR_TRACE_BUF", "1").run();
        output.exited(DONE);
        assert_eq!(output.stderr_text(), "");
        assert_complete(&test, 3 * (10 + 3 * 500));
    }
}

/// What cannot be written while root is another user is written when the program is root again: no message.
#[test]
fn nothing_is_reported_where_root_is_another_user_again_and_again() {
    for _ in 0..20 {
        let Some(test) = closed("to-and-fro") else { return };
        let run = traced_mutexes(&test, &Program::c("hostile/to_and_fro.c")).args(["65534", "400"]);
        let output = run.env("THR_TRACE_BUF", "1").run();
        output.exited(DONE);
        assert_eq!(output.stderr_text(), "");
        assert_complete(&test, 3 * 410);
    }
}

#[test]
fn rings_of_both_users_are_read() {
    let Some(test) = closed("drops-root-ring") else { return };
    let run = traced_mutexes(&test, &Program::c("hostile/drops_root.c")).args(["setuid", "65534", "2000"]);
    run.env("THR_TRACE_RING", "1M").run().exited(DONE);
    assert_complete(&test, 3 * (8 * 2_000 + 20));
    assert_separate(&test);
}

#[test]
fn each_record_is_written_at_once_before_and_after() {
    let Some(test) = closed("drops-root-at-once") else { return };
    let run = traced_mutexes(&test, &Program::c("hostile/drops_root.c")).args(["setuid", "65534", "2000"]);
    run.env("THR_TRACE_BUF", "1").run().exited(DONE);
    assert_complete(&test, 3 * (8 * 2_000 + 20));
    assert_separate(&test);
}

/// Also where everybody may write to the trace directory.
#[test]
fn setuid_before_the_first_record_and_after_it() {
    for arguments in ["setuid 65534 thread 400 pairs 100", "pairs 100 setuid 65534 thread 400"] {
        for mode in [0o755, 0o777, 0o1777] {
            println!("{arguments}, {mode:o}");
            let Some(test) = closed("setuid") else { return };
            fs::set_permissions(test.trace_directory(), fs::Permissions::from_mode(mode)).unwrap();
            traced_steps(&test, arguments).run().exited(DONE);
            assert_complete(&test, 3 * 500);
        }
    }
}

/// The file that the program before the exec has written is not taken for another process's: not by the new user, who may not
/// open it, and not by root, who has begun the new user's files.
#[test]
fn a_record_file_from_before_an_exec_is_written_on() {
    for arguments in [
        "pairs 1000 exec pairs 10 setuid 65534 pairs 400",
        "pairs 1000 exec pairs 10 seteuid 65534 pairs 400",
        "pairs 1000 exec pairs 10 seteuid 65534 pairs 390 seteuid 0 pairs 10",
    ] {
        for mode in [0o755, 0o777, 0o1777] {
            println!("{arguments}, {mode:o}");
            let Some(test) = closed("user-after-exec") else { return };
            fs::set_permissions(test.trace_directory(), fs::Permissions::from_mode(mode)).unwrap();
            let output = traced_steps(&test, arguments).run();
            output.exited(DONE);
            assert_eq!(output.stderr_text(), "");
            let names = fs::read_dir(test.trace_directory()).unwrap().map(|entry| entry.unwrap().file_name());
            let renamed: Vec<_> = names.filter(|name| name.to_string_lossy().starts_with("old.")).collect();
            assert!(renamed.is_empty(), "{renamed:?}");
            assert_complete(&test, 3 * 1410);
        }
    }
}

/// Threads that begin while the process has given up its rights record in buffers that were made before, whether the rights come back
/// or not.
#[test]
fn threads_that_begin_without_rights_for_a_while_lose_nothing() {
    let threads = "thread 50 ".repeat(10);
    for ring in [false, true] {
        for end in ["", "seteuid 0 pairs 10"] {
            println!("{end}, ring: {ring}");
            let Some(test) = closed("threads-without-rights") else { return };
            let run = traced_steps(&test, &format!("pairs 100 seteuid 65534 {threads}{end}")).noise_expected();
            let run = if ring { run.env("THR_TRACE_RING", "1M") } else { run };
            run.run().exited(DONE);
            let account = account(&test.merged());
            let pairs = 100 + 10 * 50 + if end.is_empty() { 0 } else { 10 };
            assert_eq!((account.records, account.lost), (3 * pairs, 0));
        }
    }
}

/// Nothing can be made for a user who cannot reach the directory: the newest records stay in the buffers.
#[test]
fn setuid_where_the_new_user_cannot_reach_the_directory() {
    let Some(test) = unreachable("setuid-unreachable") else { return };
    let output = traced_steps(&test, "pairs 100 thread 100 setuid 65534 thread 400 pairs 100").noise_expected().run();
    super::complains_once(&output, "Permission denied");
    assert_complete(&test, 3 * 700);
}

/// Buffers for threads that begin then are made before.
#[test]
fn threads_begin_where_the_new_user_cannot_reach_the_directory() {
    let Some(test) = unreachable("setuid-unreachable-threads") else { return };
    traced_steps(&test, "pairs 100 setuid 65534 threads 8 400").noise_expected().run().exited(DONE);
    assert_complete(&test, 3 * (100 + 8 * 400));
}

/// Of a program that does so before its first call there is nothing: the launcher says which directory is in the way.
#[test]
fn the_launcher_names_the_directory_that_keeps_a_new_user_out() {
    let Some(test) = unreachable("setuid-launched") else { return };
    let run = test.native(trace_cat()).args(["run", "-d", "trace", "-e", "mutex"]).arg(steps().path());
    let output = run.args(["setuid", "65534", "pairs", "100"]).noise_expected().run();
    let place = test.directory().canonicalize().unwrap();
    let reason = format!(
        "nothing was recorded: it became another user, who may not enter {} (mode 0700): try -d with",
        place.display()
    );
    assert!(output.exited(DONE).stderr_text().contains(&reason), "{}", output.stderr_text());
}

/// A child that becomes another user, as a server's workers do, its children, and what it executes.
#[test]
fn children_and_executed_programs_of_the_new_user() {
    let Some(test) = closed("setuid-exec") else { return };
    traced_steps(&test, "pairs 100 setuid 65534 thread 100 clone 50 vforkexec 20 exec pairs 30").run().exited(DONE);
    let trace = test.merged();
    assert_eq!(trace.of("trace_lost").len(), 0);
    // The vforked child's pairs are its parent's.
    assert_eq!(trace.of("mutex_unlock").len(), 100 + 100 + 50 + 20 + 20 + 30);
    assert_separate(&test);
}

/// The subdirectory appears while the trace is followed, or is there already.
#[test]
fn the_new_users_records_are_followed() {
    let Some(test) = closed("drops-root-followed") else { return };
    let follow = || test.trace_cat().args(["--follow", "--until-exit", "--window", "30s"]);
    let follower = follow().spawn();
    let run = traced_mutexes(&test, &Program::c("hostile/drops_root.c")).args(["setuid", "65534", "20000"]);
    run.run().exited(DONE);
    for output in [follower.wait(), follow().run()] {
        let lines = output.stdout.iter().filter(|&&byte| byte == b'\n').count();
        assert_eq!(lines, 3 * (8 * 20_000 + 20), "{}", output.command);
    }
}

/// A signal handler interrupts the change and makes a thread or a child, which is root still: its files are the new user's where
/// they are in that one's directory. A thread waits for a second, since its maker does not go on before.
#[test]
fn a_handler_that_interrupts_the_change_may_make_threads_and_children() {
    for (way, stride) in [("thread", 9), ("fork", 4)] {
        let mut interrupted = 0;
        for step in (5..1_000).step_by(stride) {
            let Some(test) = closed("setuid-interrupted") else { return };
            let run = test.traced(Program::c("hostile/interrupted_setuid.c")).args([way, &step.to_string()]);
            let output = run.env("THR_TRACE_EVENTS", "sema_post").run();
            if !output.is_permitted("to stop a process") {
                return;
            }
            let is_in_time = output.exited(DONE).stdout_text() == "1\n";
            let merged = test.trace_cat().run();
            assert_eq!(merged.success().stderr_text(), "", "{way} {step}");
            let posts = Trace::parse("trace-cat", &merged.stdout).of("sema_post").len();
            assert_eq!(posts, if is_in_time { 9 } else { 7 }, "{way} {step}");
            assert_separate(&test);
            if !is_in_time {
                break;
            }
            interrupted += 1;
        }
        assert!(interrupted > 10, "only {interrupted} calls are interrupted");
    }
}

/// Killed, the process leaves records in the buffers of both users. Recovered, they are in the files, which keep their owners.
#[test]
fn both_users_buffers_are_recovered() {
    let Some(test) = closed("setuid-killed") else { return };
    let run = traced_steps(&test, "threads 4 100 pairs 100 setuid 65534 pairs 50 threads 4 100 kill");
    let output = run.run();
    assert!(!output.status.success());
    assert_complete(&test, 3 * 950);
    test.recover();
    assert_complete(&test, 3 * 950);
    assert_separate(&test);
    let left = fs::read_dir(test.trace_directory().join("u65534")).unwrap();
    assert!(left.map(Result::unwrap).all(|entry| !entry.file_name().to_str().unwrap().starts_with("trbuf.")));
}

/// Somebody else has put a directory or a link there: nothing is written to it.
#[test]
fn a_planted_subdirectory_is_not_used() {
    for plant in [|path: &Path| fs::create_dir(path), |path: &Path| symlink("/tmp", path)] {
        let Some(test) = closed("setuid-planted") else { return };
        let planted = test.trace_directory().join("u65534");
        plant(&planted).unwrap();
        let output = traced_steps(&test, "pairs 100 setuid 65534 pairs 100").noise_expected().run();
        super::complains_once(&output, "Permission denied");
        assert_complete(&test, 3 * 200);
        assert_eq!(fs::symlink_metadata(&planted).unwrap().uid(), 0);
    }
}

/// What else is in the subdirectory, which another user may write to, is not read.
#[test]
fn only_files_of_the_owner_are_read() {
    let Some(test) = closed("setuid-foreign") else { return };
    traced_steps(&test, "pairs 100 setuid 65534 pairs 100").run().exited(DONE);
    let directory = test.trace_directory().join("u65534");
    let secret = test.directory().join("secret");
    fs::write(&secret, "secret\n").unwrap();
    symlink(&secret, directory.join("tr.0000001.001")).unwrap();
    fs::hard_link(&secret, directory.join("tr.0000001.002")).unwrap();
    fs::write(directory.join("tr.0000001.003"), "root's\n").unwrap();
    symlink(&secret, directory.join("trbuf.0000001")).unwrap();
    symlink(&secret, directory.join("trinfo.0000001")).unwrap();
    let output = test.trace_cat().run();
    let told = output.success().stderr_text();
    assert!(told.contains("no file of the directory's owner; it is not read, nor are 4 more"), "{told}");
    let account = account(&Trace::parse("trace-cat", &output.stdout));
    assert_eq!((account.records, account.lost), (3 * 200, 0));
}

/// One thread becomes another user for files, or gets a root of its own, and makes the process's first record there: the
/// others are recorded as ever, and what the one cannot keep is counted.
#[test]
fn a_thread_that_leaves_the_others_stops_nobody() {
    let program = Program::c("hostile/departs.c");
    for how in ["setfsuid", "syscall", "chroot"] {
        for pairs in [10, 20_000] {
            let Some(test) = closed("departs") else { return };
            let root = test.directory().join("root");
            fs::create_dir(&root).unwrap();
            let run = traced_mutexes(&test, &program).args([how, &pairs.to_string()]).arg(&root).noise_expected().run();
            run.exited(DONE);
            let lwp: u32 = run.stdout_text().trim_end().parse().unwrap();
            let trace = test.merged();
            let others = trace.records.iter().filter(|record| record.fields.lwpid != lwp).count();
            let account = account(&trace);
            let loss_records = trace.of("trace_lost").len();
            assert_eq!(others, 2 * 3 * 1_000, "{how}, {pairs}, {loss_records} loss records");
            assert_eq!(account.records + account.lost as usize, 3 * (pairs + 2 * 1_000), "{how}, {pairs}");
            assert_eq!(account.lost > 0, pairs > 10, "{how}, {pairs}");
        }
    }
}
