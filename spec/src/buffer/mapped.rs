//! The structures that a process and its readers share through the mapped file.

use core::cell::UnsafeCell;
use core::mem::offset_of;
use core::sync::atomic::{AtomicI32, AtomicU8, AtomicU32, AtomicU64, AtomicUsize};

use super::layout::{FILE_ENTRY_SIZE, PAGE, REGIONS, SLOT_PATH_MAX};
use crate::encode::Template;

/// The first bytes of a trbuf.
pub const MAGIC: [u8; 16] = *b"threadt trbuf\n\0\0";
/// The number of this layout; readers refuse another one.
pub const VERSION: u32 = 3;

/// A slot that nobody owns.
pub const SLOT_FREE: u32 = 0;
/// A slot of a thread that lives, or whose end was not recorded.
pub const SLOT_OWNED: u32 = 1;
/// A slot of a thread that is about to end or has ended; the thread may still record.
pub const SLOT_ENDED: u32 = 2;

/// Where in the word `in_flight` of a [`SlotHeader`] the event begins. An address of a program has at most 56 bits.
pub const IN_FLIGHT_EVENT_AT: u32 = 57;

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
    /// Nanoseconds from `CLOCK_MONOTONIC` of the initial time namespace to the Epoch.
    pub realtime_offset: i64,
    /// [`SlotLayout::ring_size`](super::SlotLayout::ring_size) of the slots.
    pub ring_size: u64,
}

/// The state of the tr file with one `yyy`. Each entry has a cache line of its own, because threads that are made one
/// after the other have neighbouring entries.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct FileEntry {
    /// The file's inode number; 0 before it is made.
    pub inode: AtomicU64,
    /// The device that holds the file.
    pub device: AtomicU64,
    /// Bytes of the file that are written or given to a writer.
    pub end: AtomicU64,
    /// How many slots have records for this file.
    pub users: AtomicU32,
    /// Unused.
    pub reserved: u32,
}

/// The state of the text of one depth of nesting. The words `write_position` and `write_intent` hold ranges, packed by
/// [`pack_range`](super::pack_range).
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Region {
    /// The range of the records that are not yet in the file; the next record is written at its end.
    pub write_position: AtomicU64,
    /// A record may begin below this many bytes; 0 if each record goes to the file at once.
    pub flush_threshold: AtomicU32,
    /// In a ring whose `write_position` starts behind its end: where the older records end.
    pub wrap_position: AtomicU32,
    /// The range that is being written to the file; 0 for none.
    pub write_intent: AtomicU64,
    /// Where in the file the range of `write_intent` goes.
    pub write_intent_offset: AtomicU64,
    /// In a ring: how often it has wrapped.
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
    /// If the owner is the writer: the depth of nesting at which it writes, or 255 if it writes all regions.
    pub writer_depth: AtomicU8,
    /// 1 after the thread has recorded its own end.
    pub exit_recorded: AtomicU8,
    /// 1 if the slot is in anonymous memory and not in the file.
    pub anonymous: AtomicU8,
    /// Records in a row that found as many in progress as there are regions.
    pub refused: AtomicU8,
    /// Records of this thread that were dropped and that no trace_lost record counts yet.
    pub lost: AtomicU32,
    /// The errno that caused the last drop.
    pub cause: AtomicU32,
    /// In the first slot of a chunk: how many slots were mapped together.
    pub chunk_slots: AtomicU32,
    /// In the first slot of a chunk: the chunk mapped before it, an address in the owner's memory.
    pub next_chunk: AtomicUsize,
    /// The next slot of a list of free ones, an address in the owner's memory.
    pub next_free: AtomicU64,
    /// By depth: where the owner's stack was when the record in progress in this region began, an address in its memory; 0
    /// for none.
    pub in_progress: [AtomicU64; REGIONS],
    /// The time of the oldest record that is left in a ring, nanoseconds since the Epoch, if the ring has overwritten older
    /// ones; else 0. Set when the ring is written to its file.
    pub complete_from: AtomicU64,
    /// If the slot's regions are rings and the owner has ended: how many threads had ended by then, the owner included. The
    /// thread that has been dead longest has the least number.
    pub death_order: AtomicU64,
    /// Locks that the thread has acquired since its buffer was nearly full, less those that it has released.
    pub held_since_flush_point: AtomicI32,
    /// The least value that `held_since_flush_point` has had.
    pub fewest_held_since_flush_point: AtomicI32,
    /// Where the owner's stack was when it last became the writer, an address in its memory.
    pub writer_place: AtomicU64,
    /// When the first of the records in `lost` was made, nanoseconds since the Epoch; 0 if that is unknown.
    pub lost_since: AtomicU64,
    /// A release (an unlock, signal or post) between its stamp and its record: the index of its event in the table from
    /// bit [`IN_FLIGHT_EVENT_AT`] on, and its object; 0 for none.
    pub in_flight: AtomicU64,
    /// The release's stamp, a reading of the clock.
    pub in_flight_since: AtomicU64,
    /// By depth: the columns that do not change. Only the owner uses them.
    pub templates: [UnsafeCell<Template>; REGIONS],
    /// By depth: the state of the text.
    pub regions: [Region; REGIONS],
}

const _: () = {
    assert!(size_of::<Header>() <= PAGE);
    // No two threads write to one cache line while they record: slots have pages of their own, file entries lines.
    assert!(size_of::<FileEntry>() == FILE_ENTRY_SIZE && align_of::<FileEntry>() == FILE_ENTRY_SIZE);
    assert!(size_of::<SlotHeader>() <= PAGE - SLOT_PATH_MAX);
};

/// Where in a slot the words of a region are. `wrap_position` and `wrap_count` have four bytes, the others eight.
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

/// Where in a slot the words of region `region` (less than [`REGIONS`]) are.
pub const fn region_word_offsets(region: usize) -> RegionWordOffsets {
    let start = offset_of!(SlotHeader, regions) + region * size_of::<Region>();
    RegionWordOffsets {
        write_position: start + offset_of!(Region, write_position),
        write_intent: start + offset_of!(Region, write_intent),
        write_intent_offset: start + offset_of!(Region, write_intent_offset),
        wrap_position: start + offset_of!(Region, wrap_position),
        wrap_count: start + offset_of!(Region, wrap_count),
    }
}
