//! `trbuf`: a process's record buffers, in a file so that they outlive it.
//!
//! ```text
//! 0          Header      whose buffers these are
//! 4096       FileEntry × 4096, by yyy      how far each tr file is given away
//! SLOTS_OFFSET   slot 0: SlotHeader (one page), then the regions' text
//!            slot 1 …
//! ```
//!
//! A slot belongs to one thread at a time. Its four regions are for four depths of nesting: a signal handler that
//! interrupts a record writes to the next region, so that neither overwrites the other. In each region the bytes
//! `start..end` of the word `write_position` are whole records that are not yet in the tr file.
//!
//! # Rings
//!
//! With `THR_TRACE_RING` nothing is written before the process ends: each region is a ring, and the first one has the
//! size that was asked for ([`SlotLayout`]). When records reach the end of a region they begin anew at 0, and overwrite the
//! oldest. Then `start` is greater than `end`: the older records stand in `start..wrap_position`, the newer ones in
//! `0..end`. `start` goes ahead of `end` in steps of [`SlotLayout::ring_step`], and need not be where a record begins: the
//! first one whole begins behind the next newline. It is stored before anything behind the old `start` is overwritten, so
//! that a reader of a dead process's trbuf finds whole records only. One who reads while the process runs looks at `write_position`
//! and `wrap_count` again after copying the text; where a ring begins anew `wrap_count` is stored after `write_position`, and until then `end`
//! is 0.
//!
//! # How text gets from a region to its file, exactly once
//!
//! 1. The writer takes the range `end..end + n` of the file by adding to [`FileEntry::end`]. Nobody else writes there.
//! 2. It notes range and place in the region: `write_intent_offset`, then `write_intent`.
//! 3. It writes the bytes at that place.
//! 4. It empties `write_position`, then clears `write_intent`.
//!
//! Death before 2 leaves the text in `write_position`. Death between 2 and 4 leaves `write_intent`, and writing those bytes to that
//! place once more is right however many of them arrived. So whoever finds the file (trace-cat, or the next image
//! after an `exec`) completes it with [`RegionLeftover::write_intent`] and then appends [`RegionLeftover::older`] and [`RegionLeftover::unwritten`].

use core::ops::Range;
use core::sync::atomic::{AtomicI32, AtomicU8, AtomicU32, AtomicU64, AtomicUsize};

use crate::encode::{Template, encode_room};

/// The first bytes of a trbuf.
pub const MAGIC: [u8; 16] = *b"threadt trbuf\n\0\0";
/// The layout's number; another one is not read.
pub const VERSION: u32 = 2;
/// Size of the header and of a slot's header, bytes.
pub const PAGE: usize = 4096;
/// Where the first slot begins.
pub const SLOTS_OFFSET: usize = PAGE + 4096 * size_of::<FileEntry>();
/// Depths of nesting that a slot has room for.
pub const REGIONS: usize = 4;
/// Where each region begins in a slot. The first one, whose size differs, comes last.
pub const REGION_OFFSETS: [usize; REGIONS] = [PAGE + 16 * 1024, PAGE, PAGE + 8 * 1024, PAGE + 12 * 1024];
/// Bytes of each region, but for the first one of a ring.
const REGION_SIZE: [usize; REGIONS] = [144 * 1024, 8 * 1024, 4 * 1024, 4 * 1024];
/// The least and the most bytes of a ring.
pub const RING_SIZES: core::ops::RangeInclusive<u64> = 64 * 1024..=1024 * 1024 * 1024;

/// How large a process's slots are: the same for all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotLayout {
    /// Bytes of the first region if it is a ring, a multiple of [`PAGE`]; else 0.
    ring: u32,
}

impl SlotLayout {
    /// Slots whose regions are emptied into a file when they are full.
    pub const BUFFERS: SlotLayout = SlotLayout { ring: 0 };

    /// Slots whose regions are rings, the first one of at least `size` bytes.
    ///
    /// `None` if the size is not one of [`RING_SIZES`].
    pub const fn ring(size: u64) -> Option<SlotLayout> {
        if size < *RING_SIZES.start() || size > *RING_SIZES.end() {
            return None;
        }
        Some(SlotLayout { ring: (size as u32).next_multiple_of(PAGE as u32) })
    }

    /// The layout that a trbuf's header names.
    const fn from_header(ring: u64) -> Option<SlotLayout> {
        if ring == 0 {
            return Some(SlotLayout::BUFFERS);
        }
        match SlotLayout::ring(ring) {
            Some(layout) if layout.ring as u64 == ring => Some(layout),
            _ => None,
        }
    }

