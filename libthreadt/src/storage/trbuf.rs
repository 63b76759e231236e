//! The process's trbuf: slots for all its threads, mapped from a file so that they outlive it.
//!
//! The file grows by chunks of slots (`growth`). Space is reserved before it is touched. Where that is impossible (on a network
//! file system, or where the file cannot be opened any more, after a chroot for example) a chunk is anonymous memory, which a
//! crash loses; the header says so.

use core::mem::offset_of;
use core::ptr::NonNull;
use core::sync::atomic::Ordering::{Relaxed, Release};
use core::sync::atomic::{AtomicU32, fence};

use spec::buffer::{ControlWords, Header, MAGIC, NOTE_OWN_MEMORY, Owner, PAGE, SLOTS_OFFSET, SlotHeader, VERSION};

use super::file_table::{self, file_entry};
use super::layout::{set_slot_layout, slot_layout};
use super::replaced_memory::Replaced;
use super::slot::{FOREIGN_WRITERS, Slot};
use super::slot_control::{SlotControl, new_controls};
use super::slot_table::{self, FRESH, HEADERS, add_chunk, for_each_chunk, for_each_in_chunk, for_each_slot};
use super::thread_local;
use crate::config::CONFIG;
use crate::control;
use crate::process_state::{PROCESS, WorkingProcess, of_generation};
use crate::sys::{self, BlockedSignals, Errno, Fd, Result};
use crate::trace_dir::{can_be_spare, directory};

/// Makes `fd`, a new and empty file or a spare one, this process's trbuf of this generation; the first one with slots for its
/// first threads. `ECHILD` in a child of `process` that returns into this.
#[inline(never)]
pub fn make(generation: usize, fd: &Fd, owner: &Owner, process: WorkingProcess) -> Result {
    set_slot_layout(owner.layout);
    let slots = if generation != 0 { 0 } else { slot_layout().first_slots() };
    let size = slot_layout().slot_offset(slots.into()) as usize;
    // A spare one has been reserved as far as this by who made it.
    let is_reserved = fd.stat().is_ok_and(|stat| stat.st_size as usize >= size);
    let reserved = if is_reserved { Ok(()) } else { fd.reserve(0, size as u64) };
    let (header, in_file, slots) = match reserved.and_then(|()| fd.map(0, size)) {
        Ok(header) if fd.is_hosts() => {
            // The mapping is of the host's file, which may be shorter, and is not to be written to.
            // SAFETY: mapped just now.
            unsafe { sys::unmap(header, size) };
            return Err(Errno(libc::EBADF));
        }
        Ok(header) => (header, true, slots),
        // The host has closed it: this is tried again with another one.
        Err(Errno(libc::EBADF)) => return Err(Errno(libc::EBADF)),
        Err(_) => {
            let (header, in_file) = map_header(fd)?;
            (header, in_file, 0)
        }
    };
    // SAFETY: mapped above; readers change nothing in a header that has no owner yet.
    unsafe { sys::touch(header) };
    process.check()?;
    begin_header(header, owner, fd, in_file);
    process.check()?;
    file_table::make(generation, false, process)?;
    process.check()?;
    if in_file {
        // SAFETY: mapped above, for good.
        unsafe { control::attach(header, fd) };
    }
    process.check()?;
    of_generation(&HEADERS, generation).store(header, Release);
    if slots == 0 {
        return Ok(());
    }
    of_generation(&PROCESS.slots, generation).store(slots, Relaxed);
    // SAFETY: fresh slots, mapped for good.
    unsafe {
        add_slots(generation, header.wrapping_add(SLOTS_OFFSET), slots as usize, process, |slot| slot.put_into(&FRESH))
    }
}

/// Makes the memory at `base`, a spare trbuf with so many slots, this process's trbuf.
///
/// # Safety
/// The memory must be mapped for good, and nobody else's.
pub unsafe fn make_in_spare(base: NonNull<u8>, slots: usize, owner: &Owner) -> Result {
    set_slot_layout(owner.layout);
    file_table::make(0, false, WorkingProcess::current())?;
    let first = NonNull::new(base.as_ptr().wrapping_add(SLOTS_OFFSET)).ok_or(Errno(libc::ENOMEM))?;
    // SAFETY: the caller's.
    let controls = unsafe { new_controls(first, slots, slot_layout().slot_size()) }?;
    write_header(base.as_ptr(), owner, 0);
    HEADERS[0].store(base.as_ptr(), Release);
    PROCESS.slots[0].store(slots as u32, Relaxed);
    let offer = |slot: Slot| {
        slot.is_hole.store(1, Relaxed);
        slot.put_into(&FRESH);
    };
    // SAFETY: made above, and mapped for good.
    unsafe { add_chunk(controls, slots, offer) };
    Ok(())
}

