//! Watches a directory for new files.
//!
//! The directory is read again when its modification time has changed, and for a moment after that: the clocks of file
//! systems tick only every few milliseconds.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::fs::{DirEntryExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use spec::names::FileName;

use crate::trace::file_names::{ProcessFiles, is_subdirectory, split_name};

/// How coarse a file system's clock may be.
const CLOCK_TICK: Duration = Duration::from_millis(50);
/// A directory that takes no longer to read may be read in each round.
const CHEAP_READ: Duration = Duration::from_millis(2);
/// A directory that takes longer is read again when this many times the duration of its last reading have passed.
const READ_INTERVAL: u32 = 8;

/// A directory that is watched.
#[derive(Debug, Default)]
pub struct DirectoryWatch {
    /// Empty for the working directory.
    directory: PathBuf,
    /// The number of the only process whose files count.
    only: Option<u32>,
    /// Inode numbers by file name.
    known: HashMap<OsString, u64>,
    /// The directory's modification time when it was read.
    modified: Option<SystemTime>,
    /// When the last reading began.
    read: Option<(Instant, SystemTime)>,
    /// How long the last reading took.
    took: Duration,
}

/// The changes in a directory between two readings.
#[derive(Debug, Default)]
pub struct DirectoryChanges {
    /// New trbufs.
    pub buffers: Vec<(ProcessFiles, PathBuf)>,
    /// New record files, each with the last three digits of its name.
    pub records: Vec<(ProcessFiles, u16, PathBuf)>,
    /// New subdirectories, of other users and PID namespaces.
    pub subdirectories: Vec<DirectoryWatch>,
    /// Files that are gone: the inode number that each had, and its path.
    pub removed: Vec<(u64, PathBuf)>,
}

impl DirectoryWatch {
    /// A directory of which nothing is known yet.
    pub fn new(directory: &Path, only: Option<u32>) -> DirectoryWatch {
        DirectoryWatch { directory: directory.into(), only, ..DirectoryWatch::default() }
    }

    /// Its subdirectories of other users and PID namespaces.
    pub fn subdirectories(&self) -> Vec<DirectoryWatch> {
        let entries = fs::read_dir(self.path()).into_iter().flatten().flatten();
        entries.filter_map(|entry| self.subdirectory(&entry.file_name())).collect()
    }

    fn subdirectory(&self, name: &OsStr) -> Option<DirectoryWatch> {
        let path = self.directory.join(name);
        let is_one = is_subdirectory(&path) && fs::symlink_metadata(&path).is_ok_and(|metadata| metadata.is_dir());
        is_one.then(|| DirectoryWatch::new(&path, self.only))
    }

    /// The device of the directory, to which the inode numbers belong.
    pub fn device(&self) -> io::Result<u64> {
        Ok(fs::metadata(self.path())?.dev())
    }

    /// Whether both watch the same directory.
    pub fn is_of(&self, other: &DirectoryWatch) -> bool {
        self.directory == other.directory
    }

    /// Whether all files of `process` are watched.
    pub fn covers(&self, process: &ProcessFiles) -> bool {
        process.directory == self.directory && self.only.is_none_or(|only| only == process.number)
    }

    fn path(&self) -> &Path {
        if self.directory.as_os_str().is_empty() { ".".as_ref() } else { &self.directory }
    }

    /// The changes since the last call.
    pub fn read_changes(&mut self) -> io::Result<DirectoryChanges> {
        let modified = fs::metadata(self.path())?.modified()?;
        if let Some((read, at)) = self.read {
            let is_unchanged =
                Some(modified) == self.modified && at.duration_since(modified).is_ok_and(|age| age > CLOCK_TICK);
            let is_too_early = self.took > CHEAP_READ && read.elapsed() < READ_INTERVAL * self.took;
            if is_unchanged || is_too_early {
                return Ok(DirectoryChanges::default());
            }
        }
        let (began, at) = (Instant::now(), SystemTime::now());
        let mut changes = DirectoryChanges::default();
        let mut present = HashMap::with_capacity(self.known.len());
        for entry in fs::read_dir(self.path())? {
            let entry = entry?;
            let (name, number) = (entry.file_name(), entry.ino());
            if self.known.get(&name) != Some(&number) {
                self.add(&name, &mut changes);
            }
            present.insert(name, number);
        }
        let gone = self.known.iter().filter(|(name, number)| present.get(*name) != Some(number));
        changes.removed.extend(gone.map(|(name, number)| (*number, self.directory.join(name))));
        self.known = present;
        (self.modified, self.read, self.took) = (Some(modified), Some((began, at)), began.elapsed());
        Ok(changes)
    }

    /// The next call reads the directory if it has changed, however long that takes.
    pub fn read_next_time(&mut self) {
        self.took = Duration::ZERO;
    }

    fn add(&self, name: &OsStr, changes: &mut DirectoryChanges) {
        changes.subdirectories.extend(self.subdirectory(name));
        let path = self.directory.join(name);
        let (b"", Some(parsed)) = split_name(&path) else { return };
        let (FileName::Buffers(number) | FileName::Records { process: number, .. }) = parsed else { return };
        if self.only.is_some_and(|only| only != number) {
            return;
        }
        let process = ProcessFiles { directory: self.directory.clone(), prefix: Vec::new(), number };
        match parsed {
            FileName::Records { lwp, .. } => changes.records.push((process, lwp, path)),
            _ => changes.buffers.push((process, path)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(watch: &mut DirectoryWatch) -> [Vec<String>; 2] {
        let changes = watch.read_changes().unwrap();
        let buffers: Vec<PathBuf> = changes.buffers.into_iter().map(|(_, path)| path).collect();
        let records: Vec<PathBuf> = changes.records.into_iter().map(|(_, _, path)| path).collect();
        [buffers, records].map(|paths| {
            let name = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().to_owned();
            let mut names: Vec<String> = paths.iter().map(name).collect();
            names.sort();
            names
        })
    }

    #[test]
    fn a_file_is_new_once_unless_another_takes_its_name() {
        let directory = tempfile::tempdir().unwrap();
        let touch = |name: &str| fs::write(directory.path().join(name), "").unwrap();
        let mut watch = DirectoryWatch::new(directory.path(), None);
        assert_eq!(names(&mut watch), [vec![], Vec::<String>::new()]);
        for name in ["trbuf.0000001", "tr.0000001.001", "tr.0000002.001", "trinfo.0000001", "old.7.tr.0000001.001", "x"]
        {
            touch(name);
        }
        let all = [vec!["trbuf.0000001".to_owned()], vec!["tr.0000001.001".to_owned(), "tr.0000002.001".to_owned()]];
        assert_eq!(names(&mut watch), all);
        assert_eq!(names(&mut watch), [vec![], Vec::<String>::new()]);
        // The old file is kept, so that its inode number is not reused.
        fs::rename(directory.path().join("tr.0000002.001"), directory.path().join("y")).unwrap();
        touch("tr.0000002.001");
        assert_eq!(names(&mut watch), [vec![], vec!["tr.0000002.001".to_owned()]]);
        // A directory that takes long to read is read seldom, except when it is asked for.
        touch("tr.0000003.001");
        watch.took = Duration::from_secs(1000);
        assert_eq!(names(&mut watch), [vec![], Vec::<String>::new()]);
        watch.read_next_time();
        assert_eq!(names(&mut watch), [vec![], vec!["tr.0000003.001".to_owned()]]);
        let mut one = DirectoryWatch::new(directory.path(), Some(1));
        assert_eq!(names(&mut one), [vec!["trbuf.0000001".to_owned()], vec!["tr.0000001.001".to_owned()]]);
    }
}
