//! The record files that are read as they grow.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::growing_file::GrowingFile;
use super::reorder_window::Intake;
use crate::support::diagnostics::Diagnostics;
use crate::trace::buffers::leftovers::LeftoverPlaces;
use crate::trace::file_handle::{self, DescriptorBudget, FileHandle, FileIdentity};
use crate::trace::known_files::KnownFiles;

/// The record files, each of which has an index.
#[derive(Debug)]
pub struct GrowingFiles {
    /// An index is never reused.
    list: Vec<Option<Box<GrowingFile>>>,
    indexes: HashMap<PathBuf, usize>,
    /// The existing files that are or were in the list, which are not taken again.
    pub known: KnownFiles,
    /// Files that are never taken: the outputs.
    pub outputs: Vec<FileIdentity>,
    descriptors: DescriptorBudget,
    /// The directories whose written files the kernel reports.
    reported: Vec<PathBuf>,
    all_are_reported: bool,
    /// The first of the files that the next round reads although nothing shows that they were written.
    next_quiet: usize,
}

/// How many files without an owner a round reads if nobody reports what is written.
const UNREPORTED_PER_ROUND: usize = 512;

impl GrowingFiles {
    /// An empty list.
    pub fn new(descriptors: DescriptorBudget) -> GrowingFiles {
        GrowingFiles {
            list: Vec::new(),
            indexes: HashMap::new(),
            known: KnownFiles::default(),
            outputs: Vec::new(),
            descriptors,
            reported: Vec::new(),
            all_are_reported: true,
            next_quiet: 0,
        }
    }

    /// The index of the file at `path`, which need not exist.
    pub fn index(&mut self, path: &Path) -> usize {
        match self.indexes.get(path) {
            Some(&index) => index,
            None => self.add(GrowingFile::new(path.to_owned(), None, 0)),
        }
    }

    /// Adds a file and returns its index.
    pub fn add(&mut self, mut file: GrowingFile) -> usize {
        if let Some(handle) = &file.handle {
            self.known.insert(handle.identity, &file.path);
        }
        file.is_reported = is_reported(&self.reported, &file.path);
        self.all_are_reported &= file.is_reported;
        self.list.push(None);
        let index = self.list.len() - 1;
        self.indexes.insert(file.path.clone(), index);
        self.list[index] = Some(Box::new(file));
        index
    }

    /// Sets the directories whose written files are reported by [`note_written`](GrowingFiles::note_written).
    pub fn set_reported_directories(&mut self, directories: Vec<PathBuf>) {
        if directories != self.reported {
            self.reported = directories;
            for file in self.list.iter_mut().flatten() {
                file.is_reported = is_reported(&self.reported, &file.path);
            }
            self.all_are_reported = self.list.iter().flatten().all(|file| file.is_reported);
        }
    }

    /// The file at `path`, if it is one of these, has been written.
    pub fn note_written(&mut self, path: &Path) {
        if let Some(&index) = self.indexes.get(path)
            && let Some(file) = self.get(index)
        {
            file.is_written = true;
        }
    }

    /// The file with this index, unless it has been read to its end.
    pub fn get(&mut self, index: usize) -> Option<&mut GrowingFile> {
        self.list.get_mut(index)?.as_deref_mut()
    }

    /// All files.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut GrowingFile> {
        self.list.iter_mut().flatten().map(Box::as_mut)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.indexes.len()
    }

    /// Opens the file at `path`, which may be a new one, and returns its index if it is followed. If another file had the path
    /// before, that one is read to its end.
    pub fn open(&mut self, path: &Path, intake: &mut Intake, diagnostics: &Diagnostics) -> io::Result<Option<usize>> {
        let file = file_handle::open(path)?;
        if !file.metadata()?.is_file() {
            return Ok(None);
        }
        let handle = FileHandle::new(path.to_owned(), file, &self.descriptors)?;
        if self.outputs.contains(&handle.identity) || !self.known.insert(handle.identity, path) {
            return Ok(self.indexes.get(path).copied());
        }
        let index = self.index(path);
        if let Some(file) = self.get(index) {
            if file.differs(&handle) {
                file.read(u64::MAX, false, intake, diagnostics);
            }
            file.set_handle(handle);
        }
        Ok(Some(index))
    }

    /// Opens a file that did not exist before, if it has been made meanwhile.
    pub fn open_if_made(&mut self, index: usize, intake: &mut Intake, diagnostics: &Diagnostics) -> io::Result<()> {
        let Some(file) = self.get(index).filter(|file| file.handle.is_none()) else { return Ok(()) };
        let path = file.path.clone();
        match self.open(&path, intake, diagnostics) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Completes a file by the leftovers of its process, which is dead.
    pub fn complete(
        &mut self,
        index: usize,
        buffers: &Arc<FileHandle>,
        leftovers: &[LeftoverPlaces],
        intake: &mut Intake,
        diagnostics: &Diagnostics,
    ) -> io::Result<()> {
        // The file may have been made a moment ago.
        self.open_if_made(index, intake, diagnostics)?;
        self.get(index).map_or(Ok(()), |file| file.complete(buffers, leftovers, diagnostics))
    }

    /// The time up to which everything has been read, if a file holds more.
    pub fn behind(&self) -> Option<u64> {
        self.list.iter().flatten().filter_map(|file| file.behind()).min()
    }

    /// The same of the files that running processes write.
    pub fn owned_behind(&self) -> Option<u64> {
        self.list.iter().flatten().filter(|file| file.owned).filter_map(|file| file.behind()).min()
    }

    /// Reads new text, at most `limit` bytes of each file; without `room` only of those files that the others wait for.
    pub fn read(&mut self, limit: u64, room: bool, intake: &mut Intake, diagnostics: &Diagnostics) {
        let behind = self.behind();
        // Some file systems do not report what other computers write, so one quiet file is read all the same.
        let quiet = if self.all_are_reported { 1 } else { UNREPORTED_PER_ROUND };
        let quiet = self.next_quiet..self.next_quiet + quiet;
        self.next_quiet = if quiet.end < self.list.len() { quiet.end } else { 0 };
        for (index, entry) in self.list.iter_mut().enumerate() {
            let Some(file) = entry else { continue };
            file.close_if_idle();
            let is_due = file.is_due() || quiet.contains(&index);
            let waited_for = room || behind.is_none_or(|behind| file.behind().is_some_and(|last| last <= behind));
            if is_due && !waited_for {
                file.has_unread = true;
            } else if is_due {
                file.read(limit, false, intake, diagnostics);
                if file.is_done() {
                    self.indexes.remove(&file.path);
                    *entry = None;
                }
            }
        }
    }
}

