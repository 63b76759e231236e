//! What a slot does with records that find no place: they are counted, and told of.

use core::sync::atomic::Ordering::{Relaxed, Release};

use spec::buffer::{REGIONS, pack_range, unpack_range};
use spec::encode::UntimedRecord;
use spec::id;
use spec::record::EVENT1_OFFSET;

use super::Slot;
use crate::process::PROCESS;
use crate::sys::Errno;

impl Slot {
    /// Makes room in a region whose text cannot be written, by dropping the older half; the newest stays for whoever
    /// reads the trbuf. Counts what was lost. The caller must be owner and writer.
    pub fn drop_older_half(&self, depth: usize, cause: Errno) {
        let region = &self.regions[depth & (REGIONS - 1)];
        if region.write_intent.load(Relaxed) != 0 {
            return;
        }
        let filled = region.write_position.load(Relaxed);
        let range = unpack_range(filled);
        if range.start > range.end {
            let older = self.oldest(depth, filled);
            // SAFETY: as below.
            let text = unsafe { core::slice::from_raw_parts(self.text(depth).add(older.start as usize), older.len()) };
            let lost = records_in(text);
            region.write_position.store(pack_range(0..range.end), Release);
            return self.lose(lost, cause);
        }
        // SAFETY: `write_position` lies within the region, whose text only the owner changes.
        let text = unsafe { core::slice::from_raw_parts(self.text(depth).add(range.start as usize), range.len()) };
        let half = text.len() / 2;
        let cut = text.iter().skip(half).position(|&byte| byte == b'\n').map_or(text.len(), |at| half + at + 1);
        let Some((old, rest)) = text.split_at_checked(cut) else { return };
        let lost = records_in(old);
        let (from, length) = (rest.as_ptr(), rest.len());
        let start = range.start + cut as u32;
        // OBSERVABLE: first the old half is gone, then the rest is copied to the front, where it does not overlap.
        region.write_position.store(pack_range(start..range.end), Release);
        if start as usize >= length {
            // SAFETY: the region has room for what is in it, and the ranges do not overlap; the slices above are not used
            // any more.
            unsafe { core::ptr::copy_nonoverlapping(from, self.text(depth), length) };
            region.write_position.store(pack_range(0..length as u32), Release);
        }
        self.lose(lost, cause);
    }

    /// Drops all text of a thread that has gone, or of a process that goes, and returns how many records that and those
    /// lost before are, and why. The caller must be the writer, or nobody writes any more.
    pub fn drop_all(&self, cause: Errno) -> (u32, Errno) {
        let mut lost = self.lost.swap(0, Relaxed);
        for (depth, region) in self.regions.iter().enumerate() {
            let filled = region.write_position.load(Relaxed);
            let range = unpack_range(filled);
            let newer = if range.start > range.end { 0..range.end } else { 0..0 };
            for part in [self.oldest(depth, filled), newer] {
                // SAFETY: both lie within the region, whose text nobody changes any more.
                let text =
                    unsafe { core::slice::from_raw_parts(self.text(depth).add(part.start as usize), part.len()) };
                lost += records_in(text);
            }
            region.write_position.store(0, Release);
            region.write_intent.store(0, Release);
        }
        (lost, cause)
    }

    /// Counts records of this thread that were dropped, and notes why.
    pub fn lose(&self, records: u32, cause: Errno) {
        self.lost.fetch_add(records, Relaxed);
        self.cause.store(cause.0 as u32, Relaxed);
        PROCESS.lost.fetch_add(records, Relaxed);
    }

    /// Writes the record that tells of losses, if there were any and there is room. The caller must be owner and writer.
    pub fn tell_losses(&self, depth: usize, time: u64) {
        let lost = self.lost.load(Relaxed);
        if lost != 0 && self.has_room(depth) {
            let arguments = [u64::from(lost), u64::from(self.cause.load(Relaxed)), 0, 0, 0];
            // SAFETY: the caller is owner and writer, and there is room.
            unsafe { self.append(depth, time, &[UntimedRecord { kind: &id::TRACE_LOST_0, arguments }]) };
            self.lost.fetch_sub(lost, Relaxed);
        }
    }
}

/// How many records a text stands for: its lines, and those that its trace_lost records tell of.
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
