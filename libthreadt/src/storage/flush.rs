//! Writes the text of slots to their files, exactly once.

use core::ops::Range;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use spec::buffer::{NOTE_OWN_MEMORY, PAGE, REGIONS, is_empty_range, pack_range, unpack_range};

use super::file_table::RecordFileEntry;
use super::slot::Slot;
use super::{losses, quota, record_file, slot_table, stop_time};
use crate::config::CONFIG;
use crate::process_state::{self, PROCESS};
use crate::sys::diagnostics::{Warning, errno_text, warn};
use crate::sys::{self, Errno, Repetitions, Result, memory_group, observable_step, path};
use crate::trace_dir::{directory, sandbox_spares};

/// How often a region is written before its owner records on: signal handlers may append to it meanwhile, and another
/// process might change its words for ever.
const WRITES_MAX: u32 = 100;
/// How often a word is tried to be changed that others change: only this thread's signal handlers do, or another process.
const CHANGES_MAX: u32 = 10_000;

impl Slot {
    /// Writes the text of all regions to the file. The caller must be the writer.
    pub fn write_all(self, entry: &RecordFileEntry) -> Result {
        (0..REGIONS).try_for_each(|depth| self.write(depth, None, entry))
    }

    /// Whether a region has text to be written, or a write that was left.
    #[inline]
    pub fn has_unwritten(self, depth: usize) -> bool {
        let region = &self.regions[depth & (REGIONS - 1)];
        region.write_position.load(Relaxed) != 0 || region.write_intent.load(Relaxed) != 0 || self.has_request(depth)
    }

    /// Writes the text of one region to the file. The caller must be the writer; `record` is the depth of its record, if it
    /// is one that writes. If it fails, the text stays.
    pub fn write(self, depth: usize, record: Option<usize>, entry: &RecordFileEntry) -> Result {
        let written = self.write_region(depth, record, entry);
        if self.is_disowned() {
            // A signal handler has forked this child meanwhile. What it cannot open is its parent's, which writes.
            return Ok(());
        }
        if written.is_err() && self.anonymous.load(Relaxed) != 0 {
            slot_table::add_note(self.generation.load(Relaxed).into(), NOTE_OWN_MEMORY);
        }
        stop_time::settle();
        written
    }

    fn write_region(self, depth: usize, record: Option<usize>, entry: &RecordFileEntry) -> Result {
        let region = &self.regions[depth & (REGIONS - 1)];
        if self.has_request(depth) && !self.is_disowned() {
            self.complete_left_request(depth, entry);
        }
        let mut repetitions = Repetitions::default();
        for _ in 0..WRITES_MAX {
            if self.is_disowned() {
                // A signal handler has forked this child before this became the writer: the path is still the parent's file's,
                // of which the child's table has nothing.
                return Ok(());
            }
            let intent = region.write_intent.load(Acquire);
            let position = region.write_position.load(Acquire);
            if intent == 0 && is_empty_range(position) {
                // The region begins anew, unless a signal handler has just appended to it. If this is the handler, what it
                // has interrupted goes on where it is.
                let is_interrupted = self.in_progress[depth & (REGIONS - 1)].load(Relaxed) != 0;
                if record == Some(depth) || !is_interrupted {
                    let _ = region.write_position.compare_exchange(position, 0, AcqRel, Relaxed);
                }
                return Ok(());
            }
            if let Some(cause) = hindrance() {
                // The path may lead to another file in a new root.
                return Err(cause);
            }
            let (long, writer) = (is_long(position), self.writer.load(Relaxed));
            // Before an exec's leftovers are taken over nobody is the writer.
            let lwp = if writer == 0 { sys::thread_id() } else { writer };
            if entry.identity().is_none() {
                wait_for_change_of_user(self);
            }
            // SAFETY: the writer may use the path, and this is the only reference to it.
            let file = unsafe { record_file::open(path::in_buffer(&*self.path()), entry, long, lwp) }?;
            let (at, range) = if intent == 0 {
                let range = self.oldest(depth, position);
                quota::check_space(&file.fd, range.len() as u64)?;
                if range.is_empty() {
                    // None of the older records is complete.
                    self.remove_written(depth, &range);
                    continue;
                }
                if region.wrap_count.load(Relaxed) != 0 {
                    // SAFETY: the range lies within the region, and its text does not change any more.
                    let oldest_time = losses::time_of(unsafe { self.text_in(depth, &range) });
                    // Handlers' records, which have less room, may have been overwritten later.
                    self.published().complete_from.fetch_max(oldest_time, Relaxed);
                    observable_step();
                    // OBSERVABLE: only now, so that the time is known whenever the process dies.
                    region.wrap_count.store(0, Release);
                }
                // No write is noted that is being done or was abandoned.
                let none_noted = self.regions.iter().all(|region| region.write_intent.load(Relaxed) == 0);
                if usize::from(self.writer_depth.load(Relaxed)) >= depth && none_noted {
                    file.correct_end(entry);
                }
                let at = self.take_range(depth, &range, entry, quota::file_size_limit(long))?;
                (at, range)
            } else {
                // A write that was left by a jump out of a signal handler. Repeating it is harmless.
                let range = self.range_in(depth, intent);
                (file.noted_place(region.write_intent_offset.load(Relaxed), range.len() as u64)?, range)
            };
            if self.is_disowned() {
                return Ok(());
            }
            let text = self.region_text(depth).wrapping_add(range.start as usize);
            let length = range.end.saturating_sub(range.start);
            // SAFETY: the range lies within the region.
            let written = unsafe { file.fd.write_at(text, length as usize, at) };
            if self.is_disowned() {
                // A signal handler has forked this child since, whose descriptor leads nowhere. The parent writes.
                return Ok(());
            }
            if let Err(errno) = written {
                if repetitions.begins(errno) {
                    // The noted write is repeated with another descriptor.
                    continue;
                }
                if file.give_range_back(entry, at, length.into()) {
                    region.write_intent.store(0, Release);
                }
                quota::note_failure(errno);
                return Err(errno);
            }
            quota::count(length.into());
            memory_group::begin_write_back(&file.fd, at, length.into());
            self.remove_written(depth, &range);
            observable_step();
            // OBSERVABLE: the write is complete, and no longer to be repeated.
            region.write_intent.store(0, Release);
        }
        Err(Errno(libc::EBUSY))
    }

