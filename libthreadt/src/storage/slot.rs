//! A thread's slot: where its records stand until they are in its file.
//!
//! The layout is [`spec::buffer`]'s, and so is the protocol of writes. Here are the rules of who may touch what:
//!
//! - Only the thread that owns a slot appends to its regions. A signal handler that interrupts a record appends to the
//!   next region whose word `in_progress` is 0.
//! - Only the *writer*, the thread whose LWP ID is in `writer`, takes text out of a region. Usually that is the owner;
//!   when the process ends it is the thread that ends it.
//! - While another thread may be the writer, the flush threshold of every region is 0: the owner then becomes the
//!   writer before it appends, so that the two never change a region at the same time.
//! - Of a region's word `write_position` the owner stores the half `end` when it publishes a record, and a signal handler
//!   that writes regions out (for an exec that fails) changes the half `start`: neither undoes the other. A region begins
//!   anew at 0 only while no record is in progress in it.

use core::ops::{Deref, Range};
use core::ptr::NonNull;
use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use spec::buffer::{self, REGIONS, unpack_range};
use spec::encode::{Template, UntimedRecord, encode_room};
use spec::names::FileName;

use super::layout::{FLUSH_POINT_SLACK, LOSS_RECORD_ROOM, RECORDS_AT_ONCE, RESERVE, capacity, slot_layout};
use super::range_request::RangeRequest;
use super::slot_control::{SLOT_ENDED, SLOT_OWNED, SlotControl};
use crate::process_state;
use crate::sys::path::{self, PATH_MAX};
use crate::sys::stack::{is_span_abandoned, stack_pointer};
use crate::sys::{self, Pool};

/// A slot: its private control, and what it publishes, a header with the regions' text behind it. Neither is unmapped.
///
/// What the header and the regions' words say may have been changed by another process: it is used as [`Slot::range_in`]
/// gives it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    control: NonNull<SlotControl>,
}

impl Deref for Slot {
    type Target = SlotControl;
    #[inline(always)]
    fn deref(&self) -> &SlotControl {
        // SAFETY: `Slot::at`'s caller: mapped for good. What changes are atomics and cells.
        unsafe { self.control.as_ref() }
    }
}

/// How many slots have a writer that is not their owner. A jump may leave it too high.
#[unsafe(link_section = "inherited")]
pub static FOREIGN_WRITERS: AtomicU32 = AtomicU32::new(0);

/// As a writer's depth: it writes all regions.
pub const ALL_REGIONS: u8 = u8::MAX;

/// What [`Slot::become_writer`] achieved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteRight {
    /// The caller is the writer until [`Slot::release_writer`].
    Taken,
    /// The caller is in a signal handler that interrupted this thread's write of a lower region. Its own region may be
    /// written, but only if necessary: the interrupted write may never be continued, and is then repeated later.
    Nested,
    /// The caller is in a signal handler that interrupted this thread's write of all regions. It may only append.
    Interrupted,
    /// Another thread has the right and keeps it.
    Refused,
}

impl Slot {
    /// The slot of this control.
    ///
    /// # Safety
    /// It must be one of those that `new_controls` has made, and never be unmapped.
    pub unsafe fn at(control: NonNull<SlotControl>) -> Slot {
        Slot { control }
    }

    /// Takes a slot out of a pool, in which only [`Slot::put_into`] has put any.
    pub fn take_from(pool: &Pool<SlotControl>) -> Option<Slot> {
        pool.take().map(|control| Slot { control })
    }

    /// Puts the slot into a pool. It must not be in one already.
    pub fn put_into(self, pool: &Pool<SlotControl>) {
        // SAFETY: slots are never unmapped.
        unsafe { pool.put(self.control) };
    }

