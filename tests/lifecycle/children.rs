//! fork, exec, posix_spawn, vfork: who records what, and where.

use super::super::harness::{Program, Record, TestDirectory, Trace};
use super::super::rows::in_c_library;
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
    fn assert_forked(&self, kind: u64) {
        assert_eq!(self.of("proc_fork", self.parent), [(1, kind), (2, self.child.into())]);
        assert_eq!(self.of("proc_begin", self.child), [(0, self.parent.into())]);
        assert!(self.trace.of_pid(self.child)[0].is("proc_begin"));
        assert!(self.of("proc_fork", self.child).is_empty());
    }
}

#[test]
fn a_forked_child_has_its_own_files() {
    let without_handlers = Some(("_Fork", 8)).filter(|(function, _)| in_c_library(function));
    for (mode, kind) in [("fork_exit", 0), ("fork__exit", 0), ("fork_return", 0)].into_iter().chain(without_handlers) {
        let family = family(mode, 24, Some(22));
        assert_eq!((pairs(&family.trace, family.parent), pairs(&family.trace, family.child)), (13, 5), "{mode}");
        family.assert_forked(kind);
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
    let info = family.test.trace_directory().join(format!("trinfo.{:07x}", family.child));
    assert_eq!(spec::info::number(&std::fs::read(info).unwrap(), "forked_from"), Some(family.parent.into()));
    assert_eq!((pairs(&family.trace, family.parent), pairs(&family.trace, family.child)), (13, 5 + 7));
    family.assert_forked(0);
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
        assert_eq!(family.of("proc_fork", family.parent), [(1, 1), (2, family.child.into())], "{mode}");
        assert!(family.of("proc_exec", family.parent).is_empty(), "{mode}");
        assert_eq!(family.of("proc_exit", family.parent), [(0, 24)], "{mode}");
        if child_pairs == 0 {
            assert!(family.trace.of_pid(family.child).is_empty(), "{mode}");
        } else {
            family.assert_forked(1);
        }
    }
}

#[test]
fn spawned_children_record_for_themselves() {
    let spawned = family("posix_spawn", 24, Some(23));
    assert_eq!((pairs(&spawned.trace, spawned.parent), pairs(&spawned.trace, spawned.child)), (13, 7));
    assert_eq!(spawned.of("proc_exit", spawned.child), [(0, 23)]);
    spawned.assert_forked(2);

    for (mode, kind) in [("system", 4), ("popen", 5)] {
        let family = family(mode, 24, Some(23));
        assert_eq!(pairs(&family.trace, family.parent), 13, "{mode}");
        let is_other = |record: &&Record| record.fields.pid != family.parent;
        let others = family.trace.of("mutex_lock").into_iter().filter(is_other);
        assert_eq!(others.count(), 2 * 7, "{mode}");
        assert_eq!(family.of("proc_fork", family.parent), [(1, kind), (2, 0)], "{mode}");
        // The shell, which runs the program in its own process or in one that it forks.
        let shell = family.trace.records.iter().find(is_other).unwrap();
        assert!(shell.is("proc_begin"), "{mode}: {}", shell.line);
        assert_eq!(shell.fields.arguments[0].bits(), u64::from(family.parent), "{mode}");
    }
}

/// Its thread may have the linker's lock then, which a fork does not need.
#[test]
fn a_handler_forks_while_its_thread_asks_the_linker() {
    let test = TestDirectory::new("fork-in-linker");
    let output = test.traced(Program::c("lifecycle/fork_in_linker.c")).run();
    output.success();
    assert_eq!(output.stderr_text(), "");
    assert_eq!(clean(&test).of("proc_begin").len(), 100);
}

/// A program that another one runs which is not recorded, or in another directory, has no parent in the trace.
#[test]
fn a_program_without_a_recorded_parent_has_no_beginning() {
    let family = family("exec_fails", 24, None);
    assert!(family.of("proc_begin", family.parent).is_empty());
}

/// A child that no hook has seen begin, because the program made it by a system call: its trace begins with its beginning.
#[test]
fn an_unseen_childs_first_record_is_its_beginning() {
    let program = Program::c("hostile/steps.c");
    for mode in ["THR_TRACE_DETAIL", "THR_TRACE_BUF", "THR_TRACE_RING"] {
        let test = TestDirectory::new("unseen-child");
        let run = test.traced(&program).args(["pairs", "10", "clone", "100", "clone", "1"]).env(mode, "64K");
        run.env("THR_TRACE_EVENTS", "mutex:process").run().exited(7);
        let trace = clean(&test);
        let begun = trace.of("proc_begin");
        assert_eq!(begun.len(), 2);
        for begin in begun {
            let child = trace.of_pid(begin.fields.pid);
            assert_eq!(child[0].line, begin.line, "{mode}: an earlier record");
            assert!(child.iter().all(|record| record.line[..20] >= begin.line[..20]), "{mode}: an earlier time");
        }
    }
}
