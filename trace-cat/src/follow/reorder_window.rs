//! Puts records in order that arrive at nearly the same time: a record waits here until no earlier one is expected.
//!
//! A record is released when its time is before the horizon, up to which all records must have arrived, or when it has waited
//! for that long: a clock that is ahead of the others must not hold its records back for ever. A record that is earlier than
//! the horizon when it arrives is late; it is released at once, and marked.

use std::collections::VecDeque;
use std::ops::Range;

use super::emitted_records::EmittedRecords;
use crate::filter::NeededRecords;
use crate::record::columns;

/// Where records that are read from buffers and files go, and memory for reading.
#[derive(Debug)]
pub struct Intake {
    /// Where the records wait.
    pub window: ReorderWindow,
    /// Memory to read into.
    pub buffer: Vec<u8>,
    /// Which records are needed; `None` for all.
    pub filter: Option<NeededRecords>,
}

impl Intake {
    /// How many bytes at the beginning of `text` are records that are not needed (see [`NeededRecords`]). A call is needed if
    /// one of its records was emitted.
    pub fn unneeded(&self, text: &[u8], emitted: &EmittedRecords) -> usize {
        let length = self.filter.as_ref().map_or(0, |filter| filter.unneeded(text));
        if length == 0 || emitted.has_no_lines() {
            return length;
        }
        let is_emitted = |line: &[u8]| columns::time(line).is_some_and(|time| emitted.has(time, line));
        if columns::lines(&text[..length]).any(is_emitted) { 0 } else { length }
    }
}

impl Default for Intake {
    fn default() -> Intake {
        Intake { window: ReorderWindow::default(), buffer: vec![0; 256 << 10], filter: None }
    }
}

/// Records that wait.
#[derive(Debug, Default)]
pub struct ReorderWindow {
    text: Vec<u8>,
    /// How many bytes of it have been released.
    released: usize,
    /// In the order of time up to `sorted`, then in the order of arrival.
    lines: VecDeque<WaitingLine>,
    sorted: usize,
    /// Every record before this time has been released, nanoseconds since the Epoch.
    pub horizon: u64,
    /// How many records were pushed.
    pub count: u64,
}

/// A record that waits.
#[derive(Clone, Copy, Debug)]
struct WaitingLine {
    /// Its time.
    time: u64,
    /// Where its text begins.
    offset: usize,
    length: usize,
    /// The time of the first [`release`](ReorderWindow::release) after it arrived; `u64::MAX` before that.
    arrived: u64,
    /// By how much it was late, nanoseconds; 0 if it was not.
    delay: u64,
}

impl ReorderWindow {
    /// A window for records from `horizon` on.
    pub fn new(horizon: u64) -> ReorderWindow {
        ReorderWindow { horizon, ..ReorderWindow::default() }
    }

    /// Takes a record of this time.
    pub fn push(&mut self, time: u64, line: &[u8]) {
        self.count += 1;
        self.lines.push_back(WaitingLine {
            time,
            offset: self.text.len(),
            length: line.len(),
            arrived: u64::MAX,
            delay: self.horizon.saturating_sub(time),
        });
        self.text.extend_from_slice(line);
    }

    /// Releases, in order, the records before `horizon`, and those that have waited since before `overdue`; `put` gets each
    /// with how late it is, nanoseconds. Records that were pushed since the last call have arrived by `now`.
    pub fn release<E>(
        &mut self,
        horizon: u64,
        [overdue, now]: [u64; 2],
        mut put: impl FnMut(&[u8], u64) -> Result<(), E>,
    ) -> Result<(), E> {
        self.horizon = self.horizon.max(horizon);
        let lines = self.lines.make_contiguous();
        lines[self.sorted..].iter_mut().for_each(|line| line.arrived = now);
        let new = lines.get(self.sorted..).unwrap_or_default().iter().map(|line| line.time).min();
        // The records that have waited are in order: only those after the earliest new one can move.
        let from = lines[..self.sorted].partition_point(|line| new.is_none_or(|new| line.time <= new));
        lines[from..].sort_by_key(|line| line.time);
        self.sorted = lines.len();
        let ready = lines.partition_point(|line| line.time < self.horizon);
        for line in self.lines.drain(..ready) {
            self.released += line.length;
            put(&self.text[line.offset..line.offset + line.length], line.delay)?;
        }
        // Mostly no record is overdue: only those whose clock is ahead.
        if self.lines.iter().any(|line| line.arrived < overdue) {
            for line in self.lines.iter().filter(|line| line.arrived < overdue) {
                self.released += line.length;
                put(&self.text[line.offset..line.offset + line.length], line.delay)?;
            }
            self.lines.retain(|line| line.arrived >= overdue);
        }
        self.sorted = self.lines.len();
        self.compact_if_worthwhile();
        Ok(())
    }

