//! Which threads are about to fork by libc's `fork` or its kin. The child finds it noted of its thread, also in a handler of
//! `pthread_atfork`, which runs before the hook goes on.

use core::sync::atomic::AtomicUsize;
use core::sync::atomic::Ordering::Relaxed;

use super::thread_word::thread_pointer;

/// The threads' pointers, which the children have as well. Threads whose pointers lead to the same place replace each other's.
#[unsafe(link_section = "inherited")]
static FORKING: [AtomicUsize; 16] = [const { AtomicUsize::new(0) }; 16];

/// Notes that the calling thread is about to fork.
pub fn note() {
    place().store(thread_pointer(), Relaxed);
}

/// Forgets it: the thread's next child may be made by anything.
pub fn forget() {
    if is_noted() {
        place().store(0, Relaxed);
    }
}

/// Whether the calling thread was about to fork; in the child, the thread that it was.
pub fn is_noted() -> bool {
    place().load(Relaxed) == thread_pointer()
}

fn place() -> &'static AtomicUsize {
    let pointer = thread_pointer();
    // Stacks, whose ends the pointers are near, are apart by multiples of large powers of two.
    &FORKING[(pointer >> 12 ^ pointer >> 18 ^ pointer >> 23) % FORKING.len()]
}