    /// Bytes of the first region if it is a ring, else 0: what the header holds.
    pub const fn ring_size(self) -> u64 {
        self.ring as u64
    }

    /// Whether the regions are rings.
    pub const fn is_ring(self) -> bool {
        self.ring != 0
    }

    /// Bytes of region `region`, less than [`REGIONS`].
    #[inline]
    pub const fn region_size(self, region: usize) -> usize {
        if region == 0 && self.ring != 0 { self.ring as usize } else { REGION_SIZE[region & (REGIONS - 1)] }
    }

    /// By how many bytes at a time a ring gives up its oldest records.
    pub const fn ring_step(self, region: usize) -> usize {
        let part = self.region_size(region) / 4;
        if part < PAGE { part } else { PAGE }
    }

    /// Bytes of text in a slot, all regions together.
    pub const fn text_size(self) -> usize {
        REGION_OFFSETS[0] - PAGE + self.region_size(0)
    }

    /// Bytes of a slot.
    pub const fn slot_size(self) -> usize {
        PAGE + self.text_size()
    }

    /// Where in the trbuf slot `index` begins.
    pub const fn slot_offset(self, index: u64) -> u64 {
        SLOTS_OFFSET as u64 + index * self.slot_size() as u64
    }
}

/// Longest path of a tr file that a slot can hold, with its terminating NUL.
pub const SLOT_PATH_MAX: usize = PAGE - 1024;

/// A slot that nobody owns.
pub const SLOT_FREE: u32 = 0;
/// A slot of a thread that lives, or of one whose end was not seen.
pub const SLOT_OWNED: u32 = 1;
/// A slot of a thread that is about to end or has ended; it may still record.
pub const SLOT_ENDED: u32 = 2;

/// The first page of a trbuf.
#[derive(Debug)]
#[repr(C)]
pub struct Header {
    /// [`MAGIC`], stored last.
    pub magic: [u8; 16],
    /// [`VERSION`].
    pub version: u32,
    /// The owner's process ID, in its own PID namespace.
    pub pid: u32,
    /// Inode of the owner's PID namespace.
    pub pid_namespace: u64,
    /// The owner's start time, clock ticks since boot, from `/proc/PID/stat`.
    pub start_time: u64,
    /// The boot ID, as in `/proc/sys/kernel/random/boot_id`.
    pub boot_id: [u8; 36],
    /// Unused.
    pub reserved: u32,
    /// Nanoseconds from `CLOCK_MONOTONIC` to the Epoch.
    pub realtime_offset: i64,
    /// [`SlotLayout::ring_size`] of the slots.
    pub ring_size: u64,
}

/// What is known of the tr file with one `yyy`. A cache line of its own: threads that are made one after the other have
/// neighbouring ones.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct FileEntry {
    /// Its inode number; 0 while it has not been made.
    pub inode: AtomicU64,
    /// The device that holds it.
    pub device: AtomicU64,
    /// Bytes of it that are written or given to a writer.
    pub end: AtomicU64,
    /// Slots whose records go there.
    pub users: AtomicU32,
    /// Unused.
    pub reserved: u32,
}

/// One depth's text in a slot.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Region {
    /// Low half: where the unwritten records start; high half: where they end.
    pub write_position: AtomicU64,
    /// A record may begin below this many bytes; 0 when each record is to be written at once.
    pub flush_threshold: AtomicU32,
    /// In a ring: where the older records end, when `start` is greater than `end`.
    pub wrap_position: AtomicU32,
    /// The range that is on its way to the file, packed as `write_position` is; 0 for none.
    pub write_intent: AtomicU64,
    /// Where in the file `write_intent` goes.
    pub write_intent_offset: AtomicU64,
    /// In a ring: how often it has begun anew.
    pub wrap_count: AtomicU32,
}

