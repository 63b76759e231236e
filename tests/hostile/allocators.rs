//! Allocators: recording must not call them, and theirs may be built on what is recorded.

use super::super::harness::{Program, TestDirectory, library};

/// An allocator that takes a mutex for each call: a recorder that allocated would call itself, or wait for itself. It
/// also counts: with recording there is not one call more, not even in a thread's first record.
#[test]
fn recording_allocates_nothing() {
    let allocator = Program::with_flags("hostile/locked_malloc.c", &["-shared", "-fPIC"]);
    let program = Program::c("hostile/allocates.c");
    let (ours, other) = (library().display().to_string(), allocator.path().display().to_string());
    let test = TestDirectory::new("allocates");
    let native = test.native(&program).env("LD_PRELOAD", &other).run();
    native.success();
    assert!(native.stdout_text().starts_with("first 0, more 0, threads "), "{}", native.stdout_text());
    for preload in [format!("{ours}:{other}"), format!("{other}:{ours}")] {
        for unbuffered in [false, true] {
            println!("unbuffered {unbuffered}, LD_PRELOAD={preload}");
            let test = TestDirectory::new("allocates");
            let run = test.traced(&program).env("LD_PRELOAD", &preload);
            let traced = run.unbuffered_if(unbuffered).run();
            traced.success();
            assert_eq!(native.stdout_text(), traced.stdout_text());
            // 5001 pairs by the main thread and 3000 by each of twenty; the allocator's own come on top.
            let trace = test.merged();
            let unlocks = trace.of("mutex_unlock").len();
            assert!(unlocks > 5001 + 20 * 3000, "{unlocks}: the allocator's locks are missing");
            assert_eq!(trace.of("mutex_lock").len(), 2 * unlocks);
        }
    }
}
