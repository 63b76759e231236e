//! What a process's buffers hold that is in no record file, as places in the trbuf or in a copy of it.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use log::info;
use spec::buffer::{NOTE_ENDED, Owner, SlotLayout};

use super::complete_from::CompleteFrom;
use super::lost_records::LostRecords;
use crate::trace::file_handle::{DescriptorBudget, FileHandle};

/// What one region holds that is in no record file, as places in the trbuf.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftoverPlaces {
    /// Text that was being written: the place in the record file, and the text. All or some of it may be there already.
    pub write_intent: Option<(u64, Range<u64>)>,
    /// The older records of a ring that has wrapped, from the first complete one on.
    pub older: Range<u64>,
    /// The text that follows those.
    pub unwritten: Range<u64>,
}

impl LeftoverPlaces {
    /// The beginning of the oldest record; `None` if there is none.
    pub fn oldest_offset(&self) -> Option<u64> {
        let intended = self.write_intent.as_ref().map(|(_, range)| range);
        let mut ranges = intended.into_iter().chain([&self.older, &self.unwritten]);
        ranges.find(|range| !range.is_empty()).map(|range| range.start)
    }
}

/// What a process's buffers hold that is in no record file.
#[derive(Debug)]
pub struct ProcessLeftovers {
    /// The process ID in the process's records.
    pub pid: u32,
    /// The trbuf or its copy, which the places refer to.
    pub handle: Arc<FileHandle>,
    /// By the last three digits of the record files' names, each in the order of slots and regions.
    pub files: BTreeMap<u16, Vec<LeftoverPlaces>>,
    /// The threads that overwrote records.
    pub complete_from: Vec<CompleteFrom>,
    /// Threads that had ended and whose records are gone, because others reused their rings.
    pub reused_rings: u64,
    /// The sizes of the slots.
    pub layout: SlotLayout,
    /// Records that were lost, and that no loss record counts.
    pub lost: u64,
    /// Records that were lost, with those that loss records count.
    pub lost_in_all: u64,
    /// The threads whose newest records are among those that no loss record counts.
    pub losing: Vec<u32>,
    /// The process may have records in memory of its own, which nobody else can read.
    pub has_own_memory: bool,
    /// The process was not killed, but ended by itself, and could not write them.
    pub has_ended: bool,
}

impl ProcessLeftovers {
    /// What is in `file`, the trbuf of `owner` or its copy. `path` is that of the trbuf.
    pub fn new(
        path: &Path,
        file: File,
        owner: &Owner,
        mut files: BTreeMap<u16, Vec<LeftoverPlaces>>,
        complete_from: Vec<CompleteFrom>,
        descriptors: &DescriptorBudget,
    ) -> io::Result<ProcessLeftovers> {
        files.retain(|_, leftovers| !leftovers.is_empty());
        info!("{}: {} regions hold text", path.display(), files.values().map(Vec::len).sum::<usize>());
        let handle = Arc::new(FileHandle::new(path.to_owned(), file, descriptors)?);
        Ok(ProcessLeftovers::of_handle(handle, owner, files, complete_from))
    }

    /// What is in the file of `handle`.
    pub fn of_handle(
        handle: Arc<FileHandle>,
        owner: &Owner,
        files: BTreeMap<u16, Vec<LeftoverPlaces>>,
        complete_from: Vec<CompleteFrom>,
    ) -> ProcessLeftovers {
        let Owner { pid, layout, .. } = *owner;
        ProcessLeftovers {
            pid,
            handle,
            files,
            complete_from,
            reused_rings: 0,
            layout,
            lost: 0,
            lost_in_all: 0,
            losing: Vec::new(),
            has_own_memory: false,
            has_ended: false,
        }
    }

    /// The same with what the process has lost.
    pub fn with_losses(self, losses: LostRecords) -> ProcessLeftovers {
        let (has_own_memory, has_ended) = (losses.has_own_memory(), losses.notes & NOTE_ENDED != 0);
        let LostRecords { records: lost, in_all: lost_in_all, reused_rings, threads: losing, .. } = losses;
        ProcessLeftovers { lost, lost_in_all, reused_rings, losing, has_own_memory, has_ended, ..self }
    }
}

/// A copy of the buffers of a running process.
#[derive(Debug)]
pub struct CopiedBuffers {
    /// The process ID in the process's records.
    pub pid: u32,
    /// What they held when they were copied.
    pub leftovers: ProcessLeftovers,
    /// How many bytes of each record file were written or given to a writer then, by the file's number.
    pub ends: Vec<u64>,
    /// When they were copied, in the time of the process's records.
    pub copied_at: u64,
    /// When that began, in the same time: all records up to then are in the files or in the copy. 0 if some are left out.
    pub complete_until: u64,
}

impl CopiedBuffers {
    /// How many bytes of the record file with this number precede what was copied; `u64::MAX` if nobody can read that, as where the
    /// process has not only its buffers in its own memory.
    pub fn end(&self, number: u16) -> u64 {
        let end = self.ends.get(usize::from(number)).copied().unwrap_or(0);
        if end == 0 && self.leftovers.has_own_memory { u64::MAX } else { end }
    }
}

/// The state of a process, as its trbuf shows it.
#[derive(Debug)]
pub enum ProcessState {
    /// There is no trbuf, or none that can be read: only the record files hold records.
    None,
    /// The process runs, and its buffers could not be copied.
    Alive,
    /// The process runs, and its buffers were copied.
    Running(CopiedBuffers),
    /// The process is gone.
    Dead(ProcessLeftovers),
}

impl ProcessState {
    /// What is in no record file, if that is known.
    pub fn leftovers(&self) -> Option<&ProcessLeftovers> {
        match self {
            ProcessState::None | ProcessState::Alive => None,
            ProcessState::Running(copied) => Some(&copied.leftovers),
            ProcessState::Dead(leftovers) => Some(leftovers),
        }
    }
}
