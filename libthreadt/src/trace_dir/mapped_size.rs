//! How much memory the program has mapped: as long as that stays the same, so do its executable mappings, mostly.
//!
//! The kernel writes this number in a third of the time that the size of the executable mappings takes it. Code that a just-in-time
//! compiler makes in an area which it has mapped long before changes that size alone; so it is asked for once in a second.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use spec::record::NANOS_PER_SECOND;

use crate::clock;
use crate::sys::{self, decimal};

/// How many pages the program had mapped when the size of its executable mappings was last found to be what it had been; 0 if that was
/// not asked.
#[unsafe(link_section = "inherited")]
static PAGES_AT_LOOK: AtomicU64 = AtomicU64::new(0);
/// When that was, a reading of the clock.
#[unsafe(link_section = "inherited")]
static LOOKED_AT: AtomicU64 = AtomicU64::new(0);

/// The pages of this process's address space that are not this library's; 0 if /proc does not tell.
pub fn of_program() -> u64 {
    let mut text = [0; 64];
    let length = sys::read_proc(c"/proc/self/statm", &mut text).unwrap_or(0);
    let digits = text.get(..length).unwrap_or_default().iter().take_while(|byte| byte.is_ascii_digit());
    decimal(digits).saturating_sub(sys::own_pages() as u64)
}

/// Notes that the executable mappings had the size that they had before, when the program had mapped so many pages.
pub fn note_look(pages: u64) {
    PAGES_AT_LOOK.store(pages, Relaxed);
    LOOKED_AT.store(clock::now_fenced(), Relaxed);
}

/// Forgets it: the size is another one now.
pub fn forget_look() {
    PAGES_AT_LOOK.store(0, Relaxed);
}

/// Whether that was less than a second ago, and the program has mapped as many pages since.
pub fn is_that_of_look(pages: u64) -> bool {
    let is_recent = || clock::now_fenced().saturating_sub(LOOKED_AT.load(Relaxed)) < NANOS_PER_SECOND;
    pages != 0 && pages == PAGES_AT_LOOK.load(Relaxed) && is_recent()
}
