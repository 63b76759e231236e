//! What somebody else has put into the trace directory under the names of our files.
//!
//! A directory that is open to all, as `/tmp` is, belongs to nobody who could be trusted. Pipes, sockets, devices, links
//! and other users' files are left alone: no call waits for them, nothing is read from them or written to them, and what
//! cannot be recorded because of them is reported once.

use std::ffi::CString;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _, chown, lchown, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use spec::names::FileName;

use super::super::harness::{CommandOutput, TestDirectory, realtime_offset};
use super::directory::{open_to_all, privileged};
use super::{DONE, account, steps, words};

/// The user whose program is recorded.
const NOBODY: u32 = 65534;
/// The user who has put the files there.
const ATTACKER: u32 = 4711;

const PAIRS: usize = 100;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Planted {
    Pipe,
    Socket,
    Device,
    SymbolicLink,
    /// To a file of the program's user.
    HardLink,
    OthersFile,
    Directory,
}

const ALL: [Planted; 7] = [
    Planted::Pipe,
    Planted::Socket,
    Planted::Device,
    Planted::SymbolicLink,
    Planted::HardLink,
    Planted::OthersFile,
    Planted::Directory,
];

impl Planted {
    /// Puts it at `path`. The links lead to `target`, and the file has the text of that.
    fn put(self, path: &Path, target: &Path) {
        let node = |mode: libc::mode_t, device: libc::dev_t| {
            let path = CString::new(path.as_os_str().as_bytes()).unwrap();
            // SAFETY: the path is NUL-terminated.
            assert_eq!(unsafe { libc::mknod(path.as_ptr(), mode | 0o666, device) }, 0);
        };
        match self {
            Planted::Pipe => node(libc::S_IFIFO, 0),
            Planted::Socket => drop(UnixListener::bind(path).unwrap()),
            // What reading and writing a terminal would do to the program could not be noticed here; /dev/full's can.
            Planted::Device => node(libc::S_IFCHR, libc::makedev(1, 7)),
            Planted::SymbolicLink => symlink(target, path).unwrap(),
            Planted::HardLink => fs::hard_link(target, path).unwrap(),
            Planted::OthersFile => drop(fs::copy(target, path).unwrap()),
            Planted::Directory => fs::create_dir(path).unwrap(),
        }
        if self == Planted::HardLink {
            return;
        }
        lchown(path, Some(ATTACKER), None).unwrap();
        if self != Planted::SymbolicLink {
            fs::set_permissions(path, fs::Permissions::from_mode(0o777)).unwrap();
        }
    }

    /// Whether it stands at `path`, as it was put there.
    fn is_at(self, path: &Path) -> bool {
        let Ok(metadata) = fs::symlink_metadata(path) else { return false };
        let kind = metadata.file_type();
        match self {
            Planted::Pipe => kind.is_fifo(),
            Planted::Socket => kind.is_socket(),
            Planted::Device => kind.is_char_device(),
            Planted::SymbolicLink => kind.is_symlink(),
            Planted::HardLink => metadata.nlink() == 2,
            Planted::OthersFile => kind.is_file() && metadata.uid() == ATTACKER,
            Planted::Directory => kind.is_dir(),
        }
    }
}

/// The result of a program in whose trace directory a file of this name was planted.
struct Run {
    output: CommandOutput,
    /// Where the file was planted.
    path: PathBuf,
    /// What the links led to still has its text.
    target_unchanged: bool,
}

/// Runs a program of another user than root in a directory of this mode, in which `planted` has the name that `name` has
/// for the program's process ID. `text` is what the file, or that behind the link, contains.
fn run(test: &TestDirectory, planted: Planted, mode: u32, text: &str, name: impl Fn(u32) -> FileName) -> Run {
    run_with(test, planted, mode, text, name, "")
}

/// As [`run`], with a THR_TRACE_MAX.
fn run_with(
    test: &TestDirectory,
    planted: Planted,
    mode: u32,
    text: &str,
    name: impl Fn(u32) -> FileName,
    max: &str,
) -> Run {
    open_to_all(test);
    fs::set_permissions(test.trace_directory(), fs::Permissions::from_mode(mode)).unwrap();
    // The program begins when the file has been planted under the name that its process ID makes.
    // setpriv is not recorded: a recorded one would make a directory of the new user's own.
    let script = "until [ -e ../go ]; do sleep 0.01; done; exec env -u LD_PRELOAD \
                  setpriv --reuid=65534 --regid=65534 --clear-groups env LD_PRELOAD=\"$LD_PRELOAD\" \"$@\"";
    let command = test.traced("sh").current_dir(test.trace_directory()).args(["-c", script, "sh"]).arg(steps());
    let command = command.args(words(&format!("pairs {PAIRS}"))).env("THR_TRACE_EVENTS", "mutex").noise_expected();
    let command = if max.is_empty() { command } else { command.env("THR_TRACE_MAX", max) };
    let running = command.spawn();
    let target = test.directory().join("target");
    fs::write(&target, text).unwrap();
    chown(&target, Some(NOBODY), None).unwrap();
    fs::set_permissions(&target, fs::Permissions::from_mode(0o600)).unwrap();
    let (bytes, length) = name(running.pid()).text();
    let path = test.trace_directory().join(std::str::from_utf8(&bytes[..length]).unwrap());
    planted.put(&path, &target);
    fs::write(test.directory().join("go"), "").unwrap();
    let output = running.wait();
    output.exited(DONE);
    let target_unchanged = fs::read_to_string(&target).unwrap() == text;
    Run { output, path, target_unchanged }
}