/// Maps the header of a trbuf without slots, and returns whether it is the file's.
fn map_header(fd: &Fd) -> Result<(*mut u8, bool)> {
    if fd.reserve(0, SLOTS_OFFSET as u64).is_ok() {
        return Ok((fd.map(0, SLOTS_OFFSET)?, true));
    }
    PROCESS.anonymous.store(1, Relaxed);
    Ok((sys::map_anonymous(SLOTS_OFFSET)?, false))
}

/// Lets the kernel make ready what a new owner of the slot writes first. That takes long, and signals come in the meantime: a child
/// that a handler forks would then write where its parent has gone on.
pub fn touch_slot(slot: Slot) {
    for page in [slot.base.as_ptr(), slot.region_text(0).map_addr(|address| address & !(PAGE - 1))] {
        // SAFETY: pages of a slot are mapped for good. Their words are nobody else's before the slot has an owner.
        unsafe { sys::touch(page) };
    }
}

/// Writes the header that [`map_header`] has mapped.
fn begin_header(header: *mut u8, owner: &Owner, fd: &Fd, in_file: bool) {
    write_header(header, owner, if in_file || CONFIG.get().unbuffered { 0 } else { NOTE_OWN_MEMORY });
    if !in_file {
        // The file shows only whose it is: to readers, and to the program that this one may become by an exec.
        // SAFETY: the header was written above.
        let _ = fd.truncate(SLOTS_OFFSET as u64).and_then(|()| unsafe { fd.write_at(header, size_of::<Header>(), 0) });
    }
}

fn write_header(base: *mut u8, owner: &Owner, notes: u32) {
    // SAFETY: the callers' memory has the header's size, and nobody else knows it yet.
    unsafe {
        let header = base.cast::<Header>();
        header.write(Header {
            magic: [0; 16],
            version: VERSION,
            pid: owner.pid,
            pid_namespace: owner.pid_namespace,
            start_time: owner.start_time,
            boot_id: owner.boot_id,
            notes: AtomicU32::new(notes),
            realtime_offset: owner.realtime_offset,
            ring_size: owner.layout.ring_size(),
            control: ControlWords::new(),
        });
        // OBSERVABLE: with the magic number the file becomes a trbuf.
        fence(Release);
        (&raw mut (*header).magic).write_volatile(MAGIC);
    }
}

/// Takes over the trbuf that this process made before an exec: unwritten text is written, and the slots are reused.
///
/// The slots keep their layout, unless the environment now asks for another one and nothing is left in them.
#[cold]
#[inline(never)]
pub fn take_over(generation: usize, fd: &Fd, owner: &Owner, process: WorkingProcess) -> Result {
    let layout = owner.layout;
    let stat = fd.stat()?;
    let size = stat.st_size as u64;
    let has_holes = (stat.st_blocks as u64).saturating_mul(512) < size;
    let has_slots = size > SLOTS_OFFSET as u64;
    let (header, in_file) = if has_slots { (fd.map(0, SLOTS_OFFSET)?, true) } else { map_header(fd)? };
    process.check()?;
    if in_file {
        // SAFETY: mapped above, for good.
        unsafe { control::attach(header, fd) };
        // What the program before had in its own memory it has written, or counted.
        // SAFETY: as above, and every pattern of bits is valid.
        unsafe { &*header.cast::<Header>() }.notes.store(0, Relaxed);
    } else {
        begin_header(header, owner, fd, false);
    }
    process.check()?;
    of_generation(&HEADERS, generation).store(header, Release);
    set_slot_layout(layout);
    file_table::make(generation, true, process)?;
    process.check()?;
    let slots = (size.saturating_sub(SLOTS_OFFSET as u64) / layout.slot_size() as u64) as u32;
    let room = of_generation(&PROCESS.slots, generation);
    room.store(slots, Relaxed);
    let wanted = CONFIG.get().layout;
    let mut complete = true;
    if slots != 0 {
        let length = slots as usize * layout.slot_size();
        let first = fd.map(SLOTS_OFFSET as u64, length)?;
        process.check()?;
        let base = NonNull::new(first).ok_or(Errno(libc::ENOMEM))?;
        // SAFETY: the mapping of a trbuf's slots.
        let controls = unsafe { new_controls(base, slots as usize, layout.slot_size()) }?;
        set_generation(controls, slots as usize, generation);
        if has_holes {
            note_holes(fd, controls, slots as usize);
        }
        complete = write_out_chunk(controls, slots as usize, process);
        process.check()?;
        if complete && wanted != layout {
            // SAFETY: nobody has got a slot yet.
            unsafe {
                sys::unmap(first, length);
                sys::unmap(controls.as_ptr().cast(), slots as usize * size_of::<SlotControl>());
            }
            fd.truncate(SLOTS_OFFSET as u64)?;
            room.store(0, Relaxed);
        } else {
            // What cannot be written stays, for trace-cat.
            let offer_empty = |slot: Slot| {
                if slot.lwp.load(Relaxed) == 0 && process.is_current() {
                    // Behind its text there may be holes, too.
                    slot.is_hole.fetch_or(has_holes.into(), Relaxed);
                    slot.put_into(&FRESH);
                }
            };
            // SAFETY: made above, and mapped for good.
            unsafe { add_chunk(controls, slots as usize, offer_empty) };
        }
    }
    process.check()?;
    if complete && room.load(Relaxed) == 0 {
        set_slot_layout(wanted);
        // SAFETY: the header is mapped, and this process's alone. OBSERVABLE: there are no slots of another layout.
        unsafe { (&raw mut (*header.cast::<Header>()).ring_size).write_volatile(wanted.ring_size()) };
    }
    Ok(())
}

