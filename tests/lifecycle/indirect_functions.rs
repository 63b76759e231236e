//! Functions that the dynamic linker binds by calling a resolver (IFUNC): those of a library before this one is relocated.

use super::super::harness::{Program, TestDirectory};

#[test]
fn resolvers_may_lock() {
    for binding in ["-Wl,-z,now", "-Wl,-z,lazy"] {
        let library = Program::with_flags("lifecycle/indirect.c", &["-shared", "-fPIC", "-DLIBRARY", binding]);
        let library = library.path().to_str().expect("a path of ASCII characters");
        let program = Program::with_flags("lifecycle/indirect.c", &[binding, library]);
        let test = TestDirectory::new("indirect");
        let native = test.native(&program).run();
        native.success();
        for events in ["", "mutex"] {
            let test = TestDirectory::new("indirect");
            let traced = test.traced(&program).env("THR_TRACE_EVENTS", events).run();
            traced.success();
            assert_eq!(traced.stdout_text(), native.stdout_text(), "{binding}, with the events '{events}'");
            if !events.is_empty() {
                // The program is relocated last: what its own resolver and `main` lock is recorded.
                assert_eq!(test.merged().of("mutex_unlock").len(), 2, "{binding}");
            }
        }
    }
}