    pub fn control(self) -> NonNull<SlotControl> {
        self.control
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

    /// The range that a word of region `depth` holds, cut to the region. Its start may be behind its end.
    pub fn range_in(self, depth: usize, word: u64) -> Range<u32> {
        let size = slot_layout().region_size(depth) as u32;
        let Range { start, end } = unpack_range(word);
        start.min(size)..end.min(size)
    }

    /// A range of a region's text, cut to the region; an empty one if the range is reversed.
    ///
    /// # Safety
    /// No thread of this process may change the text while the slice is used.
    pub unsafe fn text_in<'a>(self, depth: usize, range: &Range<u32>) -> &'a [u8] {
        let end = (range.end as usize).min(slot_layout().region_size(depth));
        let start = (range.start as usize).min(end);
        // SAFETY: within the region; and the caller's.
        unsafe { core::slice::from_raw_parts(self.region_text(depth).add(start), end - start) }
    }

    /// The memory for the path of the file that this slot's records go to.
    pub fn path(self) -> *mut [u8; PATH_MAX] {
        self.path.get()
    }

    /// Notes whose records are in the slot; 0 for nobody's.
    pub fn set_lwp(self, lwp: u32) {
        self.lwp.store(lwp, Relaxed);
        // OBSERVABLE: from here on a reader takes the regions for this LWP's.
        self.published().lwp.store(lwp, Release);
    }

    /// Takes over the slot of a thread that has ended, of the program before an exec: what it published counts.
    pub fn take_over(self, directory: &[u8]) -> u32 {
        let (lwp, pid) = (self.published().lwp.load(Relaxed), process_state::id());
        self.lwp.store(lwp, Relaxed);
        self.process.store(pid, Relaxed);
        self.lost.store(self.published().lost.load(Relaxed), Relaxed);
        self.cause.store(self.published().cause.load(Relaxed), Relaxed);
        let template = Template::new(lwp, pid, self.published().tid.load(Relaxed));
        // SAFETY: nobody else has the slot yet.
        unsafe {
            self.templates.iter().for_each(|place| place.get().write(template));
            path::trace_file(&mut *self.path(), directory, FileName::records(pid, lwp));
        }
        self.published().writer.store(0, Relaxed);
        lwp
    }

    /// Makes the thread `lwp` the owner; the caller must be the writer, and the slot must be empty.
    pub fn adopt(self, lwp: u32, pid: u32, tid: u64, directory: &[u8], write_through: bool) {
        let template = Template::new(lwp, pid, tid);
        // SAFETY: the slot has no owner, so that nobody else uses its templates, and the path is the writer's.
        unsafe {
            self.templates.iter().for_each(|place| place.get().write(template));
            path::trace_file(&mut *self.path(), directory, FileName::records(pid, lwp));
        }
        for region in self.regions {
            region.write_position.store(0, Relaxed);
            region.write_intent.store(0, Relaxed);
            region.wrap_count.store(0, Relaxed);
        }
        self.published().complete_from.store(0, Relaxed);
        self.range_requests.iter().for_each(RangeRequest::clear);
        self.process.store(process_state::id(), Relaxed);
        self.in_progress.iter().for_each(|word| word.store(0, Relaxed));
        self.exit_recorded.store(0, Relaxed);
        self.is_executing.store(0, Relaxed);
        self.left_writes.note_done();
        self.changes_seen.store(0, Relaxed);
        self.generation_seen.store(0, Relaxed);
        self.flushes_seen.store(0, Relaxed);
        self.published().in_flight.store(0, Relaxed);
        self.published().tid.store(tid, Relaxed);
        self.set_flush_thresholds(write_through);
        self.state.store(SLOT_OWNED, Relaxed);
        self.set_lwp(lwp);
    }

    /// Sets the offset in each region from which an append takes the slow path.
    pub fn set_flush_thresholds(self, write_through: bool) {
        for (depth, place) in self.flush_thresholds.iter().enumerate() {
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
            place.store(threshold, Relaxed);
        }
    }

    /// Whether region `depth` has room for the records that are appended at once.
    pub fn has_room(self, depth: usize) -> bool {
        let region = &self.regions[depth & (REGIONS - 1)];
        let Range { start, end } = self.range_in(depth, region.write_position.load(Relaxed));
        end <= if start > end { start.saturating_sub(encode_room(RECORDS_AT_ONCE) as u32) } else { capacity(depth) }
    }

    /// Writes records with one time into region `depth`, behind its text if there is room, and publishes them.
    ///
    /// # Safety
    /// As [`Slot::append_at`].
    pub unsafe fn append(self, depth: usize, time: u64, lines: &[UntimedRecord]) {
        // What another process may have written there must not lead out of the region.
        let end = self.end_of(depth).load(Relaxed).min(capacity(depth));
        // SAFETY: the caller's; the end is at most the capacity.
        unsafe { self.append_at(depth, end, time, lines) };
    }

    /// Writes records with one time into region `depth` at `end`, which is where its text ends, and publishes them.
    ///
    /// # Safety
    /// The caller must be the slot's owner, whose record is the one in progress in this region, or its writer with `depth`
    /// reserved. The end must be at most the region's capacity.
    #[inline(always)]
    pub unsafe fn append_at(self, depth: usize, end: u32, time: u64, lines: &[UntimedRecord]) {
        // SAFETY: by the caller's promise no other thread uses this template or appends to this region now, and the
        // capacity leaves room for the records that are appended at once.
        let length = unsafe {
            let template = &mut *self.templates[depth & (REGIONS - 1)].get();
            template.encode(self.region_text(depth).add(end as usize), time, lines)
        };
        sys::observable_step();
        // OBSERVABLE: the record is there for whoever reads the trbuf after our death.
        // ORDERING: Release, so that a reader that sees the new end sees the bytes. Records of signal handlers are in
        // other regions, and what they write out of this one does not change its end: it is as it was when loaded.
        self.end_of(depth).store(end + length as u32, Release);
    }

    /// The half of a region's `write_position` that only the owner changes while it records.
    #[inline(always)]
    pub fn end_of(&self, depth: usize) -> &'static AtomicU32 {
        let word = self.published().regions[depth & (REGIONS - 1)].write_position.as_ptr().cast::<AtomicU32>();
        // SAFETY: the upper half of the word, which is mapped for good. Nobody stores to the complete word while the owner
        // stores to its half.
        unsafe { &*word.add(1) }
    }

