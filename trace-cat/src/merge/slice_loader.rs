//! Brings the records of a slice into memory, each input's in order.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use memchr::memchr;
use spec::record::{RECORD_LEN_MAX, RECORD_LEN_MIN};

use super::input::MergeInput;
use super::loser_tree::{SLACK, enlarge};
use crate::record::columns;
use crate::record::validation::check;
use crate::support::diagnostics::Diagnostics;
use crate::trace::record_reader::{RecordItem, RecordReader};
use crate::trace::record_text::RecordText;

/// Records of several inputs, each of which is a stream in order.
#[derive(Default)]
pub struct SliceRecords {
    bytes: Vec<u8>,
    filled: usize,
    streams: Vec<Range<usize>>,
    /// The number of each stream's input.
    owners: Vec<u32>,
    /// Where the stream that is being loaded begins.
    start: usize,
    /// Lines with their times, to be sorted; and where they are put in order.
    lines: Vec<(u64, usize, usize)>,
    sorted: Vec<u8>,
    /// For the reader of inputs that are damaged.
    buffer: Vec<u8>,
}

/// There is more than fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooMuch;

impl SliceRecords {
    /// All bytes; behind the last stream there are [`SLACK`].
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The streams in the order of the inputs.
    pub fn streams(&self) -> &[Range<usize>] {
        &self.streams
    }

    /// The inputs whose streams hold lines that are no records of `times`.
    pub fn broken(&self, times: &Range<u64>) -> impl Iterator<Item = u32> {
        let whole = |stream: &Range<usize>| {
            let bytes = &self.bytes[stream.clone()];
            let mut at = 0;
            while let Some((time, end)) = line(bytes, at) {
                if !times.contains(&time) || check(&bytes[at..end - 1]).is_err() {
                    return false;
                }
                at = end;
            }
            at == bytes.len()
        };
        self.streams.iter().zip(&self.owners).filter(move |(stream, _)| !whole(stream)).map(|(_, &owner)| owner)
    }

