//! Beside other libraries that are preloaded.

use std::fs;
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
        checker::check_interrupted(fields).unwrap_or_else(|impossible| panic!("{impossible}"));
        let locks = trace.of("mutex_lock").into_iter().filter(|record| record.arguments()[0] == mutex).count();
        let unlocks = trace.of("mutex_unlock").into_iter().filter(|record| record.arguments()[0] == mutex).count();
        assert_eq!((locks, unlocks), (2000, 2000));
        let others = trace.of("mutex_trylock").len() + trace.of("mutex_lock").len() - 4000;
        assert!(others > 0, "jemalloc's own locks are not there: it was not in use");
    }
}

/// Two copies of the library: the first one records, and only that.
#[test]
fn a_second_copy_records_nothing() {
    let test = TestDirectory::new("copy");
    let copy = test.directory().join("copy.so");
    fs::copy(library(), &copy).unwrap();
    for order in [[&library(), &copy], [&copy, &library()]] {
        let preload = format!("{}:{}", order[0].display(), order[1].display());
        let run = test.traced(Program::c("hostile/odd_flags.c")).arg(test.directory().join("own"));
        let output = run.env("LD_PRELOAD", preload).env("THR_TRACE_EVENTS", "mutex").run();
        assert_eq!(output.success().stderr_text(), "");
    }
    let trace = test.merged();
    assert_eq!((trace.of("mutex_lock").len(), trace.of("mutex_unlock").len()), (2 * 2 * 20, 2 * 20));
}

/// A lock checker behind the library, which reads its return address, finds the program: a hook that records nothing leaves no frame.
#[test]
fn a_library_behind_is_called_by_the_program() {
    let interposer = Program::with_flags("lifecycle/caller.c", &["-shared", "-fPIC", "-DINTERPOSER"]);
    let program = Program::c("lifecycle/caller.c");
    let test = TestDirectory::new("caller");
    let preload = format!("{}:{}", library().display(), interposer.path().display());
    let output = test.traced(&program).env("LD_PRELOAD", preload).env("THR_TRACE_EVENTS", "").run();
    output.success();
    let name = program.path().file_name().unwrap().to_str().unwrap();
    let functions = ["pthread_mutex_lock", "pthread_rwlock_rdlock", "pthread_spin_lock", "sem_post"];
    let expected: String = functions.map(|function| format!("{function}: {name}\n")).concat();
    // The first calls are the library's own: it finds out what glibc's objects look like.
    assert!(output.stdout_text().ends_with(&format!("\nsem_post: libthreadt.so\n{expected}")), "{output:?}");
}