/// Fails unless the library printed exactly one line, with all of these texts in it.
#[track_caller]
fn reports(planted: Planted, run: &Run, texts: [&str; 2]) {
    let noise = run.output.noise();
    assert!(noise.len() == 1 && texts.iter().all(|text| noise[0].contains(text)), "{planted:?}: {noise:#?}");
}

/// How many records trace-cat finds. What it prints about the planted files is not of interest here, but that it ends.
#[track_caller]
fn records(test: &TestDirectory) -> usize {
    let output = test.trace_cat().run();
    assert!(matches!(output.status.code(), Some(0 | 1)), "{output:?}");
    let trace = super::super::harness::Trace::parse("trace-cat", &output.stdout);
    account(&trace).records
}

#[test]
fn a_count_that_somebody_else_has_put_there_is_not_used() {
    for planted in ALL {
        let test = TestDirectory::new("planted-count");
        if !privileged(&test) {
            return;
        }
        // The directory would be full.
        let run = run_with(&test, planted, 0o1777, &"\0".repeat(8192), |_| FileName::Control, "8M/dir");
        reports(planted, &run, ["'trctl' is not used: ", "counts this process alone"]);
        assert!(planted.is_at(&run.path) && run.target_unchanged, "{planted:?}");
        assert_eq!(records(&test), 3 * PAIRS, "{planted:?}");
    }
}

#[test]
fn a_clock_that_somebody_else_has_put_there_is_not_used() {
    for planted in ALL {
        let test = TestDirectory::new("planted-clock");
        if !privileged(&test) {
            return;
        }
        // A clock that would be adopted if it were one's own: of this boot, and nearly right.
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
        let offset = realtime_offset() + 700_000_000;
        let text = format!("boot_id {}\noffset {offset}\n", boot.trim_end());
        let run = run(&test, planted, 0o1777, &text, |_| FileName::Clock);
        reports(planted, &run, ["trclock' is not used: ", ""]);
        assert!(planted.is_at(&run.path) && run.target_unchanged, "{planted:?}");
        assert_eq!(records(&test), 3 * PAIRS, "{planted:?}");
        let (name, length) = FileName::Info(0).text();
        let prefix = std::str::from_utf8(&name[..length]).unwrap().split('.').next().unwrap();
        let info = fs::read_dir(test.trace_directory()).unwrap().map(|entry| entry.unwrap().path());
        let info = info.filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with(prefix));
        let text = fs::read(info.last().unwrap()).unwrap();
        let used = spec::info::number(&text, "offset").unwrap();
        assert!(used.abs_diff(offset) > 300_000_000, "{planted:?}: the planted offset was used");
    }
}

#[test]
fn buffers_that_somebody_else_has_put_there_are_not_used() {
    for planted in ALL {
        let test = TestDirectory::new("planted-trbuf");
        if !privileged(&test) {
            return;
        }
        let run = run(&test, planted, 0o1777, "", FileName::Buffers);
        reports(planted, &run, ["cannot write a trace to '", "nothing is recorded"]);
        assert!(planted.is_at(&run.path) && run.target_unchanged, "{planted:?}");
        assert_eq!(records(&test), 0, "{planted:?}");
    }
}

#[test]
fn an_info_file_that_somebody_else_has_put_there_is_not_used() {
    for planted in ALL {
        let test = TestDirectory::new("planted-trinfo");
        if !privileged(&test) {
            return;
        }
        let run = run(&test, planted, 0o1777, "start 1\n", FileName::Info);
        assert!(run.target_unchanged, "{planted:?}");
        if planted == Planted::HardLink {
            // It is the program's user's own, so that it can be renamed.
            assert_eq!((run.output.noise().len(), planted.is_at(&run.path)), (0, false));
        } else {
            reports(planted, &run, ["trinfo.", "' is not used: "]);
            assert!(planted.is_at(&run.path), "{planted:?}");
        }
        assert_eq!(records(&test), 3 * PAIRS, "{planted:?}");
    }
}

/// The records stay in the buffers, where trace-cat finds them.
#[test]
fn a_record_file_that_somebody_else_has_put_there_is_not_used() {
    for planted in ALL {
        let test = TestDirectory::new("planted-tr");
        if !privileged(&test) {
            return;
        }
        let run = run(&test, planted, 0o1777, "", |pid| FileName::records(pid, pid));
        assert!(run.target_unchanged, "{planted:?}");
        if planted == Planted::HardLink {
            assert_eq!((run.output.noise().len(), planted.is_at(&run.path)), (0, false));
        } else {
            reports(planted, &run, ["cannot write to the trace in '", ""]);
            assert!(planted.is_at(&run.path), "{planted:?}");
        }
        assert_eq!(records(&test), 3 * PAIRS, "{planted:?}");
    }
}

/// Where everybody may rename everything, what is in the way is renamed, and nothing is missing.
#[test]
fn what_is_in_the_way_is_renamed() {
    for planted in ALL {
        for name in [|pid| FileName::records(pid, pid), FileName::Info] {
            let test = TestDirectory::new("planted-renamed");
            if !privileged(&test) {
                return;
            }
            let run = run(&test, planted, 0o777, "", name);
            assert_eq!((run.output.noise().len(), run.target_unchanged), (0, true), "{planted:?}: {:?}", run.output);
            let old = run.path.with_file_name(format!("old.0.{}", run.path.file_name().unwrap().to_str().unwrap()));
            assert!(planted.is_at(&old), "{planted:?}: {}", old.display());
            assert_eq!(records(&test), 3 * PAIRS, "{planted:?}");
        }
    }
}
