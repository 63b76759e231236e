//! The structures that a process and its readers share through the mapped file.

use core::mem::offset_of;
use core::sync::atomic::{AtomicU32, AtomicU64};

use super::control::ControlWords;
use super::layout::{FILE_ENTRY_SIZE, PAGE, REGIONS};

/// The first bytes of a trbuf.
pub const MAGIC: [u8; 16] = *b"threadt trbuf\n\0\0";
/// The number of this layout; readers refuse another one.
pub const VERSION: u32 = 4;

/// Text of the process's may be in memory of its own, which nobody sees after its death.
pub const NOTE_OWN_MEMORY: u32 = 1;
/// The process ended by itself, and could not write what it had left.
pub const NOTE_ENDED: u32 = 2;

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
    /// What readers need to know of the process once it is dead: [`NOTE_OWN_MEMORY`] and [`NOTE_ENDED`].
    pub notes: AtomicU32,
    /// Nanoseconds from `CLOCK_MONOTONIC` of the initial time namespace to the Epoch.
    pub realtime_offset: i64,
    /// [`SlotLayout::ring_size`](super::SlotLayout::ring_size) of the slots.
    pub ring_size: u64,
    /// What users change while the process runs.
    pub control: ControlWords,
}

/// Where in a trbuf its [`ControlWords`] are.
pub const CONTROL_OFFSET: usize = offset_of!(Header, control);

/// Words that processes in a sandbox share, in a page of their own (at its beginning) and in the first page of each trbuf
/// that was made for one of them (at [`SPARE_WORDS_OFFSET`]).
#[derive(Debug)]
#[repr(C)]
pub struct SpareWords {
    /// 1 once a process has taken the trbuf; nobody gives it back.
    pub claimed: AtomicU32,
    /// In the page: the errno of the last loss's cause.
    pub cause: AtomicU32,
    /// In the page: records of processes that found no trbuf, and of threads that found no slot.
    pub lost: AtomicU64,
    /// In the page: the time of the first of them, nanoseconds since the Epoch.
    pub since: AtomicU64,
    /// In the page: processes that found no trbuf.
    pub processes: AtomicU32,
}

/// Where in a trbuf its [`SpareWords`] are.
pub const SPARE_WORDS_OFFSET: usize = PAGE / 2;

/// The state of the tr file with one `yyy`. Each entry has a cache line of its own, because threads that are made one
/// after the other have neighbouring entries.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct FileEntry {
    /// Bytes of the file that are written or given to a writer.
    pub end: AtomicU64,
}

/// The state of the text of one depth of nesting. The words `write_position` and `write_intent` hold ranges, packed by
/// [`pack_range`](super::pack_range).
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Region {
    /// The range of the records that are not yet in the file; the next record is written at its end.
    pub write_position: AtomicU64,
    /// In a ring whose `write_position` starts behind its end: where the older records end.
    pub wrap_position: AtomicU32,
    /// The range that is being written to the file; 0 for none.
    pub write_intent: AtomicU64,
    /// Where in the file the range of `write_intent` goes.
    pub write_intent_offset: AtomicU64,
    /// In a ring: how often it has wrapped.
    pub wrap_count: AtomicU32,
}

/// The first page of a slot. What its thread acts upon is in private memory: others may map the file, too.
#[derive(Debug)]
#[repr(C)]
pub struct SlotHeader {
    /// The LWP whose records are here; 0 for none.
    pub lwp: AtomicU32,
    /// The LWP that is writing this slot's text to its file; 0 for none.
    pub writer: AtomicU32,
    /// Records of this thread that were dropped and that no trace_lost record counts yet.
    pub lost: AtomicU32,
    /// The errno that caused the last drop.
    pub cause: AtomicU32,
    /// The time of the oldest record that is left in a ring, nanoseconds since the Epoch, if the ring has overwritten older
    /// ones; else 0. Set when the ring is written to its file.
    pub complete_from: AtomicU64,
    /// `pthread_self()` of the thread whose records are here.
    pub tid: AtomicU64,
    /// A release (an unlock, signal or post) between its stamp and its record: the index of its event in the table from
    /// bit [`IN_FLIGHT_EVENT_AT`] on, and its object; 0 for none.
    pub in_flight: AtomicU64,
    /// The release's stamp, a reading of the clock.
    pub in_flight_since: AtomicU64,
    /// By depth: the state of the text.
    pub regions: [Region; REGIONS],
}

const _: () = {
    assert!(size_of::<Header>() <= SPARE_WORDS_OFFSET);
    // No two threads write to one cache line while they record: slots have pages of their own, file entries lines.
    assert!(size_of::<FileEntry>() == FILE_ENTRY_SIZE && align_of::<FileEntry>() == FILE_ENTRY_SIZE);
    assert!(size_of::<SlotHeader>() <= PAGE);
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
