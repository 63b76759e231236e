//! What the recorder does to the words of a ring before it appends a record.

use crate::trace::buffers::ring_snapshot::RingSnapshot;

/// What was done to make room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoomMade {
    /// Nothing: there was room.
    None,
    /// The oldest records were discarded.
    Discarded,
    /// The ring wrapped.
    Wrapped,
}

/// A ring that nothing was recorded to.
pub const EMPTY_RING: RingSnapshot =
    RingSnapshot { wrap_count: 0, start: 0, end: 0, wrap_position: 0, is_being_written: false };

/// Makes room for `needed` bytes in a ring of `size` bytes that discards `step` bytes at a time.
pub fn make_room(ring: &mut RingSnapshot, needed: u32, size: u32, step: u32) -> RoomMade {
    if ring.start <= ring.end && ring.end + needed > size {
        (ring.wrap_position, ring.wrap_count) = (ring.end, ring.wrap_count + 1);
        (ring.start, ring.end) = (step, 0);
        RoomMade::Wrapped
    } else if ring.start > ring.end && ring.end + needed > ring.start {
        ring.start = (ring.end + needed).next_multiple_of(step);
        if ring.start >= ring.wrap_position {
            ring.start = 0;
        }
        RoomMade::Discarded
    } else {
        RoomMade::None
    }
}
