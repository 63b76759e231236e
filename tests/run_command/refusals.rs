//! Programs that cannot be recorded, or cannot be executed: one line, a status, and nothing has run.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use super::super::harness::{CommandOutput, Program, TestDirectory, trace_cat};
use super::super::hostile::{open_to_all, privileged};
use super::{entries, started_anywhere};

/// Makes a program of bytes.
fn write(test: &TestDirectory, program: &Path, bytes: &[u8]) {
    let data = test.directory().join("data");
    fs::write(&data, bytes).unwrap();
    test.install(&data, program);
}

/// Fails unless trace-cat refused with this status and a line with these parts, and left nothing behind.
#[track_caller]
fn refused(test: &TestDirectory, output: &CommandOutput, status: i32, parts: &[&str]) {
    output.exited(status);
    let text = output.stderr_text();
    assert!(text.starts_with("trace-cat: ") && text.matches('\n').count() == 1, "{text}");
    assert!(parts.iter().all(|part| text.contains(part)), "{text}: {parts:?}");
    assert_eq!(output.stdout_text(), "");
    assert!(!entries(test).iter().any(|path| path.to_string_lossy().contains(".thr.")), "{:?}", entries(test));
}

#[test]
fn a_static_program() {
    let test = TestDirectory::new("run-static");
    let program = Program::with_flags("run_command/shell.c", &["-static"]).path().to_owned();
    let output = started_anywhere(&test).arg(&program).run();
    refused(&test, &output, 125, &["shell.c-static: is linked statically", "--force"]);
    // Its children may be recorded.
    let output = started_anywhere(&test).arg("--force").arg(&program).arg("true").run();
    output.exited(7);
    let text = output.stderr_text();
    assert!(text.contains("is linked statically") && text.contains(" of records\n"), "{text}");
    // A script is as recordable as its interpreter.
    let script = test.directory().join("script");
    write(&test, &script, format!("#!{}\n", program.display()).as_bytes());
    fs::remove_dir_all(test.directory().join("run_command_shell.c-static.thr.1")).unwrap();
    let output = started_anywhere(&test).arg("./script").run();
    refused(&test, &output, 125, &["shell.c-static: is linked statically"]);
}

#[test]
fn a_program_with_more_rights_than_its_user() {
    let test = TestDirectory::new("run-suid");
    if !privileged(&test) {
        return;
    }
    open_to_all(&test);
    fs::set_permissions(test.directory(), fs::Permissions::from_mode(0o777)).unwrap();
    let [program, cat, library] = ["steps", "trace-cat", "libthreadt.so"].map(|name| test.directory().join(name));
    test.install(Program::c("hostile/steps.c").path(), &program);
    // The build's own directory may be closed to others.
    test.install(&trace_cat(), &cat);
    test.install(&super::super::harness::library(), &library);
    let as_nobody = || {
        let nobody = ["--reuid=65534", "--regid=65534", "--clear-groups"];
        test.native("setpriv").args(nobody).arg(&cat).arg("run").arg(&program).args(["pairs", "10"])
    };
    for (mode, what) in [(0o4755, "is set-user-ID"), (0o2755, "is set-group-ID")] {
        fs::set_permissions(&program, fs::Permissions::from_mode(mode)).unwrap();
        refused(&test, &as_nobody().run(), 125, &["steps", what]);
    }
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    if test.native("setcap").arg("cap_net_raw=ep").arg(&program).run().status.success() {
        refused(&test, &as_nobody().run(), 125, &["steps", "has file capabilities"]);
        test.native("setcap").arg("-r").arg(&program).run().success();
    } else {
        println!("file capabilities cannot be set here");
    }
    as_nobody().run().exited(super::super::hostile::DONE);
    // For its owner, the bit changes nothing.
    fs::set_permissions(&program, fs::Permissions::from_mode(0o4755)).unwrap();
    let output = test.native(&cat).arg("run").arg(&program).args(["pairs", "10"]).run();
    output.exited(super::super::hostile::DONE);
    assert!(output.stderr_text().contains(" of records\n"), "{}", output.stderr_text());
}

/// Such a program is run, with a word about it.
#[test]
fn a_program_whose_locks_are_not_pthreads() {
    let test = TestDirectory::new("run-futex");
    let openmp = Program::with_flags("run_command/openmp.c", &["-fopenmp"]);
    let raw_clone = Program::c("run_command/raw_clone.c");
    for (program, hint) in [
        (openmp, "not all of its locks can be recorded: OpenMP"),
        (raw_clone, "nothing of this program's locking will be seen: "),
    ] {
        let output = started_anywhere(&test).arg(&program).run();
        output.success();
        let first = output.stderr_text().lines().next().unwrap();
        assert!(first.contains(hint), "{first}");
    }
    // The standard library of Rust locks by syscall().
    for program in [trace_cat(), "true".into(), Program::c("hostile/steps.c").path().to_owned()] {
        let output = started_anywhere(&test).arg(&program).arg("--version").run();
        assert!(!output.stderr_text().contains("lock"), "{}", output.stderr_text());
    }
}

