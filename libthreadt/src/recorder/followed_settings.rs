//! Which settings threads follow that have no slots, because a handler has the records instead of the trace.

use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;

use crate::sys::thread_id;

/// The thread, by its LWP, in the upper half of a word, and the generation of the settings that it has followed last. A thread whose
/// word another one has taken records once more which settings it follows.
static FOLLOWED: [AtomicU64; 4096] = [const { AtomicU64::new(0) }; 4096];
/// How many places a thread may have.
const PLACES: usize = 8;

fn places_of(lwp: u32) -> impl Iterator<Item = &'static AtomicU64> {
    (0..PLACES).filter_map(move |step| FOLLOWED.get((lwp as usize + step) % FOLLOWED.len()))
}

fn place_of(lwp: u32) -> Option<&'static AtomicU64> {
    places_of(lwp).find(|place| place.load(Relaxed) >> 32 == u64::from(lwp))
}

/// Notes that the calling thread follows the settings of this generation. Returns whether that is new.
pub fn note_followed(generation: u32) -> bool {
    let lwp = thread_id();
    let followed = u64::from(lwp) << 32 | u64::from(generation);
    let unused = || places_of(lwp).find(|place| place.load(Relaxed) == 0);
    let place = place_of(lwp).or_else(unused).or_else(|| places_of(lwp).next());
    place.is_some_and(|place| place.swap(followed, Relaxed) != followed)
}

/// The calling thread begins: an earlier one may have had its LWP.
pub fn begin_following() {
    if let Some(place) = place_of(thread_id()) {
        place.store(0, Relaxed);
    }
}
