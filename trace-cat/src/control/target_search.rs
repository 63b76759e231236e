//! The processes that are meant by process IDs and directories.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use spec::buffer::{Owner, PAGE};
use spec::names::FileName;

use super::controlled_process::ControlledProcess;
use crate::recover::find_trbufs;
use crate::support::diagnostics::{Diagnostics, reason};
use crate::trace::file_handle::open_regular;
use crate::trace::file_names::split_name;
use crate::trace::process_liveness::owner_is_gone;

/// What is wrong with a process that nobody can change.
const NOT_RECORDED: &str =
    "this process is not recorded; one that is to be recorded later has to be started with THR_TRACE_CONTROL=1";
/// The same of one that was recorded before it executed another program.
const EXECUTES: &str = "this process executes another program, which has recorded nothing so far";

/// How often such a process is asked again, and after which time.
const ASKED_AGAIN: u32 = 200;
const PAUSE: Duration = Duration::from_millis(5);

/// The processes that `targets` stand for: process IDs, or directories. Reports IDs for which there is none.
pub fn find(targets: &[PathBuf], diagnostics: &Diagnostics) -> Vec<ControlledProcess> {
    find_each(targets, None, diagnostics)
}

/// The same; also directories for which there is none are reported.
pub fn find_to_change(targets: &[PathBuf], diagnostics: &Diagnostics) -> Vec<ControlledProcess> {
    find_each(targets, Some("no running process records here"), diagnostics)
}

fn find_each(targets: &[PathBuf], if_empty: Option<&str>, diagnostics: &Diagnostics) -> Vec<ControlledProcess> {
    let mut found: Vec<ControlledProcess> = Vec::new();
    for target in targets {
        let pid = target.to_str().and_then(|text| text.parse::<u32>().ok());
        if pid.is_none() && target.is_file() && !is_current_trbuf(target) {
            diagnostics.report_damage(target.display(), "is neither a process ID nor the directory of a trace");
            continue;
        }
        let trbufs = match pid {
            Some(pid) => trbufs_also_after_exec(pid),
            None => Ok(find_trbufs(std::slice::from_ref(target), diagnostics)),
        };
        let trbufs = match trbufs {
            Ok(trbufs) => trbufs,
            Err(error) if pid.is_some() && error.kind() == io::ErrorKind::NotFound => {
                diagnostics.report_damage(target.display(), "there is no process of this ID");
                continue;
            }
            Err(error) => {
                diagnostics.report_damage(target.display(), reason(&error));
                continue;
            }
        };
        let mut refusals = Vec::new();
        let mut is_empty = true;
        for path in trbufs.into_iter().filter(|path| is_current_trbuf(path)) {
            match ControlledProcess::find(path.clone(), pid.is_none()) {
                Ok(Some(process)) => {
                    is_empty = false;
                    if !found.iter().any(|known| known.path == path) {
                        found.push(process);
                    }
                }
                Ok(None) => {}
                Err(error) => refusals.push((path, error)),
            }
        }
        for (path, error) in &refusals {
            diagnostics.report_damage(path.display(), reason(error));
        }
        // What is no directory has been reported.
        let if_empty = match pid {
            Some(pid) if has_left_trbuf(&Path::new("/proc").join(pid.to_string())) => Some(EXECUTES),
            Some(_) => Some(NOT_RECORDED),
            None => if_empty.filter(|_| target.is_dir()),
        };
        if let Some(what) = if_empty.filter(|_| is_empty && refusals.is_empty()) {
            diagnostics.report_damage(target.display(), what);
        }
    }
    found
}

/// Whether a file has the name of a trbuf that was not renamed.
fn is_current_trbuf(path: &Path) -> bool {
    matches!(split_name(path), (b"", Some(FileName::Buffers(_))))
}

/// As [`trbufs_of`]. From an exec until the next program's first record, which is soon as a rule, the process has none mapped.
fn trbufs_also_after_exec(pid: u32) -> io::Result<Vec<PathBuf>> {
    let process = Path::new("/proc").join(pid.to_string());
    for _ in 0..ASKED_AGAIN {
        let trbufs = trbufs_of(pid)?;
        if !trbufs.is_empty() || !(is_within_exec(&process) || has_left_trbuf(&process)) {
            return Ok(trbufs);
        }
        sleep(PAUSE);
    }
    trbufs_of(pid)
}

/// Whether the kernel may just be giving the process its next program: it has no environment then, as few programs have.
fn is_within_exec(process: &Path) -> bool {
    // One that has ended has no program.
    process.join("exe").read_link().is_ok()
        && fs::read(process.join("environ")).is_ok_and(|environment| environment.is_empty())
}

/// Whether the directory that the process's environment names has a trbuf of this process.
fn has_left_trbuf(process: &Path) -> bool {
    let number = fs::read_to_string(process.join("status")).and_then(|status| own_number(&status));
    let (Ok(environment), Ok(number)) = (fs::read(process.join("environ")), number) else { return false };
    let variable = environment.split(|&byte| byte == 0).find_map(|text| text.strip_prefix(b"THR_TRACE_DIR="));
    let wanted = Path::new(OsStr::from_bytes(variable.unwrap_or(b".")));
    // As the process sees it.
    let directory = match wanted.strip_prefix("/") {
        Ok(path) => process.join("root").join(path),
        Err(_) => process.join("cwd").join(wanted),
    };
    let is_own = |path: &PathBuf| split_name(path).1 == Some(FileName::buffers(number)) && is_of_living(path, number);
    find_trbufs(&[directory], &Diagnostics::new(|_| {})).iter().any(is_own)
}

/// Whether the owner of a trbuf has this ID and has not ended.
fn is_of_living(trbuf: &Path, number: u32) -> bool {
    let mut page = [0; PAGE];
    let Ok(file) = open_regular(trbuf) else { return false };
    let owner = file.read_exact_at(&mut page, 0).ok().and_then(|()| Owner::parse(&page).ok());
    owner.is_some_and(|owner| owner.pid == number && owner_is_gone(&file, &owner) == Some(false))
}

/// The trbufs that the process `pid` has mapped and that are its own.
fn trbufs_of(pid: u32) -> io::Result<Vec<PathBuf>> {
    let process = Path::new("/proc").join(pid.to_string());
    let maps = fs::read_to_string(process.join("maps"))?;
    let status = fs::read_to_string(process.join("status"))?;
    if status.lines().any(|line| line.starts_with("State:\tZ") || line.starts_with("State:\tX")) {
        return Err(io::Error::other("this process has ended"));
    }
    let number = own_number(&status)?;
    let mut paths = Vec::new();
    for path in maps.lines().filter_map(|line| Some(Path::new(&line[line.find('/')?..]))) {
        // A child that has recorded nothing yet may have its parent's.
        if split_name(path).1 == Some(FileName::buffers(number)) {
            // As the process sees it: it may have another root.
            let seen = process.join("root").join(path.strip_prefix("/").unwrap_or(path));
            let path = if path.exists() { path.to_owned() } else { seen };
            if !paths.contains(&path) {
                paths.push(path);
            }
        }
    }
    Ok(paths)
}

/// The ID by which a process knows itself, in its own PID namespace, by its `status`.
fn own_number(status: &str) -> io::Result<u32> {
    let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:")).unwrap_or_default();
    let number = numbers.split_whitespace().next_back().and_then(|number| number.parse().ok());
    number.ok_or_else(|| io::Error::other("its process ID is not known"))
}
