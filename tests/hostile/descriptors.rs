//! Standard descriptors that have become something else, or are closed.

use std::fs;

use super::super::harness::{Program, TestCommand, TestDirectory};
use super::{DONE, account, traced_mutexes, traced_steps};

/// A daemon closes its standard descriptors, and a database opens a file that gets number 2. No message of the
/// library may be written to it.
#[test]
fn nothing_is_printed_into_a_file_that_took_the_place_of_stderr() {
    let test = TestDirectory::new("stderr");
    let own = test.directory().join("database");
    let run = traced_steps(&test, "pairs 100 stderr").arg(&own).args(["print", "first,"]);
    let output = run.args(["nofile", "0", "thread", "400", "pairs", "100", "print", "second"]).run();
    output.exited(DONE);
    assert_eq!(output.stderr_text(), "");
    assert_eq!(fs::read_to_string(&own).unwrap(), "first,second");
    super::assert_complete(&test, 3 * 600);
}

/// The same with descriptor 2 closed, and with nothing there from the start.
#[test]
fn nothing_is_printed_without_stderr() {
    let test = TestDirectory::new("no-stderr");
    let own = test.directory().join("database");
    let script = "exec 2>&-; exec \"$0\" pairs 100 stderr \"$1\" nofile 0 thread 400 pairs 100 print mine";
    let run = test.traced("sh").args(["-c", script]).arg(super::steps()).arg(&own);
    run.env("THR_TRACE_EVENTS", "mutex").run().exited(DONE);
    assert_eq!(fs::read_to_string(&own).unwrap(), "mine");
    super::assert_complete(&test, 3 * 600);
}

/// What the program writes to closed descriptors goes nowhere, and what it reads comes from nowhere, at every moment: while
/// each record is written, too, and where another thread has a table in which they are open.
#[test]
fn closed_standard_descriptors_are_closed_at_every_moment() {
    let program = Program::c("hostile/closed_standard.c");
    // Of the last ones, one in two would be noticed.
    let ways = ["before", "close", "syscall", "close_range"].into_iter().chain(["close-own-table"; 5]);
    for how in ways {
        for unbuffered in [true, false] {
            let test = TestDirectory::new("closed-standard");
            let result = test.directory().join("result");
            let run = if how == "before" {
                let script = "exec 0<&- 1>&- 2>&-; exec \"$0\" \"$@\"";
                test.traced("sh").env("THR_TRACE_EVENTS", "mutex").args(["-c", script]).arg(&program)
            } else {
                traced_mutexes(&test, &program)
            };
            let run = run.args([how, "5000"]).arg(&result);
            run.unbuffered_if(unbuffered).run().success();
            let used = fs::read_to_string(&result).unwrap();
            assert_eq!(used, "0 0\n", "uses that went somewhere, and open numbers: {how}, unbuffered {unbuffered}");
            super::assert_complete(&test, 3 * 2 * 5_000);
        }
    }
}

