//! Records that find no room: they are counted, and a loss record reports how many.

use core::sync::atomic::Ordering::{Relaxed, Release, SeqCst};
use core::sync::atomic::compiler_fence;

use spec::buffer::{REGIONS, pack_range, unpack_range};
use spec::encode::UntimedRecord;
use spec::id;
use spec::record::EVENT1_OFFSET;

use super::slot::Slot;
use crate::process_state::PROCESS;
use crate::sys::Errno;
use crate::sys::stack::stack_pointer;

impl Slot {
    /// Makes room in a region whose text cannot be written by dropping the older half, so that the newest stays for
    /// whoever reads the trbuf. Counts what was lost. The caller must be owner and writer.
    pub fn drop_older_half(self, depth: usize, cause: Errno) {
        let region = &self.regions[depth & (REGIONS - 1)];
        if region.write_intent.load(Relaxed) != 0 {
            return;
        }
        let position = region.write_position.load(Relaxed);
        let range = unpack_range(position);
        if range.start > range.end {
            // SAFETY: the range lies within the region, whose text only the caller changes.
            let lost = records_in(unsafe { self.text_in(depth, &self.oldest(depth, position)) });
            region.write_position.store(pack_range(0..range.end), Release);
            return self.lose(lost, cause);
        }
        // SAFETY: as above.
        let text = unsafe { self.text_in(depth, &range) };
        let half = text.len() / 2;
        let older = text.iter().skip(half).position(|&byte| byte == b'\n').map_or(text.len(), |at| half + at + 1);
        let lost = records_in(text.get(..older).unwrap_or(b""));
        let (start, length) = (range.start as usize + older, text.len() - older);
        // OBSERVABLE: first the older half is gone, then the newer one is copied to the front.
        region.write_position.store(pack_range(start as u32..range.end), Release);
        if start >= length {
            let front = self.region_text(depth);
            // SAFETY: the region has room for what is in it, and the ranges do not overlap; `text` is used no more.
            unsafe { core::ptr::copy_nonoverlapping(front.add(start), front, length) };
            region.write_position.store(pack_range(0..length as u32), Release);
        }
        self.lose(lost, cause);
    }

    /// Drops all text, and returns how many records are lost by that and were lost before. The caller must be the
    /// writer, or nobody writes any more.
    pub fn drop_all(self) -> u32 {
        let mut lost = self.lost.swap(0, Relaxed);
        for (depth, region) in self.regions.iter().enumerate() {
            let position = region.write_position.load(Relaxed);
            let range = unpack_range(position);
            let newer = if range.start > range.end { 0..range.end } else { 0..0 };
            for chunk in [self.oldest(depth, position), newer] {
                // SAFETY: both lie within the region, whose text nobody changes any more.
                lost += records_in(unsafe { self.text_in(depth, &chunk) });
            }
            region.write_position.store(0, Release);
            region.write_intent.store(0, Release);
        }
        lost
    }

    /// Counts records of this thread that were dropped, and notes why.
    pub fn lose(self, records: u32, cause: Errno) {
        self.lost.fetch_add(records, Relaxed);
        self.cause.store(cause.0 as u32, Relaxed);
        PROCESS.lost.fetch_add(records, Relaxed);
    }

    /// As [`Slot::append_loss_record`], for the owner, who may have come in a signal handler and be interrupted by others.
    pub fn append_own_loss_record(self, time: u64) {
        let mut depths = (0..).zip(&self.in_progress);
        if self.lost.load(Relaxed) != 0
            && let Some((depth, word)) = depths.find(|(_, word)| word.load(Relaxed) == 0)
        {
            word.store(stack_pointer() as u64, Relaxed);
            compiler_fence(SeqCst);
            self.append_loss_record(depth, time);
            compiler_fence(SeqCst);
            word.store(0, Relaxed);
        }
    }

    /// Writes a loss record if records were lost and it has room. The caller must be owner and writer.
    pub fn append_loss_record(self, depth: usize, time: u64) {
        let lost = self.lost.load(Relaxed);
        if lost != 0 && self.has_room(depth) {
            let arguments = [u64::from(lost), u64::from(self.cause.load(Relaxed)), 0, 0, 0];
            // SAFETY: the caller is owner and writer, and there is room.
            unsafe { self.append(depth, time, &[UntimedRecord { kind: &id::TRACE_LOST_0, arguments }]) };
            self.lost.fetch_sub(lost, Relaxed);
        }
    }
}

/// How many records a text stands for: its lines, and those that its trace_lost records count.
fn records_in(text: &[u8]) -> u32 {
    let at = EVENT1_OFFSET..EVENT1_OFFSET + 8;
    text.split_inclusive(|&byte| byte == b'\n').fold(0, |count: u32, line| {
        let lost = if line.get(at.clone()) == Some(&id::TRACE_LOST_0.event_text) {
            let digits = line.iter().skip(at.end).take_while(|byte| byte.is_ascii_digit());
            digits.fold(0, |number: u32, digit| number.wrapping_mul(10).wrapping_add(u32::from(digit - b'0')))
        } else {
            1
        };
        count.saturating_add(lost)
    })
}
