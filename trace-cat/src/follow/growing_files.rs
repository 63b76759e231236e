//! All record files that are read as they grow.

use std::collections::{HashMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::growing_file::GrowingFile;
use super::intake::Intake;
use crate::support::diagnostics::Diagnostics;
use crate::trace::buffers::leftovers::RegionLeftover;
use crate::trace::file_handle::{DescriptorBudget, FileHandle, FileIdentity, open};

/// All of them.
#[derive(Debug)]
pub struct GrowingFiles {
    /// A place is used once.
    list: Vec<Option<Box<GrowingFile>>>,
    places: HashMap<PathBuf, usize>,
    /// The files that are here or have been.
    known: HashSet<FileIdentity>,
    descriptors: DescriptorBudget,
    /// Where the turn of those that nobody owns begins.
    turn: usize,
}

/// How many files that no running process is known to write are looked at each time.
const UNOWNED: usize = 512;

impl GrowingFiles {
    /// No files; those in `known` are seen to in another way.
    pub fn new(known: HashSet<FileIdentity>, descriptors: DescriptorBudget) -> GrowingFiles {
        GrowingFiles { list: Vec::new(), places: HashMap::new(), known, descriptors, turn: 0 }
    }

    /// The place of the file at `path`, which need not exist.
    pub fn place(&mut self, path: &Path) -> usize {
        match self.places.get(path) {
            Some(&place) => place,
            None => self.add(GrowingFile::new(path.to_owned(), None, 0)),
        }
    }

    /// Adds one.
    pub fn add(&mut self, source: GrowingFile) -> usize {
        self.list.push(None);
        let place = self.list.len() - 1;
        self.places.insert(source.path.clone(), place);
        self.list[place] = Some(Box::new(source));
        place
    }

    /// The one at a place.
    pub fn get(&mut self, place: usize) -> Option<&mut GrowingFile> {
        self.list.get_mut(place)?.as_deref_mut()
    }

    /// All of them.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut GrowingFile> {
        self.list.iter_mut().flatten().map(Box::as_mut)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// A file is there, perhaps a new one. Returns its place if it is followed. One that had its path before is read to its end.
    ///
    /// # Errors
    /// What the system says of it.
    pub fn found(&mut self, path: &Path, intake: &mut Intake, diagnostics: &Diagnostics) -> io::Result<Option<usize>> {
        let file = open(path)?;
        if !file.metadata()?.is_file() {
            return Ok(None);
        }
        let handle = FileHandle::new(path.to_owned(), file, &self.descriptors)?;
        if !self.known.insert(handle.identity()) {
            return Ok(self.places.get(path).copied());
        }
        let place = self.place(path);
        if let Some(source) = self.get(place) {
            if source.differs(&handle) {
                source.read(u64::MAX, false, intake, diagnostics);
            }
            source.found(handle);
        }
        Ok(Some(place))
    }

    /// Does not follow these files, whatever their names.
    pub fn leave_out(&mut self, files: [Option<FileIdentity>; 2]) {
        self.known.extend(files.into_iter().flatten());
    }

    /// A file is there no more: what comes with its number is another one.
    pub fn vanished(&mut self, identity: FileIdentity) {
        self.known.remove(&identity);
    }

    /// The process of the file at a place is dead and left this.
    ///
    /// # Errors
    /// What the system says of the file.
    pub fn complete(
        &mut self,
        place: usize,
        buffers: &Arc<FileHandle>,
        found: &[RegionLeftover],
        intake: &mut Intake,
        diagnostics: &Diagnostics,
    ) -> io::Result<()> {
        let Some(source) = self.get(place) else { return Ok(()) };
        if source.handle.is_none() {
            // It may have been made a moment ago.
            let path = source.path.clone();
            match self.found(&path, intake, diagnostics) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        self.get(place).map_or(Ok(()), |source| source.complete(buffers, found, diagnostics))
    }

    /// Up to which time everything has been read, if anything is behind.
    pub fn behind(&self) -> Option<u64> {
        self.list.iter().flatten().filter_map(|source| source.behind()).min()
    }

    /// Reads what has come, at most `most` bytes of each; if `room` is short, only of those that the others wait for.
    pub fn read(&mut self, most: u64, room: bool, intake: &mut Intake, diagnostics: &Diagnostics) {
        let behind = self.behind();
        let first = self.turn;
        self.turn = if first + UNOWNED < self.list.len() { first + UNOWNED } else { 0 };
        for (place, entry) in self.list.iter_mut().enumerate() {
            let Some(source) = entry else { continue };
            let its_turn =
                source.owned || source.behind || (first..first + UNOWNED).contains(&place) || source.rest.is_some();
            let waited_for = room || behind.is_none_or(|behind| source.behind().is_some_and(|last| last <= behind));
            if its_turn && waited_for {
                source.read(most, false, intake, diagnostics);
                if source.is_done() {
                    self.places.remove(&source.path);
                    *entry = None;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::follow::reorder_window::ReorderWindow;
    use crate::support::diagnostics::tests::recorded_diagnostics;
    use crate::testing::test_trace::record;
    use crate::trace::file_handle::{DescriptorBudget, open};
    use std::fs;

    /// A file that is followed.
    struct GrowingFileFixture {
        _directory: tempfile::TempDir,
        path: PathBuf,
        source: GrowingFile,
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
            let source = GrowingFile::new(path.clone(), Some(Arc::new(handle)), 0);
            GrowingFileFixture {
                _directory: directory,
                path,
                source,
                intake: Intake::new(ReorderWindow::new(0)),
                diagnostics,
                messages,
            }
        }

        /// What comes when the file holds `text`.
        fn read(&mut self, text: &str, most: u64, last: bool) -> Vec<u64> {
            fs::write(&self.path, text).unwrap();
            self.source.read(most, last, &mut self.intake, &self.diagnostics);
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
    fn each_line_is_read_once_when_it_is_whole() {
        let mut trial = GrowingFileFixture::new();
        let text = lines(0..9);
        let length = record(0, 1, "02:04:0", 0).len();
        assert_eq!(trial.read(&text[..3 * length], u64::MAX, false), [0, 1, 2]);
        assert_eq!(trial.read(&text[..4 * length - 1], u64::MAX, false), []);
        assert_eq!(trial.read(&text[..5 * length + 7], u64::MAX, false), [3, 4]);
        assert_eq!(trial.read(&text, u64::MAX, false), [5, 6, 7, 8]);
        assert_eq!(trial.messages.text(), "");
        assert_eq!(trial.read(&format!("{text}0000"), u64::MAX, true), []);
        assert!(trial.messages.text().ends_with("incomplete record\n"), "{}", trial.messages.text());
    }

    #[test]
    fn much_is_read_in_parts_and_damage_is_told() {
        let mut trial = GrowingFileFixture::new();
        let text = format!("{}rubbish\r\n{}", lines(0..5), lines(5..9));
        let mut times = Vec::new();
        for _ in 0..20 {
            times.extend(trial.read(&text, 100, false));
            assert_eq!(trial.source.behind().is_some(), times.len() < 9, "{times:?}");
        }
        assert_eq!(times, [0, 1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(trial.messages.text().lines().count(), 1, "{}", trial.messages.text());
    }

    #[test]
    fn a_range_that_is_not_written_yet_is_waited_for() {
        let mut trial = GrowingFileFixture::new();
        trial.source.owned = true;
        let length = record(0, 1, "02:04:0", 0).len();
        let hole = "\0".repeat(length);
        assert_eq!(trial.read(&format!("{}{hole}{}", lines(0..1), lines(2..3)), u64::MAX, false), [0]);
        assert_eq!(trial.read(&format!("{}{hole}{}", lines(0..1), lines(2..3)), u64::MAX, false), []);
        assert_eq!(trial.read(&lines(0..3), u64::MAX, false), [1, 2]);
        assert_eq!(trial.messages.text(), "");
        // Of a process that is not known to live it is damage.
        trial.source.owned = false;
        assert_eq!(trial.read(&format!("{}{hole}{}", lines(0..3), lines(4..5)), u64::MAX, false), [4]);
        assert!(trial.messages.text().contains("NUL bytes"), "{}", trial.messages.text());
    }

    #[test]
    fn what_was_seen_in_a_buffer_does_not_come_again() {
        let mut trial = GrowingFileFixture::new();
        for time in [1, 2] {
            trial.source.seen.note(time, record(time, 1, "02:04:0", time).as_bytes());
        }
        assert_eq!(trial.read(&lines(0..4), u64::MAX, false), [0, 3]);
    }
}
