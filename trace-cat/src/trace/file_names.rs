//! The names of a trace's files: whose file it is, and what kind.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use spec::names::{FileName, PROCESS_MASK};

use super::host_view::HostView;

/// The files of one process.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProcessFiles {
    /// Where they are; empty for the working directory.
    pub directory: PathBuf,
    /// What stands before each name: `old.<start>.` with its dots, or nothing.
    pub prefix: Vec<u8>,
    /// The seven least significant hex digits of the process ID.
    pub number: u32,
}

impl ProcessFiles {
    /// The process with this number, of which one file is at `path`.
    pub fn of_file(path: &Path, number: u32) -> ProcessFiles {
        let directory = path.parent().unwrap_or(Path::new("")).to_owned();
        ProcessFiles { directory, prefix: split_name(path).0.to_owned(), number }
    }

    /// The same for all files of a process that has become another user meanwhile.
    pub fn of_all_users(mut self) -> ProcessFiles {
        while is_subdirectory(&self.directory)
            && self.directory.file_name().is_some_and(|name| name.as_bytes()[0] == b'u')
        {
            self.directory.pop();
        }
        self
    }

    /// The path of the process's trbuf.
    pub fn buffers_path(&self) -> PathBuf {
        self.path(FileName::buffers(self.number))
    }

    /// The path of the process's file `name`.
    pub fn path(&self, name: FileName) -> PathBuf {
        let (text, length) = name.text();
        let name = [&self.prefix, &text[..length]].concat();
        self.directory.join(OsStr::from_bytes(&name))
    }
}

/// A directory's files with the same prefix: those of processes that ran later than those whose files were renamed, or some of
/// the latter.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FileGroup {
    pub directory: PathBuf,
    /// As in [`ProcessFiles`].
    pub prefix: Vec<u8>,
    /// The host, if the files of several are read.
    pub host: Option<Arc<HostView>>,
}

impl FileGroup {
    /// The files of the process that records have the number `pid` of; `None` if it is another host's.
    pub fn process(&self, pid: u32) -> Option<ProcessFiles> {
        let number = self.host.as_ref().map_or(Some(pid), |host| host.own(pid))? & PROCESS_MASK;
        Some(ProcessFiles { directory: self.directory.clone(), prefix: self.prefix.clone(), number })
    }
}

impl From<PathBuf> for FileGroup {
    /// The files of a directory that were not renamed.
    fn from(directory: PathBuf) -> FileGroup {
        FileGroup { directory, prefix: Vec::new(), host: None }
    }
}

/// Splits a path's file name into the prefix (`old.<start>.`, `old.<start>-<number>.` or nothing) and the parsed name, which
/// is `None` if traces have no file of this name.
pub fn split_name(path: &Path) -> (&[u8], Option<FileName>) {
    let name = path.file_name().unwrap_or_default().as_bytes();
    let prefix = name.strip_prefix(b"old.").map_or(0, |start| {
        let digits = start.iter().position(|byte| !byte.is_ascii_digit() && *byte != b'-').unwrap_or(start.len());
        if start.get(digits) == Some(&b'.') { 4 + digits + 1 } else { 0 }
    });
    (&name[..prefix], FileName::parse(&name[prefix..]))
}

/// Whether a file has a name that `--split` gives: what it is split by, a point, and a value of that.
pub fn is_split_name(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().as_bytes();
    ["pid.", "lwp.", "object.", "category."].iter().any(|what| name.starts_with(what.as_bytes()))
}

/// The process of the record file at `path`, and the last three digits of the file's name; `None` if the name has another
/// form.
pub fn owner_of_records(path: &Path) -> Option<(ProcessFiles, u16)> {
    match split_name(path).1 {
        Some(FileName::Records { process, lwp }) => Some((ProcessFiles::of_file(path, process), lwp)),
        _ => None,
    }
}

/// Whether a directory with this path is one that processes make within a trace directory: `u<uid>` for those that have
/// become another user, `ns<inode>` for those of another PID namespace.
pub fn is_subdirectory(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().as_bytes();
    let digits = name.strip_prefix(b"ns").or(name.strip_prefix(b"u"));
    digits.is_some_and(|digits| !digits.is_empty() && digits.iter().all(u8::is_ascii_digit))
}

/// Whether `path` is such a subdirectory. A symbolic link is none, since it could lead to any directory.
pub fn is_present_subdirectory(path: &Path) -> bool {
    is_subdirectory(path) && fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_dir())
}

/// The subdirectories that processes have made in a directory, in the order of their paths; none if it cannot be read.
pub fn subdirectories_of(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(listed_directory(directory)).into_iter().flatten().flatten();
    let paths = entries.map(|entry| directory.join(entry.file_name()));
    let mut subdirectories: Vec<PathBuf> = paths.filter(|path| is_present_subdirectory(path)).collect();
    subdirectories.sort();
    subdirectories
}

/// A directory and the subdirectories that processes have made in it and in each other: who has become another user may be in
/// another PID namespace, too.
pub fn with_subdirectories(directory: &Path) -> Vec<PathBuf> {
    let mut directories = vec![directory.to_owned()];
    let mut read = 0;
    while let Some(directory) = directories.get(read) {
        let inner = subdirectories_of(directory);
        directories.extend(inner);
        read += 1;
    }
    directories
}

/// Whether a directory is read with another one: it is the same, or made by processes within it. Both paths are without symbolic links.
pub fn is_read_with(path: &Path, holder: &Path) -> bool {
    let holders = path.ancestors().skip(1).zip(path.ancestors().map(is_subdirectory));
    let mut holders = holders.take_while(|(_, is_subdirectory)| *is_subdirectory);
    path == holder || holders.any(|(ancestor, _)| ancestor == holder)
}

/// The path by which `directory` is listed: `.` for the working directory, whose path is empty in [`ProcessFiles`].
pub fn listed_directory(directory: &Path) -> &Path {
    if directory.as_os_str().is_empty() { Path::new(".") } else { directory }
}
