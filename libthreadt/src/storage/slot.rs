//! A thread's slot: where its records stand until they are in its file.
//!
//! The layout is [`spec::buffer`]'s, and so is the protocol of writes. Here are the rules of who may touch what:
//!
//! - Only the thread that owns a slot appends to its regions. A signal handler that interrupts a record appends to the
//!   next region that has none in progress; the slot's words `in_progress` tell.
//! - Only the *writer*, the thread whose LWP ID is in `writer`, takes text out of a region. Usually that is the owner;
//!   when the process ends it is the thread that ends it.
//! - While another thread may be the writer, the flush threshold of every region is 0: the owner then becomes the
//!   writer before it appends, so that the two never change a region at the same time.
//! - Of a region's word `write_position` the owner stores the half `end` when it publishes a record, and a signal handler
//!   that writes regions out (for an exec that fails) changes the half `start`: neither undoes the other. A region begins
//!   anew at 0 only while no record is in progress in it.

use core::ops::{Deref, Range};
use core::ptr::NonNull;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicU32, AtomicU64};

use spec::buffer::{self, PAGE, REGIONS, SLOT_ENDED, SLOT_OWNED, SLOT_PATH_MAX, SlotHeader, unpack_range};
use spec::encode::{Template, UntimedRecord, encode_room};
use spec::names::FileName;

use super::layout::{FLUSH_POINT_SLACK, LOSS_RECORD_ROOM, RECORDS_AT_ONCE, RESERVE, capacity, slot_layout};
use crate::sys::{self, Pool, Pooled, path};

/// A slot: its header with the regions' text behind it, in memory that is never unmapped.
///
/// All access is derived from `base`, which has the provenance of the mapping. A reference to the header is made for
/// each access and not kept.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    base: NonNull<u8>,
}

impl Pooled for SlotHeader {
    fn link(&self) -> &AtomicU64 {
        &self.next_free
    }
}

impl Deref for Slot {
    type Target = SlotHeader;
    #[inline(always)]
    fn deref(&self) -> &SlotHeader {
        // SAFETY: `Slot::at`'s caller: mapped for good, and valid for every pattern of bytes. What changes
        // are atomics and the templates, which are cells.
        unsafe { self.base.cast::<SlotHeader>().as_ref() }
    }
}

/// As a writer's depth: it writes all regions.
pub const ALL_REGIONS: u8 = u8::MAX;

/// What [`Slot::become_writer`] achieved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteRight {
    /// The caller is the writer until [`Slot::release_writer`].
    Taken,
    /// The caller is in a signal handler that interrupted this thread's write of a lower region. Its own region may be
    /// written, but only if necessary: if the interrupted write is never continued, its range of the file stays empty.
    Nested,
    /// The caller is in a signal handler that interrupted this thread's write of all regions. It may only append.
    Interrupted,
    /// Another thread has the right and keeps it.
    Refused,
}

impl Slot {
    /// The slot at this address.
    ///
    /// # Safety
    /// The address must be page-aligned, of a slot's bytes of zeroed or formerly used slot memory that is never
    /// unmapped, and have the provenance of that memory.
    pub unsafe fn at(base: NonNull<u8>) -> Slot {
        Slot { base }
    }

    /// Takes a slot out of a pool, in which only [`Slot::put_into`] has put any.
    pub fn take_from(pool: &Pool<SlotHeader>) -> Option<Slot> {
        pool.take().map(|header| Slot { base: header.cast() })
    }

    /// Puts the slot into a pool. It must not be in one already.
    pub fn put_into(self, pool: &Pool<SlotHeader>) {
        // SAFETY: slots are never unmapped.
        unsafe { pool.put(self.base.cast()) };
    }

    pub fn base(self) -> NonNull<u8> {
        self.base
    }

    /// Where the slot `distance` slots behind this one in its chunk begins.
    pub fn neighbour(self, distance: usize) -> *mut u8 {
        self.base.as_ptr().wrapping_add(distance * slot_layout().slot_size())
    }

    /// Where the text of a region begins.
    #[inline(always)]
    pub fn region_text(self, depth: usize) -> *mut u8 {
        self.base.as_ptr().wrapping_add(buffer::REGION_OFFSETS[depth & (REGIONS - 1)])
    }

    /// A range of a region's text; an empty one if the range is reversed.
    ///
    /// # Safety
    /// The range must lie within the region, and nobody may change the text while the slice is used.
    pub unsafe fn text_in<'a>(self, depth: usize, range: &Range<u32>) -> &'a [u8] {
        // SAFETY: the caller's.
        unsafe { core::slice::from_raw_parts(self.region_text(depth).add(range.start as usize), range.len()) }
    }

