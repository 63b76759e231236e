//! A thread's slot: where its records stand until they are in its file.
//!
//! The layout is [`spec::buffer`]'s, and so is the protocol by which text gets to the file exactly once. What is here:
//! who may touch what.
//!
//! - Only the thread that owns a slot appends to its regions. A signal handler that interrupts a record appends to the
//!   next region; `in_progress` says how many records are in the making.
//! - Text leaves a region only in the hands of the *writer*, the thread whose LWP ID is in `writer`. Usually that is the
//!   owner; when the process ends it is the thread that ends it.
//! - While somebody else may be the writer, every region's `flush_threshold` is 0: the owner then becomes the writer before it
//!   appends, so that the two never change `write_position` at the same time.

use core::ops::Range;
use core::ptr::NonNull;
use core::sync::atomic::{
    AtomicU64,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};

use spec::buffer::{
    FileEntry, PAGE, REGION_OFFSETS, REGIONS, SLOT_ENDED, SLOT_OWNED, SLOT_PATH_MAX, SLOT_PATH_OFFSET, SlotHeader,
    is_empty_range, pack_range, unpack_range,
};
use spec::encode::{ENCODE_ROOM, Template, UntimedRecord, encode_room};
use spec::names;
use spec::record::TIME_WIDTH;

use crate::file::{self, Path};
use crate::pool::Pooled;
use crate::record::TOGETHER;
use crate::sys;
use crate::{buffers, limits, mark};

/// A slot: its header, with the regions' text behind it in memory.
#[repr(transparent)]
pub struct Slot {
    header: SlotHeader,
}

impl Pooled for Slot {
    fn link(&self) -> &AtomicU64 {
        &self.header.next_free
    }
}

impl core::ops::Deref for Slot {
    type Target = SlotHeader;
    #[inline(always)]
    fn deref(&self) -> &SlotHeader {
        &self.header
    }
}

/// How many bytes of region `depth` may be filled before records that are made together have no room.
pub fn capacity(depth: usize) -> u32 {
    buffers::shape().region_size(depth) as u32 - encode_room(TOGETHER) as u32
}

/// Room that is kept in a region for the record that tells of losses.
pub const LAST_WORDS: u32 = ENCODE_ROOM as u32;

/// Bytes that have to be free when records are begun: for those made together, and the one that tells of losses.
pub const NEEDED: u32 = encode_room(TOGETHER) as u32 + LAST_WORDS;

/// As a writer's depth: it writes all regions.
pub const ALL_REGIONS: u8 = u8::MAX;

/// How the right to write a slot's text was got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writer {
    /// It is ours until [`Slot::release_writer`].
    Taken,
    /// We are in a signal handler that interrupted this thread's write of a lower region; ours may be written, but should
    /// not without need: if the write below is never gone on with, the place it has taken would stay empty.
    Nested,
    /// We are in a signal handler that interrupted this thread's write of all regions; ours may be appended to.
    Interrupted,
    /// Another thread has it and keeps it.
    Refused,
}

