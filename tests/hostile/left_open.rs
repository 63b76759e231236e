//! Descriptors of the library that its host must not meet: those that a jump out of a signal handler leaves open, that
//! another thread has open when the table is copied or shared, or whose number the host gets for a file of its own.

use super::super::harness::{Program, TestDirectory};
use super::account;

/// A handler leaves by siglongjmp whatever it interrupts, mostly a write. Nothing stays open, also where the program may
/// have 64 descriptors, and where the handler runs on an alternate stack; each post is recorded, but for those that were
/// left.
#[test]
fn jumps_out_of_writes_leave_nothing_open() {
    let program = Program::c("hostile/left_writes.c");
    for (unbuffered, limit, stack) in
        [(true, "0", "own"), (true, "64", "own"), (true, "64", "alternate"), (false, "64", "own")]
    {
        let test = TestDirectory::new("left-writes");
        let run = test.traced(&program).args(["1500", limit, stack]).env("THR_TRACE_EVENTS", "sema");
        let output = run.unbuffered_if(unbuffered).run();
        let words: Vec<u64> =
            output.success().stdout_text().split_whitespace().map(|word| word.parse().unwrap()).collect();
        let [before, after, failed, finished, posted] = words[..] else { panic!("{}", output.stdout_text()) };
        assert_eq!(
            (after, failed),
            (before, 0),
            "descriptors before and after, opens that failed: {unbuffered} {stack}"
        );
        let trace = test.merged();
        let account = account(&trace);
        let recorded = account.records as u64 + account.lost;
        // Two calls besides the posts: sem_init and sem_getvalue.
        assert!((finished + 2..=posted + 2).contains(&recorded), "{recorded} of {finished} to {posted} + 2");
    }
}

/// Several threads at a time leave writes so, and end: what each has left cannot be told at once from what the others are opening.
/// Nor does what they have left to get buffers let the file of the buffers grow.
#[test]
fn threads_that_have_ended_leave_nothing_open() {
    let program = Program::c("hostile/left_by_threads.c");
    for (mode, period) in [(("THR_TRACE_DETAIL", "1"), "200"), (("THR_TRACE_STACK", "32"), "100")] {
        let test = TestDirectory::new("left-by-threads");
        let run = test.traced(&program).args(["40", "8", period]).arg(test.trace_directory().join("trbuf."));
        let output = run.env("THR_TRACE_EVENTS", "mutex").env(mode.0, mode.1).run();
        let words: Vec<u64> =
            output.success().stdout_text().split_whitespace().map(|word| word.parse().unwrap()).collect();
        let [before, after, failed, jumps, mebibytes] = words[..] else { panic!("{}", output.stdout_text()) };
        assert_eq!(failed, 0, "opens that failed, {mode:?}");
        // A jump may leave one at a moment at which nobody can know it.
        assert!(after < before + 8, "{before} descriptors before and {after} after: {mode:?}");
        assert!((1..=32).contains(&mebibytes), "{mebibytes} MiB for 9 threads");
        assert!(jumps > 40, "{jumps} jumps");
    }
}

/// A thread that is cancelled, or ends in a signal handler, within the first record has no slot yet.
#[test]
fn a_thread_that_ends_within_the_first_record_leaves_nothing_open() {
    let program = Program::c("hostile/ended_in_first_record.c");
    for how in ["cancel", "exit"] {
        let test = TestDirectory::new("ended-in-first-record");
        let run = test.traced(&program).args([how, "800"]).env("THR_TRACE_EVENTS", "sema").env("THR_TRACE_BUF", "1");
        let output = run.run();
        let counts: Vec<u64> =
            output.success().stdout_text().split_whitespace().map(|word| word.parse().unwrap()).collect();
        let [left, ended] = counts[..] else { panic!("{}", output.stdout_text()) };
        assert_eq!(left, 0, "descriptors, of {ended} threads that ended so, by {how}");
    }
}

/// Three threads write at full speed while the first one forks. Of the children only one that is forked by an instruction of the
/// program's own makes a hooked call before it looks.
#[test]
fn forked_children_have_no_descriptor_of_another_thread() {
    let program = Program::c("hostile/inherited_descriptors.c");
    let clones = ["function", "syscall", "clone3", "instruction"].map(|how| (how, "mutex:thread"));
    for (how, events) in
        [("fork", "mutex:process"), ("fork", "mutex"), ("_Fork", "mutex:process")].into_iter().chain(clones)
    {
        let test = TestDirectory::new("inherited");
        let output = test.traced(&program).args(["100", how]).env("THR_TRACE_EVENTS", events).run();
        let text = output.success().stdout_text();
        assert_eq!(text.split_whitespace().next(), Some("0"), "children with a descriptor, by {how}: {text}");
    }
}

/// A child of `clone` does not go on with the write that a signal handler has interrupted to make it.
#[test]
fn children_cloned_in_a_handler_have_no_descriptor_of_its_thread() {
    let program = Program::c("hostile/cloned_in_handler.c");
    for locks in ["0", "10"] {
        for unbuffered in [false, true] {
            let test = TestDirectory::new("cloned-in-handler");
            let run = test.traced(&program).args(["100", locks]).env("THR_TRACE_EVENTS", "mutex");
            let output = run.unbuffered_if(unbuffered).run();
            assert_eq!(output.success().stdout_text(), "0\n", "children with a descriptor: {locks} {unbuffered}");
        }
    }
}

