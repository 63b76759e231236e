//! Records that find no room: they are counted, and a loss record reports how many.

use core::num::NonZeroU64;
use core::sync::atomic::Ordering::{Relaxed, Release, SeqCst};
use core::sync::atomic::compiler_fence;

use spec::buffer::{REGIONS, pack_range};
use spec::encode::UntimedRecord;
use spec::id;
use spec::record::{EVENT1_OFFSET, TIME_WIDTH};

use super::file_table::RecordFileEntry;
use super::slot::Slot;
use crate::control;
use crate::process_state::PROCESS;
use crate::sys::stack::stack_pointer;
use crate::sys::{BlockedSignals, Errno, Result, decimal};

impl Slot {
    /// Makes room in a region whose text cannot be written by dropping the older half, so that the newest stays for
    /// whoever reads the trbuf. Counts what was lost. The caller must be owner and writer.
    pub fn drop_older_half(self, depth: usize, cause: Errno) {
        let region = &self.regions[depth & (REGIONS - 1)];
        if region.write_intent.load(Relaxed) != 0 {
            return;
        }
        // A jump in between would leave a loss that is not counted, or one that is counted and none.
        let _blocked = BlockedSignals::unless_others_get_them();
        let position = region.write_position.load(Relaxed);
        let range = self.range_in(depth, position);
        if range.start > range.end {
            // SAFETY: the range lies within the region, whose text only the caller changes.
            let text = unsafe { self.text_in(depth, &self.oldest(depth, position)) };
            let (lost, since) = (uncount_records_in(text), time_of(text));
            self.lose(lost, cause, since);
            region.write_position.store(pack_range(0..range.end), Release);
            return;
        }
        // SAFETY: as above.
        let text = unsafe { self.text_in(depth, &range) };
        let half = text.len() / 2;
        let older = text.iter().skip(half).position(|&byte| byte == b'\n').map_or(text.len(), |at| half + at + 1);
        let (lost, since) = (uncount_records_in(text.get(..older).unwrap_or(b"")), time_of(text));
        let (start, length) = (range.start as usize + older, text.len() - older);
        // OBSERVABLE: first the loss is counted, then the older half is gone, and then the newer one is copied to the front.
        self.lose(lost, cause, since);
        region.write_position.store(pack_range(start as u32..range.end), Release);
        if start >= length {
            let front = self.region_text(depth);
            // SAFETY: the region has room for what is in it, and the ranges do not overlap; `text` is used no more.
            unsafe { core::ptr::copy_nonoverlapping(front.add(start), front, length) };
            region.write_position.store(pack_range(0..length as u32), Release);
        }
    }

    /// Drops all text, and returns how many records are lost by that and were lost before, and the time of the first,
    /// 0 if it is unknown: for [`Slot::lose`]. The caller must be the writer, or nobody writes any more.
    pub fn drop_all(self) -> (u32, u64) {
        let mut lost = self.lost.swap(0, Relaxed);
        uncount(lost);
        self.publish_losses();
        let mut since = NonZeroU64::new(self.lost_since.swap(0, Relaxed));
        for (depth, region) in self.regions.iter().enumerate() {
            let position = region.write_position.load(Relaxed);
            let range = self.range_in(depth, position);
            let newer = if range.start > range.end { 0..range.end } else { 0..0 };
            for chunk in [self.oldest(depth, position), newer] {
                // SAFETY: both lie within the region, whose text nobody changes any more.
                let text = unsafe { self.text_in(depth, &chunk) };
                lost = lost.wrapping_add(uncount_records_in(text));
                since = since.into_iter().chain(NonZeroU64::new(time_of(text))).min();
            }
            region.write_position.store(0, Release);
            region.write_intent.store(0, Release);
            self.range_requests[depth & (REGIONS - 1)].clear();
        }
        (lost, since.map_or(0, NonZeroU64::get))
    }

