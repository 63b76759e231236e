//! Programs that run with more rights than their user has (AT_SECURE).

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use super::super::harness::{Program, TestCommand, TestDirectory, library};
use super::directory::{open_to_all, privileged};

/// The environment is the user's, the rights are not: a file in a directory of the user's choice would be a gift to
/// whoever attacks the program. ld.so drops LD_PRELOAD there; so the program is linked to the library.
#[test]
fn a_set_user_id_program_is_not_recorded() {
    let test = TestDirectory::new("suid");
    if !privileged(&test) {
        return;
    }
    open_to_all(&test);
    // A place that others may read: the build's own directory may be closed to them.
    let own_library = test.directory().join("libthreadt.so");
    fs::copy(library(), &own_library).unwrap();
    let directory = own_library.parent().unwrap().display().to_string();
    let program = test.directory().join("privileged");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("programs/hostile/privileged.c");
    let compiled = test.native("gcc").args(["-Wall", "-Wextra", "-Werror", "-pthread", "-fno-builtin", "-o"]);
    let compiled = compiled.arg(&program).arg(source).arg("-Wl,--no-as-needed").arg(&own_library);
    compiled.arg(format!("-Wl,-rpath,{directory}")).run().success();

    let as_nobody = |privileges: &str| -> TestCommand<'_> {
        let run = test.native("setpriv").args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(&program);
        run.arg(privileges).env("THR_TRACE_DIR", test.trace_directory()).env("THR_TRACE_EVENTS", "mutex:nonsense")
    };
    let made = || fs::read_dir(test.trace_directory()).unwrap().count();
    for mode in [0o4755, 0o2755] {
        fs::set_permissions(&program, fs::Permissions::from_mode(mode)).unwrap();
        let output = as_nobody("secure").run();
        output.success();
        assert_eq!((output.stderr_text(), made()), ("", 0), "mode {mode:o}");
    }
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let set_capability = |capability: &str| test.native("setcap").arg(capability).arg(&program).run().status.success();
    if test.native("sh").args(["-c", "command -v setcap"]).run().status.success() && set_capability("cap_net_raw+ep") {
        let output = as_nobody("secure").run();
        output.success();
        assert_eq!((output.stderr_text(), made()), ("", 0), "file capabilities");
        assert!(set_capability("-r"));
    } else {
        println!("file capabilities cannot be set here");
    }
    // The same program without the rights is recorded: it is they that matter.
    let output = as_nobody("ordinary").noise_expected().run();
    output.success();
    assert_eq!(output.noise().len(), 1, "the unknown category");
    super::assert_complete(&test, 3 * 10);
}

/// Where LD_PRELOAD names the library, at most ld.so's own line about a library that it ignores is printed.
#[test]
fn a_set_user_id_program_ignores_the_preload() {
    let test = TestDirectory::new("suid-preload");
    if !privileged(&test) {
        return;
    }
    open_to_all(&test);
    let program = test.directory().join("steps");
    test.install(Program::c("hostile/steps.c").path(), &program);
    fs::set_permissions(&program, fs::Permissions::from_mode(0o4755)).unwrap();
    let script = "LD_PRELOAD=$library exec \"$0\" pairs 10";
    let run = test.native("setpriv").args(["--reuid=65534", "--regid=65534", "--clear-groups", "sh", "-c", script]);
    let run = run.arg(&program).env("library", library()).env("THR_TRACE_DIR", test.trace_directory());
    run.run().exited(super::DONE);
    assert_eq!(fs::read_dir(test.trace_directory()).unwrap().count(), 0);
}