/// A file of the program's own with flags as the library gives them, and by a number that the library has used: forked children
/// keep it.
#[test]
fn forked_children_keep_the_programs_files_whatever_their_flags() {
    let test = TestDirectory::new("odd-flags");
    let run = test.traced(Program::c("hostile/odd_flags.c")).arg(test.directory().join("own"));
    let output = run.env("THR_TRACE_EVENTS", "mutex").env("THR_TRACE_BUF", "1").run();
    assert_eq!(output.success().stdout_text(), "own\n");
    super::assert_complete(&test, 3 * 20);
}

/// A host that closes all descriptors again and again, while others write: its own files get their numbers, and nothing
/// else gets into them, nor into another file of the trace; also if a child that shares them closes them. Only where it does so
/// by an instruction of its own no attempt to write may come between two of its turns.
#[test]
fn a_host_that_closes_everything_keeps_its_files() {
    let program = Program::c("hostile/closing.c");
    let at_once = ["close_range", "closefrom", "close", "syscall"].map(|how| (how, "100", "8", true));
    for (how, rounds, threads, unbuffered) in
        [("close_range", "2000", "2", false), ("instruction", "2000", "2", false), ("child", "1000", "3", true)]
            .into_iter()
            .chain(at_once)
    {
        let test = TestDirectory::new("closing");
        let own = test.directory().join("own");
        let run = test.traced(&program).arg(rounds).arg(&own).args([threads, how]).env("THR_TRACE_EVENTS", "mutex");
        let run = run.unbuffered_if(unbuffered);
        let output = if how == "instruction" { run.noise_expected().run() } else { run.run() };
        let foreign = output.success().stdout_text().split_whitespace().nth(1);
        assert_eq!(foreign, Some("0"), "times that the host's file held something else: {}", output.command);
        assert!(test.trace_cat().run().success().stdout_text().lines().count() > 1000);
    }
}

/// A host that gives a file of its own numbers which it has never opened, as dup2 allows: none of them is ours at that moment,
/// so the call succeeds, and the number stays the file's.
#[test]
fn a_host_that_chooses_its_numbers_gets_them() {
    let program = Program::c("hostile/replacing.c");
    for (unbuffered, rounds) in [(false, "500"), (true, "500")] {
        let test = TestDirectory::new("replacing");
        let own = test.directory().join("own");
        let run = test.traced(&program).arg(&own).arg(rounds).env("THR_TRACE_EVENTS", "mutex");
        let output = run.unbuffered_if(unbuffered).run();
        output.exited(7);
        let text = output.stdout_text();
        assert_eq!(text, "0 0 5\n", "calls that failed, numbers that led elsewhere, bytes: {}", output.command);
        test.trace_cat().run().success();
    }
}

/// Children that use their parent's table of descriptors take nothing there for what they have inherited: the program's files stay
/// what they are, and nobody's records are lost.
#[test]
fn children_in_their_parents_table_close_nothing() {
    let program = Program::c("hostile/shared_table.c");
    let hows = ["function", "syscall", "clone3", "instruction"].map(|how| (how, false));
    // Under a filter a child may not ask whose its table is.
    for (how, is_filtered) in hows.into_iter().chain([("instruction", true), ("after-function", true)]) {
        let test = TestDirectory::new("shared-table");
        let run = if is_filtered {
            test.traced(Program::c("hostile/refuse.c")).arg("membarrier").arg(&program)
        } else {
            test.traced(&program)
        };
        let output = run
            .args(["300", how])
            .arg(test.directory().join("own"))
            .env("THR_TRACE_EVENTS", "mutex")
            .env("THR_TRACE_BUF", "1")
            .run();
        let [bad, pairs] = numbers(output.success().stdout_text());
        assert_eq!(bad, 0, "times that a file of the program's was not as it should be, {how}");
        super::assert_complete(&test, 3 * (pairs as usize + 300));
    }
}

/// Threads that leave the table of descriptors of the others take none of this library's with them, and are recorded.
#[test]
fn threads_with_a_table_of_their_own_have_no_descriptor_of_another_thread() {
    let program = Program::c("hostile/own_table.c");
    for how in ["unshare", "unshare-syscall", "close_range", "close_range-syscall"] {
        for unbuffered in [false, true] {
            let test = TestDirectory::new("own-table");
            let run = test.traced(&program).args(["60", how]).env("THR_TRACE_EVENTS", "mutex");
            let output = run.unbuffered_if(unbuffered).run();
            let [with, pairs] = numbers(output.success().stdout_text());
            assert_eq!(with, 0, "threads with a descriptor, {how}, {unbuffered}");
            super::assert_complete(&test, 3 * pairs as usize);
        }
    }
}

fn numbers<const N: usize>(text: &str) -> [u64; N] {
    let numbers: Vec<u64> = text.split_whitespace().map(|word| word.parse().unwrap()).collect();
    numbers.try_into().unwrap()
}
