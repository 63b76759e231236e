//! Processes that libc or the kernel forks where no hook sees it. Their first hook may be called by a child that shares
//! their memory, which must not take the process's identity.

use super::super::harness::{Program, TestDirectory};
use super::{names, pairs, possible};

/// Runs a program from a process whose first hook that may be; each must have its own records.
#[track_caller]
fn all_have_their_own_records(fork: &str, spawn: &str) {
    let test = TestDirectory::new("unnoticed");
    let program = Program::c("lifecycle/unnoticed_forks.c");
    let arguments = [fork, spawn];
    test.native(&program).args(arguments).run().exited(0);
    let output = test.traced(&program).args(arguments).run();
    output.exited(0);
    assert_eq!(output.stderr_text(), "", "{arguments:?}");
    let number = |key: &str| -> Vec<u32> {
        let line = output.stdout_text().lines().find_map(|line| line.strip_prefix(key));
        line.expect(key).split_whitespace().map(|word| word.parse().unwrap()).collect()
    };
    let (parent, process, child) = (number("parent ")[0], number("process ")[0], number("child "));
    assert_eq!(child[1], 23, "{arguments:?}");

    let trace = test.merged();
    possible(&trace);
    let pairs = [parent, process, child[0]].map(|pid| pairs(&trace, pid));
    // What the child does in its parent's memory is its parent's, or nobody's.
    assert!([3000, 3005].contains(&pairs[1]), "{arguments:?}: {pairs:?}");
    assert_eq!([pairs[0], pairs[2]], [10, 4000], "{arguments:?}");
    let files = names(&test.trace_directory());
    assert!(files.iter().all(|name| !name.starts_with("old.")), "{arguments:?}: {files:?}");
}

const SPAWNS: [&str; 6] =
    ["vfork", "vfork_hooks", "raw_vfork", "raw_vfork_hooks", "posix_spawn", "posix_spawn_attributes"];

#[test]
fn a_daemon_keeps_its_identity() {
    SPAWNS.iter().for_each(|spawn| all_have_their_own_records("daemon", spawn));
}

#[test]
fn a_process_on_a_terminal_keeps_its_identity() {
    SPAWNS.iter().for_each(|spawn| all_have_their_own_records("forkpty", spawn));
}

#[test]
fn a_process_made_by_the_kernel_keeps_its_identity() {
    for fork in ["raw", "raw_twice"] {
        SPAWNS.iter().for_each(|spawn| all_have_their_own_records(fork, spawn));
    }
}
