//! Beside other libraries that are preloaded.

use std::path::PathBuf;
use std::process::Command;

use super::super::harness::{Program, TestDirectory, library};
use super::super::order::checker;

fn jemalloc() -> PathBuf {
    let output = Command::new("cc").arg("-print-file-name=libjemalloc.so.2").output().unwrap();
    let path = PathBuf::from(String::from_utf8(output.stdout).unwrap().trim_end());
    assert!(path.is_absolute(), "libjemalloc.so.2 is missing; tests/setup installs it");
    path
}

/// An allocator that locks, creates threads and asks for its own symbols before anything else runs.
#[test]
fn jemalloc_before_and_behind() {
    let (jemalloc, library) = (jemalloc(), library());
    for order in [[&library, &jemalloc], [&jemalloc, &library]] {
        let preload = format!("{}:{}", order[0].display(), order[1].display());
        println!("LD_PRELOAD={preload}");
        let test = TestDirectory::new("jemalloc");
        // background_thread makes the allocator start a thread of its own.
        let run = test.traced(Program::c("lifecycle/allocations.c")).env("LD_PRELOAD", preload);
        let output = run.env("MALLOC_CONF", "background_thread:true").run();
        output.success();
        assert_eq!(output.stderr_text(), "");
        let mutex = output.stdout_text().trim_end();
        // The allocator's own threads run when the process ends, so a buffer may be left.
        let trace = test.merged();
        let fields = trace.records.iter().map(|record| &record.fields);
        checker::check_cut(fields).unwrap_or_else(|impossible| panic!("{impossible}"));
        let locks = trace.of("mutex_lock").into_iter().filter(|record| record.arguments()[0] == mutex).count();
        let unlocks = trace.of("mutex_unlock").into_iter().filter(|record| record.arguments()[0] == mutex).count();
        assert_eq!((locks, unlocks), (2000, 2000));
        let others = trace.of("mutex_trylock").len() + trace.of("mutex_lock").len() - 4000;
        assert!(others > 0, "jemalloc's own locks are not there: it was not in use");
    }
}
