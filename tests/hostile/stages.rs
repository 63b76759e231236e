//! Calls at stages at which a library may not be ready yet, or any more.

use super::super::harness::{Program, TestDirectory, library};

/// How many locks of the mutex at this address are recorded.
fn locks(trace: &super::Trace, mutex: &str) -> usize {
    let of = trace.of("mutex_lock").into_iter();
    of.filter(|record| record.fields.which == 1 && record.arguments()[0] == mutex).count()
}

/// Constructors and destructors of the program, and of a library that is preloaded before or after libthreadt and thus
/// begins after or before it; thread-local objects, key destructors, handlers of both kinds of exit.
#[test]
fn every_stage_of_libraries_objects_and_handlers() {
    let early = Program::with_flags("hostile/early.c", &["-shared", "-fPIC"]);
    let program = Program::with_flags("hostile/stages.cpp", &[]);
    for (before, mode) in [(true, "return"), (false, "return"), (true, "quick_exit"), (false, "quick_exit")] {
        let (ours, other) = (library().display().to_string(), early.path().display().to_string());
        let preload = if before { format!("{other}:{ours}") } else { format!("{ours}:{other}") };
        println!("{mode}, LD_PRELOAD={preload}");
        let test = TestDirectory::new("stages");
        let run = test.traced(&program).arg(mode).env("LD_PRELOAD", preload).env("THR_TRACE_EVENTS", "mutex:thread");
        let output = run.run();
        output.success();
        let trace = test.merged();
        let mut in_program = 0;
        for line in output.stdout_text().lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            let expected: usize = words[2].parse().unwrap();
            assert_eq!(locks(&trace, words[1]), expected, "{mode}: {}", words[0]);
            in_program += expected;
        }
        // The other library's: constructor 7, thread 3 + 1, and at an orderly end 11 + 1, 5 in the thread, 13.
        let all = trace.of("mutex_lock").iter().filter(|record| record.fields.which == 1).count();
        if mode == "return" {
            assert_eq!(all - in_program, 7 + 4 + 11 + 1 + 5 + 13);
        } else {
            // Nobody waits for the thread.
            assert!((7..=7 + 4).contains(&(all - in_program)), "{}", all - in_program);
        }
    }
}
