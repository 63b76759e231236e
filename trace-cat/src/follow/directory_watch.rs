//! Watches a directory for new files, and for files that are written.
//!
//! The kernel reports names that are new or gone. The directory is read again when its modification time shows a change that was
//! not reported, since not every file system reports what other computers do. Without reports it is read whenever that time
//! has changed, and for a moment after that: the clocks of file systems tick only every few milliseconds.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::fs::{DirEntryExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use spec::names::FileName;

use super::directory_events::{DirectoryEvents, NewEvents};
use crate::support::diagnostics::reason;
use crate::trace::file_handle::FileIdentity;
use crate::trace::file_names::{
    ProcessFiles, is_present_subdirectory, listed_directory, split_name, subdirectories_of,
};

/// How coarse a file system's clock may be.
const CLOCK_TICK: Duration = Duration::from_millis(50);
/// A directory that takes no longer to read may be read in each round.
const CHEAP_READ: Duration = Duration::from_millis(2);
/// A directory that takes longer is read again when this many times the duration of its last reading have passed.
const READ_INTERVAL: u32 = 8;

/// How often the modification time is read if there are events.
const CHECK_INTERVAL: Duration = Duration::from_millis(30);
/// A directory that changes all the time, as reported, is nevertheless read this often.
const READ_INTERVAL_MAX: Duration = Duration::from_secs(1);

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
    /// When the modification time was read.
    checked: Option<Instant>,
    /// Device and inode number of the directory whose events are read.
    identity: Option<FileIdentity>,
    /// `None` if the kernel does not report events.
    events: Option<DirectoryEvents>,
    /// What has happened and was not yet used.
    new: NewEvents,
    /// Names were reported since the modification time was read.
    has_new_names: bool,
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
        subdirectories_of(&self.directory).iter().map(|path| DirectoryWatch::new(path, self.only)).collect()
    }

    fn subdirectory(&self, name: &OsStr) -> Option<DirectoryWatch> {
        let path = self.directory.join(name);
        is_present_subdirectory(&path).then(|| DirectoryWatch::new(&path, self.only))
    }

    /// The device of the directory, to which the inode numbers belong.
    pub fn device(&self) -> io::Result<u64> {
        Ok(fs::metadata(listed_directory(&self.directory))?.dev())
    }

    /// Whether both watch the same directory.
    pub fn is_of(&self, other: &DirectoryWatch) -> bool {
        self.directory == other.directory
    }

    /// Whether all files of `process` are watched.
    pub fn covers(&self, process: &ProcessFiles) -> bool {
        process.directory == self.directory && self.only.is_none_or(|only| only == process.number)
    }

    /// The files that were written since the last call, as far as the kernel reports them; `None` if any may have been.
    pub fn written(&mut self) -> Option<Vec<PathBuf>> {
        self.read_events();
        let written = std::mem::take(&mut self.new.written);
        if std::mem::take(&mut self.new.overflowed) {
            return None;
        }
        Some(written.into_iter().map(|name| self.directory.join(name)).collect())
    }

    /// The directory, as its files are named, if the kernel reports what is written there.
    pub fn reported_directory(&self) -> Option<&Path> {
        self.events.as_ref().map(|_| &*self.directory)
    }

    fn read_events(&mut self) {
        let Some(events) = &self.events else { return };
        events.read(&mut self.new);
        if self.new.ended {
            (self.events, self.identity) = (None, None);
            self.new = NewEvents { overflowed: true, ..NewEvents::default() };
        }
        if self.new.overflowed {
            (self.read, self.checked) = (None, None);
        }
    }

    /// The changes since the last call.
    pub fn read_changes(&mut self) -> DirectoryChanges {
        self.read_events();
        let mut changes = DirectoryChanges::default();
        let names = std::mem::take(&mut self.new.names);
        self.has_new_names |= !names.is_empty();
        names.into_iter().for_each(|name| self.update(name, &mut changes));
        let is_checked = self.checked.is_some_and(|checked| checked.elapsed() < CHECK_INTERVAL);
        if !(is_checked && self.events.is_some())
            && let Err(error) = self.read_directory(&mut changes)
        {
            // The directory is gone; it may be made again.
            log::info!("{}: {}", listed_directory(&self.directory).display(), reason(&error));
        }
        changes
    }

    /// Adds the change of a name.
    fn update(&mut self, name: OsString, changes: &mut DirectoryChanges) {
        let path = self.directory.join(&name);
        let number = fs::symlink_metadata(&path).ok().map(|metadata| metadata.ino());
        let known = match number {
            Some(number) => self.known.insert(name.clone(), number),
            None => self.known.remove(&name),
        };
        if known != number {
            changes.removed.extend(known.map(|known| (known, path)));
            if number.is_some() {
                self.add(&name, changes);
            }
        }
    }

    /// Reads the directory if it may have changed otherwise than by reported names.
    fn read_directory(&mut self, changes: &mut DirectoryChanges) -> io::Result<()> {
        let metadata = fs::metadata(listed_directory(&self.directory))?;
        let (identity, modified) = (Some((metadata.dev(), metadata.ino())), metadata.modified()?);
        if self.identity != identity {
            // What happened before there were events is unknown.
            (self.events, self.new.overflowed) = (DirectoryEvents::of(listed_directory(&self.directory)), true);
            (self.identity, self.read) = (identity, None);
        }
        self.checked = Some(Instant::now());
        if let Some((read, at)) = self.read {
            let is_reported = std::mem::take(&mut self.has_new_names) && read.elapsed() < READ_INTERVAL_MAX;
            let is_unchanged = Some(modified) == self.modified
                && (self.events.is_some() || at.duration_since(modified).is_ok_and(|age| age > CLOCK_TICK));
            let is_too_early = self.took > CHEAP_READ && read.elapsed() < READ_INTERVAL * self.took;
            if is_reported || is_unchanged || is_too_early {
                return Ok(());
            }
        }
        let (began, at) = (Instant::now(), SystemTime::now());
        let mut present = HashMap::with_capacity(self.known.len());
        for entry in fs::read_dir(listed_directory(&self.directory))? {
            let entry = entry?;
            let (name, number) = (entry.file_name(), entry.ino());
            if self.known.get(&name) != Some(&number) {
                self.add(&name, changes);
            }
            present.insert(name, number);
        }
        let gone = self.known.iter().filter(|(name, number)| present.get(*name) != Some(number));
        changes.removed.extend(gone.map(|(name, number)| (*number, self.directory.join(name))));
        self.known = present;
        (self.modified, self.read, self.took) = (Some(modified), Some((began, at)), began.elapsed());
        Ok(())
    }

    /// The next call reads the directory if it has changed, however long that takes.
    pub fn read_next_time(&mut self) {
        (self.took, self.checked) = (Duration::ZERO, None);
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
        let changes = watch.read_changes();
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
        // A new name is reported, and a directory that takes long to read is read seldom, except when it is asked for.
        watch.took = Duration::from_secs(1000);
        touch("tr.0000003.001");
        assert_eq!(names(&mut watch), [vec![], vec!["tr.0000003.001".to_owned()]]);
        watch.events = None;
        touch("tr.0000004.001");
        assert_eq!(names(&mut watch), [vec![], Vec::<String>::new()]);
        watch.read_next_time();
        assert_eq!(names(&mut watch), [vec![], vec!["tr.0000004.001".to_owned()]]);
        let mut one = DirectoryWatch::new(directory.path(), Some(1));
        assert_eq!(names(&mut one), [vec!["trbuf.0000001".to_owned()], vec!["tr.0000001.001".to_owned()]]);
    }

    /// Somebody's working directory, for example, still is the old one, which therefore has no last event.
    #[test]
    fn a_directory_that_is_made_anew_is_watched() {
        let parent = tempfile::tempdir().unwrap();
        let directory = parent.path().join("trace");
        fs::create_dir(&directory).unwrap();
        let _kept = fs::File::open(&directory).unwrap();
        let mut watch = DirectoryWatch::new(&directory, None);
        assert_eq!(names(&mut watch), [vec![], Vec::<String>::new()]);
        fs::remove_dir(&directory).unwrap();
        assert_eq!(names(&mut watch), [vec![], Vec::<String>::new()]);
        fs::create_dir(&directory).unwrap();
        fs::write(directory.join("tr.0000001.001"), "").unwrap();
        watch.checked = None;
        assert_eq!(names(&mut watch), [vec![], vec!["tr.0000001.001".to_owned()]]);
        assert!(watch.written().is_none());
        fs::write(directory.join("tr.0000001.002"), "x").unwrap();
        assert_eq!(names(&mut watch), [vec![], vec!["tr.0000001.002".to_owned()]]);
        assert_eq!(watch.written(), Some(vec![directory.join("tr.0000001.002")]));
    }

    #[test]
    fn what_is_renamed_and_what_overflows_is_reported() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        let mut watch = DirectoryWatch::new(directory.path(), None);
        fs::write(path("tr.0000001.001"), "").unwrap();
        assert_eq!(names(&mut watch), [vec![], vec!["tr.0000001.001".to_owned()]]);
        fs::rename(path("tr.0000001.001"), path("tr.0000002.001")).unwrap();
        let changes = watch.read_changes();
        assert_eq!((changes.removed.len(), changes.records.len()), (1, 1));
        assert_eq!(
            (&*changes.removed[0].1, &*changes.records[0].2),
            (&*path("tr.0000001.001"), &*path("tr.0000002.001"))
        );
        watch.new.overflowed = true;
        fs::write(path("tr.0000003.001"), "").unwrap();
        watch.events.as_ref().unwrap().read(&mut NewEvents::default());
        assert_eq!(names(&mut watch), [vec![], vec!["tr.0000003.001".to_owned()]]);
        assert!(watch.written().is_none());
    }
}
