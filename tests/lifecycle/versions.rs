//! Versions of functions: whoever asks for one gets it, in whatever way.

use super::super::harness::{Program, TestDirectory};

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
