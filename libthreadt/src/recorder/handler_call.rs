//! Where threads have called the handler: a signal handler of the host's that interrupts it may leave it by `siglongjmp`.

use core::hint::black_box;
use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicU64, AtomicUsize};

use super::slot_adoption::pthread_self;
use crate::sys::is_readable;
use crate::sys::stack::{is_abandoned, stack_pointer};

/// A thread that is calling the handler.
struct CallingThread {
    /// The pthread_t, 0 for none.
    thread: AtomicU64,
    /// Where on the stack the call's token is.
    place: AtomicUsize,
    token: AtomicU64,
}

static CALLING: [CallingThread; 4096] =
    [const { CallingThread { thread: AtomicU64::new(0), place: AtomicUsize::new(0), token: AtomicU64::new(0) } }; 4096];
/// How many places a thread may take.
const PLACES: usize = 16;
/// The last token.
static TOKEN: AtomicU64 = AtomicU64::new(0x7a3c_91e5_0000_0000);

impl CallingThread {
    fn is(&self, thread: u64) -> bool {
        self.thread.load(Relaxed) == thread
    }

    fn forget(&self) {
        self.thread.store(0, Relaxed);
    }
}

/// The places that a thread may have.
fn places_of(thread: u64) -> impl Iterator<Item = &'static CallingThread> {
    let start = (thread.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48) as usize;
    (start..start + PLACES).filter_map(|place| CALLING.get(place % CALLING.len()))
}

/// Calls the handler by `call`, and notes that as long as it runs.
#[inline(never)]
pub fn note_call<R>(call: impl FnOnce() -> R) -> R {
    let thread = pthread_self();
    let token = TOKEN.fetch_add(1, Relaxed);
    // Where it is left, other calls overwrite it.
    let on_stack = AtomicU64::new(token);
    let is_taken =
        |noted: &&CallingThread| noted.is(thread) || noted.thread.compare_exchange(0, thread, Relaxed, Relaxed).is_ok();
    let noted = places_of(thread).find(is_taken);
    if let Some(noted) = noted {
        noted.token.store(token, Relaxed);
        noted.place.store(black_box(&raw const on_stack).addr(), Relaxed);
    }
    let result = call();
    black_box(&on_stack);
    if let Some(noted) = noted {
        noted.forget();
    }
    result
}

/// Whether this thread, which has called the handler, has left it by a jump as far as can be seen; then that is forgotten.
#[inline(never)]
pub fn was_left() -> bool {
    let (thread, here) = (pthread_self(), stack_pointer());
    let Some(noted) = places_of(thread).find(|noted| noted.is(thread)) else { return false };
    let place = noted.place.load(Relaxed);
    let is_left = if here >= place {
        is_abandoned(place, here)
    } else {
        // SAFETY: the word is on the stack of this thread, which nobody else writes to, and can be read.
        !is_readable(place) || unsafe { (place as *const u64).read_volatile() } != noted.token.load(Relaxed)
    };
    if is_left {
        noted.forget();
    }
    is_left
}
