//! The words that a forked child has from its parent and changes at once.

use core::arch::global_asm;
use core::sync::atomic::{AtomicU32, AtomicU64};

/// What a forked child has from its parent and changes at once. All that stands side by side in the section `inherited`, so that the
/// kernel copies one page for it: each further page would take a child two microseconds.
pub struct Inherited {
    /// The PID of the process that was initialised last, or has begun to be: this one, or the one that it was forked from.
    pub last_pid: AtomicU32,
    /// The place of this process (`process_state::of_process`).
    pub place: AtomicU32,
    /// How often this process, or one that it was forked from, has begun its work anew elsewhere (`process_state::begin_elsewhere`).
    pub attempts: AtomicU32,
    /// The number of the initialisation that began last, in this process or in one that it was forked from.
    pub last_initialisation: AtomicU64,
}

// The section begins a page: with those notes behind it that are used (`file_notes`) it takes no more than that one.
global_asm!(".pushsection inherited, \"aw\", @progbits", ".p2align 12", ".popsection");

#[unsafe(link_section = "inherited")]
pub static INHERITED: Inherited = Inherited {
    last_pid: AtomicU32::new(0),
    place: AtomicU32::new(0),
    attempts: AtomicU32::new(0),
    last_initialisation: AtomicU64::new(0),
};