    /// The memory for the path of the file that this slot's records go to.
    pub fn path(self) -> *mut [u8; SLOT_PATH_MAX] {
        self.base.as_ptr().wrapping_add(buffer::SLOT_PATH_OFFSET).cast()
    }

    /// Makes the thread `lwp` the owner; the caller must be the writer, and the slot must be empty.
    pub fn adopt(self, lwp: u32, pid: u32, tid: u64, directory: &[u8], write_through: bool) {
        let template = Template::new(lwp, pid, tid);
        // SAFETY: the slot has no owner, so that nobody else uses its templates, and the path is the writer's.
        unsafe {
            self.templates.iter().for_each(|place| place.get().write(template));
            path::trace_file(&mut *self.path(), directory, FileName::records(pid, lwp));
        }
        for region in &self.regions {
            region.write_position.store(0, Relaxed);
            region.write_intent.store(0, Relaxed);
            region.wrap_count.store(0, Relaxed);
        }
        self.complete_from.store(0, Relaxed);
        self.in_progress.iter().for_each(|word| word.store(0, Relaxed));
        self.exit_recorded.store(0, Relaxed);
        self.in_flight.store(0, Relaxed);
        self.set_flush_thresholds(write_through);
        self.state.store(SLOT_OWNED, Relaxed);
        // OBSERVABLE: from here on a reader takes the regions for this LWP's.
        self.lwp.store(lwp, Release);
    }

    /// Sets the offset in each region from which an append takes the slow path.
    pub fn set_flush_thresholds(self, write_through: bool) {
        for (depth, region) in self.regions.iter().enumerate() {
            let threshold = match write_through {
                true => 0,
                // The owner determines how far it may go.
                false if slot_layout().is_ring() => 1,
                // The owner seeks a flush point.
                false if depth == 0 => capacity(0) + 1 - RESERVE - FLUSH_POINT_SLACK,
                false => capacity(depth) + 1 - LOSS_RECORD_ROOM,
            };
            sys::observable_step();
            // ORDERING: Relaxed; who changes the thresholds of others' slots makes all threads pass a barrier.
            region.flush_threshold.store(threshold, Relaxed);
        }
    }

    /// Whether region `depth` has room for the records that are appended at once.
    pub fn has_room(self, depth: usize) -> bool {
        let region = &self.regions[depth & (REGIONS - 1)];
        let Range { start, end } = unpack_range(region.write_position.load(Relaxed));
        end <= if start > end { start.saturating_sub(encode_room(RECORDS_AT_ONCE) as u32) } else { capacity(depth) }
    }

    /// Writes records with one time into region `depth`, which must have room, and publishes them.
    ///
    /// # Safety
    /// The caller must be the slot's owner with `depth` outer records, or its writer with `depth` reserved.
    #[inline(always)]
    pub unsafe fn append(self, depth: usize, time: u64, lines: &[UntimedRecord]) {
        let end = self.end_of(depth);
        let before = end.load(Relaxed);
        // SAFETY: by the caller's promise nobody else uses this template or appends to this region now, and `end` is at
        // most `capacity`, which leaves room for the records that are appended at once.
        let length = unsafe {
            let template = &mut *self.templates[depth & (REGIONS - 1)].get();
            template.encode(self.region_text(depth).add(before as usize), time, lines)
        };
        sys::observable_step();
        // OBSERVABLE: the record is there for whoever reads the trbuf after our death.
        // ORDERING: Release, so that a reader that sees the new end sees the bytes. Records of signal handlers are in
        // other regions, and what they write out of this one does not change its end: it is as it was when loaded.
        end.store(before + length as u32, Release);
    }

    /// The half of a region's `write_position` that only the owner changes while it records.
    #[inline(always)]
    pub fn end_of(&self, depth: usize) -> &AtomicU32 {
        let word = self.regions[depth & (REGIONS - 1)].write_position.as_ptr().cast::<AtomicU32>();
        // SAFETY: the upper half of the word, which is mapped as long as the slot is. Nobody stores to the complete word
        // while the owner stores to its half.
        unsafe { &*word.add(1) }
    }

    /// Whether a record is in progress in any region.
    pub fn has_record_in_progress(self) -> bool {
        self.in_progress.iter().any(|word| word.load(Relaxed) != 0)
    }

