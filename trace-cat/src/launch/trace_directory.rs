//! Prepares the directory for a program's trace.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::statvfs;
use spec::file_systems::reserved_bytes;

use super::refusal::Refusal;
use crate::support::diagnostics::reason;
use crate::trace::file_names::listed_directory;

/// The `requested` directory, which is made if it does not exist; or else a fresh one below `here`, named after the program:
/// `sort.thr.1`, with the number that follows the highest existing one.
pub fn prepare(requested: Option<&Path>, program: &Path, here: &Path) -> Result<PathBuf, Refusal> {
    let directory = match requested {
        Some(path) => match fs::create_dir(path) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => {
                let what = format_args!("cannot be made: {}", reason(&error));
                return Err(Refusal::own_failure(path, what));
            }
            _ => path.to_owned(),
        },
        None => fresh(program, here)?,
    };
    if !directory.is_dir() {
        return Err(Refusal::own_failure(&directory, "is not a directory"));
    }
    // The mode alone does not decide: for root, on read-only file systems, in /proc.
    tempfile::tempfile_in(&directory).map_err(|error| {
        let what = format_args!("no file can be made there: {}", system_reason(&error));
        Refusal::own_failure(&directory, what)
    })?;
    if is_full(&directory) {
        return Err(Refusal::own_failure(
            &directory,
            "less than 1 GiB of its file system is free, or 5 % if that is less: nothing would be recorded",
        ));
    }
    Ok(directory)
}

/// The system's reason, without the path that tempfile adds.
fn system_reason(error: &io::Error) -> String {
    let inner = error.get_ref().and_then(|inner| inner.source()).and_then(|source| source.downcast_ref());
    reason(inner.unwrap_or(error))
}

fn fresh(program: &Path, here: &Path) -> Result<PathBuf, Refusal> {
    let mut stem = program.file_name().unwrap_or(OsStr::new("program")).to_owned();
    stem.push(".thr.");
    let number = |name: &OsStr| -> Option<u64> {
        std::str::from_utf8(name.as_bytes().strip_prefix(stem.as_bytes())?).ok()?.parse().ok()
    };
    let entries = fs::read_dir(listed_directory(here)).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let entries = entries.map_err(|error| {
        let why = format_args!("cannot be listed for a new directory's number: {} (-d names one)", reason(&error));
        Refusal::own_failure(listed_directory(here), why)
    })?;
    let highest = entries.iter().filter_map(|entry| number(&entry.file_name())).max().unwrap_or(0);
    // Another process may take the name at the same time.
    for number in highest.saturating_add(1).. {
        let mut name = stem.clone();
        name.push(number.to_string());
        match fs::create_dir(here.join(&name)) {
            Ok(()) => return Ok(here.join(name)),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => {
                let why = format_args!("cannot be made: {} (-d names another place)", reason(&error));
                return Err(Refusal::own_failure(&here.join(name), why));
            }
        }
    }
    Err(Refusal::own_failure(here, "no number is left for a directory"))
}

/// Whether the recorder would stop at once.
fn is_full(directory: &Path) -> bool {
    statvfs(directory).is_ok_and(|system| {
        let free = system.f_bavail.saturating_mul(system.f_frsize);
        let total = system.f_blocks.saturating_mul(system.f_frsize);
        free < reserved_bytes(total)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fresh_directories_are_numbered_upwards() {
        let here = tempfile::tempdir().unwrap();
        let made = |program: &str| {
            let path = prepare(None, Path::new(program), here.path()).unwrap();
            path.file_name().unwrap().to_str().unwrap().to_owned()
        };
        assert_eq!(made("/usr/bin/sort"), "sort.thr.1");
        assert_eq!(made("sort"), "sort.thr.2");
        fs::remove_dir(here.path().join("sort.thr.1")).unwrap();
        fs::write(here.path().join("sort.thr.x"), "").unwrap();
        assert_eq!(made("./sort"), "sort.thr.3", "the highest is the newest");
        assert_eq!(made("cat"), "cat.thr.1");
    }

    #[test]
    fn a_requested_directory_is_made_or_used() {
        let here = tempfile::tempdir().unwrap();
        let path = here.path().join("trace");
        for _ in 0..2 {
            assert_eq!(prepare(Some(&path), Path::new("sort"), here.path()).unwrap(), path);
        }
        fs::write(path.join("file"), "").unwrap();
        for (name, why) in [("none/trace", "No such file or directory"), ("trace/file", "is not a directory")] {
            let refusal = prepare(Some(&here.path().join(name)), Path::new("sort"), here.path()).unwrap_err();
            assert_eq!(refusal.status, 125);
            assert!(refusal.message.ends_with(why), "{}", refusal.message);
        }
    }
}
