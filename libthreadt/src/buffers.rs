//! The process's trbuf: slots for all its threads, mapped from a file so that they outlive it.
//!
//! The file grows by chunks of slots. Space is reserved before it is touched; where that cannot be done (or the file
//! cannot be opened any more, after a chroot for example) a chunk is anonymous memory, which a crash costs.

use core::ptr::NonNull;
use core::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU32, AtomicU64,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};

use spec::buffer::{FileEntry, Header, MAGIC, Owner, PAGE, SLOT_OWNED, SLOTS_OFFSET, SlotLayout, VERSION};
use spec::names::LWP_MASK;

use crate::config::CONFIG;
use crate::pool::Pooled;
use crate::process::{self, PROCESS};
use crate::slot::{ALL_REGIONS, Slot, Writer};
use crate::sys::{self, Fd};
use crate::{directory, ring};

/// The mapped header and file entries.
static HEADER: AtomicPtr<u8> = AtomicPtr::new(core::ptr::null_mut());
/// The chunk that was mapped last; each knows the one before it.
static CHUNKS: AtomicPtr<Slot> = AtomicPtr::new(core::ptr::null_mut());
/// Some buffers are in anonymous memory.
static ANONYMOUS: AtomicBool = AtomicBool::new(false);
/// Slots whose thread has gone and whose text cannot be written.
static STUCK: AtomicU32 = AtomicU32::new(0);
/// How many of those are kept for whoever reads the trbuf.
const STUCK_MAX: u32 = 16;
/// A chunk of slots has at most so many bytes, unless a single slot has more.
const CHUNK_MAX: usize = 4 << 20;
/// At the next power of two of slots, those of threads that ended unseen are looked for.
static NEXT_SWEEP: AtomicU64 = AtomicU64::new(0);

/// [`SlotLayout::ring_size`] of this process's slots.
static RING: AtomicU64 = AtomicU64::new(0);

/// How large this process's slots are, and whether they are rings.
pub fn shape() -> SlotLayout {
    SlotLayout::ring(RING.load(Relaxed)).unwrap_or(SlotLayout::BUFFERS)
}

/// Whether a crash would cost buffers.
pub fn are_anonymous() -> bool {
    ANONYMOUS.load(Relaxed)
}

/// Makes `fd`, a new and empty trbuf, this process's.
///
/// # Errors
/// The errno of the system call that failed.
pub fn make(fd: &Fd, owner: &Owner) -> sys::Result {
    let base = match fd.reserve(0, SLOTS_OFFSET as u64) {
        Ok(()) => fd.map(0, SLOTS_OFFSET)?,
        Err(_) => {
            ANONYMOUS.store(true, Relaxed);
            sys::anonymous(SLOTS_OFFSET)?
        }
    };
    // SAFETY: fresh memory of the header's size; nobody else knows it yet.
    unsafe {
        let header = base.cast::<Header>();
        header.write(Header {
            magic: [0; 16],
            version: VERSION,
            pid: owner.pid,
            pid_namespace: owner.pid_namespace,
            start_time: owner.start_time,
            boot_id: owner.boot_id,
            reserved: 0,
            realtime_offset: owner.realtime_offset,
            ring_size: owner.layout.ring_size(),
        });
        // OBSERVABLE: with the magic number the file becomes a trbuf.
        core::sync::atomic::fence(Release);
        (&raw mut (*header).magic).write_volatile(MAGIC);
    }
    RING.store(owner.layout.ring_size(), Relaxed);
    HEADER.store(base, Release);
    Ok(())
}

