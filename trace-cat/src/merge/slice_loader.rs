//! Loads the records of a slice, those of each input in order.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use memchr::memchr;
use spec::record::{RECORD_LEN_MAX, RECORD_LEN_MIN};

use super::input::MergeInput;
use super::loser_tree::{SLACK, enlarge};
use crate::record::columns;
use crate::record::plain_records::{self, PrintedTime, WalkEnd};
use crate::record::validation::validate;
use crate::support::diagnostics::Diagnostics;
use crate::trace::record_reader::{RecordItem, RecordReader};
use crate::trace::record_text::RecordText;

/// The records of a slice: a sorted stream for each input.
#[derive(Default)]
pub struct SliceRecords {
    /// The bytes of all streams, and [`SLACK`] bytes after the last one.
    pub bytes: Vec<u8>,
    filled: usize,
    /// The ranges of the streams, in the order of the inputs.
    pub streams: Vec<Range<usize>>,
    stream_inputs: Vec<u32>,
    /// Where the stream that is being loaded begins.
    start: usize,
    /// The time, the start and the end of each line of a stream that is sorted.
    lines: Vec<(u64, usize, usize)>,
    sorted: Vec<u8>,
    /// The buffer of the reader of damaged inputs.
    buffer: Vec<u8>,
}

/// The records have more bytes than a slice may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooMuch;

impl SliceRecords {
    /// The inputs whose streams have lines that are no records of `times`.
    pub fn invalid_inputs(&self, times: &Range<u64>) -> impl Iterator<Item = u32> {
        let is_valid = |stream: &Range<usize>| {
            let bytes = &self.bytes[stream.clone()];
            let mut start = 0;
            while let Some((time, end)) = line(bytes, start) {
                if !times.contains(&time) || validate(&bytes[start..end - 1]).is_err() {
                    return false;
                }
                start = end;
            }
            start == bytes.len()
        };
        let streams = self.streams.iter().zip(&self.stream_inputs);
        streams.filter(move |(stream, _)| !is_valid(stream)).map(|(_, &input)| input)
    }

    /// Removes from the streams the lines that are no records. Returns the inputs that have such lines: their files have changed
    /// since they were scanned.
    pub fn remove_invalid_lines(&mut self) -> Vec<u32> {
        let mut changed = Vec::new();
        for (stream, &input) in self.streams.iter_mut().zip(&self.stream_inputs) {
            let (mut at, mut kept) = (stream.start, stream.start);
            while at < stream.end {
                let unread = &self.bytes[at..stream.end];
                let walk = plain_records::walk(unread, unread.len(), PrintedTime::FIRST);
                let mut valid = walk.bytes;
                let mut invalid = 0;
                if walk.stop == WalkEnd::NotPlain {
                    match memchr(b'\n', &unread[valid..]) {
                        Some(length) if validate(&unread[valid..valid + length]).is_ok() => valid += length + 1,
                        newline => invalid = newline.map_or(unread.len() - valid, |length| length + 1),
                    }
                }
                if kept < at {
                    self.bytes.copy_within(at..at + valid, kept);
                }
                (at, kept) = (at + valid + invalid, kept + valid);
            }
            if kept < stream.end {
                stream.end = kept;
                changed.push(input);
            }
        }
        changed
    }

    /// Replaces the streams by the records of `times` of these inputs. What cannot be read is reported and left out.
    /// Fails if the records have more than about `limit` bytes.
    pub fn load(
        &mut self,
        inputs: &[MergeInput],
        numbers: &[u32],
        times: &Range<u64>,
        limit: u64,
        diagnostics: &Diagnostics,
    ) -> Result<(), TooMuch> {
        self.filled = 0;
        self.streams.clear();
        self.stream_inputs.clear();
        for &number in numbers {
            let input = &inputs[number as usize];
            self.start = self.filled;
            if let Err(error) = self.load_input(input, times, limit)? {
                input.fail(&error, diagnostics);
            }
            if self.filled > self.start {
                self.streams.push(self.start..self.filled);
                self.stream_inputs.push(number);
            }
        }
        self.reserve(0);
        Ok(())
    }

