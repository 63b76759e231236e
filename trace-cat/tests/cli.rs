//! trace-cat as a command: exit statuses, output, and messages.

#[path = "cli/commands.rs"]
mod commands;
#[path = "cli/ctf.rs"]
mod ctf;
#[path = "cli/follow.rs"]
mod follow;
#[path = "cli/formats.rs"]
mod formats;
#[path = "cli/hostile.rs"]
mod hostile;
#[path = "cli/hosts.rs"]
mod hosts;
#[path = "cli/pager.rs"]
mod pager;
#[path = "cli/paje.rs"]
mod paje;
#[path = "cli/parquet.rs"]
mod parquet;
#[path = "cli/progress.rs"]
mod progress;
#[path = "cli/recover.rs"]
mod recover;
#[path = "cli/report.rs"]
mod report;
#[path = "cli/rings.rs"]
mod rings;
#[path = "cli/selection.rs"]
mod selection;
#[path = "cli/stacks.rs"]
mod stacks;
#[path = "../src/testing/trbuf_image.rs"]
#[expect(dead_code, reason = "the unit tests use more of it")]
mod trbuf_image;

use std::fs;
use std::io::{Seek, SeekFrom, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use tempfile::TempDir;

const FIRST: &str = "1795174740:000000001:0000002:0000001:0x7fc5de3f86c0:02:02:1:0x559469ed90a0:0:0:0:0\n";
const SECOND: &str = "1795174740:000000002:0000003:0000001:0x7fc5de3f86c0:02:04:0:0x559469ed90a0:0:0:0:0\n";

fn trace() -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("tr.0000001.002"), FIRST).unwrap();
    fs::write(directory.path().join("tr.0000001.003"), SECOND).unwrap();
    directory
}

fn command(directory: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_trace-cat"));
    command.current_dir(directory).env_remove("THR_TRACE_DIR").env_remove("RUST_LOG");
    command
}

/// Starts the command with pipes for its standard input, output and error.
fn spawn(directory: &Path, arguments: &[&str]) -> Child {
    let mut command = command(directory);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // A shell starts what runs in its background with these signals ignored, and nohup, the tests perhaps, too.
    let as_usual = || {
        for signal in [libc::SIGINT, libc::SIGHUP] {
            // SAFETY: signal() may be called in a forked child, and takes no pointer but this constant.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
        }
        Ok(())
    };
    // SAFETY: it only calls signal().
    unsafe { command.pre_exec(as_usual) };
    command.spawn().unwrap()
}

fn run(directory: &Path, arguments: &[&str]) -> Output {
    command(directory).args(arguments).output().unwrap()
}

#[track_caller]
fn assert_output(output: &Output, status: i32, out: &str, error: &str) {
    assert_eq!(String::from_utf8_lossy(&output.stdout), out);
    assert_eq!(String::from_utf8_lossy(&output.stderr), error);
    assert_eq!(output.status.code(), Some(status));
}

#[test]
fn the_working_directory_is_the_default() {
    let trace = trace();
    assert_output(&run(trace.path(), &[]), 0, &format!("{FIRST}{SECOND}"), "");
}

#[test]
fn the_environment_names_another_directory() {
    let (trace, elsewhere) = (trace(), tempfile::tempdir().unwrap());
    let output = command(elsewhere.path()).env("THR_TRACE_DIR", trace.path()).output().unwrap();
    assert_output(&output, 0, &format!("{FIRST}{SECOND}"), "");
    let output = command(trace.path()).env("THR_TRACE_DIR", "").output().unwrap();
    assert_output(&output, 0, &format!("{FIRST}{SECOND}"), "");
}

#[test]
fn damage_is_status_1_and_undamaged_records_are_printed() {
    let trace = trace();
    fs::write(trace.path().join("tr.0000001.004"), "rubbish\n").unwrap();
    let message = "trace-cat: ./tr.0000001.004:1: not a record: the line ends in time1\n";
    assert_output(&run(trace.path(), &["."]), 1, &format!("{FIRST}{SECOND}"), message);
    let message = "trace-cat: none: No such file or directory\n";
    assert_output(&run(trace.path(), &["none", "tr.0000001.002"]), 1, FIRST, message);
}

