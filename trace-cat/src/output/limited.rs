//! The lines of a format that `--head` and `--tail` select: calls, where two records can be one line.

use memchr::memchr_iter;

use super::formatter::TimelineFormatter;
use super::text::is_frame_line;
use crate::filter::{LineLimit, OpenCallTable};
use crate::record::columns;

/// A format of which only some lines are shown. Headings do not count, and are shown where they are needed.
pub struct LimitedFormat {
    formatter: Box<dyn TimelineFormatter>,
    limit: LineLimit,
    /// How many lines there were so far, shown or not.
    pub lines: u64,
    text: Vec<u8>,
    /// The last line is shown, and with it the stack that may follow.
    shows_last: bool,
}

impl LimitedFormat {
    pub fn new(formatter: Box<dyn TimelineFormatter>, limit: LineLimit) -> LimitedFormat {
        LimitedFormat { formatter, limit, lines: 0, text: Vec::new(), shows_last: false }
    }

    /// Appends what `format` makes, as far as it is within the limit.
    fn put(&mut self, out: &mut Vec<u8>, format: impl FnOnce(&mut dyn TimelineFormatter, &mut Vec<u8>)) {
        self.text.clear();
        let headings = self.formatter.headings();
        format(&mut *self.formatter, &mut self.text);
        let headings = self.formatter.headings() - headings;
        let counted = |text| columns::lines(text).filter(|line| !is_frame_line(line)).count() as u64;
        let lines = counted(&self.text) - headings;
        self.lines += lines;
        if lines > 0 && (lines <= self.limit.skip || self.limit.most == 0) {
            self.limit.skip = self.limit.skip.saturating_sub(lines);
            self.shows_last = false;
            return self.formatter.take_back();
        }
        let heading_end = memchr_iter(b'\n', &self.text).take(headings as usize).last().map_or(0, |end| end + 1);
        let (heading, lines) = self.text.split_at(heading_end);
        out.extend_from_slice(heading);
        for line in columns::lines(lines) {
            if !is_frame_line(line) {
                self.shows_last = self.limit.keeps_next();
            }
            if self.shows_last {
                out.extend_from_slice(line);
            }
        }
    }
}

impl TimelineFormatter for LimitedFormat {
    fn begin(&mut self, start: u64) {
        self.formatter.begin(start);
    }

    fn set_open_calls(&mut self, calls: OpenCallTable) {
        self.formatter.set_open_calls(calls);
    }

    fn add_name(&mut self, line: &[u8]) {
        self.formatter.add_name(line);
    }

    fn begin_call(&mut self, line: &[u8]) {
        self.formatter.begin_call(line);
    }

    fn record(&mut self, line: &[u8], out: &mut Vec<u8>) {
        self.put(out, |formatter, text| formatter.record(line, text));
    }

    fn pause(&mut self, out: &mut Vec<u8>) {
        self.put(out, |formatter, text| formatter.pause(text));
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        self.put(out, |formatter, text| formatter.end(text));
    }

    fn is_complete(&self) -> bool {
        self.limit.most == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Shows a line of letters for each record, with a heading before the first one: `1` is one line, `2` two.
    #[derive(Default)]
    struct Letters {
        shown: u64,
        headings: u64,
        before: (u64, u64),
    }

    impl TimelineFormatter for Letters {
        fn record(&mut self, line: &[u8], out: &mut Vec<u8>) {
            self.before = (self.shown, self.headings);
            for _ in 0..line[0] - b'0' {
                if self.headings == 0 {
                    self.headings = 1;
                    out.extend_from_slice(b"heading\n");
                }
                self.shown += 1;
                out.extend_from_slice(format!("{}\n", self.shown).as_bytes());
            }
        }

        fn headings(&self) -> u64 {
            self.headings
        }

        fn take_back(&mut self) {
            // The numbers of lines tell which ones are shown.
            self.headings = self.before.1;
        }
    }

    #[test]
    fn lines_are_counted_as_they_are_shown() {
        let records = ["1", "0", "2", "1", "2"];
        for skip in 0..8 {
            for most in 0..8 {
                let mut limited = LimitedFormat::new(Box::new(Letters::default()), LineLimit { skip, most });
                let mut out = Vec::new();
                records.iter().for_each(|record| limited.record(record.as_bytes(), &mut out));
                assert_eq!(limited.lines, 6);
                let numbers: Vec<String> =
                    (1..=6).skip(skip as usize).take(most as usize).map(|number: u64| format!("{number}\n")).collect();
                let heading = if numbers.is_empty() { "" } else { "heading\n" };
                assert_eq!(String::from_utf8(out).unwrap(), heading.to_owned() + &numbers.concat(), "{skip} {most}");
                assert_eq!(limited.is_complete(), most <= 6u64.saturating_sub(skip), "{skip} {most}");
            }
        }
    }
}
