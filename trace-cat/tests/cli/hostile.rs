//! Hostile directories, descriptors and limits.

use std::ffi::CString;
use std::fs;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use super::{FIRST, SECOND, assert_output, command, run, trace};

/// Makes a named pipe, to which nobody writes.
fn make_pipe(path: &Path) {
    let path = CString::new(path.as_os_str().as_bytes()).unwrap();
    // SAFETY: mkfifo reads the path, which is a NUL-terminated string that outlives the call.
    assert_eq!(unsafe { libc::mkfifo(path.as_ptr(), 0o600) }, 0);
}

/// Runs the command after `change` in its process.
fn run_after(directory: &Path, arguments: &[&str], change: fn() -> bool) -> Output {
    let mut command = command(directory);
    let changed = move || if change() { Ok(()) } else { Err(std::io::Error::last_os_error()) };
    // SAFETY: the closure makes one system call and reads errno, which is safe between fork and exec.
    unsafe { command.args(arguments).pre_exec(changed) }.output().unwrap()
}

fn set_limit(resource: libc::__rlimit_resource_t, value: u64) -> bool {
    let limit = libc::rlimit { rlim_cur: value, rlim_max: value };
    // SAFETY: setrlimit reads one rlimit from the place it is given.
    unsafe { libc::setrlimit(resource, &limit) == 0 }
}

#[test]
fn pipes_loops_and_directories_among_the_files_are_not_read() {
    let trace = trace();
    let path = |name: &str| trace.path().join(name);
    for name in ["tr.0000001.004", "trinfo.0000001", "trbuf.0000001", "trclock", "trinfo.0000003"] {
        make_pipe(&path(name));
    }
    fs::create_dir(path("tr.0000001.005")).unwrap();
    symlink("tr.0000001.006", path("tr.0000001.006")).unwrap();
    symlink("/dev/zero", path("tr.0000001.007")).unwrap();
    let records = format!("{FIRST}{SECOND}");
    for (arguments, out) in [(&[][..], Some(&records)), (&["--last"], Some(&records)), (&["--stat"], None)] {
        let output = run(trace.path(), arguments);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(error.contains("tr.0000001.006: Too many levels of symbolic links\n"), "{arguments:?}: {error}");
        assert!(error.contains("trbuf.0000001: not a regular file\n"), "{arguments:?}: {error}");
        assert_eq!(output.status.code(), Some(1));
        assert!(out.is_none_or(|out| output.stdout == out.as_bytes()));
    }
    assert_eq!(run(trace.path(), &["-F", "text"]).stdout.split(|&byte| byte == b'\n').count(), 4);
}

#[test]
fn control_characters_of_a_name_are_escaped() {
    let trace = trace();
    let name = "evil\x1b]0;title\x07\nname";
    fs::write(trace.path().join(name), "rubbish\n").unwrap();
    let shown = "evil\\u{1b}]0;title\\u{7}\\nname";
    let message = format!("trace-cat: {shown}:1: not a record: the line ends in time1\n");
    assert_output(&run(trace.path(), &[name]), 1, "", &message);
    let message = format!("trace-cat: {shown}/x: Not a directory\n");
    assert_output(&run(trace.path(), &["-o", &format!("{name}/x")]), 1, "", &message);
    let output = run(trace.path(), &["--\x1b[2J"]);
    assert!(!output.stderr.contains(&0x1b) && output.stderr.contains(&b'\n'));
}

#[test]
fn a_closed_standard_descriptor_is_reported_when_it_is_needed() {
    let trace = trace();
    // SAFETY: nothing uses the child's descriptor between fork and exec.
    let close_output = || unsafe { libc::close(1) == 0 };
    let message = "trace-cat: standard output: Bad file descriptor\n";
    assert_output(&run_after(trace.path(), &[], close_output), 1, "", message);
    assert_output(&run_after(trace.path(), &["-o", "out"], close_output), 0, "", "");
    assert_eq!(fs::read_to_string(trace.path().join("out")).unwrap(), format!("{FIRST}{SECOND}"));
    // SAFETY: as above.
    let close_input = || unsafe { libc::close(0) == 0 };
    let message = "trace-cat: /dev/stdin: is closed\n";
    assert_output(&run_after(trace.path(), &["-", "tr.0000001.002"], close_input), 1, FIRST, message);
}

#[test]
fn a_file_that_may_not_grow_is_an_error() {
    let trace = trace();
    fs::write(trace.path().join("tr.0000001.004"), SECOND.repeat(100)).unwrap();
    let small = || set_limit(libc::RLIMIT_FSIZE, 4096);
    assert_output(&run_after(trace.path(), &["-o", "out"], small), 1, "", "trace-cat: out: File too large\n");
    let message = "trace-cat: split: lwp.0000003: File too large\n";
    assert_output(&run_after(trace.path(), &["--split", "lwp", "-o", "split"], small), 1, "", message);
}

#[test]
fn six_descriptors_are_enough() {
    let trace = trace();
    fs::write(trace.path().join("tr.0000001.004"), SECOND).unwrap();
    fs::write(trace.path().join("tr.0000001.005"), SECOND).unwrap();
    let six = || set_limit(libc::RLIMIT_NOFILE, 6);
    assert_output(&run_after(trace.path(), &[], six), 0, &format!("{FIRST}{SECOND}{SECOND}{SECOND}"), "");
}

#[test]
fn an_error_of_a_temporary_file_names_the_directory() {
    let trace = trace();
    let mut child = command(trace.path())
        .arg("-")
        .env("TMPDIR", "/nonexistent")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The command may have ended already.
    let _ = child.stdin.take().unwrap().write_all(FIRST.as_bytes());
    let message = "trace-cat: /dev/stdin: temporary file in /nonexistent: No such file or directory\n";
    assert_output(&child.wait_with_output().unwrap(), 1, "", message);
    // More records than are sorted in memory.
    fs::write(trace.path().join("tr.0000001.004"), SECOND.repeat(450_000)).unwrap();
    let output =
        command(trace.path()).args(["--sort", "tid", "-o", "out"]).env("TMPDIR", "/nonexistent").output().unwrap();
    let message = "trace-cat: temporary file in /nonexistent: No such file or directory\n";
    assert_output(&output, 1, "", message);
}

#[test]
fn without_further_threads_one_does_all_work() {
    // The limit of one process is for a user who has none yet, since root is not limited.
    let limited = Command::new("setpriv")
        .args(["--reuid", "64999", "--clear-groups", "prlimit", "--nproc=1"])
        .arg(env!("CARGO_BIN_EXE_trace-cat"))
        .arg("--version")
        .output();
    if !limited.is_ok_and(|output| output.status.success()) {
        println!("not tested: there is no setpriv, or the test does not run as root");
        return;
    }
    let trace = trace();
    let text = SECOND.repeat(100_000);
    fs::write(trace.path().join("tr.0000001.004"), &text).unwrap();
    let output = Command::new("setpriv")
        .args(["--reuid", "64999", "--clear-groups", "prlimit", "--nproc=1"])
        .arg(env!("CARGO_BIN_EXE_trace-cat"))
        .arg("-")
        .env_remove("THR_TRACE_DIR")
        .env_remove("RUST_LOG")
        .stdin(fs::File::open(trace.path().join("tr.0000001.004")).unwrap())
        .output()
        .unwrap();
    assert_output(&output, 0, &text, "");
}
