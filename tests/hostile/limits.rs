//! Resource limits, set before the program begins or lowered by itself.

use super::super::harness::{CommandOutput, TestDirectory};
use super::{DONE, assert_complete, complains_once, privileged, steps, traced_steps, words};

/// `steps` under limits that prlimit sets. Its output goes nowhere: it must not meet the limit itself.
pub fn limited(test: &TestDirectory, limit: &str, arguments: &str) -> CommandOutput {
    let script = format!("exec prlimit {limit} env LD_PRELOAD=\"$library\" \"$0\" {arguments} >/dev/null");
    let run = test.native("sh").args(["-c", &script]).arg(steps()).env("library", super::super::harness::library());
    let run = run.env("THR_TRACE_DIR", test.trace_directory()).env("THR_TRACE_EVENTS", "mutex");
    run.noise_expected().run()
}

/// One number is free beside the three standard ones: what holds two descriptors at a time cannot record.
#[test]
fn one_free_descriptor_is_enough() {
    let test = TestDirectory::new("nofile4");
    let output = limited(&test, "--nofile=4", "pairs 100 thread 3000 pairs 100");
    output.exited(DONE);
    assert_eq!(output.stderr_text(), "");
    assert_complete(&test, 3 * 3200);
}

/// Without a free number nothing can be opened; the buffers hold what they can.
#[test]
fn without_a_descriptor_the_buffers_hold_the_records() {
    for limit in [0, 3] {
        let test = TestDirectory::new("nofile");
        let arguments = format!("pairs 100 thread 1000 nofile {limit} thread 200 pairs 100");
        complains_once(&traced_steps(&test, &arguments).noise_expected().run(), "Too many open files");
        assert_complete(&test, 3 * 1400);
    }
}

/// No memory for anything: nothing is recorded, and the program runs.
#[test]
fn no_memory_at_all() {
    let test = TestDirectory::new("as-first");
    let output = traced_steps(&test, "as 0 pairs 100 threads 4 3000 pairs 100").noise_expected().run();
    complains_once(&output, "Cannot allocate memory");
}

/// Threads that cannot be made are recorded, though there is no memory either for what their creator hands on.
#[test]
fn threads_that_there_is_no_memory_for_are_recorded() {
    let test = TestDirectory::new("as-threads");
    let run = traced_steps(&test, "pairs 10 as 0 nothread 3 pairs 10").env("THR_TRACE_EVENTS", "mutex:thread");
    run.run().exited(DONE);
    let trace = test.merged();
    let results: Vec<u64> = trace
        .of("thr_create")
        .iter()
        .filter(|record| record.fields.which == 2)
        .map(|record| record.get("rval"))
        .collect();
    assert_eq!(results, [libc::EAGAIN as u64; 3]);
}

/// Buffers for children that a program makes before it changes its root are not worth the memory that it needs itself.
#[test]
fn reserves_leave_the_program_its_memory() {
    for arguments in ["pairs 100 as 40000000 chroot / map 30000000", "pairs 100 lock all chroot / locked 20000"] {
        let test = TestDirectory::new("reserves");
        if !privileged(&test) {
            return;
        }
        test.native(steps()).args(words(arguments)).run().exited(DONE);
        traced_steps(&test, arguments).run().exited(DONE);
        assert_complete(&test, 300);
    }
}