/// Takes over the trbuf that this process made before an exec: what is unwritten is written, and the slots are reused.
///
/// The slots are as the earlier image made them, unless the environment now asks for others and nothing is left in them.
///
/// # Errors
/// The errno of the system call that failed.
pub fn take_over(fd: &Fd, size: u64, found: SlotLayout) -> sys::Result {
    let header = fd.map(0, SLOTS_OFFSET)?;
    HEADER.store(header, Release);
    RING.store(found.ring_size(), Relaxed);
    // SAFETY: the header is mapped, and the mapping is never taken away.
    for entry in unsafe { entries() } {
        entry.users.store(0, Relaxed);
    }
    let slots = (size.saturating_sub(SLOTS_OFFSET as u64) / found.slot_size() as u64) as u32;
    PROCESS.slots.store(slots, Relaxed);
    let mut complete = true;
    if slots != 0 {
        let length = slots as usize * found.slot_size();
        let first = fd.map(SLOTS_OFFSET as u64, length)?;
        complete = write_out_chunk(first, slots as usize);
        let wanted = CONFIG.get().shape;
        if complete && wanted != found {
            // SAFETY: nobody has got a slot yet.
            unsafe { sys::unmap(first, length) };
            fd.truncate(SLOTS_OFFSET as u64)?;
            PROCESS.slots.store(0, Relaxed);
        } else {
            // What cannot be written stays, for trace-cat.
            add_chunk(first, slots as usize, |slot| {
                if slot.lwp.load(Relaxed) == 0 {
                    PROCESS.fresh.put(slot);
                }
            });
        }
    }
    if complete && PROCESS.slots.load(Relaxed) == 0 {
        let wanted = CONFIG.get().shape.ring_size();
        RING.store(wanted, Relaxed);
        // SAFETY: the header is mapped, and this process's alone. OBSERVABLE: there are no slots whose size it could belie.
        unsafe { (&raw mut (*header.cast::<Header>()).ring_size).write_volatile(wanted) };
    }
    Ok(())
}

/// Writes out the slots of an earlier image; those that have nothing left lose their owner. Whether all of them have.
fn write_out_chunk(first: *mut u8, slots: usize) -> bool {
    let mut complete = true;
    for_each_of_chunk(first, slots, |slot| {
        let lwp = slot.lwp.load(Relaxed);
        // Nobody else lives who could be the writer: an exec ends all other threads.
        slot.writer.store(0, Relaxed);
        if lwp != 0 && slot.write_all(entry(lwp)).is_ok() {
            slot.lwp.store(0, Relaxed);
        }
        complete &= slot.lwp.load(Relaxed) == 0;
    });
    complete
}

/// The entries of all tr files.
///
/// # Safety
/// The header must be mapped.
unsafe fn entries() -> &'static [FileEntry] {
    // SAFETY: the caller's; the entries are atomics, valid for every pattern of bytes.
    unsafe { core::slice::from_raw_parts(HEADER.load(Acquire).add(PAGE).cast(), LWP_MASK as usize + 1) }
}

/// The entry of the file that this LWP's records go to.
pub fn entry(lwp: u32) -> &'static FileEntry {
    /// For a forked child that returns into a record of its parent's.
    static NONE: FileEntry = FileEntry {
        inode: AtomicU64::new(0),
        device: AtomicU64::new(0),
        end: AtomicU64::new(0),
        users: AtomicU32::new(0),
        reserved: 0,
    };
    if HEADER.load(Acquire).is_null() {
        return &NONE;
    }
    // SAFETY: the header is mapped.
    unsafe { &entries()[(lwp & LWP_MASK) as usize] }
}

