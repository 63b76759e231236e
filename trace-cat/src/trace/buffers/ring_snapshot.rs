//! What of a copied ring is good, if its thread went on recording meanwhile.
//!
//! The words of the region are read before the text is copied and again afterwards. The recorder gives up records, by
//! moving `start`, before it overwrites them; so what the second look does not show as given up was whole all the time.
//!
//! `wrap_count` tells whether `write_position` is still of the same lap. They are two words, of which the recorder stores `write_position` first
//! where it begins anew, and it may be held up for any time before `wrap_count`; then `end` is 0, and nothing is told. Otherwise
//! they are read in an order that lets the second look seem later than it was, never earlier, and less be taken for good
//! than is.

use std::ops::Range;

use spec::buffer::{SlotLayout, region_word_offsets, unpack_range};

/// The words of a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingSnapshot {
    /// How often it has begun anew.
    pub wrap_count: u32,
    /// Where its records start.
    pub start: u32,
    /// Where they end.
    pub end: u32,
    /// Where the older records end when `start` is greater than `end`.
    pub wrap_position: u32,
    /// Text of it is on its way to the record file.
    pub leaving: bool,
}

/// What of a ring's text is good, as parts of the region.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SurvivingText {
    /// The older records of a ring that had begun anew.
    pub older: Range<u32>,
    /// The newer ones, after those.
    pub newer: Range<u32>,
    /// The first of these parts need not begin where a record does.
    pub cut: bool,
}

impl SurvivingText {
    /// How many bytes there are.
    pub fn len(&self) -> u32 {
        (self.older.end - self.older.start) + (self.newer.end - self.newer.start)
    }

    /// The newest `most` bytes of it.
    pub fn newest(&self, most: u32) -> SurvivingText {
        let Some(less) = self.len().checked_sub(most).filter(|&less| less > 0) else { return self.clone() };
        let older = less.min(self.older.end - self.older.start);
        SurvivingText {
            older: self.older.start + older..self.older.end,
            newer: self.newer.start + (less - older)..self.newer.end,
            cut: true,
        }
    }
}

impl RingSnapshot {
    /// The words of region `region` for a look before copying, from the first page of its slot read twice: `wrap_count` counts as
    /// it was first. `None` if the words are impossible, as they may be while they are being changed.
    pub fn before(pages: [&[u8]; 2], shape: SlotLayout, region: usize) -> Option<RingSnapshot> {
        let [first, second] = pages;
        RingSnapshot::of(second, first, shape, region)
    }

    /// The words for a look after copying: `wrap_count` counts as it was last.
    pub fn after(pages: [&[u8]; 2], shape: SlotLayout, region: usize) -> Option<RingSnapshot> {
        let [first, second] = pages;
        RingSnapshot::of(first, second, shape, region)
    }

    fn of(page: &[u8], laps_page: &[u8], shape: SlotLayout, region: usize) -> Option<RingSnapshot> {
        let words = region_word_offsets(region);
        let word = |at: usize| Some(u64::from_le_bytes(page.get(at..at + 8)?.try_into().ok()?));
        let half = |page: &[u8], at: usize| Some(u32::from_le_bytes(page.get(at..at + 4)?.try_into().ok()?));
        let Range { start, end } = unpack_range(word(words.write_position)?);
        let (wrap_count, wrap_position) = (half(laps_page, words.wrap_count)?, half(page, words.wrap_position)?);
        let look = RingSnapshot { wrap_count, start, end, wrap_position, leaving: word(words.write_intent)? != 0 };
        let bound = if look.has_wrapped() { look.wrap_position } else { end };
        let is_beginning_anew = look.has_wrapped() && end == 0;
        let is_possible = start.max(end) <= bound && bound as usize <= shape.region_size(region);
        (is_possible && !is_beginning_anew).then_some(look)
    }

    /// Whether there are older records behind the newer ones.
    fn has_wrapped(self) -> bool {
        self.start > self.end
    }

    /// What there is now.
    pub fn all(self) -> SurvivingText {
        if self.has_wrapped() {
            SurvivingText { older: self.start..self.wrap_position, newer: 0..self.end, cut: true }
        } else {
            SurvivingText { older: 0..0, newer: self.start..self.end, cut: false }
        }
    }

    /// What of `copied`, a part of what there was at this look, is good if `after` is what a look after copying found;
    /// `None` if that cannot be told, or is nothing of what was something.
    pub fn surviving(self, copied: &SurvivingText, after: RingSnapshot) -> Option<SurvivingText> {
        if after.leaving {
            return None;
        }
        let good = if after.wrap_count == self.wrap_count {
            if self.has_wrapped() {
                let kept = if after.has_wrapped() { after.start } else { u32::MAX };
                let start = kept.max(copied.older.start).min(copied.older.end);
                // Records begin at 0.
                let cut = start < copied.older.end || copied.newer.start > 0;
                SurvivingText { older: start..copied.older.end, newer: copied.newer.clone(), cut }
            } else {
                copied.clone()
            }
        } else if after.wrap_count == self.wrap_count.wrapping_add(1) && after.has_wrapped() {
            // What was new is old now, and what was old has gone.
            let start = after.start.max(copied.newer.start).min(copied.newer.end);
            SurvivingText { older: 0..0, newer: start..copied.newer.end, cut: start > 0 }
        } else {
            return None;
        };
        (good.len() > 0 || copied.len() == 0).then_some(good)
    }
}

#[cfg(test)]
#[path = "ring_snapshot_tests.rs"]
mod tests;
