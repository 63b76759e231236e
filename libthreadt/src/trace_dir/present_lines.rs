//! Which lines of `/proc/self/maps` trinfo has, so that a reading writes what is new and what is gone.

use core::ops::Range;

use super::info_file::nonzero_hash;

/// The mappings that trinfo has and that were there when they were last read.
pub struct PresentLines {
    lines: [PresentLine; 1024],
    pub count: usize,
    /// The number of the reading in progress, or of the last one.
    reading: u64,
}

#[derive(Clone, Copy)]
struct PresentLine {
    /// Of the text in `/proc/self/maps`.
    hash: u64,
    start: u64,
    end: u64,
    /// The last reading that had it.
    reading: u64,
}

impl PresentLines {
    pub const fn new() -> PresentLines {
        PresentLines { lines: [PresentLine { hash: 0, start: 0, end: 0, reading: 0 }; 1024], count: 0, reading: 0 }
    }

    pub fn is_full(&self) -> bool {
        self.count == self.lines.len()
    }

    /// The mapping that has an address.
    pub fn range_of(&self, address: u64) -> Option<Range<u64>> {
        let ranges = self.lines.iter().take(self.count).map(|line| line.start..line.end);
        ranges.into_iter().find(|range| range.contains(&address))
    }

    pub fn begin_reading(&mut self) {
        self.reading += 1;
    }

    /// Notes the line of a mapping, and returns whether it was new. When there is no room, every line is taken for new.
    pub fn is_new(&mut self, line: &[u8], range: Range<u64>) -> bool {
        let hash = nonzero_hash(line);
        let reading = self.reading;
        if let Some(known) = self.lines.iter_mut().take(self.count).find(|known| known.hash == hash) {
            known.reading = reading;
            return false;
        }
        if let Some(place) = self.lines.get_mut(self.count) {
            *place = PresentLine { hash, start: range.start, end: range.end, reading };
            self.count += 1;
        }
        true
    }

    /// Calls `write` for each mapping that the reading, which is complete, did not have, and forgets it.
    pub fn remove_gone(&mut self, write: impl FnMut(Range<u64>)) {
        self.remove(|_| true, write);
    }

    /// As [`PresentLines::remove_gone`], for those with an address for which the reading in progress had another mapping.
    pub fn remove_replaced(&mut self, address: u64, write: impl FnMut(Range<u64>)) {
        self.remove(|line| (line.start..line.end).contains(&address), write);
    }

    fn remove(&mut self, is_meant: impl Fn(&PresentLine) -> bool, mut write: impl FnMut(Range<u64>)) {
        let mut at = 0;
        while let Some(&line) = self.lines.get(..self.count).and_then(|lines| lines.get(at)) {
            if line.reading == self.reading || !is_meant(&line) {
                at += 1;
                continue;
            }
            write(line.start..line.end);
            self.count -= 1;
            let last = self.lines.get(self.count).copied();
            if let (Some(place), Some(last)) = (self.lines.get_mut(at), last) {
                *place = last;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_new_once_and_gone_once() {
        let mut present = Box::new(PresentLines::new());
        let mut reading = |lines: &[(&str, u64)]| {
            present.begin_reading();
            let is_new = |(line, start): &(&str, u64)| present.is_new(line.as_bytes(), *start..*start + 1);
            let new: Vec<bool> = lines.iter().map(is_new).collect();
            let mut gone = Vec::new();
            present.remove_gone(|range| gone.push(range.start));
            (new, gone)
        };
        assert_eq!(reading(&[("a", 1), ("b", 2), ("c", 3)]), (vec![true; 3], vec![]));
        assert_eq!(reading(&[("a", 1), ("c", 3)]), (vec![false; 2], vec![2]));
        assert_eq!(reading(&[("b", 2), ("c", 3)]), (vec![true, false], vec![1]));
        assert_eq!(reading(&[]), (vec![], vec![2, 3]));
    }

    #[test]
    fn without_room_all_lines_are_new() {
        let mut present = Box::new(PresentLines::new());
        for _ in 0..2 {
            let line = |number: u64| present.is_new(&number.to_le_bytes(), number..number + 1);
            let new: Vec<bool> = (0..1025).map(line).collect();
            assert_eq!(new.iter().filter(|new| **new).count(), if present.reading == 0 { 1025 } else { 1 });
            present.begin_reading();
        }
    }
}