impl Slot {
    /// The slot at this address.
    ///
    /// # Safety
    /// The address must be page-aligned, of a slot's bytes of zeroed or formerly used slot memory that is never unmapped.
    pub unsafe fn at(address: NonNull<u8>) -> &'static Slot {
        // SAFETY: the caller's; a SlotHeader is valid for every pattern of bytes.
        unsafe { address.cast::<Slot>().as_ref() }
    }

    /// Where the text of a region begins.
    #[inline(always)]
    pub fn text(&self, depth: usize) -> *mut u8 {
        (&raw const *self).cast_mut().cast::<u8>().wrapping_add(REGION_OFFSETS[depth & (REGIONS - 1)])
    }

    /// Where the next slot of the same chunk begins.
    pub fn neighbour(&self, distance: usize) -> *mut u8 {
        (&raw const *self).cast_mut().cast::<u8>().wrapping_add(distance * buffers::shape().slot_size())
    }

    /// The path of the file that this slot's records go to.
    fn path(&self) -> *mut [u8; SLOT_PATH_MAX] {
        (&raw const *self).cast_mut().cast::<u8>().wrapping_add(SLOT_PATH_OFFSET).cast()
    }

    /// Makes the slot this thread's, which is its writer; nothing unwritten may be in it.
    pub fn adopt(&self, lwp: u32, pid: u32, tid: u64, directory: &[u8], through: bool) {
        let template = Template::new(lwp, pid, tid);
        // SAFETY: the slot is ours alone; the templates are only ever used by its owner, one depth at a time, and the
        // path only by the writer.
        unsafe {
            (&raw const self.header.templates).cast_mut().write([template; REGIONS]);
            Path::build(&mut *self.path(), directory, names::FileName::records(pid, lwp));
        }
        for region in &self.regions {
            region.write_position.store(0, Relaxed);
            region.write_intent.store(0, Relaxed);
            region.wrap_count.store(0, Relaxed);
        }
        self.complete_from.store(0, Relaxed);
        self.in_progress.store(0, Relaxed);
        self.exit_recorded.store(0, Relaxed);
        self.set_limits(through);
        self.state.store(SLOT_OWNED, Relaxed);
        // OBSERVABLE: from here on a reader takes the regions for this LWP's.
        self.lwp.store(lwp, Release);
    }

    /// Sets how full the regions may be: to the brim, or not at all when each record is written at once.
    pub fn set_limits(&self, through: bool) {
        for (depth, region) in self.regions.iter().enumerate() {
            let limit = match through {
                true => 0,
                // Its owner finds out how far it may go.
                false if buffers::shape().is_ring() => 1,
                // Its owner looks for a good moment to write it.
                false if depth == 0 => capacity(0) + 1 - LAST_WORDS - mark::SLACK,
                false => capacity(depth) + 1 - LAST_WORDS,
            };
            // ORDERING: Relaxed; who changes limits of others' slots has all threads pass a barrier afterwards.
            region.flush_threshold.store(limit, Relaxed);
        }
    }

    /// Whether records that are made together have room in region `depth`.
    pub fn has_room(&self, depth: usize) -> bool {
        let region = &self.regions[depth & (REGIONS - 1)];
        let Range { start, end } = unpack_range(region.write_position.load(Relaxed));
        end <= if start > end { start.saturating_sub(encode_room(TOGETHER) as u32) } else { capacity(depth) }
    }

    /// Writes records with one time into region `depth`, which must have room, and publishes them.
    ///
    /// # Safety
    /// The caller must be the slot's owner with `depth` records below this one, or its writer with `depth` reserved.
    #[inline(always)]
    pub unsafe fn append(&self, depth: usize, time: u64, lines: &[UntimedRecord]) {
        let region = &self.regions[depth & (REGIONS - 1)];
        let filled = region.write_position.load(Relaxed);
        // SAFETY: by the caller's promise nobody else uses this template or appends to this region now, and `end` is
        // at most `capacity`, which leaves room for as many as are made together.
        let length = unsafe {
            let template = &mut *(&raw const self.header.templates[depth & (REGIONS - 1)]).cast_mut();
            let end = (filled >> 32) as usize;
            template.encode(self.text(depth).add(end), time, lines)
        };
        // OBSERVABLE: the record is there for whoever reads the trbuf after our death.
        // ORDERING: Release, so that a reader that sees the new length sees the bytes. Only the owner changes `write_position`
        // here, and nested records change other regions, so that a plain store loses nothing.
        region.write_position.store(filled + ((length as u64) << 32), Release);
    }

    /// Becomes the one who may take text out of region `depth`, or out of all of them ([`ALL_REGIONS`]).
    ///
    /// Waits for another thread that is at it up to a second.
    pub fn become_writer(&self, me: u32, depth: u8) -> Writer {
        for _ in 0..10_000 {
            // ORDERING: Acquire pairs with the Release in `release_writer`: we see what the last writer left.
            match self.writer.compare_exchange(0, me, Acquire, Relaxed) {
                Ok(_) => {
                    self.writer_depth.store(depth, Relaxed);
                    return Writer::Taken;
                }
                Err(owner) if owner == me => {
                    let nested = depth != ALL_REGIONS && self.writer_depth.load(Relaxed) < depth;
                    return if nested { Writer::Nested } else { Writer::Interrupted };
                }
                Err(_) => sys::sleep(100_000),
            }
        }
        Writer::Refused
    }

    /// Ends what [`Slot::become_writer`] began.
    pub fn release_writer(&self) {
        self.writer.store(0, Release);
    }

    /// Takes the slot from the parent's memory, in a forked child. What is still to return into it finds it without an
    /// owner; but a write that a signal handler interrupted to fork may be on its way with its bytes: those stay.
    pub fn disown(&self) {
        let (here, size) = ((&raw const *self).cast_mut().cast::<u8>(), buffers::shape().slot_size());
        let mut copies = [(0, 0, core::ptr::null_mut()); REGIONS];
        for (depth, region) in self.regions.iter().enumerate() {
            let Range { start, end } = unpack_range(region.write_intent.load(Relaxed));
            let (start, length) = (start as usize, end.saturating_sub(start) as usize);
            if length == 0 {
                continue;
            }
            let Ok(copy) = sys::anonymous(length) else { return };
            // SAFETY: the region's text and the copy are mapped.
            unsafe { core::ptr::copy_nonoverlapping(self.text(depth).add(start), copy, length) };
            copies[depth & (REGIONS - 1)] = (start, length, copy);
        }
        // SAFETY: the slot is mapped; the child has no other thread that could use it.
        if unsafe { sys::make_private(here, size) }.is_err() {
            return;
        }
        for (depth, &(start, length, copy)) in copies.iter().enumerate().filter(|(_, (_, length, _))| *length != 0) {
            // SAFETY: the copy goes back to where it came from, and is not used any more.
            unsafe {
                core::ptr::copy_nonoverlapping(copy, self.text(depth).add(start), length);
                sys::unmap(copy, length);
            }
        }
    }

    /// Whether this process is a forked child of the one whose slot it was.
    pub fn is_disowned(&self) -> bool {
        self.lwp.load(Relaxed) == 0
    }

    /// Whether a write is noted that is under way or was left.
    fn is_pending(&self) -> bool {
        self.regions.iter().any(|region| region.write_intent.load(Relaxed) != 0)
    }

    /// Whether all text is in the file.
    pub fn is_empty(&self) -> bool {
        self.regions
            .iter()
            .all(|region| is_empty_range(region.write_position.load(Acquire)) && region.write_intent.load(Acquire) == 0)
    }

    /// Writes the text of all regions to the file. The caller must be the writer.
    pub fn write_all(&self, entry: &FileEntry) -> sys::Result {
        (0..REGIONS).try_for_each(|depth| self.write(depth, entry))
    }

    /// Writes the text of one region to the file. The caller must be the writer.
    ///
    /// # Errors
    /// The errno of the first system call that failed; the text is then still in the region.
    pub fn write(&self, depth: usize, entry: &FileEntry) -> sys::Result {
        let region = &self.regions[depth & (REGIONS - 1)];
        loop {
            let pending = region.write_intent.load(Acquire);
            let filled = region.write_position.load(Acquire);
            if pending == 0 && is_empty_range(filled) {
                // The region begins anew, unless a signal handler has just appended to it.
                let _ = region.write_position.compare_exchange(filled, 0, AcqRel, Relaxed);
                return Ok(());
            }
            // SAFETY: the writer may use the path; the text up to `write_position` does not change any more.
            let file = unsafe { file::open_records(Path::of(&*self.path()), entry) }?;
            let (at, range) = if pending == 0 {
                limits::allow(file.fd())?;
                let range = self.oldest(depth, filled);
                if range.is_empty() {
                    // No record of the older ones is whole.
                    self.take_out(depth, &range);
                    continue;
                }
                if region.wrap_count.load(Relaxed) != 0 {
                    // SAFETY: the range lies within the region, and what is in it does not change any more.
                    let text =
                        unsafe { core::slice::from_raw_parts(self.text(depth).add(range.start as usize), range.len()) };
                    // Handlers' records, which have less room, may have been overwritten later.
                    self.complete_from.fetch_max(time_of(text), Relaxed);
                    // OBSERVABLE: only now, so that the moment is known whenever the process dies.
                    region.wrap_count.store(0, Release);
                }
                let length = u64::from(range.end - range.start);
                let alone = usize::from(self.writer_depth.load(Relaxed)) >= depth && !self.is_pending();
                let at = file.take_range(entry, length, alone)?;
                region.write_intent_offset.store(at, Relaxed);
                // OBSERVABLE: from here on these bytes are looked for in the file, at that place.
                region.write_intent.store(pack_range(range.clone()), Release);
                (at, range)
            } else {
                // A write that was left by a jump out of a signal handler. Doing it once more is harmless.
                (region.write_intent_offset.load(Relaxed), unpack_range(pending))
            };
            if self.is_disowned() {
                return Ok(());
            }
            let text = self.text(depth).wrapping_add(range.start as usize);
            // From here on a child that a signal handler forks may come by and do the write as well: it has the same bytes
            // for the same place.
            // SAFETY: the range lies within the region.
            let written = unsafe { file.write(text, (range.end - range.start) as usize, at) };
            if let Err(errno) = written {
                if file.give_range_back(entry, at, u64::from(range.end - range.start)) {
                    region.write_intent.store(0, Release);
                }
                limits::failed(errno);
                return Err(errno);
            }
            limits::count(u64::from(range.end - range.start));
            self.take_out(depth, &range);
            // OBSERVABLE: the write is complete, and no longer to be repeated.
            region.write_intent.store(0, Release);
        }
    }

    /// The records of a region whose word is `filled` that are to be written first: all of them, but those that a ring has
    /// had since it began anew.
    fn oldest(&self, depth: usize, filled: u64) -> Range<u32> {
        let range = unpack_range(filled);
        if range.start <= range.end {
            return range;
        }
        let end = self.regions[depth & (REGIONS - 1)].wrap_position.load(Relaxed);
        // SAFETY: the older records of a ring that is written out lie within the region and do not change any more.
        let text = unsafe {
            let length = end.saturating_sub(range.start) as usize;
            core::slice::from_raw_parts(self.text(depth).add(range.start as usize), length)
        };
        // The ring was cut without a look at where a record begins.
        let cut = text.iter().position(|&byte| byte == b'\n').map_or(end, |at| range.start + at as u32 + 1);
        cut..end
    }

    /// Takes what has been written out of a region, unless that has been done already.
    fn take_out(&self, depth: usize, written: &Range<u32>) {
        let filled = &self.regions[depth & (REGIONS - 1)].write_position;
        let mut now = filled.load(Acquire);
        loop {
            let range = unpack_range(now);
            // A signal handler of this thread may have appended meanwhile.
            // Nothing is appended at the front while the write is noted: it might be repeated.
            let rest = if range.start > range.end {
                // They were the older ones of a ring that has begun anew.
                pack_range(0..range.end)
            } else if range.start == written.start {
                pack_range(written.end..range.end.max(written.end))
            } else {
                return;
            };
            // ORDERING: Release keeps the write before it; Acquire for the value that is looked at again.
            match filled.compare_exchange(now, rest, AcqRel, Acquire) {
                Ok(_) => return,
                Err(changed) => now = changed,
            }
        }
    }

    /// Marks that the owner is about to end; `true` the first time.
    pub fn end(&self) -> bool {
        self.state.swap(SLOT_ENDED, AcqRel) == SLOT_OWNED
    }
}

/// The time of the record that a text begins with, nanoseconds since the Epoch.
fn time_of(text: &[u8]) -> u64 {
    let digits = text.iter().take(TIME_WIDTH).filter(|byte| byte.is_ascii_digit());
    digits.fold(0, |number: u64, digit| number.wrapping_mul(10).wrapping_add(u64::from(digit - b'0')))
}

const _: () = assert!(size_of::<Slot>() <= PAGE);

mod losses;

#[cfg(test)]
mod benches;
#[cfg(test)]
mod tests;
