//! A running process, whose threads' slots are looked at again and again: `buffers` and `ring` say what is new in one.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::rc::Rc;

use spec::buffer::{self, Owner, PAGE, REGIONS};
use spec::names::{FileName, LWP_MASK};

use super::growing_files::GrowingFiles;
use super::intake::Intake;
use super::live_thread::LiveThread;
use super::{new_in_buffers, new_in_rings};
use crate::support::diagnostics::{Diagnostics, reason};
use crate::trace::buffers::dead_process::read_leftovers;
use crate::trace::buffers::live_slot::{LiveSlot, read_layout};
use crate::trace::buffers::slots::{SlotEntry, Slots, read_up_to};
use crate::trace::file_handle::FileIdentity;
use crate::trace::file_names::ProcessFiles;
use crate::trace::process_liveness::owner_is_gone;

/// How often the buffers are looked at before it is asked whether the process still runs.
const PATIENCE: u32 = 8;

/// A process that ran when last looked at.
#[derive(Debug)]
pub struct RunningProcess {
    process: ProcessFiles,
    path: PathBuf,
    file: Rc<File>,
    identity: FileIdentity,
    owner: Owner,
    threads: HashMap<u64, LiveThread>,
    /// The places of its files.
    sources: HashMap<u16, usize>,
    /// Only these are wanted.
    closed: bool,
    looks: u32,
}

impl RunningProcess {
    /// The process whose trbuf `file` is, at `path`; `None` if the trbuf is not ready.
    ///
    /// # Errors
    /// What the system says, or what is wrong with the trbuf.
    pub fn new(process: ProcessFiles, path: PathBuf, file: File) -> io::Result<Option<RunningProcess>> {
        let mut page = [0; PAGE];
        let length = read_up_to(&file, &mut page, 0)?;
        let metadata = file.metadata()?;
        let identity = (metadata.dev(), metadata.ino());
        if page.iter().all(|&byte| byte == 0) {
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
            sources: HashMap::new(),
            closed: false,
            looks: 0,
        }))
    }

    /// Whether its process has gone for good.
    pub fn is_gone(&self) -> bool {
        owner_is_gone(&self.file, &self.owner) == Some(true)
    }

    /// Device and inode number of its trbuf.
    pub fn identity(&self) -> FileIdentity {
        self.identity
    }

    /// What is to be added to `CLOCK_MONOTONIC` for its times, nanoseconds.
    pub fn offset(&self) -> i64 {
        self.owner.realtime_offset
    }

    /// Whether a file is the process's.
    pub fn is_process(&self, process: &ProcessFiles) -> bool {
        self.process == *process
    }

    /// Notes that one of its files is at a place.
    pub fn adopt(&mut self, number: u16, place: usize, sources: &mut GrowingFiles) {
        self.sources.insert(number, place);
        if let Some(source) = sources.get(place) {
            source.owned = true;
        }
    }

    /// Only the files that it has been told of are wanted.
    pub fn no_more_files(&mut self) {
        self.closed = true;
    }

    /// The place of the file with this number; `None` if that is not wanted.
    fn place(&mut self, number: u16, sources: &mut GrowingFiles) -> Option<usize> {
        if let Some(&place) = self.sources.get(&number)
            && sources.get(place).is_some()
        {
            return Some(place);
        }
        if self.closed {
            return None;
        }
        let path = self.process.path(FileName::Records { process: self.process.number, lwp: number });
        let place = sources.place(&path);
        self.adopt(number, place, sources);
        Some(place)
    }

    /// Takes what its threads have recorded since the last time. `false` if the process is gone: then what it left has been
    /// given to its files, from which it is read.
    pub fn read_new(&mut self, sources: &mut GrowingFiles, intake: &mut Intake, diagnostics: &Diagnostics) -> bool {
        self.looks += 1;
        let result = self.take(sources, intake, diagnostics).and_then(|()| {
            let removed = self.file.metadata()?.nlink() == 0;
            if !(removed || self.looks % PATIENCE == 1) || !self.is_gone() {
                return Ok(true);
            }
            self.finish(sources, intake, diagnostics).map(|()| false)
        });
        result.unwrap_or_else(|error| {
            diagnostics.report_damage(self.path.display(), reason(&error));
            false
        })
    }

    /// Looks how large the slots are: those of what it became by an exec may have another size. `false` if that cannot be told.
    fn fits(&mut self) -> io::Result<bool> {
        let shape = read_layout(&self.file)?;
        if let Some(shape) = shape.filter(|&shape| shape != self.owner.layout) {
            self.owner.layout = shape;
            self.threads.clear();
        }
        Ok(shape.is_some())
    }

    fn take(&mut self, sources: &mut GrowingFiles, intake: &mut Intake, diagnostics: &Diagnostics) -> io::Result<()> {
        let mut page = [0; PAGE];
        let file = Rc::clone(&self.file);
        if !self.fits()? {
            return Ok(());
        }
        let mut slots = Slots::new(&file, self.owner.layout)?;
        while let Some(found) = slots.next(&mut page)? {
            let SlotEntry::Slot { index, at } = found else { continue };
            let Some(lwp) = buffer::slot_lwp(&page).ok().flatten() else { continue };
            let followed = |thread: &LiveThread| thread.lwp == lwp && sources.get(thread.source).is_some();
            if !self.threads.get(&index).is_some_and(followed) {
                if read_layout(&file)? != Some(self.owner.layout) {
                    // It is another program since a moment ago.
                    return Ok(());
                }
                let Some(source) = self.place((lwp & LWP_MASK) as u16, sources) else { continue };
                let taken = std::array::from_fn(|_| 0..0);
                let thread = LiveThread { lwp, source, end: u64::MAX, taken, rings: [None; REGIONS], told: false };
                self.threads.insert(index, thread);
            }
            let Some(thread) = self.threads.get_mut(&index) else { continue };
            if sources.get(thread.source).is_none_or(|source| source.behind().is_some()) {
                // What stands in the buffer is later than what is still to be read.
                continue;
            }
            let slot = LiveSlot { file: &file, at, shape: self.owner.layout, lwp };
            let missed = match slot.shape.is_ring() {
                true => new_in_rings::take(&slot, &page, thread, sources, intake)?,
                false => new_in_buffers::take(&slot, &page, thread, sources, intake).map(|()| false)?,
            };
            if missed && !thread.told {
                thread.told = true;
                diagnostics.report_note(
                    self.path.display(),
                    format_args!("LWP {lwp} overwrites records before they are read"),
                );
            }
        }
        Ok(())
    }

    /// Gives what the process left to its files.
    fn finish(&mut self, sources: &mut GrowingFiles, intake: &mut Intake, diagnostics: &Diagnostics) -> io::Result<()> {
        self.fits()?;
        let left = read_leftovers(&self.path, self.file.try_clone()?, &self.owner, diagnostics)?;
        for &number in left.files.keys() {
            self.place(number, sources);
        }
        for (number, &place) in &self.sources {
            let found = left.files.get(number).map_or(&[][..], Vec::as_slice);
            sources.complete(place, &left.handle, found, intake, diagnostics)?;
        }
        Ok(())
    }
}