/// Adds so many slots at `first` to those of this generation of the process, and offers each. `ECHILD` in a child that
/// returns into this.
///
/// # Safety
/// The memory must be fresh slots, mapped for good.
pub unsafe fn add_slots(
    generation: usize,
    first: *mut u8,
    slots: usize,
    process: WorkingProcess,
    offer: impl Fn(Slot),
) -> Result {
    let first = NonNull::new(first).ok_or(Errno(libc::ENOMEM))?;
    // SAFETY: the caller's, and made here.
    unsafe {
        let controls = new_controls(first, slots, slot_layout().slot_size())?;
        set_generation(controls, slots, generation);
        process.check()?;
        add_chunk(controls, slots, |slot| {
            // A child's pool is not for its parent's slots.
            if process.is_current() {
                offer(slot);
            }
        });
    }
    Ok(())
}

/// Notes to which generation of files new slots belong.
fn set_generation(first: NonNull<SlotControl>, slots: usize, generation: usize) {
    for_each_in_chunk(first, slots, |slot| slot.generation.store(generation as u8, Relaxed));
}

/// Notes which slots no thread has, in a file that lacks space for some. To read a page of the mapping might end the program.
fn note_holes(fd: &Fd, first: NonNull<SlotControl>, slots: usize) {
    let mut at = SLOTS_OFFSET + offset_of!(SlotHeader, lwp);
    for_each_in_chunk(first, slots, |slot| {
        let mut lwp = [0; size_of::<u32>()];
        let is_hole = fd.read_at(&mut lwp, at as u64).is_ok() && lwp == [0; _];
        slot.is_hole.store(is_hole.into(), Relaxed);
        at += slot_layout().slot_size();
    });
}

/// Writes out the slots of the program before the exec; those that are empty then lose their owner. `true` if all are.
fn write_out_chunk(first: NonNull<SlotControl>, slots: usize, process: WorkingProcess) -> bool {
    for_each_in_chunk(first, slots, |slot| {
        if slot.is_hole.load(Relaxed) != 0 || !process.is_current() {
            return;
        }
        // The writer does not exist any more: an exec ends all other threads. The ranges that it has noted stay taken.
        let lwp = slot.take_over(directory::path());
        for (depth, region) in slot.regions.iter().enumerate() {
            let length = slot.range_in(depth, region.write_intent.load(Relaxed)).len() as u64;
            if lwp != 0 && length != 0 {
                file_entry(slot, lwp).at_least(region.write_intent_offset.load(Relaxed).saturating_add(length));
            }
        }
    });
    let mut complete = true;
    for_each_in_chunk(first, slots, |slot| {
        let lwp = slot.lwp.load(Relaxed);
        if !process.is_current() {
            return;
        }
        if lwp != 0 {
            slot.append_in_flight_record(0);
        }
        if lwp != 0 && slot.write_all(file_entry(slot, lwp)).is_ok() {
            slot.set_lwp(0);
        }
        complete &= slot.lwp.load(Relaxed) == 0;
    });
    complete
}

