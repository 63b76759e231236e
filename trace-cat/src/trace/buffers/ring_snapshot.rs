//! Which text of a copied ring was not overwritten before it was copied, although its thread went on recording.
//!
//! The words of the region are read before the text is copied and again afterwards. The recorder discards records, by
//! moving `start`, before it overwrites them. So text that the second snapshot does not show as discarded was intact all
//! the time.
//!
//! `wrap_count` shows whether the ring wrapped between two values of `write_position`. When the recorder wraps, it stores
//! `write_position` first, and may be delayed for any time before it stores `wrap_count`. In that state `end` is 0, and
//! there is no snapshot. Otherwise the two words are read in an order by which the first snapshot can only seem earlier and
//! the second only later than it is, so that too little text is taken for surviving, never too much.

use std::ops::Range;

use spec::buffer::{SlotLayout, region_word_offsets, u32_at, u64_at, unpack_range};

/// The words of a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingSnapshot {
    /// How often it has wrapped.
    pub wrap_count: u32,
    /// Where the text begins that is not discarded, in the region.
    pub start: u32,
    /// The end of its newest record.
    pub end: u32,
    /// The end of the older records if `start` is greater than `end`.
    pub wrap_position: u32,
    /// Its text is being written to the record file.
    pub is_being_written: bool,
}

/// Text of a ring, as ranges of the region.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SurvivingText {
    /// The older records of a ring that has wrapped.
    pub older: Range<u32>,
    /// The records that follow those.
    pub newer: Range<u32>,
    /// The first record may be incomplete.
    pub truncated: bool,
}

impl SurvivingText {
    /// How many bytes it has.
    pub fn len(&self) -> u32 {
        (self.older.end - self.older.start) + (self.newer.end - self.newer.start)
    }

    /// The newest `limit` bytes of it.
    pub fn newest(&self, limit: u32) -> SurvivingText {
        let Some(excess) = self.len().checked_sub(limit).filter(|&excess| excess > 0) else { return self.clone() };
        let older = excess.min(self.older.end - self.older.start);
        SurvivingText {
            older: self.older.start + older..self.older.end,
            newer: self.newer.start + (excess - older)..self.newer.end,
            truncated: true,
        }
    }
}

impl RingSnapshot {
    /// The snapshot of region `region` before copying, from the first page of its slot read twice: `wrap_count` is taken from
    /// the first reading. `None` if the words are impossible, as they may be while they are being changed.
    pub fn before(pages: [&[u8]; 2], layout: SlotLayout, region: usize) -> Option<RingSnapshot> {
        let [first, second] = pages;
        RingSnapshot::from_pages(second, first, layout, region)
    }

    /// The snapshot after copying: `wrap_count` is taken from the second reading.
    pub fn after(pages: [&[u8]; 2], layout: SlotLayout, region: usize) -> Option<RingSnapshot> {
        let [first, second] = pages;
        RingSnapshot::from_pages(first, second, layout, region)
    }

    fn from_pages(page: &[u8], wrap_count_page: &[u8], layout: SlotLayout, region: usize) -> Option<RingSnapshot> {
        let words = region_word_offsets(region);
        let Range { start, end } = unpack_range(u64_at(page, words.write_position)?);
        let (wrap_count, wrap_position) =
            (u32_at(wrap_count_page, words.wrap_count)?, u32_at(page, words.wrap_position)?);
        let snapshot = RingSnapshot {
            wrap_count,
            start,
            end,
            wrap_position,
            is_being_written: u64_at(page, words.write_intent)? != 0,
        };
        let bound = if snapshot.has_wrapped() { snapshot.wrap_position } else { end };
        let is_wrapping = snapshot.has_wrapped() && end == 0;
        let is_possible = start.max(end) <= bound && bound as usize <= layout.region_size(region);
        (is_possible && !is_wrapping).then_some(snapshot)
    }

    /// Whether older records lie behind the newer ones.
    pub fn has_wrapped(self) -> bool {
        self.start > self.end
    }

    /// All text of the ring.
    pub fn all(self) -> SurvivingText {
        if self.has_wrapped() {
            SurvivingText { older: self.start..self.wrap_position, newer: 0..self.end, truncated: true }
        } else {
            SurvivingText { older: 0..0, newer: self.start..self.end, truncated: false }
        }
    }

    /// The bytes of `copied`, a text of this snapshot, that were not overwritten before `after`, the snapshot after copying.
    /// `None` if they cannot be known, or if all were overwritten.
    pub fn surviving(self, copied: &SurvivingText, after: RingSnapshot) -> Option<SurvivingText> {
        if after.is_being_written {
            return None;
        }
        let surviving = if after.wrap_count == self.wrap_count {
            if self.has_wrapped() {
                let first_kept = if after.has_wrapped() { after.start } else { u32::MAX };
                let start = first_kept.max(copied.older.start).min(copied.older.end);
                // A record begins at 0.
                let truncated = start < copied.older.end || copied.newer.start > 0;
                SurvivingText { older: start..copied.older.end, newer: copied.newer.clone(), truncated }
            } else {
                copied.clone()
            }
        } else if after.wrap_count == self.wrap_count.wrapping_add(1) && after.has_wrapped() {
            // The newer records are the older ones now, and the older ones were overwritten.
            let start = after.start.max(copied.newer.start).min(copied.newer.end);
            SurvivingText { older: 0..0, newer: start..copied.newer.end, truncated: start > 0 }
        } else {
            return None;
        };
        (surviving.len() > 0 || copied.len() == 0).then_some(surviving)
    }
}

#[cfg(test)]
#[path = "ring_snapshot_tests.rs"]
mod tests;
