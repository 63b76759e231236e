//! Processes that come and go in unusual ways: chains of images, raw clones, vforked children that do what they must
//! not.

use std::fs;

use super::super::harness::{Program, Record, TestDirectory};
use super::{Account, DONE, account, assert_complete, traced_steps};

/// Five images of one process: one timeline, and one file for the main thread, to which each of them appends.
#[test]
fn a_chain_of_images() {
    for unbuffered in [false, true] {
        let test = TestDirectory::new("chain");
        let run = traced_steps(&test, "pairs 1 exec pairs 2 exec threads 2 500 pairs 3 exec pairs 4 exec pairs 3000");
        let run = run.unbuffered_if(unbuffered);
        let output = run.run();
        output.exited(DONE);
        let mut pids: Vec<&str> = output.stdout_text().lines().filter(|line| line.starts_with("pid ")).collect();
        assert_eq!(pids.len(), 5);
        pids.dedup();
        let pid: u32 = pids[0][4..].parse().unwrap();
        let trace = assert_complete(&test, 3 * (1 + 2 + 1000 + 3 + 4 + 3000));
        assert_eq!(trace.of_pid(pid).len(), trace.records.len());
        assert_eq!(trace.of_lwp(pid).len(), 3 * 3010);
        let files: Vec<_> =
            fs::read_dir(test.trace_directory()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        let files: Vec<_> = files.iter().filter(|name| name.to_string_lossy().starts_with("old.")).collect();
        assert!(files.is_empty(), "an image took the one before for somebody else: {files:?}");
    }
}

/// The last image of a chain is killed; what the ones before left is there, too.
#[test]
fn a_chain_that_is_killed() {
    let test = TestDirectory::new("chain-killed");
    traced_steps(&test, "pairs 10 exec pairs 20 exec threads 2 30 pairs 40 kill").run().killed(libc::SIGKILL);
    assert_complete(&test, 3 * (10 + 20 + 60 + 40));
}

/// fork as a system call, past every wrapper and handler: the child finds out by itself, and has its own files.
#[test]
fn a_raw_clone_is_a_fork() {
    for unbuffered in [false, true] {
        let test = TestDirectory::new("clone");
        let run = traced_steps(&test, "pairs 100 clone 50 pairs 10 clone 2000 pairs 1");
        let output = run.unbuffered_if(unbuffered).run();
        output.exited(DONE);
        let pid: u32 = output.stdout_text().lines().next().unwrap()[4..].parse().unwrap();
        let trace = assert_complete(&test, 3 * (100 + 50 + 10 + 2000 + 1));
        assert_eq!(trace.of_pid(pid).len(), 3 * 111, "the parent has its own records and no others");
        let children = trace.records.iter().filter(|record| record.fields.pid != pid);
        assert!(children.into_iter().all(|record| record.fields.lwpid == record.fields.pid), "a stale thread number");
    }
}

/// A vforked child runs in its parent's memory, and on its parent's thread: what it locks and posts there is recorded as
/// the parent's, and its end by exec or _exit does not end its parent's trace.
#[test]
fn a_vforked_child_locks_and_posts() {
    for (how, own) in [("vfork", 0), ("vforkexec", 50)] {
        for unbuffered in [false, true] {
            let test = TestDirectory::new("vfork");
            let run = traced_steps(&test, &format!("pairs 100 {how} 50 pairs 2000"))
                .env("THR_TRACE_EVENTS", "mutex:sema:process");
            let output = run.unbuffered_if(unbuffered).run();
            output.exited(DONE);
            let pid: u32 = output.stdout_text().lines().next().unwrap()[4..].parse().unwrap();
            let trace = test.merged();
            assert_eq!(trace.of_pid(pid).len(), 1 + 3 * (100 + 50 + 2000) + 50 + 2 + 1, "{how}");
            assert_eq!(trace.of("proc_fork").len(), 2, "{how}");
            assert_eq!(trace.of("sema_post").len(), 50);
            // The child's own end is not recorded, nor is an exec that it makes in its parent's memory.
            let ends: Vec<u32> = trace.of("proc_exit").iter().map(|record| record.fields.pid).collect();
            assert_eq!(ends.iter().filter(|&&end| end == pid).count(), 1, "{how}");
            assert!(trace.of("proc_exec").is_empty(), "{how}");
            // The beginning, sem_init, the pairs and the end of the image that the child became.
            let others = trace.records.len() - trace.of_pid(pid).len();
            assert_eq!(others, if own == 0 { 0 } else { 1 + 1 + 3 * own + 1 }, "{how}");
        }
    }
}

/// A vfork child may record before its parent has any files: its records are the parent's thread's, also if that records nothing.
#[test]
fn a_vforked_childs_records_may_be_the_first_of_its_parent() {
    let program = Program::c("hostile/guest_first.c");
    for (place, then, expected) in [
        ("main", "posts", 3),
        ("main", "ends", 2),
        ("main", "execs", 2),
        ("main", "killed", 4),
        ("thread", "posts", 2),
        ("thread", "ends", 2),
        ("thread", "execs", 2),
    ] {
        let test = TestDirectory::new("guest-first");
        let output = test.traced(&program).args([place, then]).env("THR_TRACE_EVENTS", "sema_post").run();
        if then != "killed" {
            output.exited(DONE);
        }
        let numbers: Vec<u32> = output.stdout_text().split_whitespace().map(|number| number.parse().unwrap()).collect();
        let trace = test.merged();
        let is_of_thread = |post: &&&Record| (post.fields.pid, post.fields.lwpid) == (numbers[0], numbers[1]);
        let of_thread = trace.of("sema_post").iter().filter(is_of_thread).count();
        assert_eq!(of_thread, expected, "{place} {then}");
    }
}

/// A task that runs beside the one that has made it, in its memory, with its thread-local variables: what it records is counted,
/// what its parent records is complete.
#[test]
fn a_task_in_the_same_memory_leaves_its_parents_records_alone() {
    let program = Program::c("hostile/beside.c");
    for how in ["clone", "__clone", "syscall", "clone3", "thread"] {
        for unbuffered in [false, true] {
            let test = TestDirectory::new("beside");
            let pairs: u32 = if unbuffered { 5_000 } else { 100_000 };
            let run = super::traced_mutexes(&test, &program).args([how, &pairs.to_string()]);
            let run = run.unbuffered_if(unbuffered).run();
            run.exited(DONE);
            let trace = test.merged();
            let Account { records, lost, causes } = account(&trace);
            assert_eq!((records, lost), (3 * (2 + pairs as usize), 3 * u64::from(pairs)), "{how}, {unbuffered}");
            assert_eq!(causes, [i64::from(libc::EAGAIN)]);
        }
    }
}
