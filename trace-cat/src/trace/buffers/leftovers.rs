//! What a process's buffers hold that is in no file, as places in the trbuf or in a copy of it.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use spec::buffer::SlotLayout;

use super::complete_from::CompleteFrom;
use crate::trace::file_handle::FileHandle;

/// What one region still holds, as places in the trbuf.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegionLeftover {
    /// Text that belongs at a place in the record file, where it may stand already, all or in part.
    pub pending: Option<(u64, Range<u64>)>,
    /// Text that is in no file: the older records of a ring that has begun anew, from the first whole one on.
    pub older: Range<u64>,
    /// Text that is in no file, after that.
    pub unwritten: Range<u64>,
}

impl RegionLeftover {
    /// Where its oldest record begins, or `None` if there is none.
    pub fn oldest(&self) -> Option<u64> {
        let pending = self.pending.as_ref().map(|(_, range)| range);
        let mut ranges = pending.into_iter().chain([&self.older, &self.unwritten]);
        ranges.find(|range| !range.is_empty()).map(|range| range.start)
    }
}

/// Everything that is in no file, by the last three digits of the record files' names.
#[derive(Debug)]
pub struct ProcessLeftovers {
    /// The trbuf, or a copy of it.
    pub handle: Arc<FileHandle>,
    /// In the order of slots and regions.
    pub files: BTreeMap<u16, Vec<RegionLeftover>>,
    /// The threads that overwrote records, and from what moment on each is complete.
    pub whole: Vec<CompleteFrom>,
}

/// The buffers of a running process, as they stood.
#[derive(Debug)]
pub struct CopiedBuffers {
    /// What they held.
    pub leftovers: ProcessLeftovers,
    /// How many bytes of each record file were written or on their way then, by its number.
    pub ends: Vec<u64>,
    /// How large the slots are.
    pub shape: SlotLayout,
}

impl CopiedBuffers {
    /// How many bytes of the record file with this number come before what was copied.
    pub fn end(&self, number: u16) -> u64 {
        self.ends.get(usize::from(number)).copied().unwrap_or(0)
    }
}
