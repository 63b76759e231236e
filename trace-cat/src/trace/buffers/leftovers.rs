//! What a process's buffers hold that is in no record file, as places in the trbuf or in a copy of it.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use spec::buffer::SlotLayout;

use super::complete_from::CompleteFrom;
use crate::trace::file_handle::FileHandle;

/// What one region holds that is in no record file, as places in the trbuf.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegionLeftover {
    /// Text that was being written: the place in the record file, and the text. All or some of it may be there already.
    pub pending: Option<(u64, Range<u64>)>,
    /// The older records of a ring that has wrapped, from the first complete one on.
    pub older: Range<u64>,
    /// The text that follows those.
    pub unwritten: Range<u64>,
}

impl RegionLeftover {
    /// The beginning of the oldest record; `None` if there is none.
    pub fn oldest(&self) -> Option<u64> {
        let pending = self.pending.as_ref().map(|(_, range)| range);
        let mut ranges = pending.into_iter().chain([&self.older, &self.unwritten]);
        ranges.find(|range| !range.is_empty()).map(|range| range.start)
    }
}

/// What a process's buffers hold that is in no record file.
#[derive(Debug)]
pub struct ProcessLeftovers {
    /// The trbuf or its copy, which the places refer to.
    pub handle: Arc<FileHandle>,
    /// By the last three digits of the record files' names, each in the order of slots and regions.
    pub files: BTreeMap<u16, Vec<RegionLeftover>>,
    /// The threads that overwrote records.
    pub complete_from: Vec<CompleteFrom>,
}

/// A copy of the buffers of a running process.
#[derive(Debug)]
pub struct CopiedBuffers {
    /// What they held when they were copied.
    pub leftovers: ProcessLeftovers,
    /// How many bytes of each record file were written or given to a writer then, by the file's number.
    pub ends: Vec<u64>,
    /// The sizes of the slots.
    pub shape: SlotLayout,
}

impl CopiedBuffers {
    /// How many bytes of the record file with this number precede what was copied.
    pub fn end(&self, number: u16) -> u64 {
        self.ends.get(usize::from(number)).copied().unwrap_or(0)
    }
}