/// Whether the file at `path` is in one of these directories.
fn is_reported(directories: &[PathBuf], path: &Path) -> bool {
    path.parent().is_some_and(|parent| directories.iter().any(|directory| directory == parent))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filter::NeededRecords;
    use crate::follow::reorder_window::ReorderWindow;
    use crate::options::Selection;
    use crate::support::diagnostics::tests::recorded_diagnostics;
    use crate::testing::test_trace::record;
    use crate::trace::file_handle::{DescriptorBudget, open};
    use std::fs;

    /// A file that is followed, and what is reported of it.
    struct GrowingFileFixture {
        _directory: tempfile::TempDir,
        path: PathBuf,
        file: GrowingFile,
        intake: Intake,
        diagnostics: Diagnostics,
        messages: crate::support::diagnostics::tests::RecordedMessages,
    }

    impl GrowingFileFixture {
        fn new() -> GrowingFileFixture {
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join("tr.0000001.001");
            fs::write(&path, "").unwrap();
            let handle = FileHandle::new(path.clone(), open(&path).unwrap(), &DescriptorBudget::new(1)).unwrap();
            let (diagnostics, messages) = recorded_diagnostics();
            let file = GrowingFile::new(path.clone(), Some(Arc::new(handle)), 0);
            GrowingFileFixture { _directory: directory, path, file, intake: Intake::default(), diagnostics, messages }
        }

        /// The times of the records that are read when the file holds `text`.
        fn read(&mut self, text: &str, limit: u64, last: bool) -> Vec<u64> {
            fs::write(&self.path, text).unwrap();
            self.file.read(limit, last, &mut self.intake, &self.diagnostics);
            let mut times = Vec::new();
            let put = |line: &[u8], _| {
                times.push(crate::record::columns::time(line).unwrap());
                Ok::<(), ()>(())
            };
            self.intake.window.release(u64::MAX, [0, 0], put).unwrap();
            self.intake.window = ReorderWindow::new(0);
            times
        }
    }

    fn lines(times: std::ops::Range<u64>) -> String {
        times.map(|time| record(time, 1, "02:04:0", time)).collect()
    }

    #[test]
    fn each_line_is_read_once_when_it_is_complete() {
        let mut fixture = GrowingFileFixture::new();
        let text = lines(0..9);
        let length = record(0, 1, "02:04:0", 0).len();
        assert_eq!(fixture.read(&text[..3 * length], u64::MAX, false), [0, 1, 2]);
        assert_eq!(fixture.read(&text[..4 * length - 1], u64::MAX, false), [0u64; 0]);
        assert_eq!(fixture.read(&text[..5 * length + 7], u64::MAX, false), [3, 4]);
        assert_eq!(fixture.read(&text, u64::MAX, false), [5, 6, 7, 8]);
        assert_eq!(fixture.messages.text(), "");
        assert_eq!(fixture.read(&format!("{text}0000"), u64::MAX, true), [0u64; 0]);
        assert!(fixture.messages.text().ends_with("incomplete record\n"), "{}", fixture.messages.text());
    }

    /// A file that is not read, because others hold the records back, must be known as such: meanwhile its buffers' records are
    /// remembered.
    #[test]
    fn a_file_that_waits_for_another_may_hold_more() {
        let directory = tempfile::tempdir().unwrap();
        let (diagnostics, _messages) = recorded_diagnostics();
        let (mut files, mut intake) = (GrowingFiles::new(DescriptorBudget::new(2)), Intake::default());
        let [slow, other] = [("1", 0..9), ("2", 5..6)].map(|(number, times)| {
            let path = directory.path().join(format!("tr.0000001.00{number}"));
            fs::write(&path, lines(times)).unwrap();
            let index = files.open(&path, &mut intake, &diagnostics).unwrap().unwrap();
            files.get(index).unwrap().owned = true;
            index
        });
        let length = lines(0..1).len() as u64;
        for (room, [slow_has_unread, other_has_unread]) in
            [(true, [false, false]), (false, [false, true]), (true, [false, false])]
        {
            files.read(2 * length, room, &mut intake, &diagnostics);
            assert!(files.get(slow).unwrap().behind().is_some());
            let has_unread = [slow, other].map(|index| files.get(index).unwrap().has_unread);
            assert_eq!(has_unread, [slow_has_unread, other_has_unread], "{room}");
        }
    }

    #[test]
    fn much_is_read_in_chunks_and_damage_is_reported() {
        let mut fixture = GrowingFileFixture::new();
        let text = format!("{}rubbish\r\n{}", lines(0..5), lines(5..9));
        let mut times = Vec::new();
        for _ in 0..20 {
            times.extend(fixture.read(&text, 100, false));
            assert_eq!(fixture.file.behind().is_some(), times.len() < 9, "{times:?}");
        }
        assert_eq!(times, [0, 1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(fixture.messages.text().lines().count(), 1, "{}", fixture.messages.text());
    }

    #[test]
    fn a_new_file_that_is_no_trace_has_one_message() {
        let mut fixture = GrowingFileFixture::new();
        let rubbish = "rubbish\n".repeat(5);
        assert_eq!(fixture.read(&rubbish, u64::MAX, false), [0u64; 0]);
        assert_eq!(fixture.messages.text().lines().count(), 1, "{}", fixture.messages.text());
        // Among records each damage counts.
        fixture.read(&format!("{rubbish}{}{rubbish}", lines(1..2)), u64::MAX, false);
        assert_eq!(fixture.messages.text().lines().count(), 6, "{}", fixture.messages.text());
    }

    /// Damage is reported also among records that are not needed.
    #[test]
    fn records_that_are_not_needed_are_left_out() {
        let mut fixture = GrowingFileFixture::new();
        let mut selection = Selection { event_lists: vec!["cond".to_owned()], ..Selection::default() };
        selection.resolve().unwrap();
        fixture.intake.filter = NeededRecords::new(&selection);
        let wanted = record(5, 1, "03:03:1", 5);
        let text = format!("{}rubbish\n{}{wanted}{}", lines(0..3), lines(3..5), lines(6..9));
        assert_eq!(fixture.read(&text, text.len() as u64 - 100, false), [5]);
        assert_eq!(fixture.file.behind(), Some(6));
        assert_eq!(fixture.read(&text, u64::MAX, false), [0u64; 0]);
        assert_eq!(fixture.file.behind(), None);
        assert_eq!(fixture.messages.text().lines().count(), 1, "{}", fixture.messages.text());
    }

    #[test]
    fn a_range_that_is_not_written_yet_is_waited_for() {
        let mut fixture = GrowingFileFixture::new();
        fixture.file.owned = true;
        let length = record(0, 1, "02:04:0", 0).len();
        let hole = "\0".repeat(length);
        assert_eq!(fixture.read(&format!("{}{hole}{}", lines(0..1), lines(2..3)), u64::MAX, false), [0]);
        assert_eq!(fixture.read(&format!("{}{hole}{}", lines(0..1), lines(2..3)), u64::MAX, false), [0u64; 0]);
        assert_eq!(fixture.read(&lines(0..3), u64::MAX, false), [1, 2]);
        assert_eq!(fixture.messages.text(), "");
        // Without a running process the range is damage.
        fixture.file.owned = false;
        assert_eq!(fixture.read(&format!("{}{hole}{}", lines(0..3), lines(4..5)), u64::MAX, false), [4]);
        assert!(fixture.messages.text().contains("NUL bytes"), "{}", fixture.messages.text());
    }

    #[test]
    fn a_line_that_a_running_process_writes_is_no_damage() {
        let mut fixture = GrowingFileFixture::new();
        fixture.file.owned = true;
        assert_eq!(fixture.read(&format!("{}0000", lines(0..2)), u64::MAX, true), [0, 1]);
        assert_eq!(fixture.messages.text(), "");
    }

    #[test]
    fn records_that_were_emitted_from_a_buffer_are_left_out() {
        let mut fixture = GrowingFileFixture::new();
        for time in [1, 2] {
            fixture.file.emitted.note(time, record(time, 1, "02:04:0", time).as_bytes());
        }
        assert_eq!(fixture.read(&lines(0..4), u64::MAX, false), [0, 3]);
    }
}
