//! A running process, whose threads' slots are read again and again by `new_in_buffers` and `new_in_rings`.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::rc::Rc;

use spec::buffer::{self, Owner, PAGE};
use spec::names::{FileName, LWP_MASK};

use super::growing_file::GrowingFile;
use super::growing_files::GrowingFiles;
use super::live_thread::LiveThread;
use super::reorder_window::Intake;
use super::{new_in_buffers, new_in_rings};
use crate::support::diagnostics::{Diagnostics, reason};
use crate::trace::buffers::dead_process::read_leftovers;
use crate::trace::buffers::leftovers::ProcessLeftovers;
use crate::trace::buffers::live_slot::{LiveSlot, read_layout};
use crate::trace::buffers::slots::{SlotEntry, Slots, is_blank, read_up_to};
use crate::trace::file_handle::{DescriptorBudget, FileIdentity};
use crate::trace::file_names::ProcessFiles;
use crate::trace::process_liveness::owner_is_gone;

/// Whether the process still runs is checked once in this many rounds.
const ROUNDS_PER_CHECK: u32 = 8;

/// A process that ran when it was last checked.
#[derive(Debug)]
pub struct RunningProcess {
    pub process: ProcessFiles,
    path: PathBuf,
    file: Rc<File>,
    /// Device and inode number of its trbuf.
    pub identity: FileIdentity,
    owner: Owner,
    threads: HashMap<u64, LiveThread>,
    /// The indexes of its record files, by the last three digits of their names.
    file_indexes: HashMap<u16, usize>,
    /// Only these files are followed.
    pub files_are_fixed: bool,
    rounds: u32,
}

impl RunningProcess {
    /// The process whose trbuf `file` is, at `path`; `None` if the trbuf is not ready.
    pub fn new(process: ProcessFiles, path: PathBuf, file: File) -> io::Result<Option<RunningProcess>> {
        let mut page = [0; PAGE];
        let length = read_up_to(&file, &mut page, 0)?;
        let metadata = file.metadata()?;
        let identity = (metadata.dev(), metadata.ino());
        if is_blank(&page) {
            return Ok(None);
        }
        let owner = Owner::parse(&page[..length]).map_err(|damage| io::Error::other(damage.to_string()))?;
        Ok(Some(RunningProcess {
            process,
            path,
            file: Rc::new(file),
            identity,
            owner,
            threads: HashMap::new(),
            file_indexes: HashMap::new(),
            files_are_fixed: false,
            rounds: 0,
        }))
    }

    /// Whether the process has ended for good.
    pub fn is_gone(&self) -> bool {
        owner_is_gone(&self.file, &self.owner) == Some(true) || self.has_left_trbuf()
    }

    /// Whether the process has ended and left its trbuf to another one: all that it recorded is in its files.
    fn has_left_trbuf(&self) -> bool {
        matches!(read_layout(&self.file, &self.owner), Ok(None))
    }

    /// Whether both are of the same trbuf and the same process.
    pub fn is_same(&self, other: &RunningProcess) -> bool {
        self.identity == other.identity && self.owner.is_same_process(&other.owner)
    }

    /// Its process ID, as its records have it.
    pub fn pid(&self) -> u32 {
        self.owner.pid
    }

    /// What is to be added to `CLOCK_MONOTONIC` for its times, nanoseconds.
    pub fn offset(&self) -> i64 {
        self.owner.realtime_offset
    }

    /// Notes that the file with this index is one of its record files.
    pub fn adopt(&mut self, number: u16, index: usize, files: &mut GrowingFiles) {
        self.file_indexes.insert(number, index);
        if let Some(file) = files.get(index) {
            file.owned = true;
        }
    }

    /// The index of the file with this number; `None` if the file is not followed.
    fn file_index(&mut self, number: u16, files: &mut GrowingFiles) -> Option<usize> {
        if let Some(&index) = self.file_indexes.get(&number)
            && files.get(index).is_some()
        {
            return Some(index);
        }
        if self.files_are_fixed {
            return None;
        }
        let path = self.process.path(FileName::Records { process: self.process.number, lwp: number });
        let index = files.index(&path);
        self.adopt(number, index, files);
        Some(index)
    }

