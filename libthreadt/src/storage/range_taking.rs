//! How a writer takes a range of the file and notes it, whatever comes between these two steps.
//!
//! A signal handler of the thread may come there, write its own region behind the range, and leave by a jump: nobody would
//! ever write the range. So a writer first says in private memory what it is about to take, and a handler that wants
//! a range itself completes that before. Both run the same steps, each of which may be done again: the thread that goes on
//! after its handler has done them changes nothing. What a jump has left is completed by the next writer in the same way: its text
//! is still in the region, and its range may have been taken.
//!
//! That presumes that nobody else takes ranges of the file. Of a file with several users a range is taken and then noted; it
//! stays empty if a handler comes between and leaves by a jump.

use core::ops::Range;
use core::sync::atomic::Ordering::{Relaxed, Release};

use spec::buffer::{REGIONS, pack_range, unpack_range};

use super::file_table::RecordFileEntry;
use super::layout::slot_layout;
use super::range_request::{UNKNOWN, step};
use super::slot::Slot;
use crate::sys::file_size::file_size_limit;
use crate::sys::{self, Errno, Result};

impl Slot {
    /// Takes room in the file for this range of a region's text, and notes it in the region. Returns where it begins. The caller
    /// must be the writer.
    ///
    /// `EFBIG` if the range goes beyond `limit`, how far the process may write; the signal that a write would raise then
    /// could kill the host.
    // Not inlined, so that it takes no room on the stack while the file is opened.
    #[inline(never)]
    pub(super) fn take_range(
        self,
        depth: usize,
        text: &Range<u32>,
        entry: &RecordFileEntry,
        limit: u64,
    ) -> Result<u64> {
        // A jump may have left the claim of the slot before it was noted.
        entry.add_user(self);
        let mut is_free = true;
        for interrupted in (0..depth).filter(|lower| self.has_request(*lower)) {
            is_free &= self.complete_request(interrupted, entry, limit)?.is_some();
        }
        for left in (depth + 1..REGIONS).filter(|higher| self.has_request(*higher)) {
            self.complete_left_request(left, entry);
        }
        if is_free && let Some(sole_user) = entry.sole_user() {
            let request = &self.range_requests[depth & (REGIONS - 1)];
            request.make(text, sole_user);
            let taken = self.complete_request(depth, entry, limit);
            request.clear();
            if let Some(at) = taken? {
                return Ok(at);
            }
        }
        let length = u64::from(text.end - text.start);
        if entry.end().saturating_add(length) > limit {
            return Err(Errno(libc::EFBIG));
        }
        sys::observable_step();
        let at = entry.take(length);
        self.note_write(depth, at, pack_range(text.clone()));
        Ok(at)
    }

    /// Whether a write of this region has not noted its range yet: it was interrupted before, or left by a jump.
    #[inline]
    pub(super) fn has_request(self, depth: usize) -> bool {
        self.range_requests[depth & (REGIONS - 1)].is_made()
    }

    /// Takes and notes what was requested by a write of this region that was left by a jump, so that the write is repeated.
    #[cold]
    #[inline(never)]
    pub(super) fn complete_left_request(self, depth: usize, entry: &RecordFileEntry) {
        let request = &self.range_requests[depth & (REGIONS - 1)];
        // A ring may have overwritten the text since.
        if !slot_layout().is_ring() && entry.sole_user() == Some(request.sole_user.load(Relaxed)) {
            let text = unpack_range(request.text.load(Relaxed));
            let end = request.begin.load(Relaxed).saturating_add(text.len() as u64);
            if end > entry.end() {
                // It has not been taken, or the file is another one since.
                request.begin.store(UNKNOWN, Relaxed);
            }
            let _ = self.complete_request(depth, entry, file_size_limit());
        }
        request.clear();
    }

    /// Takes and notes what was requested, if that has not been done, and returns where it begins; `None` if the file has
    /// got another user meanwhile.
    fn complete_request(self, depth: usize, entry: &RecordFileEntry, limit: u64) -> Result<Option<u64>> {
        let request = &self.range_requests[depth & (REGIONS - 1)];
        let text = request.text.load(Relaxed);
        // In this order: a handler that comes behind this step finds the same end.
        let end = entry.end();
        step();
        if request.begin.load(Relaxed) == UNKNOWN {
            step();
            request.begin.store(end, Relaxed);
        }
        step();
        let at = request.begin.load(Relaxed);
        if text == 0 {
            // A handler has completed the request.
            return Ok(Some(at));
        }
        let Range { start, end } = unpack_range(text);
        let length = u64::from(end.wrapping_sub(start));
        if at.saturating_add(length) > limit {
            return Err(Errno(libc::EFBIG));
        }
        if !entry.take_at(at, length) && request.is_made() && entry.sole_user() != Some(request.sole_user.load(Relaxed))
        {
            return Ok(None);
        }
        // Without another user, that has failed only if the range had been taken before.
        step();
        self.note_write(depth, at, text);
        step();
        request.clear();
        Ok(Some(at))
    }

    /// Notes that a range of a region's text, packed, is being written to this place in the file.
    fn note_write(self, depth: usize, at: u64, text: u64) {
        let region = &self.regions[depth & (REGIONS - 1)];
        region.write_intent_offset.store(at, Relaxed);
        sys::observable_step();
        // OBSERVABLE: from here on these bytes are looked for in the file, at that place.
        region.write_intent.store(text, Release);
    }
}