/// The first page of a slot.
#[derive(Debug)]
#[repr(C)]
pub struct SlotHeader {
    /// [`SLOT_FREE`], [`SLOT_OWNED`] or [`SLOT_ENDED`].
    pub state: AtomicU32,
    /// The LWP whose records are here.
    pub lwp: AtomicU32,
    /// The LWP that is writing this slot's text to its file; 0 for none.
    pub writer: AtomicU32,
    /// If the writer is the owner: at which depth of nesting; 255 if it writes all regions.
    pub writer_depth: AtomicU8,
    /// 1 when the thread has recorded its own end.
    pub exit_recorded: AtomicU8,
    /// 1 when the slot is not in the file but in anonymous memory.
    pub anonymous: AtomicU8,
    /// Unused.
    pub reserved: u8,
    /// Records of this thread that were dropped and not yet told of.
    pub lost: AtomicU32,
    /// The errno that was the last drop's cause.
    pub cause: AtomicU32,
    /// In the first slot of a chunk: how many slots were mapped together.
    pub chunk_slots: AtomicU32,
    /// In the first slot of a chunk: the chunk mapped before it, an address in the owner's memory.
    pub next_chunk: AtomicUsize,
    /// The next slot of a list of free ones, an address in the owner's memory.
    pub next_free: AtomicU64,
    /// The record in progress: where its stack is (the low 48 bits) and, above, how many there are, one in another;
    /// 0 for none.
    pub in_progress: AtomicU64,
    /// When the oldest record of a ring that overwrote older ones was made, nanoseconds since the Epoch: set when the ring is
    /// written out; 0 if it has overwritten nothing.
    pub complete_from: AtomicU64,
    /// In a ring: the how-manieth thread to end its owner was, of those that did; the longest dead has the least.
    pub death_order: AtomicU64,
    /// Locks that the thread has taken since its buffer was nearly full, less those that it has given back.
    pub held_since_flush_point: AtomicI32,
    /// The least that `held_since_flush_point` was.
    pub fewest_held_since_flush_point: AtomicI32,
    /// What `in_progress` was when a record began within another; the first is that of the record one deep.
    pub outer_records: [AtomicU64; REGIONS],
    /// The columns that do not change, one for each depth.
    pub templates: [Template; REGIONS],
    /// The regions.
    pub regions: [Region; REGIONS],
}

const _: () = {
    assert!(size_of::<Header>() <= PAGE);
    // No two threads write to one cache line on the way of a record: slots have pages of their own, entries lines.
    assert!(size_of::<FileEntry>() == 64 && SLOTS_OFFSET.is_multiple_of(PAGE));
    assert!(SlotLayout::BUFFERS.slot_size().is_multiple_of(PAGE));
    assert!(size_of::<SlotHeader>() <= PAGE - SLOT_PATH_MAX);
    assert!(REGION_OFFSETS[1] == PAGE && REGION_OFFSETS[3] + REGION_SIZE[3] == REGION_OFFSETS[0]);
    // A step of the smallest ring is more than what records made together may need.
    assert!(SlotLayout::BUFFERS.ring_step(3) > encode_room(2));
};

/// Where in a slot its tr file's path is.
pub const SLOT_PATH_OFFSET: usize = PAGE - SLOT_PATH_MAX;

/// The two halves of a `write_position` or `write_intent` word.
pub const fn unpack_range(word: u64) -> Range<u32> {
    word as u32..(word >> 32) as u32
}

/// Whether a `write_position` word says that there is nothing.
pub const fn is_empty_range(write_position: u64) -> bool {
    write_position as u32 == (write_position >> 32) as u32
}

/// A range as a `write_position` or `write_intent` word.
pub const fn pack_range(range: Range<u32>) -> u64 {
    range.start as u64 | (range.end as u64) << 32
}

/// What is wrong with a trbuf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damage {
    /// It is shorter than its header.
    Short,
    /// It does not begin with [`MAGIC`]: its owner died while it was being made, or it is something else.
    Magic,
    /// Its layout has this number, which is not [`VERSION`].
    Version(u32),
    /// Its slots would be rings of this many bytes, which is not one of [`RING_SIZES`] or no multiple of a page.
    Ring(u64),
    /// A region's words do not lie within it.
    Region(usize),
    /// A region holds something else than whole records.
    Text(usize),
}

impl core::fmt::Display for Damage {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Damage::Short => write!(out, "shorter than its header"),
            Damage::Magic => write!(out, "not a finished trbuf"),
            Damage::Version(version) => write!(out, "layout version {version}, expected {VERSION}"),
            Damage::Ring(size) => write!(out, "rings of {size} bytes"),
            Damage::Region(region) => write!(out, "region {region} has impossible bounds"),
            Damage::Text(region) => write!(out, "region {region} does not hold whole records"),
        }
    }
}

