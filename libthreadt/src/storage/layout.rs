//! The layout of this process's slots, and the room that records need in a region.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use spec::buffer::{REGIONS, SlotLayout};
use spec::encode::{ENCODE_ROOM, encode_room};

/// [`SlotLayout::ring_size`] of this process's slots.
#[unsafe(link_section = "inherited")]
static RING_SIZE: AtomicU64 = AtomicU64::new(0);

pub fn slot_layout() -> SlotLayout {
    SlotLayout::ring(RING_SIZE.load(Relaxed)).unwrap_or(SlotLayout::BUFFERS)
}

/// Sets the layout; no thread may have a slot.
pub fn set_slot_layout(layout: SlotLayout) {
    RING_SIZE.store(layout.ring_size(), Relaxed);
}

/// The most records that are appended at once.
pub const RECORDS_AT_ONCE: usize = 2;

/// Room that is kept in a region for the loss record.
pub const LOSS_RECORD_ROOM: u32 = ENCODE_ROOM as u32;

/// Room that is kept in the first region beyond where it is full. When recording stops, a full region is not written:
/// there must be room for the records that were stamped before, and for the loss record.
pub const RESERVE: u32 = LOSS_RECORD_ROOM + 2 * encode_room(RECORDS_AT_ONCE) as u32;

/// Room that must be free when an append begins: for the records that are appended at once, and the loss record.
pub const APPEND_ROOM: u32 = encode_room(RECORDS_AT_ONCE) as u32 + LOSS_RECORD_ROOM;

/// Bytes between the offset from which a flush point is sought and the one where a region is full: some fifty records.
pub const FLUSH_POINT_SLACK: u32 = 4096;

/// Up to which offset region `depth` may be filled before records that are appended at once have no room.
pub fn capacity(depth: usize) -> u32 {
    slot_layout().region_size(depth) as u32 - encode_room(RECORDS_AT_ONCE) as u32
}

const _: () = {
    let mut depth = 0;
    while depth < REGIONS {
        // When a ring wraps, the step that it gives up has room.
        let step = SlotLayout::BUFFERS.ring_step(depth);
        assert!(step >= APPEND_ROOM as usize && step.is_power_of_two());
        depth += 1;
    }
};