#[test]
fn a_file_that_is_no_trace_has_one_message() {
    let trace = trace();
    fs::write(trace.path().join("notes"), "not\na\ntrace\n".repeat(1000)).unwrap();
    let message = "trace-cat: notes:1: not a record: the line ends in time1; the file has no record\n";
    assert_output(&run(trace.path(), &["notes", "tr.0000001.002"]), 1, FIRST, message);
}

#[test]
fn a_directory_without_traces_is_status_1() {
    let empty = tempfile::tempdir().unwrap();
    assert_output(&run(empty.path(), &[]), 1, "", "trace-cat: .: no trace here (no file tr.xxxxxxx.yyy)\n");
}

#[test]
fn an_empty_file_is_fine() {
    let trace = trace();
    fs::write(trace.path().join("tr.0000001.004"), "").unwrap();
    assert_output(&run(trace.path(), &["tr.0000001.004"]), 0, "", "");
}

#[test]
fn wrong_usage_is_status_2_and_the_message_names_the_right_word() {
    let trace = trace();
    for (arguments, message) in [
        (&["-e", "mutxe"][..], "'mutex'"),
        (&["-e", "mutex,cnod"], "'cond'"),
        (&["--formt=text"], "'--format'"),
        (&["-F", "jsn"], "'json'"),
        (&["--time", "abs"], "--time is for -F text"),
        (&["--color", "always", "-F", "csv"], "--color is for -F text"),
        (&["--calls", "-F", "csv"], "--calls is for -F json"),
        (&["--recover", "-o", "out"], "--recover"),
    ] {
        let output = run(trace.path(), arguments);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0));
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(error.starts_with("trace-cat: ") && error.contains(message), "{error}");
    }
}

#[test]
fn output_goes_to_a_file_but_never_to_an_input() {
    let trace = trace();
    assert_output(&run(trace.path(), &["-o", "merged"]), 0, "", "");
    assert_eq!(fs::read_to_string(trace.path().join("merged")).unwrap(), format!("{FIRST}{SECOND}"));
    fs::hard_link(trace.path().join("tr.0000001.002"), trace.path().join("link")).unwrap();
    fs::write(trace.path().join("trbuf.0000001"), "").unwrap();
    for name in ["tr.0000001.002", "link", "trbuf.0000001"] {
        let output = run(trace.path(), &["-o", name]);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{name}");
    }
    let appended = fs::OpenOptions::new().append(true).open(trace.path().join("link")).unwrap();
    let output = command(trace.path()).stdout(appended).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(fs::read_to_string(trace.path().join("link")).unwrap(), FIRST);
    let message = "trace-cat: none/out: No such file or directory\n";
    assert_output(&run(trace.path(), &["-o", "none/out"]), 1, "", message);
    let message = "trace-cat: /dev/full: No space left on device\n";
    assert_output(&run(trace.path(), &["-o", "/dev/full"]), 1, "", message);
}

#[test]
fn a_closed_pipe_is_a_silent_end() {
    let trace = trace();
    fs::write(trace.path().join("tr.0000001.004"), SECOND.repeat(50_000)).unwrap();
    let mut child = spawn(trace.path(), &[]);
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_output(&output, 0, "", "");
}

#[test]
fn a_closed_pipe_hides_no_damage() {
    let trace = trace();
    fs::write(trace.path().join("tr.0000001.004"), format!("rubbish\n{}", SECOND.repeat(50_000))).unwrap();
    let mut child = spawn(trace.path(), &[]);
    drop(child.stdout.take());
    let message = "trace-cat: ./tr.0000001.004:1: not a record: the line ends in time1\n";
    assert_output(&child.wait_with_output().unwrap(), 1, "", message);
}

