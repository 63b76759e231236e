//! fork, exec, posix_spawn, vfork: who records what, and where.

use super::super::harness::{Program, TestDirectory, Trace};
use super::{clean, names, pairs};

/// What `children MODE` printed.
struct Family {
    test: TestDirectory,
    trace: Trace,
    parent: u32,
    /// 0 where the program does not know it.
    child: u32,
}

/// Runs a mode natively and traced; both must end alike. `child` is the child's expected exit status, if there is one.
#[track_caller]
fn family(mode: &str, status: i32, child: Option<u32>) -> Family {
    let test = TestDirectory::new("children");
    let program = Program::with_flags("lifecycle/children.c", &[]);
    let native = test.native(&program).arg(mode).run();
    let traced = test.traced(&program).arg(mode).run();
    let numbers = |text: &str, key: &str| -> Option<Vec<u32>> {
        let line = text.lines().find_map(|line| line.strip_prefix(key))?;
        Some(line.split_whitespace().map(|word| word.parse().unwrap()).collect())
    };
    for output in [&native, &traced] {
        output.exited(status);
        assert_eq!(output.stderr_text(), "");
        assert_eq!(numbers(output.stdout_text(), "child ").map(|child| child[1]), child, "{}", output.command);
    }
    let text = traced.stdout_text();
    let parent = numbers(text, "parent ").expect("the parent's number")[0];
    let child = numbers(text, "child ").map_or(0, |child| child[0]);
    let trace = clean(&test);
    Family { test, trace, parent, child }
}

impl Family {
    /// The records of this event and process, as (which, first argument).
    fn of(&self, name: &str, pid: u32) -> Vec<(u8, u64)> {
        let records = self.trace.of(name).into_iter().filter(|record| record.fields.pid == pid);
        records.map(|record| (record.fields.which, record.fields.arguments[0].bits())).collect()
    }

    /// The parent's pair and the child's first record.
    #[track_caller]
    fn assert_forked(&self) {
        assert_eq!(self.of("proc_fork", self.parent), [(1, 0), (2, self.child.into())]);
        assert_eq!(self.of("proc_begin", self.child), [(0, self.parent.into())]);
        assert!(self.trace.of_pid(self.child)[0].is("proc_begin"));
        assert!(self.of("proc_fork", self.child).is_empty());
    }
}

#[test]
fn a_forked_child_has_its_own_files() {
    for mode in ["fork_exit", "fork__exit", "fork_return", "_Fork"] {
        let family = family(mode, 24, Some(22));
        assert_eq!((pairs(&family.trace, family.parent), pairs(&family.trace, family.child)), (13, 5), "{mode}");
        family.assert_forked();
        assert_eq!(family.of("proc_exit", family.child), [(0, 22)], "{mode}");
        assert_eq!(family.of("proc_exit", family.parent), [(0, 24)], "{mode}");
        for pid in [family.parent, family.child] {
            let files = names(&family.test.trace_directory());
            assert_eq!(
                files.iter().filter(|name| name.contains(&format!(".{pid:07x}"))).count(),
                2,
                "{mode}: {files:?}"
            );
        }
    }
}

#[test]
fn a_forked_child_that_execs_appends() {
    let family = family("fork_exec", 24, Some(23));
    assert_eq!((pairs(&family.trace, family.parent), pairs(&family.trace, family.child)), (13, 5 + 7));
    family.assert_forked();
    assert_eq!(family.of("proc_exec", family.child), [(1, 0)]);
}

#[test]
fn an_exec_that_succeeds_appends_to_its_own_files() {
    let family = family("exec", 23, None);
    assert_eq!(pairs(&family.trace, family.parent), 10 + 7);
    assert_eq!(family.of("proc_exec", family.parent), [(1, 0)]);
    assert_eq!(family.of("proc_exit", family.parent), [(0, 23)]);
    assert!(family.trace.records.iter().all(|record| record.fields.pid == family.parent));
    let files = names(&family.test.trace_directory());
    assert_eq!(files.len(), 3, "one tr file, one trinfo, trclock: {files:?}");
}

/// The thread takes the process's number; what the main thread had in its buffer is not lost.
#[test]
fn an_exec_in_a_thread_appends_too() {
    let family = family("exec_in_thread", 23, None);
    assert_eq!(pairs(&family.trace, family.parent), 10 + 4 + 7);
    let exec = family.trace.of("proc_exec");
    assert_eq!(exec.len(), 1);
    assert_eq!(exec[0].fields.lwpid, family.trace.of("thr_begin")[0].fields.lwpid);
    let exit = family.trace.of("proc_exit");
    assert_eq!((exit.len(), exit[0].fields.lwpid), (1, family.parent));
}

#[test]
fn an_exec_that_fails_goes_on() {
    let family = family("exec_fails", 24, None);
    assert_eq!(pairs(&family.trace, family.parent), 13);
    assert_eq!(family.of("proc_exec", family.parent), [(1, 0), (2, libc::ENOENT as u64)]);
    assert_eq!(family.of("proc_exit", family.parent), [(0, 24)]);
}

/// The child shares its parent's memory until it execs, so nothing of it is recorded before.
#[test]
fn a_vforked_child_records_nothing_before_its_exec() {
    for (mode, status, child_pairs) in [("vfork_exec", 23, 7), ("vfork_exec_fails", 2, 0), ("vfork_exit", 21, 0)] {
        let family = family(mode, 24, Some(status));
        assert_eq!(
            (pairs(&family.trace, family.parent), pairs(&family.trace, family.child)),
            (13, child_pairs),
            "{mode}"
        );
        assert!(family.of("proc_fork", family.parent).is_empty(), "{mode}");
        assert!(family.of("proc_exec", family.parent).is_empty(), "{mode}");
        assert_eq!(family.of("proc_exit", family.parent), [(0, 24)], "{mode}");
        if child_pairs == 0 {
            assert!(family.trace.of_pid(family.child).is_empty(), "{mode}");
        }
    }
}

#[test]
fn spawned_children_record_for_themselves() {
    let spawned = family("posix_spawn", 24, Some(23));
    assert_eq!((pairs(&spawned.trace, spawned.parent), pairs(&spawned.trace, spawned.child)), (13, 7));
    assert_eq!(spawned.of("proc_exit", spawned.child), [(0, 23)]);

    let system = family("system", 24, Some(23));
    assert_eq!(pairs(&system.trace, system.parent), 13);
    let others = system.trace.of("mutex_lock").into_iter().filter(|record| record.fields.pid != system.parent);
    assert_eq!(others.count(), 2 * 7);
}