    /// Releases, in order, the records of these `times`, although earlier ones may arrive, which are not late then. Records that
    /// were pushed since the last release have arrived by `now`.
    pub fn release_early<E>(
        &mut self,
        times: Range<u64>,
        now: u64,
        mut put: impl FnMut(&[u8], u64) -> Result<(), E>,
    ) -> Result<(), E> {
        self.release(self.horizon, [0, now], &mut put)?;
        let [first, end] = [times.start, times.end].map(|time| self.lines.partition_point(|line| line.time < time));
        for line in self.lines.drain(first..end.max(first)) {
            self.released += line.length;
            put(&self.text[line.offset..line.offset + line.length], line.delay)?;
        }
        self.sorted = self.lines.len();
        self.compact_if_worthwhile();
        Ok(())
    }

    /// Drops the text of released records, if it is half of all.
    fn compact_if_worthwhile(&mut self) {
        if self.released * 2 < self.text.len() {
            return;
        }
        let mut text = Vec::with_capacity(self.text.len() - self.released);
        for line in &mut self.lines {
            let offset = text.len();
            text.extend_from_slice(&self.text[line.offset..line.offset + line.length]);
            line.offset = offset;
        }
        (self.text, self.released) = (text, 0);
    }

    /// Bytes of memory that waiting records take.
    pub fn size(&self) -> usize {
        self.text.len() + self.lines.len() * size_of::<WaitingLine>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::seeded_random::SeededRandom;

    fn release(window: &mut ReorderWindow, horizon: u64, times: [u64; 2]) -> String {
        let mut out = String::new();
        let put = |line: &[u8], delay: u64| {
            out += std::str::from_utf8(line).unwrap();
            out += &if delay > 0 { format!("!{delay} ") } else { " ".to_owned() };
            Ok::<(), ()>(())
        };
        window.release(horizon, times, put).unwrap();
        out.trim_end().to_owned()
    }

    #[test]
    fn records_within_the_window_are_put_in_order() {
        let mut window = ReorderWindow::new(0);
        for (time, line) in [(30, "c"), (10, "a"), (50, "e"), (20, "b"), (30, "d")] {
            window.push(time, line.as_bytes());
        }
        assert_eq!(release(&mut window, 20, [0, 1]), "a");
        window.push(25, b"z");
        assert_eq!(release(&mut window, 31, [0, 2]), "b z c d");
        assert_eq!(release(&mut window, 31, [0, 3]), "");
        assert_eq!((release(&mut window, 51, [0, 4]), window.size()), ("e".to_owned(), 0));
    }

    #[test]
    fn late_records_are_marked_and_released_at_once() {
        let mut window = ReorderWindow::new(100);
        for (time, line) in [(40, "a"), (100, "b"), (90, "c")] {
            window.push(time, line.as_bytes());
        }
        assert_eq!(release(&mut window, 100, [0, 1]), "a!60 c!10");
        assert_eq!(release(&mut window, 50, [0, 2]), "", "the horizon does not go back");
        assert_eq!(release(&mut window, 101, [0, 3]), "b");
    }

    #[test]
    fn a_clock_that_is_ahead_holds_nothing_back() {
        let mut window = ReorderWindow::new(0);
        window.push(9_000, b"far");
        assert_eq!(release(&mut window, 5, [0, 5]), "");
        window.push(10, b"near");
        assert_eq!(release(&mut window, 5, [5, 7]), "");
        assert_eq!(release(&mut window, 5, [6, 8]), "far");
        window.push(8, b"x");
        assert_eq!(release(&mut window, 20, [6, 9]), "x near", "the one ahead does not make the others late");
    }

    #[test]
    fn every_record_is_released_once_and_only_late_ones_out_of_order() {
        let mut random = SeededRandom::seeded("window", 3);
        let (mut window, mut out, mut pushed) = (ReorderWindow::new(0), Vec::new(), 0u64);
        for now in 0..2_000u64 {
            for _ in 0..random.below(5) {
                let time = (now * 10).saturating_sub(random.below(400) as u64);
                window.push(time, format!("{time}\n").as_bytes());
                pushed += 1;
            }
            let put = |line: &[u8], delay: u64| {
                out.push((std::str::from_utf8(line).unwrap().trim_end().parse::<u64>().unwrap(), delay > 0));
                Ok::<(), ()>(())
            };
            window.release((now * 10).saturating_sub(300), [0, now], put).unwrap();
        }
        let mut waiting = 0;
        let count = |_: &[u8], _| {
            waiting += 1;
            Ok::<(), ()>(())
        };
        window.release(u64::MAX, [0, 0], count).unwrap();
        assert_eq!(out.len() as u64 + waiting, pushed);
        assert!(out.iter().filter(|(_, late)| !late).is_sorted_by_key(|(time, _)| time));
        let late = out.iter().filter(|(_, late)| *late).count() as u64;
        assert!(late > 100, "{late}");
    }
}
