//! A note of the release that a thread is in.
//!
//! A release takes effect before its record is written. When the thread is cancelled in between, or the process ends,
//! other threads may have acquired what it released. So the thread notes the release in its slot before the call, and
//! removes the note when it has written the record. A note that stays becomes a `trace_inflight` record. So it is with a
//! call that may end its own process or thread (`pthread_kill`): without the note nothing would show it.
//!
//! There is one note: while a signal handler or a cleanup handler interrupts a release, their own releases are not noted.

use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{Ordering::SeqCst, compiler_fence};

use spec::EventId;
use spec::buffer::IN_FLIGHT_EVENT_AT;

use super::append::append;
use crate::storage::{Slot, thread_local};

/// A release that began so long ago was abandoned by a jump out of a signal handler.
const ABANDONED_NS: u64 = 1_000_000_000;

/// Notes a release that begins at `time`, a reading of the clock. Returns the slot that has the note, if one has.
#[inline(always)]
pub fn note_release(event: EventId, object: u64, time: u64) -> Option<Slot> {
    let slot = thread_local::own()?;
    let published = slot.published();
    if published.in_flight.load(Relaxed) != 0 && !replaces_abandoned(slot, time) {
        return None;
    }
    published.in_flight_since.store(time, Relaxed);
    // ORDERING: the compiler keeps the order of the two stores, and so does x86-64: a note has its time, or that of a
    // release by a signal handler that came between the two, which is also before this one takes effect.
    compiler_fence(SeqCst);
    published.in_flight.store(note(event, object), Relaxed);
    compiler_fence(SeqCst);
    Some(slot)
}

/// Removes the note that [`note_release`] has made: the release's record is written. Notes of signal handlers that
/// have interrupted it are gone, because they have returned.
#[inline(always)]
pub fn release_is_recorded(noted: Option<Slot>) {
    if let Some(slot) = noted {
        compiler_fence(SeqCst);
        slot.published().in_flight.store(0, Relaxed);
    }
}

#[inline(always)]
fn note(event: EventId, object: u64) -> u64 {
    (event.index() as u64) << IN_FLIGHT_EVENT_AT | object & ((1 << IN_FLIGHT_EVENT_AT) - 1)
}

/// Whether the release that the slot notes was abandoned; then it is recorded.
#[cold]
#[inline(never)]
fn replaces_abandoned(slot: Slot, time: u64) -> bool {
    let abandoned = time.saturating_sub(slot.published().in_flight_since.load(Relaxed)) > ABANDONED_NS;
    if abandoned {
        record_abandoned_release(slot);
    }
    abandoned
}

/// Records the release that the slot of this thread notes, if it notes one: it may have happened.
pub fn record_abandoned_release(slot: Slot) {
    let Some((time, line)) = slot.take_in_flight() else { return };
    append(slot, time, &[line]);
}
