//! What of a copied ring is good, if its thread went on recording meanwhile.
//!
//! The words of the region are read before the text is copied and again afterwards. The recorder gives up records, by
//! moving `start`, before it overwrites them; so what the second look does not show as given up was whole all the time.
//! `filled` and `laps` are two words: between changing the one and the other the recorder may be held up for long, so
//! that a look can find them a lap apart. What could then be taken for good wrongly is not taken.

use std::ops::Range;

use spec::buffer::{Shape, unpack, words_at};
use spec::encode::room;

/// Records begin anew when there is room for less than this many bytes behind them, at most.
const BRIM: u32 = room(8) as u32;

/// The words of a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// How often it has begun anew.
    pub laps: u32,
    /// Where its records start.
    pub start: u32,
    /// Where they end.
    pub end: u32,
    /// Where the older records end when `start` is greater than `end`.
    pub wrapped_at: u32,
    /// Text of it is on its way to the record file.
    pub leaving: bool,
}

/// What of a ring's text is good, as parts of the region.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Good {
    /// The older records of a ring that had begun anew.
    pub older: Range<u32>,
    /// The newer ones, after those.
    pub newer: Range<u32>,
    /// The first of these parts need not begin where a record does.
    pub cut: bool,
}

impl Good {
    /// How many bytes there are.
    pub fn len(&self) -> u32 {
        (self.older.end - self.older.start) + (self.newer.end - self.newer.start)
    }

    /// The newest `most` bytes of it.
    pub fn newest(&self, most: u32) -> Good {
        let Some(less) = self.len().checked_sub(most).filter(|&less| less > 0) else { return self.clone() };
        let older = less.min(self.older.end - self.older.start);
        Good {
            older: self.older.start + older..self.older.end,
            newer: self.newer.start + (less - older)..self.newer.end,
            cut: true,
        }
    }
}

impl Look {
    /// The words of region `region` in the first page of its slot; `None` if they are impossible, as they may be while
    /// they are being changed.
    pub fn at(page: &[u8], shape: Shape, region: usize) -> Option<Look> {
        let words = words_at(region);
        let word = |at: usize| Some(u64::from_le_bytes(page.get(at..at + 8)?.try_into().ok()?));
        let half = |at: usize| Some(u32::from_le_bytes(page.get(at..at + 4)?.try_into().ok()?));
        let Range { start, end } = unpack(word(words.filled)?);
        let (laps, wrapped_at) = (half(words.laps)?, half(words.wrapped_at)?);
        let look = Look { laps, start, end, wrapped_at, leaving: word(words.pending)? != 0 };
        let bound = if look.has_wrapped() { look.wrapped_at } else { end };
        (start.max(end) <= bound && bound as usize <= shape.region_size(region)).then_some(look)
    }

    /// Whether there are older records behind the newer ones.
    fn has_wrapped(self) -> bool {
        self.start > self.end
    }

    /// What there is now.
    pub fn all(self) -> Good {
        if self.has_wrapped() {
            Good { older: self.start..self.wrapped_at, newer: 0..self.end, cut: true }
        } else {
            Good { older: 0..0, newer: self.start..self.end, cut: false }
        }
    }

    /// What of `copied`, a part of what there was at this look, is good if `after` is what a look after copying found;
    /// `None` if that cannot be told, or is nothing of what was something. `size`: the region's, bytes.
    pub fn survivors(self, copied: &Good, after: Look, size: u32) -> Option<Good> {
        if after.leaving {
            return None;
        }
        let new_lap = after.laps != self.laps || after.end < self.end || (after.has_wrapped() && !self.has_wrapped());
        let good = if new_lap {
            let laps = after.laps.wrapping_sub(self.laps);
            // One lap apart, and neither look can have fallen between the two words.
            let is_next = laps == 0 || (laps == 1 && after.end > 0 && self.end + BRIM <= size);
            if !is_next || !after.has_wrapped() || after.wrapped_at < self.end {
                return None;
            }
            // What was new is old now, and what was old has gone.
            let start = after.start.max(copied.newer.start).min(copied.newer.end);
            let first = if self.has_wrapped() { 0 } else { self.start };
            Good { older: 0..0, newer: start..copied.newer.end, cut: start > first }
        } else if self.has_wrapped() {
            if after.has_wrapped() && (after.start < self.start || after.wrapped_at != self.wrapped_at) {
                return None;
            }
            let kept = if after.has_wrapped() { after.start } else { u32::MAX };
            let start = kept.max(copied.older.start).min(copied.older.end);
            // Records begin at 0.
            let cut = start < copied.older.end || copied.newer.start > 0;
            Good { older: start..copied.older.end, newer: copied.newer.clone(), cut }
        } else {
            if after.start != self.start {
                return None;
            }
            copied.clone()
        };
        (good.len() > 0 || copied.len() == 0).then_some(good)
    }
}
