//! `trbuf`: a process's record buffers, in a file so that they outlive it.
//!
//! ```text
//! 0          Header      whose buffers these are
//! 4096       FileEntry × 4096, by yyy      how far each tr file is given away
//! SLOTS_AT   slot 0: SlotHeader (one page), then the regions' text
//!            slot 1 …
//! ```
//!
//! A slot belongs to one thread at a time. Its four regions are for four depths of nesting: a signal handler that
//! interrupts a record writes to the next region, so that neither overwrites the other. In each region the bytes
//! `start..length` of the word `filled` are whole records that are not yet in the tr file.
//!
//! # How text gets from a region to its file, exactly once
//!
//! 1. The writer takes the range `end..end + n` of the file by adding to [`FileEntry::end`]. Nobody else writes there.
//! 2. It notes range and place in the region: `pending_at`, then `pending`.
//! 3. It writes the bytes at that place.
//! 4. It empties `filled`, then clears `pending`.
//!
//! Death before 2 leaves the text in `filled`. Death between 2 and 4 leaves `pending`, and writing those bytes to that
//! place once more is right however many of them arrived. So whoever finds the file (trace-cat, or the next image
//! after an `exec`) completes it with [`Rest::pending`] and then appends [`Rest::unwritten`].

use core::ops::Range;
use core::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, AtomicUsize};

use crate::encode::{ENCODE_ROOM, Template};

/// The first bytes of a trbuf.
pub const MAGIC: [u8; 16] = *b"threadt trbuf\n\0\0";
/// The layout's number; another one is not read.
pub const VERSION: u32 = 1;
/// Size of the header and of a slot's header, bytes.
pub const PAGE: usize = 4096;
/// Where the first slot begins.
pub const SLOTS_AT: usize = PAGE + 4096 * size_of::<FileEntry>();
/// Bytes of text in a slot, all regions together.
pub const SLOT_TEXT: usize = 128 * 1024;
/// Bytes of a slot.
pub const SLOT_SIZE: usize = PAGE + SLOT_TEXT;
/// Depths of nesting that a slot has room for.
pub const REGIONS: usize = 4;
/// Where each region begins in a slot.
pub const REGION_AT: [usize; REGIONS] = [PAGE, PAGE + 112 * 1024, PAGE + 120 * 1024, PAGE + 124 * 1024];
/// Bytes of each region.
pub const REGION_SIZE: [usize; REGIONS] = [112 * 1024, 8 * 1024, 4 * 1024, 4 * 1024];
/// Longest path of a tr file that a slot can hold, with its terminating NUL.
pub const PATH_MAX: usize = PAGE - 1024;

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
    pub start: u64,
    /// The boot ID, as in `/proc/sys/kernel/random/boot_id`.
    pub boot_id: [u8; 36],
    /// Unused.
    pub reserved: u32,
    /// Nanoseconds from `CLOCK_MONOTONIC` to the Epoch.
    pub offset: i64,
}

/// What is known of the tr file with one `yyy`.
#[derive(Debug)]
#[repr(C)]
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
    pub filled: AtomicU64,
    /// A record may begin below this many bytes; 0 when each record is to be written at once.
    pub limit: AtomicU32,
    /// Unused.
    pub reserved: u32,
    /// The range that is on its way to the file, packed as `filled` is; 0 for none.
    pub pending: AtomicU64,
    /// Where in the file `pending` goes.
    pub pending_at: AtomicU64,
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
    pub exit_told: AtomicU8,
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
    pub chunk_next: AtomicUsize,
    /// The next slot of a list of free ones, an address in the owner's memory.
    pub next: AtomicU64,
    /// The record in the making: where its stack is (the low 48 bits) and, above, how many there are, one in another;
    /// 0 for none.
    pub making: AtomicU64,
    /// What `making` was when a record began within another; the first is that of the record one deep.
    pub below: [AtomicU64; REGIONS],
    /// The columns that do not change, one for each depth.
    pub templates: [Template; REGIONS],
    /// The regions.
    pub regions: [Region; REGIONS],
}

const _: () = {
    assert!(size_of::<Header>() <= PAGE);
    assert!(size_of::<FileEntry>() == 32);
    assert!(size_of::<SlotHeader>() <= PAGE - PATH_MAX);
    assert!(REGION_AT[3] + REGION_SIZE[3] == SLOT_SIZE);
    assert!(REGION_SIZE[3] > 2 * ENCODE_ROOM);
};

/// Where in a slot its tr file's path is.
pub const PATH_AT: usize = PAGE - PATH_MAX;

/// The two halves of a `filled` or `pending` word.
pub const fn unpack(word: u64) -> Range<u32> {
    word as u32..(word >> 32) as u32
}

/// A range as a `filled` or `pending` word.
pub const fn pack(range: Range<u32>) -> u64 {
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
    pub start: u64,
    /// The boot ID.
    pub boot_id: [u8; 36],
    /// Nanoseconds from `CLOCK_MONOTONIC` to the Epoch.
    pub offset: i64,
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
    /// [`Damage::Short`], [`Damage::Magic`] or [`Damage::Version`].
    pub fn parse(bytes: &[u8]) -> Result<Owner, Damage> {
        let magic: [u8; 16] = array(bytes, 0).ok_or(Damage::Short)?;
        if magic != MAGIC {
            return Err(Damage::Magic);
        }
        let version = u32_at(bytes, core::mem::offset_of!(Header, version)).ok_or(Damage::Short)?;
        if version != VERSION {
            return Err(Damage::Version(version));
        }
        let parse = || {
            Some(Owner {
                pid: u32_at(bytes, core::mem::offset_of!(Header, pid))?,
                pid_namespace: u64_at(bytes, core::mem::offset_of!(Header, pid_namespace))?,
                start: u64_at(bytes, core::mem::offset_of!(Header, start))?,
                boot_id: array(bytes, core::mem::offset_of!(Header, boot_id))?,
                offset: u64_at(bytes, core::mem::offset_of!(Header, offset))? as i64,
            })
        };
        parse().ok_or(Damage::Short)
    }
}

