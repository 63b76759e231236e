//! The bytes of a trbuf, made for tests.

use std::fs::{self, File};
use std::io;
use std::mem::offset_of;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::time::Duration;

use spec::buffer::{
    CONTROL_OFFSET, ControlWords, FileEntry, Header, IN_FLIGHT_EVENT_AT, MAGIC, PAGE, REGION_OFFSETS, SLOTS_OFFSET,
    SlotHeader, SlotLayout, VERSION, pack_range, region_word_offsets,
};
use spec::id;

/// Waits until nobody has a file open for writing, and its process counts as dead: children that other tests fork at this
/// moment have what this process has open until they execute their programs.
pub fn wait_for_writers(path: &Path) {
    let file = File::open(path).unwrap();
    // SAFETY: the descriptor is open, and F_SETLEASE takes an integer.
    let lease = |kind: libc::c_int| unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETLEASE, kind) };
    while lease(libc::F_RDLCK) != 0 {
        if io::Error::last_os_error().raw_os_error() != Some(libc::EAGAIN) {
            // The file system has no leases.
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(lease(libc::F_UNLCK), 0);
}

/// A trbuf as a process leaves it.
#[derive(Clone)]
pub struct TrbufImage {
    pub bytes: Vec<u8>,
    pub layout: SlotLayout,
}

impl TrbufImage {
    /// A trbuf without slots, of process 1 in an earlier boot.
    pub fn new() -> TrbufImage {
        TrbufImage::with_layout(SlotLayout::BUFFERS)
    }

    /// One whose slots are rings of this many bytes.
    pub fn ring(size: u64) -> TrbufImage {
        TrbufImage::with_layout(SlotLayout::ring(size).unwrap())
    }

    /// One whose only slot, of LWP `lwp`, has `text` in its first region, which is in no file.
    pub fn with_text(lwp: u32, text: &str) -> TrbufImage {
        let mut image = TrbufImage::new();
        let slot = image.add_slot(lwp);
        image.put_text(slot, 0, text);
        image
    }

    fn with_layout(layout: SlotLayout) -> TrbufImage {
        let mut image = TrbufImage { bytes: vec![0; SLOTS_OFFSET], layout };
        image.put(0, &MAGIC);
        image.put(offset_of!(Header, version), &VERSION.to_le_bytes());
        image.put(offset_of!(Header, pid), &1u32.to_le_bytes());
        image.put(offset_of!(Header, ring_size), &layout.ring_size().to_le_bytes());
        image
    }

    /// Writes it into a file that nobody has open afterwards.
    pub fn write(&self, path: &Path) {
        fs::write(path, &self.bytes).unwrap();
        wait_for_writers(path);
    }

    /// Puts bytes anywhere.
    pub fn put(&mut self, at: usize, bytes: &[u8]) {
        self.bytes[at..at + bytes.len()].copy_from_slice(bytes);
    }

    /// Adds a slot of LWP `lwp` and returns its number.
    pub fn add_slot(&mut self, lwp: u32) -> usize {
        let at = self.bytes.len();
        self.bytes.resize(at + self.layout.slot_size(), 0);
        self.put(at + offset_of!(SlotHeader, lwp), &lwp.to_le_bytes());
        (at - SLOTS_OFFSET) / self.layout.slot_size()
    }

    /// Where slot `slot` begins.
    pub fn slot_offset(&self, slot: usize) -> usize {
        self.layout.slot_offset(slot as u64) as usize
    }

    /// Fills a region with `text`, all of which is in no file.
    pub fn put_text(&mut self, slot: usize, region: usize, text: &str) {
        self.put_region(slot, region, text, 0..text.len(), None);
    }

    /// Fills a region with `text`: the range of it that is in no file, and the noted write: the place in the file and the
    /// range.
    pub fn put_region(
        &mut self,
        slot: usize,
        region: usize,
        text: &str,
        unwritten: Range<usize>,
        write_intent: Option<(u64, Range<usize>)>,
    ) {
        let slot_at = self.slot_offset(slot);
        self.put(slot_at + REGION_OFFSETS[region], text.as_bytes());
        let words = region_word_offsets(region);
        let word = |range: Range<usize>| pack_range(range.start as u32..range.end as u32).to_le_bytes();
        self.put(slot_at + words.write_position, &word(unwritten));
        let (place, range) = write_intent.unwrap_or_default();
        self.put(slot_at + words.write_intent, &word(range));
        self.put(slot_at + words.write_intent_offset, &place.to_le_bytes());
    }

    /// Fills a region of a ring that has wrapped `wrap_count` times: the newer text is at its beginning, the older text,
    /// which need not begin with a complete record, at `start`.
    pub fn put_wrapped_ring(
        &mut self,
        slot: usize,
        region: usize,
        wrap_count: u32,
        (start, older): (usize, &str),
        newer: &str,
    ) {
        self.put_region(slot, region, newer, start..newer.len(), None);
        self.put(self.slot_offset(slot) + REGION_OFFSETS[region] + start, older.as_bytes());
        let wrap_position = (start + older.len()) as u32;
        self.put(self.slot_offset(slot) + region_word_offsets(region).wrap_position, &wrap_position.to_le_bytes());
        self.set_wrap_count(slot, region, wrap_count);
    }

    /// Notes that the slot's thread, of process 1, was unlocking the mutex at `object` at `time`, nanoseconds since the Epoch.
    pub fn set_in_flight(&mut self, slot: usize, object: u64, time: u64) {
        let at = self.slot_offset(slot);
        let note = (id::MUTEX_UNLOCK.index() as u64) << IN_FLIGHT_EVENT_AT | object;
        self.put(at + offset_of!(SlotHeader, in_flight), &note.to_le_bytes());
        self.put(at + offset_of!(SlotHeader, in_flight_since), &time.to_le_bytes());
        self.put(at + offset_of!(SlotHeader, tid), &0x7fc5_de3f_86c0u64.to_le_bytes());
    }

    /// Sets how often a region of a ring has wrapped.
    pub fn set_wrap_count(&mut self, slot: usize, region: usize, wrap_count: u32) {
        self.put(self.slot_offset(slot) + region_word_offsets(region).wrap_count, &wrap_count.to_le_bytes());
    }

    /// Sets how many bytes of the record file with this number are written or given to a writer.
    pub fn set_file_end(&mut self, number: u16, end: usize) {
        let at = PAGE + usize::from(number) * size_of::<FileEntry>() + offset_of!(FileEntry, end);
        self.put(at, &(end as u64).to_le_bytes());
    }

    /// Sets from when on a slot's thread is complete, nanoseconds since the Epoch.
    pub fn set_complete_from(&mut self, slot: usize, time: u64) {
        self.put(self.slot_offset(slot) + offset_of!(SlotHeader, complete_from), &time.to_le_bytes());
    }

    /// Sets how many records a slot's thread lost without a loss record, and why.
    pub fn set_lost(&mut self, slot: usize, records: u32, cause: u32) {
        let at = self.slot_offset(slot);
        self.put(at + offset_of!(SlotHeader, lost), &records.to_le_bytes());
        self.put(at + offset_of!(SlotHeader, cause), &cause.to_le_bytes());
    }

    /// Sets how many records the process has lost, and how many of these of threads without a slot.
    pub fn set_all_lost(&mut self, records: u64, without_slot: u64) {
        self.put(CONTROL_OFFSET + offset_of!(ControlWords, lost), &records.to_le_bytes());
        self.put(CONTROL_OFFSET + offset_of!(ControlWords, lost_without_slot), &without_slot.to_le_bytes());
    }
}