/// Forgets the parent's buffers, in a forked child, so that nothing that is still to return can write into them. Of the
/// slot `interrupted`, in which a record is in the making, the text stays, privately.
pub fn forget(interrupted: Option<&'static Slot>) {
    for_each_chunk(|first, slots| {
        let start = first.neighbour(0);
        let ours = interrupted.filter(|slot| (start..first.neighbour(slots)).contains(&slot.neighbour(0)));
        if let Some(slot) = ours {
            slot.disown();
        }
        let forget = |from: *mut u8, to: *mut u8| {
            // SAFETY: the mapping is ours, and all that may still be done with it is to write and forget.
            let _ = unsafe { sys::make_private(from, to as usize - from as usize) };
        };
        forget(start, ours.map_or(first.neighbour(slots), |slot| slot.neighbour(0)));
        if let Some(slot) = ours {
            forget(slot.neighbour(1), first.neighbour(slots));
        }
    });
    CHUNKS.store(core::ptr::null_mut(), Relaxed);
    let header = HEADER.swap(core::ptr::null_mut(), Relaxed);
    if !header.is_null() {
        // SAFETY: as above.
        let _ = unsafe { sys::make_private(header, SLOTS_OFFSET) };
    }
    ANONYMOUS.store(false, Relaxed);
    NEXT_SWEEP.store(0, Relaxed);
    STUCK.store(0, Relaxed);
    ring::forget();
}