    fn load_input(&mut self, input: &MergeInput, times: &Range<u64>, limit: u64) -> Result<io::Result<()>, TooMuch> {
        let index = &input.index;
        let mut result = Ok(());
        for blocks in index.find(times.clone()) {
            let range = index.place(&blocks);
            // The slice may have only some records of the first and of the last block.
            let first = index.place(&(blocks.start..blocks.start + 1));
            let excess = 2 * input.text.size(first) + RECORD_LEN_MAX as u64;
            if self.filled as u64 + input.text.size(range.clone()) > limit + excess {
                return Err(TooMuch);
            }
            if !index.clean {
                result = self.load_damaged(&input.text, range, times);
            } else if !index.ordered {
                result = self.load_unordered(&input.text, range, times);
            } else {
                let last = index.place(&(blocks.end - 1..blocks.end)).start - range.start;
                let ends = [&index.blocks[blocks.start], &index.blocks[blocks.end - 1]];
                let is_within = [ends[0].min >= times.start, ends[1].max < times.end];
                result = self.load_ordered(&input.text, range, last as usize, is_within, times);
            }
            if result.is_err() {
                break;
            }
        }
        if !index.ordered || !index.clean {
            self.sort_stream();
        }
        Ok(result)
    }

    /// The next `length` bytes after the filled ones, which are followed by [`SLACK`] bytes.
    fn reserve(&mut self, length: usize) -> &mut [u8] {
        let end = self.filled + length;
        if self.bytes.len() < end + SLACK {
            enlarge(&mut self.bytes, end + SLACK);
        }
        &mut self.bytes[self.filled..end]
    }

    /// Reads a range of a text to after the filled bytes, without adding to these. Returns how many bytes were read.
    fn read(&mut self, text: &RecordText, range: Range<u64>) -> (usize, io::Result<()>) {
        let room = self.reserve(text.size(range.clone()) as usize);
        let (mut length, mut offset) = (0, range.start);
        while offset < range.end {
            match text.read_at(&mut room[length..], offset) {
                Ok(0) => match text.stretch(offset) {
                    // No line continues after a gap.
                    Some(next) if next.start > offset && next.start < range.end => offset = next.start,
                    _ => break,
                },
                Ok(count) => (length, offset) = (length + count, offset + count as u64),
                Err(error) => return (length, Err(error)),
            }
        }
        (length, Ok(()))
    }

    /// Adds those records of a sorted range that are of `times`. The last block begins `last` bytes after the start of the
    /// range. `is_within`: the first block begins, and the last block ends, within `times`.
    fn load_ordered(
        &mut self,
        text: &RecordText,
        range: Range<u64>,
        last: usize,
        is_within: [bool; 2],
        times: &Range<u64>,
    ) -> io::Result<()> {
        let expected = (range.end - range.start) as usize;
        let (length, result) = self.read(text, range);
        // If there were gaps, the last block is at an unknown offset before `last`.
        let last = if length < expected { 0 } else { last };
        let bytes = &mut self.bytes[self.filled..self.filled + length];
        let mut first = 0;
        while !is_within[0]
            && let Some((time, end)) = known_line(bytes, first)
            && time < times.start
        {
            first = end;
        }
        let mut end = if is_within[1] && result.is_ok() { length } else { last.max(first) };
        while let Some((time, next)) = known_line(bytes, end)
            && time < times.end
        {
            end = next;
        }
        if result.is_err() && end == length {
            // The last line may be incomplete.
            end = memchr::memrchr(b'\n', bytes).map_or(first, |newline| newline + 1).max(first);
        }
        if first > length / 8 {
            bytes.copy_within(first..end, 0);
            self.filled += end - first;
        } else {
            // A small gap costs less than moving the records.
            self.start += first;
            self.filled += end;
        }
        result
    }

    /// Adds those records of an undamaged range that are of `times`.
    fn load_unordered(&mut self, text: &RecordText, range: Range<u64>, times: &Range<u64>) -> io::Result<()> {
        let (length, result) = self.read(text, range);
        let bytes = &mut self.bytes[self.filled..self.filled + length];
        let (mut start, mut kept) = (0, 0);
        while let Some((time, end)) = line(bytes, start) {
            if times.contains(&time) {
                bytes.copy_within(start..end, kept);
                kept += end - start;
            }
            start = end;
        }
        self.filled += kept;
        result
    }

