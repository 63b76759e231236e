//! Threads whose system calls the kernel hands to the program by a SIGSYS (`PR_SET_SYSCALL_USER_DISPATCH`), as emulators ask for.
//!
//! The kernel does so while a byte of the program's says so, except for calls from one range of code. The program expects
//! none at a place where it makes no system call itself, so that this library makes none then.

use core::ptr::null_mut;
use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicUsize};

use super::thread_word::thread_pointer;

struct Dispatched {
    /// The thread's pointer, by which it is known without a system call; 0 for none.
    thread: AtomicUsize,
    /// The program's byte; null if the kernel does not ask.
    selector: AtomicPtr<AtomicU8>,
}

/// More threads are not noticed.
static DISPATCHED: [Dispatched; 256] =
    [const { Dispatched { thread: AtomicUsize::new(0), selector: AtomicPtr::new(null_mut()) } }; 256];
/// There has been one.
static ANY: AtomicBool = AtomicBool::new(false);

/// `SYSCALL_DISPATCH_FILTER_ALLOW`.
const ALLOW: u8 = 0;

fn of_this_thread() -> Option<&'static Dispatched> {
    let thread = thread_pointer();
    DISPATCHED.iter().find(|place| place.thread.load(Relaxed) == thread)
}

/// Whether this library's code is in this range.
pub fn has_library(start: u64, length: u64) -> bool {
    let code: fn() -> bool = is_selected;
    (code as usize as u64).wrapping_sub(start) < length
}

/// From now on the calling thread's system calls depend on the byte at `selector`, which may be null. Returns the byte before,
/// if there was one.
pub fn begin(selector: *mut u8) -> Option<*mut u8> {
    ANY.store(true, Relaxed);
    let before = of_this_thread();
    let free = |place: &&Dispatched| place.thread.compare_exchange(0, thread_pointer(), Relaxed, Relaxed).is_ok();
    let place = before.or_else(|| DISPATCHED.iter().find(free))?;
    // ORDERING: Relaxed; only this thread and its signal handlers read it.
    let old = place.selector.swap(selector.cast(), Relaxed);
    before.map(|_| old.cast())
}

/// The calling thread's system calls are the kernel's again, or it begins or ends.
pub fn end() {
    if ANY.load(Relaxed)
        && let Some(place) = of_this_thread()
    {
        place.thread.store(0, Relaxed);
    }
}

/// In a forked child, to which the kernel does not hand on the mode.
pub fn forget() {
    if ANY.load(Relaxed) {
        DISPATCHED.iter().for_each(|place| place.thread.store(0, Relaxed));
    }
}

/// Whether the calling thread's system calls go to the program now.
#[inline]
pub fn is_on() -> bool {
    ANY.load(Relaxed) && is_selected()
}

#[cold]
#[inline(never)]
fn is_selected() -> bool {
    of_this_thread().is_some_and(|place| {
        // SAFETY: null, or the program's byte, which the kernel reads at each system call of this thread.
        let selector = unsafe { place.selector.load(Relaxed).as_ref() };
        selector.is_none_or(|selector| selector.load(Relaxed) != ALLOW)
    })
}