/// As java: a link to a program that finds its libraries beside itself, which lock.
#[test]
fn a_program_by_a_link_has_its_libraries_beside_it() {
    let test = TestDirectory::new("run-origin");
    let path = |name: &str| test.directory().join(name);
    fs::create_dir(path("program")).unwrap();
    let [source, library, program] = ["locks.c", "program/liblocks.so", "program/linked"].map(path);
    fs::write(&source, "#include <pthread.h>\nint lock(pthread_mutex_t *m) { return pthread_mutex_lock(m); }\n")
        .unwrap();
    test.native("gcc")
        .args(["-shared", "-fPIC", "-Wl,-soname,liblocks.so", "-o"])
        .arg(&library)
        .arg(&source)
        .run()
        .success();
    let raw_clone = Path::new(env!("CARGO_MANIFEST_DIR")).join("programs/run_command/raw_clone.c");
    let compiled = test.native("gcc").arg("-o").arg(&program).arg(raw_clone).arg("-Wl,--no-as-needed").arg(&library);
    compiled.arg("-Wl,-rpath,$ORIGIN").run().success();
    std::os::unix::fs::symlink(&program, path("link")).unwrap();
    let output = started_anywhere(&test).arg("./link").run();
    assert!(!output.stderr_text().contains("lock"), "{}", output.stderr_text());
}

#[test]
fn a_program_of_another_machine_or_libc() {
    let test = TestDirectory::new("run-foreign");
    let program = test.directory().join("program");
    let original = fs::read(Program::c("hostile/steps.c").path()).unwrap();
    let with = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = original.clone();
        change(&mut bytes);
        write(&test, &program, &bytes);
        started_anywhere(&test).arg("./program").run()
    };
    let linker = |name: &'static [u8]| {
        move |bytes: &mut Vec<u8>| {
            let at = memchr::memmem::find(bytes, b"/lib64/ld-linux-x86-64.so.2\0").expect("a program of glibc's");
            bytes[at..at + name.len()].copy_from_slice(name);
        }
    };
    // e_machine is at byte 18, e_ident's class at byte 4.
    refused(&test, &with(&|bytes| bytes[18] = 183), 125, &["aarch64", "libthreadt.so is for x86-64"]);
    refused(&test, &with(&|bytes| bytes[4] = 1), 125, &["x32"]);
    refused(&test, &with(&linker(b"/nonexistent/ld-musl.so.1\0")), 127, &["/nonexistent/ld-musl.so.1 is not there"]);
    refused(&test, &with(&linker(b"/bin/true\0")), 125, &["another C library (/bin/true)"]);
}

#[test]
fn a_program_that_is_not_there_or_not_one() {
    let test = TestDirectory::new("run-missing");
    fs::write(test.directory().join("data"), "data").unwrap();
    for (program, status, why) in [
        ("no-such-program", 127, "no-such-program: not found in PATH"),
        ("./none", 127, "./none: No such file or directory"),
        ("./data", 126, "./data: Permission denied"),
        ("./trace", 126, "./trace: Is a directory"),
    ] {
        refused(&test, &started_anywhere(&test).arg(program).run(), status, &[why]);
    }
    let script = test.directory().join("script");
    write(&test, &script, b"#!/nonexistent/sh\n");
    refused(&test, &started_anywhere(&test).arg("./script").run(), 127, &["its interpreter /nonexistent/sh"]);
}

#[test]
fn a_library_that_is_not_there() {
    let test = TestDirectory::new("run-library");
    let output = started_anywhere(&test).args(["--library", "none.so", "true"]).run();
    refused(&test, &output, 125, &["none.so: No such file or directory"]);
    let output = started_anywhere(&test).arg("true").env("THREADT_LIBRARY", "/bin/none").run();
    refused(&test, &output, 125, &["/bin/none: No such file or directory"]);
    let alone = test.directory().join("trace-cat");
    test.install(&trace_cat(), &alone);
    let output = test.native(&alone).args(["run", "true"]).run();
    refused(&test, &output, 125, &["libthreadt.so is neither in", "THREADT_LIBRARY"]);
    let output =
        test.native(&alone).args(["run", "true"]).env("THREADT_LIBRARY", super::super::harness::library()).run();
    output.success();
}

#[test]
fn a_directory_that_cannot_be_written() {
    let test = TestDirectory::new("run-directory");
    for (directory, why) in
        [("none/trace", "none/trace: cannot be made: No such file"), ("/proc", "/proc: "), ("/dev/null", "/dev/null: ")]
    {
        let output = started_anywhere(&test).args(["-d", directory, "touch", "ran"]).run();
        refused(&test, &output, 125, &[why]);
    }
    assert!(!Path::new(test.directory()).join("ran").exists());
    if !privileged(&test) {
        return;
    }
    fs::set_permissions(test.directory(), fs::Permissions::from_mode(0o755)).unwrap();
    let cat = test.directory().join("trace-cat");
    test.install(&trace_cat(), &cat);
    test.install(&super::super::harness::library(), &test.directory().join("libthreadt.so"));
    let nobody = ["--reuid=65534", "--regid=65534", "--clear-groups"];
    let output = test.native("setpriv").args(nobody).arg(&cat).args(["run", "true"]).run();
    refused(&test, &output, 125, &["true.thr.1: cannot be made: Permission denied"]);
    let output = test.native("setpriv").args(nobody).arg(&cat).args(["run", "-d", "trace", "true"]).run();
    refused(&test, &output, 125, &["trace: no file can be made there: Permission denied"]);
}