    /// Whether a record is in progress in any region.
    pub fn has_record_in_progress(self) -> bool {
        self.in_progress.iter().any(|word| word.load(Relaxed) != 0)
    }

    /// Lets the owner, which is about to end, or to end the process, record that: what jumps have left of its records and writes is in the
    /// way no more, and what it has interrupted does not go on. `is_end` is asked if there is any.
    pub fn end_left_records(self, is_end: impl FnOnce() -> bool) {
        let is_full = self.in_progress.iter().all(|word| word.load(Relaxed) != 0);
        let is_writer = self.writer.load(Relaxed) == self.lwp.load(Relaxed);
        if !(is_full || is_writer || self.left_writes.is_left()) || !is_end() {
            return;
        }
        self.left_writes.note_done();
        if is_full {
            self.in_progress.iter().for_each(|word| word.store(0, Relaxed));
        }
        if is_writer {
            // What was being written is noted, and is written again.
            self.release_writer();
        }
    }

    /// Takes the right to take text out of region `depth`, or out of all of them ([`ALL_REGIONS`]), for the LWP `me`.
    /// Waits up to a second for another thread that has the right.
    pub fn become_writer(self, me: u32, depth: u8) -> WriteRight {
        if me == self.lwp.load(Relaxed) {
            return self.take_right(me, depth);
        }
        // Before the right is taken: a signal handler may fork at once.
        FOREIGN_WRITERS.fetch_add(1, Relaxed);
        let right = self.take_right(me, depth);
        match right {
            WriteRight::Taken => self.has_foreign_writer.store(1, Relaxed),
            _ => _ = FOREIGN_WRITERS.fetch_sub(1, Relaxed),
        }
        right
    }

    fn take_right(self, me: u32, depth: u8) -> WriteRight {
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
                    // OBSERVABLE: what a reader copies from here on does not count.
                    self.published().writer.store(me, Release);
                    return WriteRight::Taken;
                }
                Err(owner) if owner == me => {
                    if self.has_abandoned_writer(stack_pointer()) {
                        // The abandoned write is noted in its region and will be repeated.
                        self.note_writer(depth, me);
                        self.published().writer.store(me, Release);
                        return WriteRight::Taken;
                    }
                    let nested = depth != ALL_REGIONS && self.writer_depth.load(Relaxed) < depth;
                    return if nested { WriteRight::Nested } else { WriteRight::Interrupted };
                }
                // It has interrupted its own write, and waits for another thread.
                Err(_) if self.is_executing.load(Relaxed) != 0 => break,
                Err(_) => sys::sleep(100_000),
            }
        }
        WriteRight::Refused
    }

    /// Gives up the right that [`Slot::become_writer`] took.
    pub fn release_writer(self) {
        sys::observable_step();
        let has_foreign_writer = self.has_foreign_writer.load(Relaxed) != 0;
        self.has_foreign_writer.store(0, Relaxed);
        self.published().writer.store(0, Release);
        self.writer.store(0, Release);
        if has_foreign_writer {
            FOREIGN_WRITERS.fetch_sub(1, Relaxed);
        }
    }

    /// Notes what the writer `me` is about to do, and if it is the owner, where.
    fn note_writer(self, depth: u8, me: u32) {
        self.writer_depth.store(depth, Relaxed);
        if me == self.lwp.load(Relaxed) {
            self.writer_place.store(stack_pointer() as u64, Relaxed);
        }
    }

    /// Whether the owner, who calls this with its stack at `here`, has left a write by a jump.
    pub fn has_abandoned_writer(self, here: usize) -> bool {
        /// How far above the noted place the stack of the functions may be that write, bytes.
        const FRAMES: usize = 4096;
        let place = self.writer_place.load(Relaxed) as usize;
        place != 0
            && self.writer.load(Relaxed) == self.lwp.load(Relaxed)
            && is_span_abandoned(&(place..place + FRAMES), here)
    }

    /// Replaces the slot's memory by private memory, in a forked child. What still returns into it finds it without an
    /// owner. If a signal handler interrupted a write to fork, that write will be continued here with its bytes: those
    /// are copied.
    pub fn disown(self) {
        let mut copies = [(0, 0, core::ptr::null_mut()); REGIONS];
        for (depth, region) in self.regions.iter().enumerate() {
            let Range { start, end } = self.range_in(depth, region.write_intent.load(Relaxed));
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

    /// Whether the process has begun other files since: the owner records to another slot.
    pub fn is_stale(self) -> bool {
        usize::from(self.generation.load(Relaxed)) != process_state::generation()
    }

    /// Whether this process is a forked child of the one whose slot it was.
    pub fn is_disowned(self) -> bool {
        self.process.load(Relaxed) != process_state::id()
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
