//! `THR_TRACE_DIR`: where the files go, and what happens when they cannot.

use std::fs;

use super::super::harness::{TestDirectory, Trace};
use super::{files, modest, unchanged};

/// The records of a complete run of the program.
#[track_caller]
fn assert_complete(trace: &Trace) {
    assert_eq!((trace.of("mutex_lock").len(), trace.of("thr_join").len(), trace.of("spin_unlock").len()), (8, 2, 1));
}

#[test]
fn a_directory_that_cannot_be_used_is_reported_once() {
    let test = TestDirectory::new("nowhere");
    let file = test.directory().join("file");
    fs::write(&file, "").unwrap();
    let missing = test.directory().join("missing");
    let long = format!("/tmp/{}", "x".repeat(5000));
    for directory in [missing.to_str().unwrap(), file.to_str().unwrap(), "/proc", "/sys", "missing/too", &long] {
        let noise = unchanged(test.traced(modest()).env("THR_TRACE_DIR", directory));
        assert_eq!(noise.len(), 1, "{directory}: {noise:?}");
    }
    assert!(!missing.exists(), "the directory is not created");
    assert_eq!(fs::read(&file).unwrap(), b"");
    assert!(files(&test).is_empty());
}

#[test]
fn unset_or_empty_is_the_working_directory() {
    for empty in [false, true] {
        let test = TestDirectory::new("cwd");
        let run = test.traced(modest()).current_dir(test.trace_directory());
        let run = if empty { run.env("THR_TRACE_DIR", "") } else { run.env_remove("THR_TRACE_DIR") };
        assert_eq!(unchanged(run), [""; 0]);
        assert_complete(&test.merged());
    }
}

/// The working directory at the time of the first record, and for all of the process's files.
#[test]
fn a_relative_name_is_resolved_once() {
    for (directory, start) in [("trace", "."), ("./trace/../trace", "."), ("../trace", "trace"), (".", "trace")] {
        let test = TestDirectory::new("relative");
        let run = test.traced(modest()).args(["chdir", "/"]).env("THR_TRACE_DIR", directory);
        assert_eq!(unchanged(run.current_dir(test.directory().join(start))), [""; 0], "{directory}");
        assert_complete(&test.merged());
    }
    // The same where nothing names a directory: the program leaves it after its first record.
    let test = TestDirectory::new("leaves");
    let run = test.traced(modest()).args(["chdir", "/"]).env_remove("THR_TRACE_DIR");
    assert_eq!(unchanged(run.current_dir(test.trace_directory())), [""; 0]);
    assert_complete(&test.merged());
}

#[test]
fn odd_names_are_just_names() {
    for name in ["with space", "with:colon", "ünicode", "-dash", "new\nline"] {
        let test = TestDirectory::new("odd");
        let directory = test.directory().join(name);
        fs::create_dir(&directory).unwrap();
        assert_eq!(unchanged(test.traced(modest()).env("THR_TRACE_DIR", &directory)), [""; 0], "{name:?}");
        assert_complete(&Trace::read(&directory));
    }
}
