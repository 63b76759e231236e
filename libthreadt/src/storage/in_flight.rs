//! The record of a release that was in flight when its thread or its process ended.

use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};

use spec::buffer::IN_FLIGHT_EVENT_AT;
use spec::encode::UntimedRecord;
use spec::id;
use spec::tables::EVENTS;

use super::slot::Slot;
use crate::clock;

impl Slot {
    /// Removes the slot's note of a release, and returns the release's stamp, a reading of the clock, and the record for
    /// it; `None` if there is none.
    pub fn take_in_flight(self) -> Option<(u64, UntimedRecord)> {
        let note = self.published().in_flight.load(Acquire);
        let event = EVENTS.get((note >> IN_FLIGHT_EVENT_AT) as usize).filter(|_| note != 0)?;
        let since = self.published().in_flight_since.load(Relaxed);
        // If that fails, the owner has written its record meanwhile.
        self.published().in_flight.compare_exchange(note, 0, AcqRel, Relaxed).ok()?;
        let call = u64::from(event.category) * 100 + u64::from(event.number);
        let object = note & ((1 << IN_FLIGHT_EVENT_AT) - 1);
        Some((since, UntimedRecord { kind: &id::TRACE_INFLIGHT_0, arguments: [call, object, 0, 0, 0] }))
    }

    /// Writes the record of a release that the slot notes, if it has room. The caller must be the writer.
    pub fn append_in_flight_record(self, depth: usize) {
        if self.has_room(depth)
            && let Some((since, line)) = self.take_in_flight()
        {
            // SAFETY: the caller is the writer, and there is room.
            unsafe { self.append(depth, clock::since_epoch(since), &[line]) };
        }
    }

    /// Whether a release is in flight that began before `time` and since `earliest`, readings of the clock.
    pub fn is_releasing(self, earliest: u64, time: u64) -> bool {
        self.has_release_in_flight() && (earliest..time).contains(&self.published().in_flight_since.load(Relaxed))
    }

    /// Whether the slot's thread neither records nor releases anything.
    pub fn is_idle(self) -> bool {
        !self.has_record_in_progress() && !self.has_release_in_flight()
    }

    pub fn has_release_in_flight(self) -> bool {
        self.published().in_flight.load(Acquire) != 0
    }
}