    /// The records of a region that are written first: all of them, or those from before the ring wrapped.
    pub(super) fn oldest(self, depth: usize, position: u64) -> Range<u32> {
        let range = self.range_in(depth, position);
        if range.start <= range.end {
            return range;
        }
        let wrap_position = self.regions[depth & (REGIONS - 1)].wrap_position.load(Relaxed);
        let Range { start: end, .. } = self.range_in(depth, wrap_position.into());
        let wrap = range.start..end.max(range.start);
        // SAFETY: the older records of a ring that is written out lie within the region and do not change any more.
        let text = unsafe { self.text_in(depth, &wrap) };
        // The ring gave up its oldest bytes without regard to where a record begins.
        text.iter().position(|&byte| byte == b'\n').map_or(wrap.end, |at| wrap.start + at as u32 + 1)..wrap.end
    }

    /// Takes what has been written out of a region, unless that has been done already.
    fn remove_written(self, depth: usize, written: &Range<u32>) {
        let word = &self.regions[depth & (REGIONS - 1)].write_position;
        let mut position = word.load(Acquire);
        for _ in 0..CHANGES_MAX {
            let range = unpack_range(position);
            // A signal handler of this thread may have appended meanwhile. Nothing is appended at the front while the
            // write is noted, because it might be repeated.
            let leftover = if range.start > range.end {
                // What was written are the records from before the ring wrapped.
                pack_range(0..range.end)
            } else if range.start == written.start {
                pack_range(written.end..range.end.max(written.end))
            } else {
                return;
            };
            observable_step();
            // ORDERING: Release keeps the write before it; Acquire for the value that is examined again.
            match word.compare_exchange(position, leftover, AcqRel, Acquire) {
                Ok(_) => return,
                Err(changed) => position = changed,
            }
        }
    }
}

/// Why the process can open no file of the trace: it is in a sandbox.
fn hindrance() -> Option<Errno> {
    process_state::sandboxed().or_else(sandbox_spares::hindrance)
}

/// Whether to write such a range takes longer than to open a file.
fn is_long(position: u64) -> bool {
    let Range { start, end } = unpack_range(position);
    end.wrapping_sub(start) > PAGE as u32
}

/// Ends the writing through that an exec began and that was left by a jump out of it. To be called by whoever has to write
/// its record at once.
pub fn end_left_write_through() {
    let is_wanted = || {
        CONFIG.get().unbuffered
            || stop_time::stopped().is_some()
            || PROCESS.final_flush_begun.load(Relaxed) != 0
            || !process_state::writes_through()
            // Threads of its parent would take what a vfork child has for left: it is none of theirs.
            || process_state::is_vfork_child()
    };
    // An exec has the right to flush as long as it wants this.
    if !is_wanted() && PROCESS.flushing.take() {
        if !is_wanted() {
            slot_table::set_write_through(false);
        }
        PROCESS.flushing.release();
    }
}

/// Whether the process changes its user, or has changed it, so that the slot's text stays where it is. Waits until it has
/// been changed, a second at most.
#[cold]
pub fn is_left_for_others(slot: Slot) -> bool {
    wait_for_change_of_user(slot);
    slot.is_stale()
}

/// Reports a failure after which the text stays in the slot, unless it is meant to stay there: until the program is root again,
/// or for trace-cat. What is lost later is reported then.
pub fn report_unwritten(slot: Slot, written: Result) {
    let is_meant = || {
        hindrance().is_some()
            || is_left_for_others(slot)
            || written == Err(Errno(libc::EACCES)) && sys::is_or_may_become_root()
    };
    if written.is_err() && !is_meant() {
        report_failure(written);
    }
}

/// Waits until the program has changed its user, if it is about to, a second at most: a file that is made meanwhile would be the
/// former user's. Who changes the user waits for the writers of stale slots, so that these go on.
fn wait_for_change_of_user(slot: Slot) {
    for _ in 0..10_000 {
        if PROCESS.changing_user.load(Relaxed) == 0 || slot.is_stale() {
            return;
        }
        sys::sleep(100_000);
    }
}

/// Reports once on stderr that text could not be written.
pub fn report_failure(written: Result) {
    if let Err(errno) = written
        && stop_time::stopped().is_none()
    {
        warn(Warning::Write, &[b"cannot write to the trace in '", directory::path(), b"': ", errno_text(errno)]);
    }
}
