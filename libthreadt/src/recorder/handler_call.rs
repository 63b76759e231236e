//! Where threads have called the handler: a signal handler of the host's that interrupts it may leave it by `siglongjmp`.

use core::hint::black_box;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use core::sync::atomic::{AtomicU64, AtomicUsize, compiler_fence};

use super::slot_adoption::pthread_self;
use crate::sys::stack::{is_abandoned, stack_pointer, word_of_stack};
use crate::sys::thread_word;

/// A thread that is calling the handler.
struct CallingThread {
    /// The pthread_t, 0 for none; [`UNREADY`] is added while place and token are another call's.
    thread: AtomicU64,
    /// Where on the stack the call's token is.
    place: AtomicUsize,
    token: AtomicU64,
}

static CALLING: [CallingThread; 4096] =
    [const { CallingThread { thread: AtomicU64::new(0), place: AtomicUsize::new(0), token: AtomicU64::new(0) } }; 4096];
/// No pthread_t has this bit.
const UNREADY: u64 = 1;
/// How many places a thread may take.
const PLACES: usize = 16;
/// The last token.
static TOKEN: AtomicU64 = AtomicU64::new(0x7a3c_91e5_0000_0000);

impl CallingThread {
    fn is(&self, thread: u64) -> bool {
        self.thread.load(Relaxed) == thread
    }

    /// Notes a call: `None` if there is no place for that. What an earlier call has left, which has ended, is overwritten.
    fn note(thread: u64, place: usize, token: u64) -> Option<&'static CallingThread> {
        let take = |noted: &CallingThread, old: u64| {
            noted.thread.compare_exchange(old, thread | UNREADY, Acquire, Relaxed).is_ok()
        };
        let free = places_of(thread).find(|noted| take(noted, thread) || take(noted, 0));
        // A signal handler has left this function by a jump, or has interrupted it and found no other place.
        let noted = free.or_else(|| places_of(thread).find(|noted| take(noted, thread | UNREADY)))?;
        // ORDERING: Release; a signal handler of this thread that finds the thread noted finds place and token.
        noted.place.store(place, Relaxed);
        noted.token.store(token, Relaxed);
        noted.thread.store(thread, Release);
        Some(noted)
    }

    /// If a signal handler has not done it already: another thread may have the place then.
    fn forget(&self, thread: u64) {
        let _ = self.thread.compare_exchange(thread, 0, Release, Relaxed);
    }
}

/// The places that a thread may have.
fn places_of(thread: u64) -> impl Iterator<Item = &'static CallingThread> {
    let start = (thread.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48) as usize;
    (start..start + PLACES).filter_map(|place| CALLING.get(place % CALLING.len()))
}

/// Calls the handler by `call`, and notes that as long as it runs.
///
/// A signal handler may interrupt this function anywhere, and leave it by a jump. So the call is noted before the thread gets the mark of one
/// in the handler, and until it has lost it: after a jump a mark without a note would stay for good.
#[inline(never)]
pub fn note_call<R>(call: impl FnOnce() -> R) -> R {
    let thread = pthread_self();
    let token = TOKEN.fetch_add(1, Relaxed);
    // Where it is left, other calls overwrite it.
    let on_stack = AtomicU64::new(token);
    let place = black_box(&raw const on_stack).addr();
    let mut noted = CallingThread::note(thread, place, token);
    set_handling(true);
    // A signal handler that has called the handler before the mark was there has forgotten the note.
    if noted.is_some_and(|noted| !noted.is(thread)) {
        noted = CallingThread::note(thread, place, token);
    }
    let result = call();
    set_handling(false);
    black_box(&on_stack);
    if let Some(noted) = noted {
        noted.forget(thread);
    }
    result
}

fn set_handling(handling: bool) {
    // What a signal handler sees of the notes is in the order of the program.
    compiler_fence(SeqCst);
    thread_word::set_handling(handling);
    compiler_fence(SeqCst);
}

/// If this thread has left the handler by a jump, as far as can be seen, it is not in it any more.
#[inline(never)]
pub fn notice_jump() {
    let (thread, here) = (pthread_self(), stack_pointer());
    let Some(noted) = places_of(thread).find(|noted| noted.is(thread)) else { return };
    let place = noted.place.load(Relaxed);
    let is_left =
        if here >= place { is_abandoned(place, here) } else { word_of_stack(place) != Some(noted.token.load(Relaxed)) };
    if is_left {
        set_handling(false);
        noted.forget(thread);
    }
}
