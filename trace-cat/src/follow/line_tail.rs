//! The last of the lines that exist when following starts.

use std::collections::VecDeque;

use crate::output::is_frame_line;
use crate::record::columns;

/// The last of the existing lines, each with those of its stack.
pub struct LastLines {
    pub limit: u64,
    pub lines: VecDeque<Box<[u8]>>,
}

/// The last lines of a format whose lines are calls.
pub struct LineTail {
    pub limit: u64,
    /// The last heading before the lines.
    pub heading: Vec<u8>,
    /// The headings before each line, and the line with the frames behind it.
    pub lines: VecDeque<(Vec<u8>, Vec<u8>)>,
}

impl LineTail {
    /// Takes the next lines, of which the first are `headings`.
    pub fn take(&mut self, text: Vec<u8>, headings: u64) {
        let mut heading = Vec::new();
        for (number, line) in (0..).zip(columns::lines(&text)) {
            match self.lines.back_mut().filter(|_| is_frame_line(line)) {
                Some((_, last)) => last.extend_from_slice(line),
                None if number < headings => heading.extend_from_slice(line),
                None => self.lines.push_back((std::mem::take(&mut heading), line.to_owned())),
            }
        }
        while self.lines.len() as u64 > self.limit {
            let Some((heading, _)) = self.lines.pop_front() else { return };
            if !heading.is_empty() {
                self.heading = heading;
            }
        }
    }
}
