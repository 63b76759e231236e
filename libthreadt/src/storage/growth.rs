//! Further slots for a trbuf that is in use.

use core::cell::Cell;
use core::sync::atomic::Ordering::Relaxed;

use spec::buffer::{NOTE_OWN_MEMORY, PAGE};

use super::layout::slot_layout;
use super::slot::Slot;
use super::slot_table::{FRESH, add_note};
use super::trbuf::add_slots;
use crate::config::CONFIG;
use crate::process_state::{self, PROCESS, WorkingProcess};
use crate::sys;
use crate::trace_dir::names_owner;

/// A chunk of slots has at most so many bytes, unless a single slot has more.
const CHUNK_MAX: usize = 16 << 20;
/// How many slots there are for threads that begin in a sandbox, and how many bytes they have at most, unless two need more.
const HOLES_MAX: usize = 32;
const HOLES_SIZE: usize = 256 << 20;

/// Maps a further chunk of the trbuf and returns one of its slots; `None` if it cannot grow.
pub fn grow(process: WorkingProcess) -> Option<Slot> {
    if process_state::sandboxed().is_some() || PROCESS.anonymous.load(Relaxed) != 0 {
        return None;
    }
    grow_by(process, true, |at, length| {
        let fd = names_owner::open_trbuf(process_state::generation())?;
        fd.reserve(at, length as u64)?;
        fd.map(at, length)
    })
}

/// Maps a further chunk in memory that is lost if the process is killed, and returns one of its slots. Not in a sandbox's spare trbuf,
/// whose readers would not know.
pub fn grow_in_memory(process: WorkingProcess) -> Option<Slot> {
    if process_state::sandboxed().is_some() {
        return None;
    }
    grow_by(process, false, |_, length| {
        PROCESS.anonymous.store(1, Relaxed);
        // If each record is written at once, only what cannot be written stays there.
        if !CONFIG.get().unbuffered {
            add_note(process_state::generation(), NOTE_OWN_MEMORY);
        }
        sys::map_anonymous(length)
    })
}

/// Maps slots for the threads that begin when the program has moved to where the trbuf cannot be opened. In anonymous memory
/// nothing would be left of their records if the process is killed. The slots are holes in the file until they are used.
pub fn grow_for_sandbox() {
    let is_wanted = process_state::sandboxed().is_none()
        && PROCESS.anonymous.load(Relaxed) == 0
        && PROCESS.has_sandbox_slots.swap(1, Relaxed) == 0;
    if !is_wanted {
        return;
    }
    let process = WorkingProcess::current();
    let generation = process_state::generation();
    let most = HOLES_SIZE.min(sys::reserve_limit());
    let slots = (most / slot_layout().slot_size()).clamp(2, HOLES_MAX);
    let (at, length) = next_range(generation, slots as u32);
    let map_sparse = || {
        process.check()?;
        let fd = names_owner::open_trbuf(generation)?;
        // The file becomes that long, unless another thread has made it longer meanwhile.
        fd.reserve(at + (length - PAGE) as u64, PAGE as u64)?;
        fd.map(at, length)
    };
    let Ok(first) = map_sparse() else { return };
    let offer = |slot: Slot| {
        slot.is_hole.store(1, Relaxed);
        slot.put_into(&FRESH);
    };
    // SAFETY: fresh slots, mapped for good. Without memory for their controls there are none.
    let _ = unsafe { add_slots(generation, first, slots, process, offer) };
}

/// Where in the trbuf the next so many slots are, and how many bytes they have. They are the caller's.
fn next_range(generation: usize, slots: u32) -> (u64, usize) {
    let at = slot_layout().slot_offset(PROCESS.slots[generation].fetch_add(slots, Relaxed).into());
    (at, slots as usize * slot_layout().slot_size())
}

/// Maps a chunk by `map`, which gets its place in the trbuf and its length, and returns one of its slots; the others are for the next threads.
fn grow_by(
    process: WorkingProcess,
    in_file: bool,
    map: impl FnOnce(u64, usize) -> sys::Result<*mut u8>,
) -> Option<Slot> {
    // Threads that start together must not each reserve a complete chunk: the later ones map one slot.
    let alone = PROCESS.growing.take();
    let most = (CHUNK_MAX / slot_layout().slot_size()).max(1) as u32;
    let generation = process_state::generation();
    let slots = if alone { PROCESS.slots[generation].load(Relaxed).clamp(1, most) } else { 1 };
    let (at, length) = next_range(generation, slots);
    let own = Cell::new(None);
    let offer = |slot: Slot| {
        slot.anonymous.store((!in_file).into(), Relaxed);
        // Other threads may take from the pool what this one has put there.
        match own.get() {
            None => own.set(Some(slot)),
            Some(_) => slot.put_into(&FRESH),
        }
    };
    // A child would map its parent's.
    let first = process.check().and_then(|()| map(at, length));
    // SAFETY: fresh slots, mapped for good.
    let added = first.and_then(|first| unsafe { add_slots(generation, first, slots as usize, process, offer) });
    if alone && process.is_current() {
        PROCESS.growing.release();
    }
    added.ok()?;
    own.get()
}