/// Puts a chunk of mapped slots into the list, and hands each slot to `each`.
fn add_chunk(first: *mut u8, slots: usize, each: impl Fn(&'static Slot)) {
    let Some(first) = NonNull::new(first) else { return };
    // SAFETY: freshly mapped slot memory, never unmapped.
    let head = unsafe { Slot::at(first) };
    head.chunk_slots.store(slots as u32, Relaxed);
    let mut next = CHUNKS.load(Relaxed);
    loop {
        head.next_chunk.store(next as usize, Relaxed);
        // ORDERING: Release, so that who walks the list finds the chunk's size and the next chunk.
        match CHUNKS.compare_exchange_weak(next, (&raw const *head).cast_mut(), Release, Relaxed) {
            Ok(_) => break,
            Err(now) => next = now,
        }
    }
    for_each_of_chunk(first.as_ptr(), slots, each);
}

/// Calls `each` with every slot of the chunk that begins at `first`.
fn for_each_of_chunk(first: *mut u8, slots: usize, mut each: impl FnMut(&'static Slot)) {
    for distance in 0..slots {
        if let Some(address) = NonNull::new(first.wrapping_add(distance * shape().slot_size())) {
            // SAFETY: within the chunk.
            each(unsafe { Slot::at(address) });
        }
    }
}

/// Calls `each` with the first slot of every chunk and how many there are in it.
fn for_each_chunk(mut each: impl FnMut(&'static Slot, usize)) {
    let mut chunk = CHUNKS.load(Acquire);
    // SAFETY: chunks are never unmapped.
    while let Some(first) = unsafe { chunk.as_ref() } {
        // Read first: `each` may take the memory away.
        chunk = first.next_chunk.load(Relaxed) as *mut Slot;
        each(first, first.chunk_slots.load(Relaxed) as usize);
    }
}

/// Calls `each` with every slot there is, used or not.
pub fn for_each_slot(mut each: impl FnMut(&'static Slot)) {
    for_each_chunk(|first, slots| for_each_of_chunk(first.neighbour(0), slots, &mut each));
}

/// A slot for a new owner, which becomes its writer, with nothing unwritten in it: one whose thread has gone, else one
/// that nobody has had.
pub fn take_slot() -> Option<&'static Slot> {
    let fresh = || PROCESS.fresh.take();
    let take_ended = if shape().is_ring() { ring::take_longest_dead } else { take_ended };
    let slot = take_ended().or_else(fresh).or_else(|| {
        sweep();
        take_ended().or_else(grow)
    })?;
    // Nobody else looks at a slot without an LWP.
    slot.writer.store(sys::thread_id(), Relaxed);
    Some(slot)
}

/// Lets a slot go to another thread, once its own, which is about to end, is gone.
pub fn let_go(slot: &'static Slot) {
    if shape().is_ring() {
        ring::end(slot);
    } else {
        PROCESS.ended.put(slot);
    }
}

/// A slot whose thread has gone. A few are looked at; those whose thread is still on its way out are put back.
fn take_ended() -> Option<&'static Slot> {
    let mut alive = [None; 4];
    let mut found = None;
    for place in &mut alive {
        let Some(slot) = PROCESS.ended.take() else { break };
        let lwp = slot.lwp.load(Relaxed);
        if sys::thread_lives(process::id(), lwp) {
            *place = Some(slot);
        } else if write_out(slot, lwp) {
            found = Some(slot);
            break;
        }
    }
    alive.into_iter().flatten().for_each(|slot| PROCESS.ended.put(slot));
    found
}

/// Writes what the last owner recorded after its end. If there is nothing left, the caller is the slot's writer.
fn write_out(slot: &Slot, lwp: u32) -> bool {
    if lwp == 0 {
        return true;
    }
    // A thread that ended within a write cannot go on with it.
    let _ = slot.writer.compare_exchange(lwp, 0, Acquire, Relaxed);
    if slot.become_writer(sys::thread_id(), ALL_REGIONS) != Writer::Taken {
        return false;
    }
    let entry = entry(lwp);
    let written = slot.write_all(entry);
    if let Err(errno) = written {
        // What cannot be written stays in the trbuf; but not of any number of threads, each with a slot of its own.
        if STUCK.fetch_add(1, Relaxed) < STUCK_MAX {
            slot.release_writer();
            return false;
        }
        let (records, cause) = slot.drop_all(errno);
        slot.lose(records, cause);
    }
    entry.users.fetch_sub(1, AcqRel);
    slot.lwp.store(0, Relaxed);
    true
}

/// Finds slots of threads that went without our seeing it (`syscall(SYS_exit)`), each time the slots have doubled.
fn sweep() {
    let slots = u64::from(PROCESS.slots.load(Relaxed));
    let due = NEXT_SWEEP.load(Relaxed);
    if slots < due.max(16) || NEXT_SWEEP.compare_exchange(due, 2 * slots, Relaxed, Relaxed).is_err() {
        return;
    }
    for_each_slot(|slot| {
        let lwp = slot.lwp.load(Relaxed);
        if lwp != 0 && slot.state.load(Relaxed) == SLOT_OWNED && !sys::thread_lives(process::id(), lwp) && slot.end() {
            let_go(slot);
        }
    });
}

/// Maps a further chunk and returns one of its slots.
fn grow() -> Option<&'static Slot> {
    // Threads that start together must not each reserve a whole chunk: who finds another one at it takes one slot.
    let alone = PROCESS.growing.swap(1, Acquire) == 0;
    let most = (CHUNK_MAX / shape().slot_size()).clamp(1, 16) as u32;
    let more = if alone { PROCESS.slots.load(Relaxed).clamp(2, 16).min(most) } else { 1 };
    let slot = grow_by(more);
    if alone {
        PROCESS.growing.store(0, Release);
    }
    slot
}

/// Maps a chunk of so many slots and returns one of them; the others are for whoever comes next.
fn grow_by(more: u32) -> Option<&'static Slot> {
    let at = shape().slot_offset(PROCESS.slots.fetch_add(more, Relaxed).into());
    let length = more as usize * shape().slot_size();
    let mapped = if are_anonymous() { Err(sys::Errno(libc::EOPNOTSUPP)) } else { map_more(at, length) };
    let is_anonymous = mapped.is_err();
    let first = match mapped {
        Ok(first) => first,
        Err(_) => {
            ANONYMOUS.store(true, Relaxed);
            sys::anonymous(length).ok()?
        }
    };
    add_chunk(first, more as usize, |slot| {
        slot.anonymous.store(is_anonymous.into(), Relaxed);
        // The pool's link of a slot that nobody has had lies in memory that is ours alone.
        slot.link().store(0, Relaxed);
        PROCESS.fresh.put(slot);
    });
    PROCESS.fresh.take()
}

fn map_more(at: u64, length: usize) -> sys::Result<*mut u8> {
    let fd = directory::open_buffers()?;
    fd.reserve(at, length as u64)?;
    fd.map(at, length)
}
