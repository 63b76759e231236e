//! Rings, and signal handlers that record within the records of their threads, leave by siglongjmp, or fork.

use crate::harness::{Program, TestDirectory, Trace, assert_same_items};
use crate::hostile::{StormWorker, assert_posts_of_child, post_numbers};

fn storm(mode: &str, size: &str) -> (Vec<StormWorker>, Trace, String) {
    println!("{mode} in {size}");
    let test = TestDirectory::new("ring-storm");
    let run = test.traced(Program::c("hostile/storm.c")).args([mode, "200"]);
    let output = run.env("THR_TRACE_EVENTS", "sema:mutex:process").env("THR_TRACE_RING", size).run();
    let workers = StormWorker::parse_all(&output);
    let read = test.trace_cat_by_thread().run();
    read.success();
    (workers, Trace::parse("trace-cat", &read.stdout), read.stderr_text().to_owned())
}

/// Large rings lose nothing, whoever interrupts whom.
#[test]
fn handlers_post_within_records() {
    let (workers, trace, messages) = storm("posts", "64M");
    // The handlers' own rings are small.
    for worker in &workers {
        let own = post_numbers(&trace, worker.lwp, worker.own);
        assert_same_items(&own, &(0..worker.posted as u64).collect::<Vec<_>>(), &messages);
        assert_eq!(worker.posted, worker.finished);
        let mut handled = post_numbers(&trace, worker.lwp, worker.handlers);
        handled.sort_unstable();
        if !messages.contains(&format!("LWP {} ", worker.lwp)) {
            // A handler looks at the semaphore before it posts. Two others may post in between.
            let is_possible =
                |(index, number): (usize, &u64)| (index.saturating_sub(2)..=index).contains(&(*number as usize));
            assert_eq!(handled.len(), worker.handled);
            assert!(handled.iter().enumerate().all(is_possible), "posts by handlers: {handled:?}");
        }
        assert!(worker.handled >= 200, "the storm did not arise");
    }
}

/// Small ones have the newest, once, in their order; a post that was jumped over may be missing.
#[test]
fn handlers_interrupt_rings_that_wrap() {
    for mode in ["posts", "jumps", "altjumps", "forks"] {
        let (workers, trace, messages) = storm(mode, "64K");
        for worker in &workers {
            assert!(messages.contains(&format!("LWP {} is complete from ", worker.lwp)), "{messages}");
            let own = post_numbers(&trace, worker.lwp, worker.own);
            assert!(own.is_sorted_by(|a, b| a < b), "{mode}: a post is there twice or out of order");
            let (first, last) = (own[0], own[own.len() - 1]);
            // At most one post is jumped over by each signal.
            let missing = last + 1 - first - own.len() as u64;
            let jumped = (worker.posted - worker.finished) as u64;
            assert!(missing <= jumped, "{mode}: {missing} posts are missing, {jumped} were jumped over");
            assert!(last + 2 + jumped >= worker.posted as u64, "{mode}: the newest are missing");
            let bytes: usize = trace.of_lwp(worker.lwp).iter().map(|record| record.line.len() + 1).sum();
            assert!(bytes >= (64 << 10) - super::ring::UNUSED, "{mode}: only {bytes} bytes kept");
        }
        if mode == "forks" {
            let begun = trace.of("proc_begin");
            assert_eq!(begun.len(), 3 * 12);
            for child in begun.iter().map(|record| record.fields.lwpid) {
                assert_posts_of_child(&trace, child, &workers);
            }
        }
    }
}