    /// Takes the right to take text out of region `depth`, or out of all of them ([`ALL_REGIONS`]), for the LWP `me`.
    /// Waits up to a second for another thread that has the right.
    pub fn become_writer(self, me: u32, depth: u8) -> WriteRight {
        for _ in 0..10_000 {
            sys::observable_step();
            if self.writer.load(Relaxed) == 0 && me == self.lwp.load(Relaxed) {
                // Before the right is taken: a jump may leave it at once.
                self.note_writer(depth, me);
            }
            // ORDERING: Acquire pairs with the Release in `release_writer`: this thread sees what the last writer left.
            match self.writer.compare_exchange(0, me, Acquire, Relaxed) {
                Ok(_) => {
                    // Again: a handler may have come in between, and written.
                    self.note_writer(depth, me);
                    return WriteRight::Taken;
                }
                Err(owner) if owner == me => {
                    if self.has_abandoned_writer(sys::stack::stack_pointer()) {
                        // The abandoned write is noted in its region and will be repeated.
                        self.note_writer(depth, me);
                        return WriteRight::Taken;
                    }
                    let nested = depth != ALL_REGIONS && self.writer_depth.load(Relaxed) < depth;
                    return if nested { WriteRight::Nested } else { WriteRight::Interrupted };
                }
                Err(_) => sys::sleep(100_000),
            }
        }
        WriteRight::Refused
    }

    /// Gives up the right that [`Slot::become_writer`] took.
    pub fn release_writer(self) {
        sys::observable_step();
        self.writer.store(0, Release);
    }

    /// Notes what the writer `me` is about to do, and if it is the owner, where.
    fn note_writer(self, depth: u8, me: u32) {
        self.writer_depth.store(depth, Relaxed);
        if me == self.lwp.load(Relaxed) {
            self.writer_place.store(sys::stack::stack_pointer() as u64, Relaxed);
        }
    }

    /// Whether the owner, who calls this with its stack at `here`, has left a write by a jump.
    pub fn has_abandoned_writer(self, here: usize) -> bool {
        /// How far above the noted place the stack of the functions may be that write, bytes.
        const FRAMES: usize = 4096;
        let place = self.writer_place.load(Relaxed) as usize;
        place != 0
            && self.writer.load(Relaxed) == self.lwp.load(Relaxed)
            && sys::stack::is_span_abandoned(&(place..place + FRAMES), here)
    }

    /// Replaces the slot's memory by private memory, in a forked child. What still returns into it finds it without an
    /// owner. If a signal handler interrupted a write to fork, that write will be continued here with its bytes: those
    /// are copied.
    pub fn disown(self) {
        let mut copies = [(0, 0, core::ptr::null_mut()); REGIONS];
        for (depth, region) in self.regions.iter().enumerate() {
            let Range { start, end } = unpack_range(region.write_intent.load(Relaxed));
            let (start, length) = (start as usize, end.saturating_sub(start) as usize);
            if length == 0 {
                continue;
            }
            let Ok(copy) = sys::map_anonymous(length) else { return };
            // SAFETY: the region's text and the copy are mapped.
            unsafe { core::ptr::copy_nonoverlapping(self.region_text(depth).add(start), copy, length) };
            copies[depth & (REGIONS - 1)] = (start, length, copy);
        }
        // SAFETY: the slot is mapped; the child has no other thread that could use it.
        if unsafe { sys::replace_by_private(self.base.as_ptr(), slot_layout().slot_size()) }.is_err() {
            return;
        }
        for (depth, &(start, length, copy)) in copies.iter().enumerate().filter(|(_, (_, length, _))| *length != 0) {
            // SAFETY: the copy goes back to where it came from, and is not used any more.
            unsafe {
                core::ptr::copy_nonoverlapping(copy, self.region_text(depth).add(start), length);
                sys::unmap(copy, length);
            }
        }
    }

    /// Whether this process is a forked child of the one whose slot it was.
    pub fn is_disowned(self) -> bool {
        self.lwp.load(Relaxed) == 0
    }

    /// Whether all text is in the file.
    pub fn is_empty(self) -> bool {
        self.regions.iter().all(|region| {
            buffer::is_empty_range(region.write_position.load(Acquire)) && region.write_intent.load(Acquire) == 0
        })
    }

    /// Notes that the owner is about to end; `true` the first time.
    pub fn end(self) -> bool {
        self.state.swap(SLOT_ENDED, AcqRel) == SLOT_OWNED
    }
}

const _: () = assert!(size_of::<SlotHeader>() <= PAGE);