/// Jumps out of writes, and forks during writes, leave no number of them taken.
#[test]
fn closed_standard_descriptors_stay_closed_after_jumps_and_forks() {
    let closed = |test: &TestDirectory, program: &str, arguments: &[&str]| {
        let script = "exec 0<&- 2>&-; exec \"$0\" \"$@\"";
        let run = test.traced("sh").args(["-c", script]).arg(Program::c(program)).args(arguments);
        let run = run.env("THR_TRACE_EVENTS", "mutex:sema").env("THR_TRACE_BUF", "1").run();
        run.success().stdout_text().split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    for stack in ["own", "alternate"] {
        let test = TestDirectory::new("closed-jumps");
        let numbers = closed(&test, "hostile/left_writes.c", &["1500", "64", stack]);
        let [before, after, failed, ..] = &numbers[..] else { panic!("{numbers:?}") };
        assert_eq!((after, failed.as_str()), (before, "0"), "descriptors before and after, opens that failed");
        account(&test.merged());
    }
    for how in ["fork", "_Fork", "function", "syscall", "clone3", "instruction"] {
        let test = TestDirectory::new("closed-inherited");
        let children = closed(&test, "hostile/inherited_descriptors.c", &["300", how]);
        assert_eq!(children[0], "0", "children with a descriptor, by {how}: {children:?}");
    }
}

/// A program may take a number just before the library does. Then a child that is forked at that moment has nothing of the library's,
/// either; nor where another thread has waited in vain for the one that is about to take it.
#[test]
fn a_number_that_the_program_takes_before_is_its_own() {
    for (stops, posts) in (0..12).flat_map(|stops| [(stops, 1), (stops, 2)]) {
        let test = TestDirectory::new("taken-number");
        let run = test.traced(Program::c("hostile/taken_number.c")).arg(stops.to_string());
        let run = if posts == 2 { run.arg("post") } else { run };
        let output = run.env("THR_TRACE_EVENTS", "sema").env("THR_TRACE_BUF", "1").run();
        if !output.is_permitted("to stop a thread") {
            return;
        }
        let left = output.exited(DONE).stdout_text().trim();
        assert_eq!(left, "0", "descriptors of the library in the child, {stops} stops later, {posts} posts");
        assert_eq!(test.merged().of("sema_post").len(), posts);
    }
}

/// Where one thread waits in vain for another one, neither's file gets the number of a closed standard descriptor when the other is done.
#[test]
fn openers_that_have_waited_in_vain_leave_standard_numbers_taken() {
    let ways = (0..20).step_by(3).flat_map(|stops| [(stops, "first", 2), (stops, "second", 2)]);
    for (stops, way, threads) in ways.chain([(0, "closing", 2), (0, "many", 8), (0, "libc", 1), (0, "dup2", 1)]) {
        let test = TestDirectory::new("overlapping-openers");
        let run = test.traced(Program::c("hostile/overlapping_openers.c")).args([stops.to_string().as_str(), way]);
        let output = run.env("THR_TRACE_EVENTS", "sema").env("THR_TRACE_BUF", "1").run();
        if !output.is_permitted("to stop a thread") {
            return;
        }
        assert_eq!(output.success().stdout_text(), "", "{stops} stops, {way}");
        assert_eq!(test.merged().of("sema_post").len(), 2 * threads);
    }
}

/// A number that the program closes twice may be that of a file of the library by the second time, also where libc closes it, and where
/// another thread closes it while `freopen` is about to open its file.
#[test]
fn what_the_program_closes_twice_and_opens_again_is_its_own() {
    let program = Program::c("hostile/closed_twice.c");
    let orders = |way| ["within", "before", "opening"].map(|order| (way, order));
    let closing = ["close", "fclose", "closedir", "pclose", "freopen"].into_iter().flat_map(orders);
    for (way, order) in closing.chain(["open", "long", "flush"].map(|order| ("freopen", order))) {
        let test = TestDirectory::new("closed-twice");
        let run = test.traced(&program).args([way, order]).arg(test.directory().join("own"));
        let output = run.env("THR_TRACE_EVENTS", "sema").unbuffered_if(order != "flush").run();
        if !output.is_permitted("to stop a thread") {
            return;
        }
        assert_eq!(output.success().stdout_text(), "", "{way} {order}");
        let records = if order == "flush" { 2001 } else { 2 };
        assert_eq!(test.merged().of("sema_post").len(), records, "{way} {order}");
    }
}

/// A call that has closed its number may go on for long, and its number may be that of any other file by then.
#[test]
fn nobody_waits_for_a_call_that_has_closed_its_number() {
    for how in ["pclose", "fclose"] {
        let test = TestDirectory::new("waiting-close");
        let run = test.traced(Program::c("hostile/waiting_close.c")).arg(how).env("THR_TRACE_EVENTS", "mutex");
        let sleeps: u32 = run.env("THR_TRACE_BUF", "1").run().success().stdout_text().trim().parse().unwrap();
        // It may wait for another thread's file for a moment.
        assert!(sleeps < 100, "{how}: slept {sleeps} times");
        assert_eq!(test.merged().of("mutex_unlock").len(), 100);
    }
}

/// Valgrind opens the command line itself, and answers with a copy of its own descriptor.
#[test]
fn nothing_stays_open_under_valgrind() {
    let test = TestDirectory::new("valgrind");
    let program = Program::c("hostile/next_number.c");
    let next_number = |run: TestCommand| {
        let output = run.args(["-q", "--tool=none"]).arg(&program).run();
        output.success().stdout_text().trim().to_owned()
    };
    let traced = next_number(test.traced("valgrind").env("THR_TRACE_EVENTS", "sema"));
    assert_eq!(traced, next_number(test.native("valgrind")));
    assert_eq!(test.merged().of("sema_post").len(), 1);
}

/// Directories that the program holds by `O_PATH` look like what takes the numbers of closed descriptors.
#[test]
fn directories_of_the_programs_stay_open_where_standard_descriptors_are_closed() {
    let program = Program::c("hostile/own_directories.c");
    for (how, script) in [("daemon", "exec \"$0\" \"$@\""), ("threads", "exec \"$0\" \"$@\" <&-")] {
        for unbuffered in [false, true] {
            let test = TestDirectory::new("own-directories");
            let run = test.traced("sh").args(["-c", script]).arg(&program).arg(how);
            let run = run.env("THR_TRACE_EVENTS", "mutex");
            let output = run.unbuffered_if(unbuffered).run();
            assert_eq!(output.success().stdout_text(), "0\n", "lost directories, {how}, unbuffered {unbuffered}");
        }
    }
}

/// A thread that a handler keeps in a write, or that has left it, delays no other thread's writes, nor each of its execs.
#[test]
fn nobody_waits_again_and_again_for_a_thread_that_does_not_go_on() {
    let program = Program::c("hostile/held_writer.c");
    let script = "exec \"$0\" \"$@\" <&-";
    for (how, rounds) in [("stay", "10"), ("leave", "10"), ("Stay", "3"), ("Leave", "3")] {
        let test = TestDirectory::new("held-writer");
        let run = test.traced("sh").args(["-c", script]).arg(&program).args([how, rounds]);
        let output = run.env("THR_TRACE_EVENTS", "mutex:sema").env("THR_TRACE_BUF", "1").run();
        let sleeps: u32 = output.success().stdout_text().trim().parse().unwrap();
        // Two thousand times at most for one record, and half as often for the next, in each round whose thread is kept in a record;
        // after a round in which it is not, two thousand times again.
        assert!(sleeps < 10_000, "{how}: slept {sleeps} times");
    }
}