    /// Replaces what is there by the records of `times` of these inputs.
    ///
    /// # Errors
    /// If they have more than about `limit` bytes. What cannot be read is told.
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
        self.owners.clear();
        for &number in numbers {
            let input = &inputs[number as usize];
            self.start = self.filled;
            if let Err(error) = self.add(input, times, limit)? {
                input.fail(&error, diagnostics);
            }
            if self.filled > self.start {
                self.streams.push(self.start..self.filled);
                self.owners.push(number);
            }
        }
        self.room(0);
        Ok(())
    }

    fn add(&mut self, input: &MergeInput, times: &Range<u64>, limit: u64) -> Result<io::Result<()>, TooMuch> {
        let index = &input.index;
        let mut result = Ok(());
        for blocks in index.find(times.clone()) {
            let place = index.place(&blocks);
            // Blocks at the ends belong to a slice only in part.
            let first = index.place(&(blocks.start..blocks.start + 1));
            let spare = 2 * input.text.size(first) + RECORD_LEN_MAX as u64;
            if self.filled as u64 + input.text.size(place.clone()) > limit + spare {
                return Err(TooMuch);
            }
            if !index.clean() {
                result = self.sift_damaged(&input.text, place, times);
            } else if !index.ordered() {
                result = self.sift(&input.text, place, times);
            } else {
                let last = index.place(&(blocks.end - 1..blocks.end)).start - place.start;
                let ends = [&index.blocks()[blocks.start], &index.blocks()[blocks.end - 1]];
                let whole = [ends[0].min >= times.start, ends[1].max < times.end];
                result = self.cut(&input.text, place, last as usize, whole, times);
            }
            if result.is_err() {
                break;
            }
        }
        if !index.ordered() || !index.clean() {
            self.sort(self.start);
        }
        Ok(result)
    }

    fn room(&mut self, length: usize) -> &mut [u8] {
        let end = self.filled + length;
        if self.bytes.len() < end + SLACK {
            enlarge(&mut self.bytes, end + SLACK);
        }
        &mut self.bytes[self.filled..end]
    }

    /// Reads a place of a text behind what is there, without adding it. Returns how many bytes there were.
    fn read(&mut self, text: &RecordText, place: Range<u64>) -> (usize, io::Result<()>) {
        let room = self.room(text.size(place.clone()) as usize);
        let (mut filled, mut at) = (0, place.start);
        while at < place.end {
            match text.read_at(&mut room[filled..], at) {
                Ok(0) => match text.stretch(at) {
                    // Lines do not go on behind a gap.
                    Some(next) if next.start > at && next.start < place.end => at = next.start,
                    _ => break,
                },
                Ok(count) => (filled, at) = (filled + count, at + count as u64),
                Err(error) => return (filled, Err(error)),
            }
        }
        (filled, Ok(()))
    }

    /// Adds those records of a place in order that are of `times`. The last block begins `last` bytes behind its start;
    /// `whole` tells of the first and the last whether all of it is wanted.
    fn cut(
        &mut self,
        text: &RecordText,
        place: Range<u64>,
        last: usize,
        whole: [bool; 2],
        times: &Range<u64>,
    ) -> io::Result<()> {
        let wanted = (place.end - place.start) as usize;
        let (length, result) = self.read(text, place);
        // Without the gaps, the last block is somewhere before.
        let last = if length < wanted { 0 } else { last };
        let bytes = &mut self.bytes[self.filled..self.filled + length];
        let mut first = 0;
        while !whole[0]
            && let Some((time, end)) = known_line(bytes, first)
            && time < times.start
        {
            first = end;
        }
        let mut end = if whole[1] && result.is_ok() { length } else { last.max(first) };
        while let Some((time, next)) = known_line(bytes, end)
            && time < times.end
        {
            end = next;
        }
        if result.is_err() && end == length {
            // Perhaps in the middle of a line.
            end = memchr::memrchr(b'\n', bytes).map_or(first, |newline| newline + 1).max(first);
        }
        if first > length / 8 {
            bytes.copy_within(first..end, 0);
            self.filled += end - first;
        } else {
            // A small gap costs less than moving all.
            self.start += first;
            self.filled += end;
        }
        result
    }

    /// Adds those records of a place without damages that are of `times`.
    fn sift(&mut self, text: &RecordText, place: Range<u64>, times: &Range<u64>) -> io::Result<()> {
        let (length, result) = self.read(text, place);
        let bytes = &mut self.bytes[self.filled..self.filled + length];
        let (mut at, mut kept) = (0, 0);
        while let Some((time, end)) = line(bytes, at) {
            if times.contains(&time) {
                bytes.copy_within(at..end, kept);
                kept += end - at;
            }
            at = end;
        }
        self.filled += kept;
        result
    }

    /// Adds those lines of a place that are records of `times`.
    fn sift_damaged(&mut self, text: &Arc<RecordText>, place: Range<u64>, times: &Range<u64>) -> io::Result<()> {
        let mut records = RecordReader::new(text.clone(), place, std::mem::take(&mut self.buffer));
        let result = loop {
            match records.next() {
                Ok(Some(RecordItem::Record { time })) if times.contains(&time) => {
                    let line = records.line();
                    self.room(line.len()).copy_from_slice(line);
                    self.filled += line.len();
                }
                // It was told when the text was scanned.
                Ok(Some(_)) => {}
                Ok(None) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        self.buffer = records.into_buffer();
        result
    }

    /// Puts what was added from `start` on into the order of time; records of the same time keep theirs.
    fn sort(&mut self, start: usize) {
        let bytes = &mut self.bytes[start..self.filled];
        self.lines.clear();
        let mut at = 0;
        while let Some((time, end)) = line(bytes, at) {
            self.lines.push((time, at, end));
            at = end;
        }
        if self.lines.is_sorted_by_key(|line| line.0) {
            return;
        }
        self.lines.sort_by_key(|line| line.0);
        self.sorted.clear();
        for &(_, at, end) in &self.lines {
            self.sorted.extend_from_slice(&bytes[at..end]);
        }
        bytes[..self.sorted.len()].copy_from_slice(&self.sorted);
        self.filled = start + self.sorted.len();
    }
}

/// The time of the record at `at` and where it ends. Whatever is no record is at the beginning of time.
pub fn line(bytes: &[u8], at: usize) -> Option<(u64, usize)> {
    let rest = bytes.get(at..)?;
    let end = memchr(b'\n', rest)?;
    Some((columns::time(rest).unwrap_or(0), at + end + 1))
}

/// As [`line()`], of what is known to be records.
fn known_line(bytes: &[u8], at: usize) -> Option<(u64, usize)> {
    let (line, rest) = bytes.get(at..)?.split_first_chunk::<{ RECORD_LEN_MIN - 1 }>()?;
    let end = memchr(b'\n', rest)?;
    Some((columns::time_known(line.first_chunk()?), at + RECORD_LEN_MIN + end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_told_with_their_times() {
        let text = b"0000000001:000000002:x\nrubbish\n0000000003:000000004";
        assert_eq!(line(text, 0), Some((1_000_000_002, 23)));
        assert_eq!(line(text, 23), Some((0, 31)));
        assert_eq!(line(text, 31), None);
        assert_eq!(line(text, 100), None);
        let text = [&b"0000000001:000000002:"[..], &[b'x'; 60], b"\n0000000003"].concat();
        assert_eq!((known_line(&text, 0), known_line(&text, 82)), (Some((1_000_000_002, 82)), None));
    }
}