    /// Counts records of this thread that were dropped, and notes why. `since`: the time of the first of them,
    /// nanoseconds since the Epoch, or 0 if it is unknown.
    pub fn lose(self, records: u32, cause: Errno, since: u64) {
        // The first loss that no loss record reports counts. Whoever writes that record takes the time first.
        let _ = self.lost_since.compare_exchange(0, since, Relaxed, Relaxed);
        self.lost.fetch_add(records, Relaxed);
        self.cause.store(cause.0 as u32, Relaxed);
        self.publish_losses();
        PROCESS.lost.fetch_add(records, Relaxed);
        control::count_lost(records);
    }

    /// Calls `write` with a region in which no record is in progress, and keeps it from the signal handlers that may come
    /// meanwhile. For the owner, who may be in a handler itself.
    pub fn in_free_region(self, write: impl FnOnce(usize)) {
        let mut depths = (0..).zip(&self.in_progress);
        if let Some((depth, word)) = depths.find(|(_, word)| word.load(Relaxed) == 0) {
            word.store(stack_pointer() as u64, Relaxed);
            compiler_fence(SeqCst);
            write(depth);
            compiler_fence(SeqCst);
            word.store(0, Relaxed);
        }
    }

    /// Writes a loss record if records were lost and it has room. Its time is that of the first lost record; `now` if
    /// that is unknown. The caller must be owner and writer.
    pub fn append_loss_record(self, depth: usize, now: u64) {
        let lost = self.lost.load(Relaxed);
        if lost != 0 && self.has_room(depth) {
            let arguments = [u64::from(lost), u64::from(self.cause.load(Relaxed)), 0, 0, 0];
            let time = match self.lost_since.swap(0, Relaxed) {
                0 => now,
                since => since,
            };
            // SAFETY: the caller is owner and writer, and there is room.
            unsafe { self.append(depth, time, &[UntimedRecord { kind: &id::TRACE_LOST_0, arguments }]) };
            self.lost.fetch_sub(lost, Relaxed);
            self.publish_losses();
        }
    }

    /// As [`Slot::write_all`], with a loss record, which `append` appends: before, and once more if there was no room for it.
    pub fn write_all_with_losses(self, entry: &RecordFileEntry, append: impl Fn()) -> Result {
        append();
        self.write_all(entry)?;
        if self.lost.load(Relaxed) == 0 {
            return Ok(());
        }
        append();
        self.write_all(entry)
    }

    /// Lets readers know what is lost and not yet reported by a loss record.
    fn publish_losses(self) {
        self.published().cause.store(self.cause.load(Relaxed), Relaxed);
        self.published().lost.store(self.lost.load(Relaxed), Relaxed);
    }
}

/// The time of the record that a text begins with, nanoseconds since the Epoch; 0 if there is none.
pub fn time_of(text: &[u8]) -> u64 {
    decimal(text.iter().take(TIME_WIDTH).filter(|byte| byte.is_ascii_digit()))
}

/// How many records a text stands for that is about to be lost: its lines, and those that its trace_lost records count. What these
/// count is no longer counted as lost.
fn uncount_records_in(text: &[u8]) -> u32 {
    let at = EVENT1_OFFSET..EVENT1_OFFSET + 8;
    text.split_inclusive(|&byte| byte == b'\n').fold(0, |count: u32, line| {
        let records = if line.get(at.clone()) == Some(&id::TRACE_LOST_0.event_text) {
            let lost = decimal(line.iter().skip(at.end).take_while(|byte| byte.is_ascii_digit())) as u32;
            uncount(lost);
            lost
        } else {
            1
        };
        count.saturating_add(records)
    })
}

/// Takes records from the process's count, because whoever has noted them counts them anew.
fn uncount(records: u32) {
    // An exec's next program begins its own count.
    let _ = PROCESS.lost.fetch_update(Relaxed, Relaxed, |lost| Some(lost.saturating_sub(records)));
    control::uncount_lost(records);
}
