//! Trbufs made up for tests.

use std::mem::offset_of;
use std::ops::Range;

use spec::buffer::{
    FileEntry, Header, MAGIC, PAGE, REGION_OFFSETS, SLOT_OWNED, SLOTS_OFFSET, SlotHeader, SlotLayout, VERSION,
    pack_range, region_word_offsets,
};

/// A trbuf as a process leaves it, and how large its slots are.
#[derive(Clone)]
pub struct TrbufImage(pub Vec<u8>, pub SlotLayout);

impl TrbufImage {
    /// One without slots, of process 1 in an earlier boot.
    pub fn new() -> TrbufImage {
        TrbufImage::of(SlotLayout::BUFFERS)
    }

    /// One whose slots are rings of this many bytes.
    pub fn ring(size: u64) -> TrbufImage {
        TrbufImage::of(SlotLayout::ring(size).unwrap())
    }

    fn of(shape: SlotLayout) -> TrbufImage {
        let mut image = TrbufImage(vec![0; SLOTS_OFFSET], shape);
        image.put(0, &MAGIC);
        image.put(offset_of!(Header, version), &VERSION.to_le_bytes());
        image.put(offset_of!(Header, pid), &1u32.to_le_bytes());
        image.put(offset_of!(Header, ring_size), &shape.ring_size().to_le_bytes());
        image
    }

    /// Puts bytes anywhere.
    pub fn put(&mut self, at: usize, bytes: &[u8]) {
        self.0[at..at + bytes.len()].copy_from_slice(bytes);
    }

    /// Adds a slot of LWP `lwp` and returns its number.
    pub fn slot(&mut self, lwp: u32) -> usize {
        let at = self.0.len();
        self.0.resize(at + self.1.slot_size(), 0);
        self.put(at + offset_of!(SlotHeader, state), &SLOT_OWNED.to_le_bytes());
        self.put(at + offset_of!(SlotHeader, lwp), &lwp.to_le_bytes());
        (at - SLOTS_OFFSET) / self.1.slot_size()
    }

    /// Where slot `slot` begins.
    pub fn at(&self, slot: usize) -> usize {
        self.1.slot_offset(slot as u64) as usize
    }

    /// Fills a region: all of its text, which part of that is not in the file, and which is on its way to a place there.
    pub fn region(
        &mut self,
        slot: usize,
        region: usize,
        text: &str,
        filled: Range<usize>,
        pending: Option<(u64, Range<usize>)>,
    ) {
        let slot_at = self.at(slot);
        self.put(slot_at + REGION_OFFSETS[region], text.as_bytes());
        let words = region_word_offsets(region);
        let word = |range: Range<usize>| pack_range(range.start as u32..range.end as u32).to_le_bytes();
        self.put(slot_at + words.write_position, &word(filled));
        let (place, range) = pending.unwrap_or_default();
        self.put(slot_at + words.write_intent, &word(range));
        self.put(slot_at + words.write_intent_offset, &place.to_le_bytes());
    }

    /// Fills a region of a ring that has begun anew `laps` times: the newer text is at its front, the older text, which
    /// need not begin with a whole record, from `start` on.
    pub fn wrapped(&mut self, slot: usize, region: usize, wrap_count: u32, (start, older): (usize, &str), newer: &str) {
        let begins = self.at(slot) + REGION_OFFSETS[region];
        self.region(slot, region, newer, start..newer.len(), None);
        self.put(begins + start, older.as_bytes());
        let words = region_word_offsets(region);
        let wrap_position = (start + older.len()) as u32;
        self.put(self.at(slot) + words.wrap_position, &wrap_position.to_le_bytes());
        self.wrap_count(slot, region, wrap_count);
    }

    /// Says how often a region of a ring has begun anew.
    pub fn wrap_count(&mut self, slot: usize, region: usize, wrap_count: u32) {
        self.put(self.at(slot) + region_word_offsets(region).wrap_count, &wrap_count.to_le_bytes());
    }

    /// Says how many bytes of the record file with this number are written or on their way.
    pub fn end(&mut self, number: u16, end: usize) {
        let at = PAGE + usize::from(number) * size_of::<FileEntry>() + offset_of!(FileEntry, end);
        self.put(at, &(end as u64).to_le_bytes());
    }

    /// Notes from when on a slot's thread is complete, nanoseconds since the Epoch.
    pub fn complete_from(&mut self, slot: usize, time: u64) {
        self.put(self.at(slot) + offset_of!(SlotHeader, complete_from), &time.to_le_bytes());
    }

    /// Lets a slot have lost records that it could not tell of.
    pub fn lost(&mut self, slot: usize, records: u32, cause: u32) {
        let at = self.at(slot);
        self.put(at + offset_of!(SlotHeader, lost), &records.to_le_bytes());
        self.put(at + offset_of!(SlotHeader, cause), &cause.to_le_bytes());
    }
}