/// What one region of a dead process's slot still holds, as ranges of the slot's bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rest {
    /// Bytes that belong at a place in the tr file and may or may not be there, all or in part.
    pub pending: Option<(u64, Range<usize>)>,
    /// Bytes that are in no file.
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

/// Where in a slot the words of region `region` (less than [`REGIONS`]) are.
pub const fn words_at(region: usize) -> Words {
    let at = core::mem::offset_of!(SlotHeader, regions) + region * size_of::<Region>();
    Words {
        filled: at + core::mem::offset_of!(Region, filled),
        pending: at + core::mem::offset_of!(Region, pending),
        pending_at: at + core::mem::offset_of!(Region, pending_at),
    }
}

/// Where the words that say how far a region's text has come are; eight bytes each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Words {
    /// [`Region::filled`].
    pub filled: usize,
    /// [`Region::pending`].
    pub pending: usize,
    /// [`Region::pending_at`].
    pub pending_at: usize,
}

/// What region `region` (less than [`REGIONS`]) of `slot` still holds.
///
/// # Errors
/// [`Damage`] if the slot is cut short or its words are impossible; the text itself is not looked at.
pub fn rest(slot: &[u8], region: usize) -> Result<Rest, Damage> {
    let at = words_at(region);
    let word = |at: usize| u64_at(slot, at).ok_or(Damage::Short);
    let (filled, pending, pending_at) = (unpack(word(at.filled)?), unpack(word(at.pending)?), word(at.pending_at)?);
    let (&base, &size) = REGION_AT.get(region).zip(REGION_SIZE.get(region)).ok_or(Damage::Region(region))?;
    let within = |range: &Range<u32>| range.start <= range.end && range.end as usize <= size;
    if !within(&filled) || !within(&pending) || slot.len() < base + size {
        return Err(Damage::Region(region));
    }
    let bytes = |range: Range<u32>| base + range.start as usize..base + range.end as usize;
    if pending.is_empty() {
        return Ok(Rest { pending: None, unwritten: bytes(filled) });
    }
    // Step 4 empties `filled` first; until then it begins with what is pending.
    let unwritten = if filled.start == pending.start && filled.end >= pending.end {
        pending.end..filled.end
    } else if filled.is_empty() || filled.start >= pending.end {
        // Step 4 is half done; a signal handler may have added records meanwhile.
        filled
    } else {
        return Err(Damage::Region(region));
    };
    Ok(Rest { pending: Some((pending_at, bytes(pending))), unwritten: bytes(unwritten) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slot(filled: Range<u32>, pending: Range<u32>, at: u64) -> Vec<u8> {
        let mut slot = vec![0u8; SLOT_SIZE];
        let region = core::mem::offset_of!(SlotHeader, regions);
        let mut put = |field: usize, value: u64| slot[region + field..][..8].copy_from_slice(&value.to_le_bytes());
        put(core::mem::offset_of!(Region, filled), pack(filled));
        put(core::mem::offset_of!(Region, pending), pack(pending));
        put(core::mem::offset_of!(Region, pending_at), at);
        slot
    }

    #[test]
    fn nothing_pending() {
        let rest = rest(&slot(0..83, 0..0, 9), 0).unwrap();
        assert_eq!(rest, Rest { pending: None, unwritten: PAGE..PAGE + 83 });
    }

    #[test]
    fn a_write_in_the_middle() {
        let rest = rest(&slot(0..200, 0..83, 1000), 0).unwrap();
        assert_eq!(rest.pending, Some((1000, PAGE..PAGE + 83)));
        assert_eq!(rest.unwritten, PAGE + 83..PAGE + 200);
    }

    #[test]
    fn a_write_that_was_done_but_not_cleared() {
        let rest = rest(&slot(0..0, 0..83, 1000), 0).unwrap();
        assert_eq!(rest.pending, Some((1000, PAGE..PAGE + 83)));
        assert!(rest.unwritten.is_empty());
    }

    #[test]
    #[expect(clippy::reversed_empty_ranges, reason = "such words are what is tested")]
    fn impossible_words_are_damage() {
        let size = REGION_SIZE[0] as u32;
        for (filled, pending) in [(5..4, 0..0), (0..size + 1, 0..0), (0..100, 50..40), (10..100, 20..40)] {
            assert_eq!(
                rest(&slot(filled.clone(), pending.clone(), 0), 0),
                Err(Damage::Region(0)),
                "{filled:?} {pending:?}"
            );
        }
        assert_eq!(rest(&[0; 100], 0), Err(Damage::Short));
        assert_eq!(rest(&slot(0..0, 0..0, 0), REGIONS), Err(Damage::Region(REGIONS)));
    }

    #[test]
    fn losses_that_were_not_told() {
        let mut slot = vec![0u8; SLOT_SIZE];
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