/// Whose buffers a trbuf holds: its header, decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The process ID, in its own PID namespace.
    pub pid: u32,
    /// Inode of that namespace.
    pub pid_namespace: u64,
    /// Start time, clock ticks since boot.
    pub start_time: u64,
    /// The boot ID.
    pub boot_id: [u8; 36],
    /// Nanoseconds from `CLOCK_MONOTONIC` to the Epoch.
    pub realtime_offset: i64,
    /// How large its slots are.
    pub layout: SlotLayout,
}

/// The `N` bytes at `at`.
fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at.checked_add(N)?)?.try_into().ok()
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    array(bytes, at).map(u32::from_le_bytes)
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    array(bytes, at).map(u64::from_le_bytes)
}

impl Owner {
    /// Decodes the first page of a trbuf.
    ///
    /// # Errors
    /// [`Damage::Short`], [`Damage::Magic`], [`Damage::Version`] or [`Damage::Ring`].
    pub fn parse(bytes: &[u8]) -> Result<Owner, Damage> {
        let magic: [u8; 16] = array(bytes, 0).ok_or(Damage::Short)?;
        if magic != MAGIC {
            return Err(Damage::Magic);
        }
        let version = u32_at(bytes, core::mem::offset_of!(Header, version)).ok_or(Damage::Short)?;
        if version != VERSION {
            return Err(Damage::Version(version));
        }
        let ring = u64_at(bytes, core::mem::offset_of!(Header, ring_size)).ok_or(Damage::Short)?;
        let layout = SlotLayout::from_header(ring).ok_or(Damage::Ring(ring))?;
        let parse = || {
            Some(Owner {
                pid: u32_at(bytes, core::mem::offset_of!(Header, pid))?,
                pid_namespace: u64_at(bytes, core::mem::offset_of!(Header, pid_namespace))?,
                start_time: u64_at(bytes, core::mem::offset_of!(Header, start_time))?,
                boot_id: array(bytes, core::mem::offset_of!(Header, boot_id))?,
                realtime_offset: u64_at(bytes, core::mem::offset_of!(Header, realtime_offset))? as i64,
                layout,
            })
        };
        parse().ok_or(Damage::Short)
    }
}

/// What one region of a dead process's slot still holds, as ranges of the slot's bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegionLeftover {
    /// Bytes that belong at a place in the tr file and may or may not be there, all or in part.
    pub write_intent: Option<(u64, Range<usize>)>,
    /// Bytes that are in no file, of a ring that has begun anew; the first whole record is what follows their first newline.
    pub older: Range<usize>,
    /// Bytes that are in no file, after those.
    pub unwritten: Range<usize>,
}

/// The LWP that a slot belongs to, or `None` if it has never had an owner.
///
/// # Errors
/// [`Damage::Short`] if `slot` has no room for its header.
pub fn slot_lwp(slot: &[u8]) -> Result<Option<u32>, Damage> {
    let lwp = u32_at(slot, core::mem::offset_of!(SlotHeader, lwp)).ok_or(Damage::Short)?;
    Ok((lwp != 0).then_some(lwp))
}

/// How many records of its threads a slot dropped that no trace_lost record tells of, and the errno of the last drop's
/// cause; `None` if there are none.
///
/// # Errors
/// [`Damage::Short`] if `slot` has no room for its header.
pub fn slot_lost(slot: &[u8]) -> Result<Option<(u32, u32)>, Damage> {
    let lost = u32_at(slot, core::mem::offset_of!(SlotHeader, lost)).ok_or(Damage::Short)?;
    let cause = u32_at(slot, core::mem::offset_of!(SlotHeader, cause)).ok_or(Damage::Short)?;
    Ok((lost != 0).then_some((lost, cause)))
}

/// The LWP that is writing a slot's text to its file, 0 for none.
///
/// # Errors
/// [`Damage::Short`] if `slot` has no room for its header.
pub fn slot_writer(slot: &[u8]) -> Result<u32, Damage> {
    u32_at(slot, core::mem::offset_of!(SlotHeader, writer)).ok_or(Damage::Short)
}

/// Where in a slot the words of region `region` (less than [`REGIONS`]) are.
pub const fn region_word_offsets(region: usize) -> RegionWordOffsets {
    let at = core::mem::offset_of!(SlotHeader, regions) + region * size_of::<Region>();
    RegionWordOffsets {
        write_position: at + core::mem::offset_of!(Region, write_position),
        write_intent: at + core::mem::offset_of!(Region, write_intent),
        write_intent_offset: at + core::mem::offset_of!(Region, write_intent_offset),
        wrap_position: at + core::mem::offset_of!(Region, wrap_position),
        wrap_count: at + core::mem::offset_of!(Region, wrap_count),
    }
}

