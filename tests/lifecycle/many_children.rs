//! Children that are forked one after the other: what each of them costs is little, and each has its own trace.

use std::collections::BTreeSet;
use std::fs;

use super::super::harness::{CommandOutput, Program, TestDirectory, Trace, library};
use super::{clean, names, pairs, possible};
use Recording::{Buffers, Rings};

/// Children in a row.
const CHILDREN: usize = 10;

/// What a program printed: its PID, and the PID and the trbuf's inode number of each child.
struct PrintedFamily {
    parent: u32,
    children: Vec<(u32, u64)>,
}

fn printed(text: &str) -> PrintedFamily {
    let words = |line: &str| -> Vec<u64> { line.split(' ').skip(1).map(|word| word.parse().unwrap()).collect() };
    let of = |key: &str| text.lines().filter(|line| line.starts_with(key)).map(words).collect::<Vec<_>>();
    PrintedFamily {
        parent: of("parent ")[0][0] as u32,
        children: of("child ").iter().map(|words| (words[0] as u32, words[1])).collect(),
    }
}

/// What the processes record into.
#[derive(Clone, Copy, Debug)]
enum Recording {
    Buffers,
    Rings,
}

fn many_children(test: &TestDirectory, mode: &str, recording: Recording) -> CommandOutput {
    let run = test.traced(Program::with_flags("lifecycle/many_children.c", &[])).arg(mode);
    match recording {
        Buffers => run.run(),
        Rings => run.env("THR_TRACE_RING", "64K").run(),
    }
}

/// Runs a mode; all processes end in an orderly way.
#[track_caller]
fn run(mode: &str, recording: Recording) -> (PrintedFamily, Trace) {
    let test = TestDirectory::new("many-children");
    let output = many_children(&test, mode, recording);
    output.success();
    assert_eq!(output.stderr_text(), "");
    assert_no_spares(&test);
    (printed(output.stdout_text()), clean(&test))
}

#[track_caller]
fn assert_no_spares(test: &TestDirectory) {
    let left: Vec<String> =
        names(&test.trace_directory()).into_iter().filter(|name| name.starts_with("trspare.")).collect();
    assert!(left.is_empty(), "{left:?}");
}

fn trbufs(printed: &PrintedFamily) -> usize {
    printed.children.iter().map(|(_, inode)| inode).collect::<BTreeSet<_>>().len()
}

/// A file system may be slow to make and to remove files, so that one trbuf serves all children.
#[test]
fn children_in_a_row_use_one_trbuf() {
    for recording in [Buffers, Rings] {
        let (printed, trace) = run("serial", recording);
        assert_eq!((printed.children.len(), trbufs(&printed)), (CHILDREN, 1), "{:?}", printed.children);
        for (number, &(child, _)) in printed.children.iter().enumerate() {
            // Each records less than the one before, whose text is still behind its own.
            assert_eq!(pairs(&trace, child), 20 - number);
            assert_eq!(trace.of_pid(child).len(), 1 + 3 * (20 - number) + 1, "proc_begin, the pairs, proc_exit");
        }
        assert_eq!(pairs(&trace, printed.parent), 1);
    }
}

#[test]
fn children_of_children_use_it_too() {
    for recording in [Buffers, Rings] {
        let (printed, trace) = run("nested", recording);
        assert_eq!(printed.children.len(), 2 * CHILDREN);
        assert_eq!(trbufs(&printed), 2, "one for the child, and one for its own: {:?}", printed.children);
        let recorded: usize = printed.children.iter().map(|&(child, _)| pairs(&trace, child)).sum();
        assert_eq!(recorded, 3 * CHILDREN);
    }
}

#[test]
fn children_at_the_same_time_have_trbufs_of_their_own() {
    for recording in [Buffers, Rings] {
        let (printed, trace) = run("together", recording);
        assert_eq!(printed.children.len(), 60);
        let recorded: usize = printed.children.iter().map(|&(child, _)| pairs(&trace, child)).sum();
        assert_eq!(recorded, 5 * (100..112).sum::<usize>());
    }
}

