//! Versions of functions: whoever asks for one gets it, in whatever way.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::super::harness::{Program, TestDirectory, glibc, library};

/// References to an old version, to the default one and without a version, and what `dlsym` and `dlvsym` find, all reach
/// what they reach natively: recorded, and with nothing enabled.
#[test]
fn each_reference_gets_the_version_that_it_asks_for() {
    let unversioned = Program::with_flags("lifecycle/versions.c", &["-shared", "-fPIC", "-nostdlib", "-DLIBRARY"]);
    let program = Program::c("lifecycle/versions.c");
    let test = TestDirectory::new("versions");
    let native = test.native(&program).arg(&unversioned).run();
    native.success();
    for events in ["", "thread"] {
        let test = TestDirectory::new("versions");
        let traced = test.traced(&program).arg(&unversioned).env("THR_TRACE_EVENTS", events).run();
        traced.success();
        assert_eq!(traced.stdout_text(), native.stdout_text(), "with the events '{events}'");
        if !events.is_empty() {
            assert_eq!(test.merged().of("thr_kill").len(), native.stdout_text().lines().count());
        }
    }
}

/// A program that its dynamic linker starts by name, and for which that is asked to preload the library.
#[test]
fn the_dynamic_linker_preloads_it() {
    let linker =
        glibc::chosen().map_or_else(|| PathBuf::from("/lib64/ld-linux-x86-64.so.2"), |glibc| glibc.dynamic_linker());
    let program = Program::c("rows/once.c");
    let test = TestDirectory::new("preload");
    let native = test.native(&program).run();
    let run = test.traced(linker).env_remove("LD_PRELOAD").arg("--preload").arg(library()).arg(&program).run();
    native.success();
    run.success();
    let calls = native.stdout_text().lines().filter(|line| line.contains(" thr_once 1 ")).count();
    let recorded = test.merged().of("thr_once").iter().filter(|record| record.fields.which == 1).count();
    assert!(calls > 0 && recorded >= calls, "{recorded} of {calls}");
}

/// The library defines a `stdin`, which no program may find.
#[test]
fn standard_input_is_that_of_libc() {
    let unversioned = |define| {
        Program::with_flags("lifecycle/standard_input.c", &["-shared", "-fPIC", "-nostdlib", "-DLIBRARY", define])
    };
    let (linked, opened) = (unversioned("-DLINKED"), unversioned("-DOPENED"));
    let program = Program::with_flags("lifecycle/standard_input.c", &[linked.path().to_str().unwrap()]);
    let test = TestDirectory::new("standard-input");
    let native = test.native(&program).arg(&opened).run();
    let traced = test.traced(&program).arg(&opened).run();
    native.success();
    traced.success();
    assert_eq!(traced.stdout_text(), native.stdout_text());
    assert_eq!(traced.stdout_text().matches("libc's, the same").count(), 4, "{}", traced.stdout_text());
}

/// musl's dynamic linker leaves the library out, in a program that is started with it, and in one that a recorded program executes.
#[test]
fn a_program_of_another_libc_runs_unrecorded() {
    if glibc::chosen().is_some() {
        return println!("not run: which glibc is chosen makes no difference");
    }
    let test = TestDirectory::new("other-libc");
    let program = test.directory().join("other_libc");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("programs/lifecycle/other_libc.c");
    let compiled = Command::new("musl-gcc").arg("-o").arg(&program).arg(source).output().unwrap();
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    let shell = [OsStr::new("-c"), OsStr::new("\"$0\"; exit $?"), program.as_os_str()];
    for run in [test.traced(&program), test.traced("/bin/sh").args(shell)] {
        let output = run.run();
        output.exited(7);
        assert_eq!((output.stdout_text(), output.stderr_text()), ("ended\n", ""));
    }
}
