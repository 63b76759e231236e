//! The sizes and offsets of the header, the file entries, the slots and their regions in a trbuf.

use core::ops::RangeInclusive;

use crate::encode::encode_room;

/// Size of the header and of a slot's header, bytes.
pub const PAGE: usize = 4096;
/// Size of a file's entry: a cache line, which no other entry shares.
pub(super) const FILE_ENTRY_SIZE: usize = 64;
/// Where the first slot begins.
pub const SLOTS_OFFSET: usize = PAGE + 4096 * FILE_ENTRY_SIZE;
/// Depths of nesting that a slot has room for.
pub const REGIONS: usize = 4;
/// Where each region begins in a slot. Region 0 is behind the others, because its size differs in a ring.
pub const REGION_OFFSETS: [usize; REGIONS] = [PAGE + 16 * 1024, PAGE, PAGE + 8 * 1024, PAGE + 12 * 1024];
/// Bytes of each region, except the first one of a ring.
const REGION_SIZES: [usize; REGIONS] = [144 * 1024, 8 * 1024, 4 * 1024, 4 * 1024];
/// The least and the greatest size of a ring, bytes.
pub const RING_SIZES: RangeInclusive<u64> = 64 * 1024..=1024 * 1024 * 1024;
const _: () = {
    assert!(SLOTS_OFFSET.is_multiple_of(PAGE));
    assert!(SlotLayout::BUFFERS.slot_size().is_multiple_of(PAGE));
    assert!(REGION_OFFSETS[1] == PAGE && REGION_OFFSETS[3] + REGION_SIZES[3] == REGION_OFFSETS[0]);
    // A step of the smallest ring has room for the records that are written together.
    assert!(SlotLayout::BUFFERS.ring_step(3) > encode_room(2));
};

/// The sizes of a slot and of its regions, which are the same for all slots of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotLayout {
    /// Bytes of the first region if it is a ring, a multiple of [`PAGE`]; else 0.
    ring_size: u32,
}

impl SlotLayout {
    /// Slots whose regions are buffers: a full one is written to a file and emptied.
    pub const BUFFERS: SlotLayout = SlotLayout { ring_size: 0 };

    /// Slots whose regions are rings, the first one of at least `size` bytes.
    ///
    /// `None` if the size is not one of [`RING_SIZES`].
    pub const fn ring(size: u64) -> Option<SlotLayout> {
        if size < *RING_SIZES.start() || size > *RING_SIZES.end() {
            return None;
        }
        Some(SlotLayout { ring_size: (size as u32).next_multiple_of(PAGE as u32) })
    }

    /// The layout that a trbuf's header names by its `ring_size`, or `None` if the header is damaged.
    pub(super) const fn from_header(ring_size: u64) -> Option<SlotLayout> {
        if ring_size == 0 {
            return Some(SlotLayout::BUFFERS);
        }
        match SlotLayout::ring(ring_size) {
            Some(layout) if layout.ring_size as u64 == ring_size => Some(layout),
            _ => None,
        }
    }

    /// Bytes of the first region if it is a ring, else 0: the value in the header.
    pub const fn ring_size(self) -> u64 {
        self.ring_size as u64
    }

    /// True if the regions are rings.
    pub const fn is_ring(self) -> bool {
        self.ring_size != 0
    }

    /// Bytes of region `region`, which is less than [`REGIONS`].
    #[inline]
    pub const fn region_size(self, region: usize) -> usize {
        if region == 0 && self.is_ring() { self.ring_size as usize } else { REGION_SIZES[region & (REGIONS - 1)] }
    }

    /// How many bytes of its oldest records a ring gives up at a time.
    pub const fn ring_step(self, region: usize) -> usize {
        let quarter = self.region_size(region) / 4;
        if quarter < PAGE { quarter } else { PAGE }
    }

    /// Bytes of text in a slot, all regions together.
    pub const fn text_size(self) -> usize {
        REGION_OFFSETS[0] - PAGE + self.region_size(0)
    }

    /// Bytes of a slot.
    pub const fn slot_size(self) -> usize {
        PAGE + self.text_size()
    }

    /// Slots of a new trbuf, for the process's first threads. One that has no more can be left to another process.
    pub const fn first_slots(self) -> u32 {
        if self.is_ring() { 1 } else { 2 }
    }

    /// Bytes of a trbuf with [first slots](SlotLayout::first_slots) only.
    pub const fn first_size(self) -> u64 {
        self.slot_offset(self.first_slots() as u64)
    }

    /// Where in the trbuf slot `index` begins.
    pub const fn slot_offset(self, index: u64) -> u64 {
        SLOTS_OFFSET as u64 + index * self.slot_size() as u64
    }
}