/// A socket cannot be opened by its path in `/proc`, and the file of another user may not be.
#[test]
fn the_standard_input_is_read_by_its_descriptor() {
    let trace = trace();
    let (mut writer, reader) = UnixStream::pair().unwrap();
    reader.set_nonblocking(true).unwrap();
    let reader = OwnedFd::from(reader);
    let child = command(trace.path()).arg("-").stdin(reader).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    writer.write_all(format!("{SECOND}{FIRST}").as_bytes()).unwrap();
    drop(writer);
    assert_output(&child.unwrap().wait_with_output().unwrap(), 0, &format!("{FIRST}{SECOND}"), "");

    // Nobody may open the file, not even root: it has no name.
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(format!("{FIRST}{SECOND}").as_bytes()).unwrap();
    let from = |offset: u64| {
        let mut file = file.try_clone().unwrap();
        file.seek(SeekFrom::Start(offset)).unwrap();
        command(trace.path()).arg("-").stdin(file).output().unwrap()
    };
    assert_output(&from(0), 0, &format!("{FIRST}{SECOND}"), "");
    assert_output(&from(FIRST.len() as u64), 0, SECOND, "");
    assert_output(&from(2 * FIRST.len() as u64), 0, "", "");
}

#[test]
fn the_standard_input_is_read_for_a_dash() {
    let trace = trace();
    let mut child = spawn(trace.path(), &["-"]);
    child.stdin.take().unwrap().write_all(format!("{SECOND}{FIRST}").as_bytes()).unwrap();
    assert_output(&child.wait_with_output().unwrap(), 0, &format!("{FIRST}{SECOND}"), "");
}

#[test]
fn nothing_is_logged_without_rust_log() {
    let trace = trace();
    let output = command(trace.path()).env("RUST_LOG", "info").output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), format!("{FIRST}{SECOND}"));
    assert!(String::from_utf8_lossy(&output.stderr).contains("2 files to merge"));
}

/// Two containers record into one directory at the same time: each one's first process has the number 1.
#[test]
fn processes_of_one_number_are_told_apart_and_reported() {
    let trace = trace();
    let inner = trace.path().join("ns4026531836");
    fs::create_dir(&inner).unwrap();
    fs::write(inner.join("tr.0000001.002"), FIRST).unwrap();
    let info = |start, namespace| {
        let boot = "11111111-8a55-430e-bb95-28c687f883ed";
        format!("host h\nboot_id {boot}\npid 1\nstart {start}\npidns {namespace}\noffset 7\n")
    };
    fs::write(trace.path().join("trinfo.0000001"), info(5, 7)).unwrap();
    fs::write(inner.join("trinfo.0000001"), info(6, 4_026_531_836_u64)).unwrap();
    let message = "trace-cat: hosts h, h/ns4026531836: they have one clock; 1 process is shown with another ID, since its own is \
                   also another host's; --hosts shows more\n";
    let renumbered = FIRST.replace(":0000001:0x7fc5", ":9999999:0x7fc5");
    let output = run(trace.path(), &[]);
    let mut lines: Vec<&str> = std::str::from_utf8(&output.stdout).unwrap().split_inclusive('\n').collect();
    lines.sort_by_key(|line| (&line[..20], &line[29..36]));
    assert_eq!((lines, &*String::from_utf8_lossy(&output.stderr)), (vec![FIRST, &renumbered, SECOND], message));
    let stat = run(trace.path(), &["--stat"]);
    assert!(String::from_utf8_lossy(&stat.stdout).contains("\nprocesses  2, "), "{stat:?}");
    assert_eq!(String::from_utf8_lossy(&stat.stderr), message);
    assert_output(&run(trace.path(), &["ns4026531836"]), 0, FIRST, "");
    let all = format!("{FIRST}{FIRST}{SECOND}");
    let with_hosts = "trace-cat: hosts h, h/ns4026531836: they have one clock; --hosts shows more\n";
    // One process with files in both directories is one.
    fs::write(inner.join("trinfo.0000001"), info(5, 7)).unwrap();
    assert_output(&run(trace.path(), &[]), 0, &all, with_hosts);
    // Without a trinfo nothing tells them apart.
    fs::remove_file(inner.join("trinfo.0000001")).unwrap();
    assert_output(&run(trace.path(), &[]), 0, &all, "");
}