    /// Adds those lines of a range that are records of `times`.
    fn load_damaged(&mut self, text: &Arc<RecordText>, range: Range<u64>, times: &Range<u64>) -> io::Result<()> {
        let mut records = RecordReader::new(text.clone(), range, std::mem::take(&mut self.buffer));
        let result = loop {
            match records.next() {
                Ok(Some(RecordItem::Record { time })) if times.contains(&time) => {
                    let line = records.line();
                    self.reserve(line.len()).copy_from_slice(line);
                    self.filled += line.len();
                }
                // The scan reported the damage.
                Ok(Some(_)) => {}
                Ok(None) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        self.buffer = records.into_buffer();
        result
    }

    /// Sorts the stream that is being loaded by time. Records of the same time keep their order.
    fn sort_stream(&mut self) {
        let bytes = &mut self.bytes[self.start..self.filled];
        self.lines.clear();
        let mut start = 0;
        while let Some((time, end)) = line(bytes, start) {
            self.lines.push((time, start, end));
            start = end;
        }
        if self.lines.is_sorted_by_key(|line| line.0) {
            return;
        }
        self.lines.sort_by_key(|line| line.0);
        self.sorted.clear();
        for &(_, start, end) in &self.lines {
            self.sorted.extend_from_slice(&bytes[start..end]);
        }
        bytes[..self.sorted.len()].copy_from_slice(&self.sorted);
        self.filled = self.start + self.sorted.len();
    }
}

/// The time and the end of the line at `start`; a line that is no record has the time 0.
fn line(bytes: &[u8], start: usize) -> Option<(u64, usize)> {
    let bytes = bytes.get(start..)?;
    let length = memchr(b'\n', bytes)?;
    Some((columns::time(bytes).unwrap_or(0), start + length + 1))
}

/// As [`line()`], if all lines are known to be records.
fn known_line(bytes: &[u8], start: usize) -> Option<(u64, usize)> {
    let (line, after) = bytes.get(start..)?.split_first_chunk::<{ RECORD_LEN_MIN - 1 }>()?;
    let length = memchr(b'\n', after)?;
    Some((columns::time_known(line.first_chunk()?), start + RECORD_LEN_MIN + length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_are_no_records_are_removed() {
        let record = |number: u32| {
            format!("1795174740:{number:09}:0019955:0019953:0x7fc5de3f86c0:02:02:1:0x559469ed90a0:0:0:0:0\n")
        };
        let long = "1795174740:000000009:0019955:0019953:0x7fc5de3f86c0:02:02:2:-1:18446744073709551615:0:0:0\n";
        let valid = [record(2), long.to_string(), record(1)].concat();
        let broken = record(3).replace(":02:02:", ":0\n0\0:");
        let mut records = SliceRecords { stream_inputs: vec![4, 6, 7], ..SliceRecords::default() };
        let streams = [valid.clone(), [&record(1), &broken[..], long, "rubbish"].concat(), record(5)[..70].to_string()];
        for stream in &streams {
            let start = records.bytes.len();
            records.bytes.extend_from_slice(stream.as_bytes());
            records.streams.push(start..records.bytes.len());
        }
        assert_eq!(records.remove_invalid_lines(), [6, 7]);
        let kept = records.streams.iter().map(|stream| std::str::from_utf8(&records.bytes[stream.clone()]).unwrap());
        assert_eq!(kept.collect::<Vec<_>>(), [valid, [&record(1), long].concat(), String::new()]);
    }

    #[test]
    fn lines_are_returned_with_their_times() {
        let text = b"0000000001:000000002:x\nrubbish\n0000000003:000000004";
        assert_eq!(line(text, 0), Some((1_000_000_002, 23)));
        assert_eq!(line(text, 23), Some((0, 31)));
        assert_eq!(line(text, 31), None);
        assert_eq!(line(text, 100), None);
        let text = [&b"0000000001:000000002:"[..], &[b'x'; 60], b"\n0000000003"].concat();
        assert_eq!((known_line(&text, 0), known_line(&text, 82)), (Some((1_000_000_002, 82)), None));
    }
}
