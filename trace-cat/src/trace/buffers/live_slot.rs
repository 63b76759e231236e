//! A slot of a running process, which changes while it is read.

use std::fs::File;
use std::io;
use std::mem::offset_of;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use spec::buffer::{self, FileEntry, Header, Owner, PAGE, REGION_OFFSETS, REGIONS, SLOTS_OFFSET, SlotLayout, u64_at};
use spec::names::LWP_MASK;

use super::region_text::{CHUNK_LEN, chunks};
use super::ring_snapshot::RingSnapshot;
use super::slots::read_up_to;
use crate::support::temporary_files::temporary_file_error;

/// A slot of a running process, and its thread.
#[derive(Clone, Copy, Debug)]
pub struct LiveSlot<'a> {
    /// The trbuf.
    pub file: &'a File,
    /// The beginning of the slot in the trbuf.
    pub at: u64,
    /// The sizes of the slots.
    pub layout: SlotLayout,
    /// The thread.
    pub lwp: u32,
}

impl LiveSlot<'_> {
    /// The slot's first page as it is now; `None` if the slot is another thread's.
    pub fn page(&self) -> io::Result<Option<[u8; PAGE]>> {
        let mut page = [0; PAGE];
        read_up_to(self.file, &mut page, self.at)?;
        Ok((buffer::slot_lwp(&page) == Ok(Some(self.lwp))).then_some(page))
    }

    /// How many bytes of the thread's record file are written or given to a writer.
    pub fn end(&self) -> io::Result<u64> {
        const SIZE: usize = size_of::<FileEntry>();
        let number = (self.lwp & LWP_MASK) as usize;
        let mut entry = [0; SIZE];
        let length = read_up_to(self.file, &mut entry, (PAGE + number * SIZE) as u64)?;
        Ok(end_in_entry(&entry[..length]))
    }

    /// The words of a ring as they are now: `snapshot_of` makes them from the first page, which is read twice. `None` if they are
    /// being changed, or if the slot is another thread's.
    pub fn ring_snapshot(
        &self,
        region: usize,
        snapshot_of: fn([&[u8]; 2], SlotLayout, usize) -> Option<RingSnapshot>,
    ) -> io::Result<Option<RingSnapshot>> {
        let (Some(first), Some(second)) = (self.page()?, self.page()?) else { return Ok(None) };
        Ok(snapshot_of([&first, &second], self.layout, region))
    }

    /// The place in the trbuf of a range of a region.
    pub fn place(&self, region: usize, range: &Range<u32>) -> Range<u64> {
        let base = self.at + REGION_OFFSETS[region & (REGIONS - 1)] as u64;
        base + u64::from(range.start)..base + u64::from(range.end)
    }
}

/// How many bytes of each record file are written or given to a writer.
pub fn ends(file: &File) -> io::Result<Vec<u64>> {
    let mut entries = vec![0; SLOTS_OFFSET - PAGE];
    let length = read_up_to(file, &mut entries, PAGE as u64)?;
    Ok(entries[..length].chunks(size_of::<FileEntry>()).map(end_in_entry).collect())
}

/// The end in the file's entry; 0 as long as the process has not made the file.
fn end_in_entry(entry: &[u8]) -> u64 {
    u64_at(entry, offset_of!(FileEntry, end)).unwrap_or(0)
}

/// The sizes of the slots of `owner`'s trbuf as they are now; `None` if the trbuf is another process's: a process that ends
/// may leave it, emptied, to the next one. A process that was killed leaves its own as it is.
pub fn read_layout(file: &File, owner: &Owner) -> io::Result<Option<SlotLayout>> {
    let mut header = [0; size_of::<Header>()];
    let length = read_up_to(file, &mut header, 0)?;
    let now = Owner::parse(&header[..length]).ok().filter(|now| now.is_same_process(owner));
    Ok(now.map(|now| now.layout))
}

/// What `file` has in `range`, which lies within a slot.
pub fn read_range(file: &File, range: &Range<u64>) -> io::Result<Vec<u8>> {
    let mut text = vec![0; (range.end - range.start) as usize];
    let length = read_up_to(file, &mut text, range.start)?;
    text.truncate(length);
    Ok(text)
}

/// Copies `range` of `file` to the same place in `copy`.
pub fn copy_range(file: &File, copy: &File, range: Range<u64>) -> io::Result<()> {
    let mut buffer = vec![0; CHUNK_LEN.min((range.end - range.start) as usize)];
    for chunk in chunks(range) {
        let bytes = &mut buffer[..(chunk.end - chunk.start) as usize];
        let length = read_up_to(file, bytes, chunk.start)?;
        copy.write_all_at(&bytes[..length], chunk.start).map_err(temporary_file_error)?;
    }
    Ok(())
}
