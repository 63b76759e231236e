//! Functions that the process does not have: a program that asks for them finds none, as it does without the library.

use super::super::harness::{Program, TestDirectory, assert_same_lines, glibc};

/// The program, which before glibc 2.34 has no libpthread. Its library is linked with a further option.
fn program(option: &str) -> Program {
    let flags = ["-shared", "-fPIC", "-DLIBRARY", "-Wl,--as-needed", option];
    let library = Program::with_flags("lifecycle/weak.c", &flags);
    let library = library.path().to_str().expect("a path of ASCII characters").to_owned();
    Program::with_flags("lifecycle/weak.c", &["-Wl,--as-needed", &library])
}

/// Weak references, of the program and of a library whose constructor is the first to ask, and `dlsym`, for every traced
/// function.
#[test]
fn what_is_not_there_is_not_found() {
    // Pointers that stay writable, that are protected before the library is, and at addresses as prelinked ones have, below
    // and above the place to which the library is loaded.
    for option in ["norelro", "relro,-z,now", "now,-Ttext-segment=0x40000000", "now,-Ttext-segment=0x7000000000000000"]
    {
        nothing_else_is_found(&program(&format!("-Wl,-z,{option}")));
    }
}

fn nothing_else_is_found(program: &Program) {
    // The last ones came to libc after 2.28: where it is older, no library that the program opens has them.
    let later = ["_Fork@GLIBC_2.34", "execveat@GLIBC_2.34", "pidfd_spawn@GLIBC_2.39", "pidfd_spawnp@GLIBC_2.39"];
    let names = || spec::FUNCTIONS.iter().filter_map(|function| function.symbol.split('@').next()).chain(later);
    let test = TestDirectory::new("weak");
    let native = test.native(program).args(names()).run();
    native.success();
    for events in ["", "thread"] {
        let test = TestDirectory::new("weak");
        let traced = test.traced(program).args(names()).env("THR_TRACE_EVENTS", events).run();
        traced.success();
        assert_same_lines(traced.stdout_text(), native.stdout_text(), format_args!("with the events '{events}'"));
    }
    // The program is one without libpthread where there are such programs.
    let is_split = glibc::chosen().is_some_and(|glibc| glibc.has_libpthread());
    assert_eq!(native.stdout_text().contains("program: no pthread_once"), is_split, "{}", native.stdout_text());
}

/// A plugin brings libpthread into a program without it: what it calls is recorded like that of any program.
#[test]
fn what_is_opened_later_is_recorded() {
    let plugin = Program::with_flags("lifecycle/weak.c", &["-shared", "-fPIC", "-DPLUGIN"]);
    let program = program("-Wl,-z,now");
    let test = TestDirectory::new("weak-plugin");
    let native = test.native(&program).arg("open").arg(&plugin).run();
    native.success();
    let traced = test.traced(&program).arg("open").arg(&plugin).run();
    traced.success();
    assert_eq!(traced.stdout_text(), native.stdout_text());
    let trace = test.merged();
    assert_eq!(trace.of("thr_create").len(), 2);
    assert_eq!(trace.of("thr_begin").len(), 1);
    // That a mutex is recursive, and its depth, are read from glibc's object, whose layout was tried once more.
    let depths: Vec<&str> = trace
        .of("rmutex_lock")
        .iter()
        .filter(|record| record.fields.which == 2)
        .map(|record| record.arguments()[2])
        .collect();
    assert_eq!(depths, ["1", "2"]);
}