/// A thread that still runs may record, so its process's trbuf is no other process's.
#[test]
fn children_with_threads_leave_no_trbuf() {
    for recording in [Buffers, Rings] {
        let (printed, trace) = run("threads", recording);
        assert_eq!(trace.of("thr_create").len(), 2 * CHILDREN);
        assert_eq!(printed.children.len(), CHILDREN);
    }
}

/// A killed child's trbuf, which was another one's before, has its own records and no others.
#[test]
fn what_a_killed_child_leaves_is_its_own() {
    for recording in [Buffers, Rings] {
        let test = TestDirectory::new("many-children-killed");
        let [first, killed, last] = killed_in_anothers_trbuf(&test, "killed", recording);
        let check = |trace: &Trace| {
            assert_eq!([first, killed, last].map(|child| pairs(trace, child)), [50, 2, 3]);
            assert_eq!(trace.of_pid(killed).len(), 1 + 6);
        };
        let merged = test.merged();
        possible(&merged);
        check(&merged);
        test.recover();
        check(&test.trace());
        assert_no_spares(&test);
    }
}

/// As above, of rings that have both overwritten their oldest records.
#[test]
fn what_a_killed_child_leaves_in_a_ring_is_its_own() {
    let test = TestDirectory::new("many-children-killed-ring");
    let [first, killed, last] = killed_in_anothers_trbuf(&test, "overwritten", Rings);
    let output = test.trace_cat().run();
    assert!(output.success().stderr_text().ends_with("earlier records were overwritten\n"));
    let trace = Trace::parse("trace-cat", &output.stdout);
    let unlocks = |child| trace.of_pid(child).iter().filter(|record| record.is("mutex_unlock")).count();
    let kept = [first, killed, last].map(unlocks);
    // Of 64 KiB a pair's three records take 249 bytes.
    assert!((200..264).contains(&kept[0]) && (200..264).contains(&kept[1]) && kept[2] == 3, "{kept:?}");
    test.recover();
    assert_own_records(&test);
}

/// Runs a mode whose second child is killed: the PIDs of its three children.
#[track_caller]
fn killed_in_anothers_trbuf(test: &TestDirectory, mode: &str, recording: Recording) -> [u32; 3] {
    let output = many_children(test, mode, recording);
    output.success();
    let printed = printed(output.stdout_text());
    let [(first, shared), (killed, of_killed), (last, own)] = printed.children[..] else { panic!("three children") };
    assert_eq!(shared, of_killed, "the killed child has the first one's trbuf");
    assert_ne!(own, of_killed);
    assert!(names(&test.trace_directory()).contains(&format!("trbuf.{killed:07x}")));
    [first, killed, last]
}

/// Whether a child or the process that keeps what children leave ends first differs from run to run.
#[test]
fn what_children_leave_goes_with_the_process_that_keeps_it() {
    let script = "LD_PRELOAD=\"$2\" \"$0\" \"$1\" | cat";
    for way in ["last"; 40].into_iter().chain(["daemon", "setuid", "exec", "filter"]) {
        let test = TestDirectory::new("keeper");
        let run = test.native("sh").args(["-c", script]).arg(Program::c("lifecycle/keeper.c")).arg(way).arg(library());
        let output = run.env("THR_TRACE_DIR", test.trace_directory()).run();
        let executes = ["exec", "filter"].contains(&way);
        assert_eq!(output.success().stdout_text(), if executes { "done\nexecuted\n" } else { "done\n" }, "{way}");
        if way != "filter" {
            assert_no_spares(&test);
        }
    }
}

/// A process that is killed cannot remove what its children have left.
#[test]
fn recovery_removes_a_spare_trbuf() {
    for recording in [Buffers, Rings] {
        let test = TestDirectory::new("many-children-orphaned");
        let output = many_children(&test, "orphaned", recording);
        output.killed(libc::SIGKILL);
        let parent = printed(output.stdout_text()).parent;
        assert!(names(&test.trace_directory()).contains(&format!("trspare.{parent:07x}.0")));
        let merged = test.merged().text();
        test.recover();
        assert_no_spares(&test);
        assert_eq!(test.merged().text(), merged);
    }
}

