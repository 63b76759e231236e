//! What this process knows of a slot and acts upon: in private memory, where no other process can change it.
//!
//! The slot itself is mapped from a file. Forked children inherit the mapping, sandboxed ones and those with fewer rights
//! too, and other processes of the user may map the file. So what stands there is only published for readers: no
//! pointer, path or size is taken from it, and ranges that are read back are cut to the region ([`super::slot`]).

use core::cell::UnsafeCell;
use core::mem::offset_of;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicI32, AtomicPtr, AtomicU8, AtomicU32, AtomicU64};

use spec::buffer::{PAGE, REGIONS, Region, SlotHeader};
use spec::encode::Template;

use super::range_request::RangeRequest;
use crate::process_state::SWITCHES;
use crate::sys::path::PATH_MAX;
use crate::sys::{self, LeftWork, Pooled, Result};

/// A slot of a thread that lives, or whose end was not recorded.
pub const SLOT_OWNED: u32 = 1;
/// A slot of a thread that is about to end or has ended; the thread may still record.
pub const SLOT_ENDED: u32 = 2;

/// Where a slot has what its thread has noticed of changes, for hooks that are written in assembly.
pub const CHANGES_SEEN_OFFSET: usize = offset_of!(SlotControl, changes_seen);
pub const OWN_SWITCHES_OFFSET: usize = offset_of!(SlotControl, switches);

/// The private part of a slot: a page of its own.
#[repr(C, align(4096))]
pub struct SlotControl {
    /// Where the slot begins.
    pub base: NonNull<u8>,
    /// The state of the text, in the slot.
    pub regions: &'static [Region; REGIONS],
    /// By depth: where the owner's stack was when the record in progress in this region began; 0 for none.
    pub in_progress: [AtomicU64; REGIONS],
    /// By depth: a record may begin below this many bytes; 0 if each record goes to the file at once. At most the
    /// region's capacity and one.
    pub flush_thresholds: [AtomicU32; REGIONS],
    /// The process whose thread owns the slot.
    pub process: AtomicU32,
    /// The LWP whose records are here; 0 for none.
    pub lwp: AtomicU32,
    /// [`SLOT_OWNED`] or [`SLOT_ENDED`]; 0 if it has never had an owner.
    pub state: AtomicU32,
    /// The LWP that is writing this slot's text to its file; 0 for none.
    pub writer: AtomicU32,
    /// If the owner is the writer: the depth of nesting at which it writes, or 255 if it writes all regions.
    pub writer_depth: AtomicU8,
    /// By depth: what the writer is about to take of the file.
    pub range_requests: [RangeRequest; REGIONS],
    /// 1 while a thread other than the owner is the writer.
    pub has_foreign_writer: AtomicU8,
    /// 1 after the thread has recorded its own end.
    pub exit_recorded: AtomicU8,
    /// The generation of the process's files to which the slot belongs.
    pub generation: AtomicU8,
    /// 1 if the slot is in anonymous memory and not in the file.
    pub anonymous: AtomicU8,
    /// 1 as long as the slot is a hole in its file, or its first region behind the text may be: to touch it may raise SIGBUS.
    pub is_hole: AtomicU8,
    /// 1 while the owner executes a program in a signal handler that has interrupted its record or release, which goes on when that has failed;
    /// or after it has left that by a jump.
    pub is_executing: AtomicU8,
    /// Records in a row that found as many in progress as there are regions.
    pub refused: AtomicU8,
    /// The writes of the owner.
    pub left_writes: LeftWork,
    /// Records of this thread that were dropped and that no trace_lost record counts yet.
    pub lost: AtomicU32,
    /// When the first of the records in `lost` was made, nanoseconds since the Epoch; 0 if that is unknown.
    pub lost_since: AtomicU64,
    /// The errno that caused the last drop.
    pub cause: AtomicU32,
    /// Locks that the thread has acquired since its buffer was nearly full, less those that it has released.
    pub held_since_flush_point: AtomicI32,
    /// The least value that `held_since_flush_point` has had.
    pub fewest_held_since_flush_point: AtomicI32,
    /// By depth: the columns that do not change. Only the owner uses them.
    pub templates: [UnsafeCell<Template>; REGIONS],
    /// The change of the settings that the owner has noticed last; 0 for none.
    pub changes_seen: AtomicU32,
    /// The generation of these settings, and how often the owner had been asked to write its buffers.
    pub generation_seen: AtomicU32,
    pub flushes_seen: AtomicU32,
    /// By these settings, for each event a `Switch`. Unused while no change has been noticed.
    pub switches: [AtomicU8; SWITCHES],
    /// Where the owner's stack was when it last became the writer.
    pub writer_place: AtomicU64,
    /// If the slot's regions are rings and the owner has ended: how many threads had ended by then, the owner included. The
    /// thread that has been dead longest has the least number.
    pub death_order: AtomicU64,
    /// In the first slot of a chunk: how many slots were mapped together.
    pub chunk_slots: AtomicU32,
    /// In the first slot of a chunk: the first slot of the chunk that was mapped before it.
    pub next_chunk: AtomicPtr<SlotControl>,
    /// The next slot of a list of free ones.
    pub next_free: AtomicU64,
    /// The path of the file that the slot's records go to. Only the writer uses it.
    pub path: UnsafeCell<[u8; PATH_MAX]>,
}

const _: () = assert!(size_of::<SlotControl>() == PAGE);

// SAFETY: the cells have one user at a time, as their comments say; the rest is atomics or constant.
unsafe impl Sync for SlotControl {}

impl Pooled for SlotControl {
    fn link(&self) -> &AtomicU64 {
        &self.next_free
    }
}

impl SlotControl {
    /// What readers of the trbuf see of the slot.
    #[inline]
    pub fn published(&self) -> &'static SlotHeader {
        // SAFETY: `new_controls` has been given mapped memory for good, in which every pattern of bytes is valid.
        unsafe { self.base.cast::<SlotHeader>().as_ref() }
    }
}

/// Makes the controls of `slots` slots of `slot_size` bytes that begin at `first`, one behind the other; returns the first.
///
/// # Safety
/// The slots must be page-aligned memory, zeroed or of former slots, that stays mapped while they are used.
pub unsafe fn new_controls(first: NonNull<u8>, slots: usize, slot_size: usize) -> Result<NonNull<SlotControl>> {
    let controls = sys::map_anonymous(slots * size_of::<SlotControl>())?.cast::<SlotControl>();
    for index in 0..slots {
        // SAFETY: within the caller's memory, and within the new mapping, whose zeros are valid for the other fields.
        unsafe {
            let (base, control) = (first.add(index * slot_size), controls.add(index));
            (&raw mut (*control).base).write(base);
            (&raw mut (*control).regions).write(&(*base.cast::<SlotHeader>().as_ptr()).regions);
        }
    }
    NonNull::new(controls).ok_or(sys::Errno(libc::ENOMEM))
}