/// Where the words that say how far a region's text has come are; eight bytes each, the last two four.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegionWordOffsets {
    /// [`Region::write_position`].
    pub write_position: usize,
    /// [`Region::write_intent`].
    pub write_intent: usize,
    /// [`Region::write_intent_offset`].
    pub write_intent_offset: usize,
    /// [`Region::wrap_position`].
    pub wrap_position: usize,
    /// [`Region::wrap_count`].
    pub wrap_count: usize,
}

/// What region `region` (less than [`REGIONS`]) of a slot still holds. `slot` has the slot's first page at least.
///
/// # Errors
/// [`Damage`] if the page is cut short or its words are impossible; the text itself is not looked at.
pub fn region_leftover(slot: &[u8], layout: SlotLayout, region: usize) -> Result<RegionLeftover, Damage> {
    let at = region_word_offsets(region);
    let word = |at: usize| u64_at(slot, at).ok_or(Damage::Short);
    let (write_position, write_intent, write_intent_offset) =
        (unpack_range(word(at.write_position)?), unpack_range(word(at.write_intent)?), word(at.write_intent_offset)?);
    let wrap_position = u32_at(slot, at.wrap_position).ok_or(Damage::Short)?;
    let &base = REGION_OFFSETS.get(region).ok_or(Damage::Region(region))?;
    let is_wrapped = layout.is_ring() && write_position.start > write_position.end;
    let (older, newer) =
        if is_wrapped { (write_position.start..wrap_position, 0..write_position.end) } else { (0..0, write_position) };
    let within = |range: &Range<u32>| range.start <= range.end && range.end as usize <= layout.region_size(region);
    if ![&older, &newer, &write_intent].into_iter().all(within) {
        return Err(Damage::Region(region));
    }
    let bytes = |range: Range<u32>| base + range.start as usize..base + range.end as usize;
    if write_intent.is_empty() {
        return Ok(RegionLeftover { write_intent: None, older: bytes(older), unwritten: bytes(newer) });
    }
    // Step 4 empties `write_position` first; until then it begins with what is write_intent.
    let begins_with_pending = |range: &Range<u32>| range.start == write_intent.start && range.end >= write_intent.end;
    let is_beside_pending =
        |range: &Range<u32>| range.is_empty() || range.start >= write_intent.end || range.end <= write_intent.start;
    let (older, newer) = if is_wrapped {
        // The older records go first, from where the first whole one begins.
        if write_intent.start < older.start || write_intent.end != older.end || !is_beside_pending(&newer) {
            return Err(Damage::Region(region));
        }
        (0..0, newer)
    } else if begins_with_pending(&newer) {
        (0..0, write_intent.end..newer.end)
    } else if is_beside_pending(&newer) {
        // Step 4 is half done; a signal handler may have added records meanwhile.
        (0..0, newer)
    } else {
        return Err(Damage::Region(region));
    };
    Ok(RegionLeftover {
        write_intent: Some((write_intent_offset, bytes(write_intent))),
        older: bytes(older),
        unwritten: bytes(newer),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: usize = REGION_OFFSETS[0];

    fn slot(write_position: Range<u32>, write_intent: Range<u32>, at: u64) -> Vec<u8> {
        let mut slot = vec![0u8; PAGE];
        let region = core::mem::offset_of!(SlotHeader, regions);
        let mut put = |field: usize, value: u64| slot[region + field..][..8].copy_from_slice(&value.to_le_bytes());
        put(core::mem::offset_of!(Region, write_position), pack_range(write_position));
        put(core::mem::offset_of!(Region, write_intent), pack_range(write_intent));
        put(core::mem::offset_of!(Region, write_intent_offset), at);
        slot
    }

    #[test]
    fn nothing_pending() {
        let leftover = region_leftover(&slot(0..83, 0..0, 9), SlotLayout::BUFFERS, 0).unwrap();
        assert_eq!(leftover, RegionLeftover { write_intent: None, older: AT..AT, unwritten: AT..AT + 83 });
    }

    #[test]
    fn a_write_in_the_middle() {
        let leftover = region_leftover(&slot(0..200, 0..83, 1000), SlotLayout::BUFFERS, 0).unwrap();
        assert_eq!(leftover.write_intent, Some((1000, AT..AT + 83)));
        assert_eq!(leftover.unwritten, AT + 83..AT + 200);
    }

    #[test]
    fn a_write_that_was_done_but_not_cleared() {
        let leftover = region_leftover(&slot(0..0, 0..83, 1000), SlotLayout::BUFFERS, 0).unwrap();
        assert_eq!(leftover.write_intent, Some((1000, AT..AT + 83)));
        assert!(leftover.unwritten.is_empty());
    }

    #[test]
    #[expect(clippy::reversed_empty_ranges, reason = "such words are what is tested")]
    fn impossible_words_are_damage() {
        let size = SlotLayout::BUFFERS.region_size(0) as u32;
        for (write_position, write_intent) in [(5..4, 0..0), (0..size + 1, 0..0), (0..100, 50..40), (10..100, 20..40)] {
            assert_eq!(
                region_leftover(&slot(write_position.clone(), write_intent.clone(), 0), SlotLayout::BUFFERS, 0),
                Err(Damage::Region(0)),
                "{write_position:?} {write_intent:?}"
            );
        }
        assert_eq!(region_leftover(&[0; 100], SlotLayout::BUFFERS, 0), Err(Damage::Short));
        assert_eq!(region_leftover(&slot(0..0, 0..0, 0), SlotLayout::BUFFERS, REGIONS), Err(Damage::Region(REGIONS)));
    }

    #[test]
    #[expect(clippy::reversed_empty_ranges, reason = "such words are what is tested")]
    fn a_ring_that_has_begun_anew() {
        let layout = SlotLayout::ring(64 * 1024).unwrap();
        let of = |write_position, write_intent: Range<u32>| {
            let mut slot = slot(write_position, write_intent, 7);
            slot[region_word_offsets(0).wrap_position..][..4].copy_from_slice(&60_000u32.to_le_bytes());
            region_leftover(&slot, layout, 0)
        };
        let parts = |start: usize, end: usize| AT + start..AT + end;
        let whole = of(4096..100, 0..0).unwrap();
        assert_eq!(whole, RegionLeftover { write_intent: None, older: parts(4096, 60_000), unwritten: parts(0, 100) });
        // On its way to the file, from the first whole record on; and after that has arrived.
        let written =
            RegionLeftover { write_intent: Some((7, parts(4100, 60_000))), older: AT..AT, unwritten: parts(0, 100) };
        assert_eq!(of(4096..100, 4100..60_000), Ok(written.clone()));
        assert_eq!(of(0..100, 4100..60_000), Ok(written));
        for (write_position, write_intent) in
            [(60_001..100, 0..0), (4096..100, 4100..59_000), (4096..100, 4000..60_000)]
        {
            assert_eq!(
                of(write_position.clone(), write_intent.clone()),
                Err(Damage::Region(0)),
                "{write_position:?} {write_intent:?}"
            );
        }
    }

    #[test]
    fn rings_have_sizes_of_whole_pages() {
        assert_eq!(SlotLayout::ring(64 * 1024 - 1), None);
        assert_eq!(SlotLayout::ring((1 << 30) + 1), None);
        let layout = SlotLayout::ring(100_000).unwrap();
        assert_eq!((layout.ring_size(), layout.slot_size() % PAGE), (102_400, 0));
        assert_eq!(SlotLayout::from_header(layout.ring_size()), Some(layout));
        assert_eq!((SlotLayout::from_header(0), SlotLayout::from_header(100_000)), (Some(SlotLayout::BUFFERS), None));
    }

    #[test]
    fn losses_that_were_not_told() {
        let mut slot = vec![0u8; PAGE];
        assert_eq!(slot_lost(&slot), Ok(None));
        slot[core::mem::offset_of!(SlotHeader, cause)] = 28;
        assert_eq!(slot_lost(&slot), Ok(None));
        slot[core::mem::offset_of!(SlotHeader, lost)] = 7;
        assert_eq!(slot_lost(&slot), Ok(Some((7, 28))));
        assert_eq!(slot_lost(&slot[..8]), Err(Damage::Short));
    }

    #[test]
    fn a_header_that_is_cut_or_other_is_damage() {
        let mut page = vec![0u8; PAGE];
        assert_eq!(Owner::parse(&page), Err(Damage::Magic));
        page[..16].copy_from_slice(&MAGIC);
        assert_eq!(Owner::parse(&page), Err(Damage::Version(0)));
        page[16] = VERSION as u8;
        assert_eq!(Owner::parse(&page).unwrap().pid, 0);
        assert_eq!(Owner::parse(&page[..60]), Err(Damage::Short));
        assert_eq!(Owner::parse(&[]), Err(Damage::Short));
    }
}
