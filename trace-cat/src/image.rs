//! Trbufs made up for tests.

use std::mem::offset_of;
use std::ops::Range;

use spec::buffer::{Header, MAGIC, REGION_AT, SLOT_OWNED, SLOT_SIZE, SLOTS_AT, SlotHeader, VERSION, pack, words_at};

/// A trbuf as a process leaves it.
#[derive(Clone)]
pub struct Image(pub Vec<u8>);

impl Image {
    /// One without slots, of process 1 in an earlier boot.
    pub fn new() -> Image {
        let mut image = Image(vec![0; SLOTS_AT]);
        image.put(0, &MAGIC);
        image.put(offset_of!(Header, version), &VERSION.to_le_bytes());
        image.put(offset_of!(Header, pid), &1u32.to_le_bytes());
        image
    }

    /// Puts bytes anywhere.
    pub fn put(&mut self, at: usize, bytes: &[u8]) {
        self.0[at..at + bytes.len()].copy_from_slice(bytes);
    }

    /// Adds a slot of LWP `lwp` and returns its number.
    pub fn slot(&mut self, lwp: u32) -> usize {
        let at = self.0.len();
        self.0.resize(at + SLOT_SIZE, 0);
        self.put(at + offset_of!(SlotHeader, state), &SLOT_OWNED.to_le_bytes());
        self.put(at + offset_of!(SlotHeader, lwp), &lwp.to_le_bytes());
        (at - SLOTS_AT) / SLOT_SIZE
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
        let slot_at = SLOTS_AT + slot * SLOT_SIZE;
        self.put(slot_at + REGION_AT[region], text.as_bytes());
        let words = words_at(region);
        let word = |range: Range<usize>| pack(range.start as u32..range.end as u32).to_le_bytes();
        self.put(slot_at + words.filled, &word(filled));
        let (place, range) = pending.unwrap_or_default();
        self.put(slot_at + words.pending, &word(range));
        self.put(slot_at + words.pending_at, &place.to_le_bytes());
    }

    /// Lets a slot have lost records that it could not tell of.
    pub fn lost(&mut self, slot: usize, records: u32, cause: u32) {
        let at = SLOTS_AT + slot * SLOT_SIZE;
        self.put(at + offset_of!(SlotHeader, lost), &records.to_le_bytes());
        self.put(at + offset_of!(SlotHeader, cause), &cause.to_le_bytes());
    }
}