/// A child that records nothing makes no file, and no system call that its parent's filter does not allow.
#[test]
fn children_that_record_nothing_make_no_files() {
    for (mode, events, files) in [("mutex_only", "mutex", true), ("nothing", "", false)] {
        let test = TestDirectory::new("many-children-unrecorded");
        let program = Program::with_flags("lifecycle/many_children.c", &[]);
        let output = test.traced(&program).env("THR_TRACE_EVENTS", events).arg(mode).run();
        output.success();
        let filtered = output.stdout_text().lines().find(|line| line.starts_with("filtered ")).unwrap();
        let words: Vec<u32> = filtered.split(' ').skip(1).map(|word| word.parse().unwrap()).collect();
        assert_eq!(words[1..], [0, 0], "{mode}: exit status and signal");
        let known = [printed(output.stdout_text()).parent, words[0]].map(|pid| format!("{pid:07x}"));
        let names = names(&test.trace_directory());
        assert_eq!(names.iter().any(|name| name.starts_with("trbuf.")), files, "{names:?}");
        let is_known = |name: &String| name == "trclock" || known.iter().any(|pid| name.contains(pid));
        assert!(names.iter().all(is_known), "{mode}: {names:?}");
    }
}

/// Each child locks ten times, and a thousand times in the `_exit` of another library: this one's has left the trbuf to the next child then.
#[test]
fn what_comes_after_the_end_is_in_no_other_childs_trace() {
    let test = TestDirectory::new("late-exit");
    let late = Program::with_flags("lifecycle/late_exit.c", &["-shared", "-fPIC"]);
    let preload = format!("{}:{}", library().display(), late.path().display());
    let run = test.traced(Program::c("lifecycle/ended_in_a_row.c")).env("LD_PRELOAD", preload);
    let output = run.env("THR_TRACE_EVENTS", "mutex").run();
    let trace = test.merged();
    for child in output.success().stdout_text().lines() {
        let child: u32 = child.parse().unwrap();
        let records = trace.of("mutex_unlock").into_iter().filter(|record| record.fields.pid == child);
        assert_eq!(records.count(), 10 + 1000, "{child}");
    }
    assert_no_spares(&test);
}

/// It has left its trbuf, to the child that records meanwhile.
#[test]
fn a_child_that_ends_twice_leaves_the_next_one_alone() {
    let test = TestDirectory::new("ends-twice");
    let run = test.traced(Program::c("lifecycle/ended_twice.c")).env("THR_TRACE_EVENTS", "mutex");
    let second: u32 = run.run().success().stdout_text().trim_end().parse().unwrap();
    let trace = test.merged();
    let records = trace.of("mutex_unlock").into_iter().filter(|record| record.fields.pid == second);
    assert_eq!(records.count(), 1000);
    assert_own_records(&test);
    assert_no_spares(&test);
}

#[track_caller]
fn assert_own_records(test: &TestDirectory) {
    for name in names(&test.trace_directory()).into_iter().filter(|name| name.starts_with("tr.")) {
        let process = u32::from_str_radix(name.split('.').nth(1).unwrap(), 16).unwrap();
        let text = fs::read_to_string(test.trace_directory().join(&name)).unwrap();
        let is_own = |line: &str| line.split(':').nth(2).unwrap().parse() == Ok(process);
        assert!(text.lines().all(is_own), "{name} has another process's records");
    }
}

/// Its trbuf is the next child's already when a signal comes, whose handler would record.
#[test]
fn a_child_that_a_signal_interrupts_at_its_end_leaves_the_next_one_alone() {
    let test = TestDirectory::new("interrupted-end");
    let run = test.traced(Program::c("lifecycle/interrupted_end.c")).env("THR_TRACE_EVENTS", "mutex:process");
    let output = run.run();
    if !output.is_permitted("to stop a process") {
        return;
    }
    let children: Vec<u32> =
        output.success().stdout_text().split_whitespace().map(|number| number.parse().unwrap()).collect();
    let trace = test.merged();
    assert_own_records(&test);
    assert_eq!(children.iter().map(|&child| pairs(&trace, child)).collect::<Vec<_>>(), [20, 30]);
    assert_no_spares(&test);
}