    /// Takes what its threads have recorded since the last round. Returns `false` if the process has ended: then its record
    /// files are completed by its leftovers, and reading goes on there.
    pub fn read_new(&mut self, files: &mut GrowingFiles, intake: &mut Intake, diagnostics: &Diagnostics) -> bool {
        self.rounds += 1;
        let result = self.read_threads(files, intake, diagnostics).and_then(|()| {
            let removed = self.file.metadata()?.nlink() == 0 || self.has_left_trbuf();
            if !(removed || self.rounds % ROUNDS_PER_CHECK == 1) || !self.is_gone() {
                return Ok(true);
            }
            self.finish(files, intake, diagnostics).map(|()| false)
        });
        result.unwrap_or_else(|error| {
            diagnostics.report_damage(self.path.display(), reason(&error));
            false
        })
    }

    /// Reads how large the slots are: after an exec their size may be another. `false` if that is not known.
    fn refresh_layout(&mut self) -> io::Result<bool> {
        let layout = read_layout(&self.file, &self.owner)?;
        if let Some(layout) = layout.filter(|&layout| layout != self.owner.layout) {
            self.owner.layout = layout;
            self.threads.clear();
        }
        Ok(layout.is_some())
    }

    fn read_threads(
        &mut self,
        files: &mut GrowingFiles,
        intake: &mut Intake,
        diagnostics: &Diagnostics,
    ) -> io::Result<()> {
        let mut page = [0; PAGE];
        let file = Rc::clone(&self.file);
        if !self.refresh_layout()? {
            return Ok(());
        }
        let mut slots = Slots::new(&file, self.owner.layout)?;
        while let Some(entry) = slots.next(&mut page)? {
            let SlotEntry::Slot { index, at } = entry else { continue };
            let Some(lwp) = buffer::slot_lwp(&page).ok().flatten() else { continue };
            let followed = |thread: &LiveThread| thread.lwp == lwp && files.get(thread.file).is_some();
            if !self.threads.get(&index).is_some_and(followed) {
                if read_layout(&file, &self.owner)? != Some(self.owner.layout) {
                    // The process has just executed another program, or the slot is the trbuf's next owner's.
                    return Ok(());
                }
                let Some(file) = self.file_index((lwp & LWP_MASK) as u16, files) else { continue };
                self.threads.insert(index, LiveThread::new(lwp, file));
            }
            let Some(thread) = self.threads.get_mut(&index) else { continue };
            let is_early =
                |file: &GrowingFile| file.behind().is_some() || file.has_unread && file.emitted.is_nearly_full();
            if files.get(thread.file).is_none_or(|file| is_early(file)) {
                // The records in the buffer are later than those that are still to be read from the file, or more than can be
                // remembered until the file has them.
                continue;
            }
            let slot = LiveSlot { file: &file, at, layout: self.owner.layout, lwp };
            let end = slot.end()?;
            if let Some(file) = files.get(thread.file) {
                file.end = end;
            }
            if end > 0 && files.get(thread.file).is_some_and(|file| file.handle.is_none()) {
                // A large directory is read seldom, and until the file is read, what is printed from the buffer must be
                // remembered. The directory's reading reports a file that cannot be opened.
                let _ = files.open_if_made(thread.file, intake, diagnostics);
            }
            let missed = match slot.layout.is_ring() {
                true => new_in_rings::read_new(&slot, &page, end, thread, files, intake)?,
                false => new_in_buffers::read_new(&slot, &page, end, thread, files, intake).map(|()| false)?,
            };
            if missed && !thread.reported_loss {
                thread.reported_loss = true;
                diagnostics.report_note(
                    self.path.display(),
                    format_args!("LWP {lwp} overwrites records before they are read"),
                );
            }
        }
        Ok(())
    }

    /// Completes the record files by the leftovers of the process.
    fn finish(&mut self, files: &mut GrowingFiles, intake: &mut Intake, diagnostics: &Diagnostics) -> io::Result<()> {
        let file = self.file.try_clone()?;
        let leftovers = if self.refresh_layout()? {
            read_leftovers(&self.path, file, &self.owner, diagnostics)?
        } else {
            let none = BTreeMap::new();
            ProcessLeftovers::new(&self.path, file, &self.owner, none, Vec::new(), &DescriptorBudget::new(1))?
        };
        for &number in leftovers.files.keys() {
            self.file_index(number, files);
        }
        for (number, &index) in &self.file_indexes {
            let regions = leftovers.files.get(number).map_or(&[][..], Vec::as_slice);
            files.complete(index, &leftovers.handle, regions, intake, diagnostics)?;
        }
        Ok(())
    }
}