/// Replaces the parent's buffers by private memory, in a forked child, so that nothing that still returns can write
/// into them. Of the slot `interrupted`, in which a record is in progress, the text stays, privately.
pub fn forget(interrupted: Option<Slot>) {
    // A write that is still continued finds no file.
    let end_write = |slot: Slot| {
        if slot.writer.load(Relaxed) != 0 {
            // SAFETY: the child has no other thread, and this one uses the path only in calls that have it as a pointer.
            unsafe { slot.path().cast::<u8>().write_volatile(0) };
        }
    };
    interrupted.iter().copied().for_each(end_write);
    if FOREIGN_WRITERS.load(Relaxed) != 0 {
        FOREIGN_WRITERS.store(0, Relaxed);
        for_each_slot(end_write);
    }
    let mut replaced = Replaced::NONE;
    // Taken first, as the slots are.
    let tables = file_table::forget();
    let headers = slot_table::forget(|first, slots| {
        let (start, end) = (first.neighbour(0), first.neighbour(slots));
        match interrupted.filter(|slot| (start..end).contains(&slot.base.as_ptr())) {
            Some(slot) => {
                slot.disown();
                replaced.add(start, slot.neighbour(0));
                replaced.add(slot.neighbour(1), end);
            }
            None => replaced.add(start, end),
        }
    });
    for header in headers.into_iter().filter(|header| !header.is_null()) {
        replaced.add(header, header.wrapping_add(SLOTS_OFFSET));
    }
    // Empty for whatever still returns into a write.
    for table in tables.into_iter().filter(|table| !table.is_null()) {
        replaced.add(table, table.wrapping_add(file_table::TABLE_SIZE));
    }
    replaced.finish();
}

/// What of the program runs after its last records were written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunsAfter {
    /// Functions, or signal handlers.
    Program,
    /// Signal handlers, as long as no signal is blocked.
    Handlers,
}

/// Empties the trbuf, which is complete in its files, so that it is as one that was just made. `false` if it cannot be
/// another process's: other threads may record, or it was more than one thread's.
///
/// What this thread still records goes through private memory in the trbuf's place. Where nothing runs any more but signal handlers, these
/// do not either: to replace the memory takes twenty microseconds.
pub fn blank(process: WorkingProcess, after: RunsAfter) -> bool {
    let Some(own) = thread_local::current() else { return false };
    let (header, mut used) = (HEADERS[0].load(Relaxed), 0);
    for_each_slot(|slot| used += u32::from(slot.state.load(Relaxed) != 0));
    let has_first_slots = PROCESS.slots[0].load(Relaxed) == slot_layout().first_slots();
    if !(used == 1 && has_first_slots && can_be_spare(slot_layout())) || PROCESS.anonymous.load(Relaxed) != 0 {
        return false;
    }
    let is_last = after == RunsAfter::Handlers && sys::is_alone_in_memory() && block_signals_for_good();
    if !is_last {
        if !sys::is_only_thread() {
            return false;
        }
        control::detach(|| process.is_current());
    }
    // OBSERVABLE: without the magic number, which is the first that goes, it is nobody's.
    // SAFETY: the mapped header, of which zeros are valid; no other thread uses it.
    unsafe { (&raw mut (*header.cast::<Header>()).magic).write_volatile([0; 16]) };
    fence(Release);
    // SAFETY: as above.
    unsafe { header.write_bytes(0, size_of::<Header>()) };
    file_entry(own, own.lwp.load(Relaxed)).forget_published();
    own.published().lwp.store(0, Release);
    // SAFETY: the first page of this thread's slot, of which zeros are valid.
    unsafe { own.base.as_ptr().write_bytes(0, PAGE) };
    if is_last {
        return true;
    }
    // All its text is in the files.
    let mut replaced = Replaced::NONE;
    for_each_chunk(|first, slots| replaced.add(first.neighbour(0), first.neighbour(slots)));
    replaced.add(header, header.wrapping_add(SLOTS_OFFSET));
    replaced.finish()
}

/// Blocks the signals of this thread, which is about to end the process; `false` if that is not possible.
fn block_signals_for_good() -> bool {
    // OBSERVABLE: a signal that comes now finds the process as one that has ended.
    BlockedSignals::new().map(core::mem::forget).is_some()
}
