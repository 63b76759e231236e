//! Which files there are in a directory, and which come.
//!
//! The directory is read again when its time of change says so, and for a moment after that: clocks of file systems tick
//! every few milliseconds only.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::fs::{DirEntryExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use spec::names::FileName;

use crate::trace::file_names::{ProcessFiles, split_name};

/// How coarse a file system's clock may be.
const TICK: Duration = Duration::from_millis(50);
/// A directory that is read in this time may be read each time.
const CHEAP: Duration = Duration::from_millis(2);
/// Of others, so many times what reading the directory takes passes before it is read again.
const REST: u32 = 8;

/// A directory that is watched.
#[derive(Debug)]
pub struct DirectoryWatch {
    /// Empty for the working directory.
    directory: PathBuf,
    /// Only files of this process.
    only: Option<u32>,
    /// The files' numbers by name.
    known: HashMap<OsString, u64>,
    changed: Option<SystemTime>,
    read: Option<(Instant, SystemTime)>,
    took: Duration,
}

/// What came.
#[derive(Debug, Default)]
pub struct DirectoryChanges {
    /// trbufs.
    pub buffers: Vec<(ProcessFiles, PathBuf)>,
    /// Record files, each with the last three digits of its name.
    pub records: Vec<(ProcessFiles, u16, PathBuf)>,
    /// Numbers of files that are gone.
    pub vanished: Vec<u64>,
}

impl DirectoryWatch {
    /// A directory of which nothing is known yet.
    pub fn new(directory: &Path, only: Option<u32>) -> DirectoryWatch {
        DirectoryWatch {
            directory: directory.into(),
            only,
            known: HashMap::new(),
            changed: None,
            read: None,
            took: Duration::ZERO,
        }
    }

    /// The device that it is on, which its files' numbers are of.
    ///
    /// # Errors
    /// What `stat` says.
    pub fn device(&self) -> io::Result<u64> {
        Ok(fs::metadata(self.path())?.dev())
    }

    /// Whether all files of a process are seen to.
    pub fn covers(&self, process: &ProcessFiles) -> bool {
        process.directory == self.directory && self.only.is_none_or(|only| only == process.number)
    }

    fn path(&self) -> &Path {
        if self.directory.as_os_str().is_empty() { ".".as_ref() } else { &self.directory }
    }

    /// What came since the last time.
    ///
    /// # Errors
    /// What the system says of the directory.
    pub fn read_changes(&mut self) -> io::Result<DirectoryChanges> {
        let changed = fs::metadata(self.path())?.modified()?;
        if let Some((read, at)) = self.read {
            let is_old = Some(changed) == self.changed && at.duration_since(changed).is_ok_and(|age| age > TICK);
            let is_dear = self.took > CHEAP && read.elapsed() < REST * self.took;
            if is_old || is_dear {
                return Ok(DirectoryChanges::default());
            }
        }
        let (began, at) = (Instant::now(), SystemTime::now());
        let mut news = DirectoryChanges::default();
        let mut there = HashMap::with_capacity(self.known.len());
        for entry in fs::read_dir(self.path())? {
            let entry = entry?;
            let (name, number) = (entry.file_name(), entry.ino());
            if self.known.get(&name) != Some(&number) {
                self.came(&name, &mut news);
            }
            there.insert(name, number);
        }
        let gone = self.known.iter().filter(|(name, number)| there.get(*name) != Some(number));
        news.vanished.extend(gone.map(|(_, number)| *number));
        self.known = there;
        (self.changed, self.read, self.took) = (Some(changed), Some((began, at)), began.elapsed());
        Ok(news)
    }

    /// Next time the directory is read if it has changed, however long that takes.
    pub fn hurry(&mut self) {
        self.took = Duration::ZERO;
    }

    fn came(&self, name: &OsStr, news: &mut DirectoryChanges) {
        let path = self.directory.join(name);
        let (prefix, Some(parsed)) = split_name(&path) else { return };
        let (number, lwp) = match parsed {
            FileName::Buffers(number) => (number, None),
            FileName::Records { process, lwp } => (process, Some(lwp)),
            _ => return,
        };
        if !prefix.is_empty() || self.only.is_some_and(|only| only != number) {
            return;
        }
        let process = ProcessFiles { directory: self.directory.clone(), prefix: Vec::new(), number };
        match lwp {
            None => news.buffers.push((process, path)),
            Some(lwp) => news.records.push((process, lwp, path)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(watch: &mut DirectoryWatch) -> [Vec<String>; 2] {
        let news = watch.read_changes().unwrap();
        let buffers: Vec<PathBuf> = news.buffers.into_iter().map(|(_, path)| path).collect();
        let records: Vec<PathBuf> = news.records.into_iter().map(|(_, _, path)| path).collect();
        [buffers, records].map(|found| {
            let name = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().to_owned();
            let mut names: Vec<String> = found.iter().map(name).collect();
            names.sort();
            names
        })
    }

    #[test]
    fn files_come_once_unless_they_are_others() {
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
        // Kept, so that its number is not given to another one.
        fs::rename(directory.path().join("tr.0000002.001"), directory.path().join("y")).unwrap();
        touch("tr.0000002.001");
        assert_eq!(names(&mut watch), [vec![], vec!["tr.0000002.001".to_owned()]]);
        // A directory that takes long to read is read seldom, but for the last time.
        touch("tr.0000003.001");
        watch.took = Duration::from_secs(1000);
        assert_eq!(names(&mut watch), [vec![], Vec::<String>::new()]);
        watch.hurry();
        assert_eq!(names(&mut watch), [vec![], vec!["tr.0000003.001".to_owned()]]);
        let mut one = DirectoryWatch::new(directory.path(), Some(1));
        assert_eq!(names(&mut one), [vec!["trbuf.0000001".to_owned()], vec!["tr.0000001.001".to_owned()]]);
    }
}
