//! The bytes of one record file as they would be if its process had written all its buffers: the file's own bytes,
//! overlaid with text that the process was writing when it died, and followed by text that it had not begun to write.
//!
//! No bytes are copied; a list of chunks maps each place in the text to the record file or to the trbuf.

use std::io;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use memchr::memchr;

use super::buffers::leftovers::LeftoverPlaces;
use super::file_handle::FileHandle;
use super::host_view::{HEAD_WIDTH, HostView};
use crate::support::diagnostics::Diagnostics;

/// The file that a chunk's bytes are in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ByteOrigin {
    /// The record file.
    File,
    /// The process's trbuf, or a copy of it.
    Buffers,
}

/// Bytes that are contiguous both in the text and in the file they are in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TextChunk {
    /// Where they are in the text.
    at: u64,
    length: u64,
    origin: ByteOrigin,
    /// Where they are in the file.
    offset: u64,
}

impl TextChunk {
    fn end(&self) -> u64 {
        self.at + self.length
    }
}

/// The text of one record file.
#[derive(Debug)]
pub struct RecordText {
    /// The record file's path.
    pub path: PathBuf,
    file: Option<Arc<FileHandle>>,
    buffers: Option<Arc<FileHandle>>,
    /// In order, without overlap, none empty. Between two chunks there may be a gap, which ends a line.
    chunks: Vec<TextChunk>,
    /// How many bytes of the file belong to the text.
    length: u64,
    /// A process may be writing to the file: an incomplete line is then no damage.
    pub is_growing: bool,
    /// It includes text that a process had not begun to write. The process may have taken a range of the file for that text
    /// already, which is then a run of NUL bytes.
    pub has_appended_text: bool,
    /// The host that the records are of, if those of several are read: they are read as its view changes them.
    pub host: Option<Arc<HostView>>,
}

impl RecordText {
    /// The text of the first `length` bytes of a file. `is_growing`: a process may be writing to the file.
    pub fn new(path: PathBuf, file: Option<Arc<FileHandle>>, length: u64, is_growing: bool) -> RecordText {
        let length = if file.is_some() { length } else { 0 };
        let chunk = TextChunk { at: 0, length, origin: ByteOrigin::File, offset: 0 };
        let chunks = if length > 0 { vec![chunk] } else { Vec::new() };
        RecordText { path, file, buffers: None, chunks, length, is_growing, has_appended_text: false, host: None }
    }

    /// The text of `range` of a file.
    pub fn slice(file: Arc<FileHandle>, range: Range<u64>) -> RecordText {
        let length = range.end.saturating_sub(range.start);
        let mut text = RecordText::new(file.path.clone(), Some(file), length, false);
        text.chunks.iter_mut().for_each(|chunk| chunk.offset = range.start);
        text
    }

    /// Replaces the bytes from `at` on by `range` of the trbuf.
    ///
    /// # Errors
    /// The range, if the end of the text would not fit into its type.
    pub fn overlay(&mut self, buffers: &Arc<FileHandle>, at: u64, range: Range<u64>) -> Result<(), Range<u64>> {
        let length = range.end.saturating_sub(range.start);
        let Some(end) = at.checked_add(length).filter(|&end| end < u64::MAX / 2) else {
            return Err(range);
        };
        if length == 0 {
            return Ok(());
        }
        let mut chunks = Vec::with_capacity(self.chunks.len() + 2);
        for &chunk in &self.chunks {
            if chunk.at < at {
                chunks.push(TextChunk { length: chunk.length.min(at - chunk.at), ..chunk });
            }
            if chunk.end() > end {
                let covered = end.saturating_sub(chunk.at);
                chunks.push(TextChunk {
                    at: chunk.at + covered,
                    length: chunk.length - covered,
                    offset: chunk.offset + covered,
                    ..chunk
                });
            }
        }
        chunks.push(TextChunk { at, length, origin: ByteOrigin::Buffers, offset: range.start });
        chunks.sort_by_key(|chunk| chunk.at);
        self.chunks = chunks;
        self.buffers = Some(buffers.clone());
        Ok(())
    }

    /// Adds `range` of the trbuf at the end, beginning a line.
    pub fn append(&mut self, buffers: &Arc<FileHandle>, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        // A gap of one byte ends an incomplete line before it.
        let at = self.chunks.last().map_or(0, |chunk| chunk.end() + 1);
        self.chunks.push(TextChunk {
            at,
            length: range.end - range.start,
            origin: ByteOrigin::Buffers,
            offset: range.start,
        });
        self.buffers = Some(buffers.clone());
        self.has_appended_text = true;
    }

    /// Overlays and appends what the process's trbuf holds for this file. Reports text whose place is impossible.
    pub fn add_leftovers(
        &mut self,
        buffers: &Arc<FileHandle>,
        leftovers: &[LeftoverPlaces],
        diagnostics: &Diagnostics,
    ) {
        for (at, range) in leftovers.iter().filter_map(|leftover| leftover.write_intent.clone()) {
            if let Err(range) = self.overlay(buffers, at, range) {
                let place = format_args!("{}: byte {}", buffers.path.display(), range.start);
                diagnostics.report_damage(place, "text that belongs at an impossible place");
            }
        }
        for leftover in leftovers {
            self.append(buffers, leftover.older.clone());
            self.append(buffers, leftover.unwritten.clone());
        }
    }

    /// The file, and how many of its bytes belong to the text; `None` if there is no file.
    pub fn file(&self) -> Option<(&Arc<FileHandle>, u64)> {
        Some((self.file.as_ref()?, self.length))
    }

    /// Whether it includes what a dead process left in its buffers. Such a text does not grow any more.
    pub fn is_completed(&self) -> bool {
        self.buffers.is_some() && !self.is_growing
    }

    /// The end of the text.
    pub fn end(&self) -> u64 {
        self.chunks.last().map_or(0, TextChunk::end)
    }

    /// The number of bytes in `range`, without the gaps.
    pub fn size(&self, range: Range<u64>) -> u64 {
        let first = self.chunks.partition_point(|chunk| chunk.end() <= range.start);
        let chunks = self.chunks[first..].iter().take_while(|chunk| chunk.at < range.end);
        chunks.map(|chunk| chunk.end().min(range.end) - chunk.at.max(range.start)).sum()
    }

    /// The first gapless stretch that ends after `at`, without what lies before `at`.
    pub fn stretch(&self, at: u64) -> Option<Range<u64>> {
        let first = self.chunks.partition_point(|chunk| chunk.end() <= at);
        let mut end = self.chunks.get(first)?.end();
        for chunk in &self.chunks[first + 1..] {
            if chunk.at != end {
                break;
            }
            end = chunk.end();
        }
        Some(self.chunks[first].at.max(at)..end)
    }

    /// Reads some bytes at `at`: at least one, unless `buffer` is empty or `at` lies in no stretch.
    pub fn read_at(&self, buffer: &mut [u8], at: u64) -> io::Result<usize> {
        let length = self.read_unchanged(buffer, at)?;
        if let Some(host) = &self.host
            && length > 0
        {
            self.correct(host, &mut buffer[..length], at)?;
        }
        Ok(length)
    }

    /// Corrects what was read at `at`, which may begin and end anywhere within a line.
    fn correct(&self, host: &HostView, bytes: &mut [u8], at: u64) -> io::Result<()> {
        // The heads of the first and the last line may be complete only with what is before and behind.
        let first = self.chunks.partition_point(|chunk| chunk.end() <= at);
        let contiguous = |pair: &[TextChunk]| pair[0].end() == pair[1].at;
        let gapless = self.chunks[..=first].windows(2).rev().take_while(|pair| contiguous(pair)).count();
        let start = at.saturating_sub(HEAD_WIDTH as u64).max(self.chunks[first - gapless].at);
        let before = self.read_gapless(start..at)?;
        let end = at + bytes.len() as u64;
        let behind = self.read_gapless(end..end + HEAD_WIDTH as u64)?;
        let mut text = [&before, &*bytes, &behind].concat();
        // What reaches back to no beginning of a line is behind the head of its line.
        let newline = || memchr(b'\n', &text).map_or(text.len(), |newline| newline + 1);
        let line = if before.len() < HEAD_WIDTH { 0 } else { newline() };
        host.correct_lines(&mut text[line..]);
        bytes.copy_from_slice(&text[before.len()..][..bytes.len()]);
        Ok(())
    }

    /// The bytes of a range, up to the first gap.
    fn read_gapless(&self, range: Range<u64>) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; (range.end - range.start) as usize];
        let mut length = 0;
        while length < bytes.len() {
            match self.read_unchanged(&mut bytes[length..], range.start + length as u64)? {
                0 => break,
                count => length += count,
            }
        }
        bytes.truncate(length);
        Ok(bytes)
    }

    fn read_unchanged(&self, buffer: &mut [u8], at: u64) -> io::Result<usize> {
        let index = self.chunks.partition_point(|chunk| chunk.end() <= at);
        let Some(chunk) = self.chunks.get(index).filter(|chunk| chunk.at <= at) else {
            return Ok(0);
        };
        let handle = match chunk.origin {
            ByteOrigin::File => &self.file,
            ByteOrigin::Buffers => &self.buffers,
        };
        let Some(handle) = handle else { return Ok(0) };
        let room = buffer.len().min(usize::try_from(chunk.end() - at).unwrap_or(usize::MAX));
        match handle.read_at(&mut buffer[..room], chunk.offset + (at - chunk.at))? {
            0 if room > 0 => Err(io::Error::other("became shorter while being read")),
            length => Ok(length),
        }
    }

    /// Describes for a message where `at` is: file and line, or the place in the trbuf.
    pub fn describe_place(&self, at: u64, line: u64) -> String {
        let index = self.chunks.partition_point(|chunk| chunk.end() <= at);
        match (self.chunks.get(index), &self.buffers) {
            (Some(chunk), Some(buffers)) if chunk.origin == ByteOrigin::Buffers && chunk.at <= at => {
                format!("{}: byte {}", buffers.path.display(), chunk.offset + (at - chunk.at))
            }
            _ => format!("{}:{line}", self.path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::test_trace::TestTrace;

    /// The handles of a file that holds `0123456789` and of a trbuf that holds `abcdefghij`.
    fn handles(trace: &TestTrace) -> [Arc<FileHandle>; 2] {
        [("tr", "0123456789"), ("trbuf", "abcdefghij")].map(|(name, bytes)| trace.file(name, bytes).handle(name, 9))
    }

    /// All stretches, read two bytes at a time.
    fn read(text: &RecordText) -> Vec<String> {
        read_in_pieces(text, 2)
    }

    fn read_in_pieces(text: &RecordText, size: usize) -> Vec<String> {
        let (mut stretches, mut at) = (Vec::new(), 0);
        while let Some(stretch) = text.stretch(at) {
            let mut bytes = Vec::new();
            at = stretch.start;
            while at < stretch.end {
                let mut buffer = vec![0; size];
                let length = text.read_at(&mut buffer, at).unwrap();
                bytes.extend_from_slice(&buffer[..length]);
                at += length as u64;
            }
            stretches.push(String::from_utf8(bytes).unwrap());
        }
        stretches
    }

    #[test]
    fn overlays_cover_extend_and_leave_gaps() {
        let trace = TestTrace::new();
        let [file, buffers] = handles(&trace);
        let text = |overlays: &[(u64, Range<u64>)]| {
            let mut text = RecordText::new("tr".into(), Some(file.clone()), 10, false);
            for (at, range) in overlays {
                text.overlay(&buffers, *at, range.clone()).unwrap();
            }
            read(&text)
        };
        assert_eq!(text(&[]), ["0123456789"]);
        assert_eq!(text(&[(0, 0..3)]), ["abc3456789"]);
        assert_eq!(text(&[(4, 0..3)]), ["0123abc789"]);
        assert_eq!(text(&[(8, 0..4)]), ["01234567abcd"]);
        assert_eq!(text(&[(10, 0..2)]), ["0123456789ab"]);
        assert_eq!(text(&[(12, 0..2)]), ["0123456789", "ab"]);
        assert_eq!(text(&[(0, 0..10)]), ["abcdefghij"]);
        assert_eq!(text(&[(2, 0..4), (4, 5..7), (1, 9..10)]), ["0jabfg6789"]);
        assert_eq!(text(&[(2, 3..3)]), ["0123456789"]);
    }

    #[test]
    fn appended_text_begins_a_line() {
        let trace = TestTrace::new();
        let [file, buffers] = handles(&trace);
        let mut text = RecordText::new("tr".into(), Some(file), 10, false);
        text.append(&buffers, 0..2);
        text.append(&buffers, 4..4);
        text.append(&buffers, 5..7);
        assert_eq!(read(&text), ["0123456789", "ab", "fg"]);
        assert_eq!([0..text.end(), 3..12, 11..12, 13..14, 10..11].map(|range| text.size(range)), [14, 8, 1, 0, 0]);
        let mut text = RecordText::new("tr".into(), None, 10, false);
        assert_eq!(text.stretch(0), None);
        text.append(&buffers, 1..4);
        assert_eq!(read(&text), ["bcd"]);
        assert_eq!(text.describe_place(1, 1), format!("{}: byte 2", trace.path("trbuf").display()));
    }

    #[test]
    fn an_impossible_place_is_refused_and_a_distant_one_makes_a_gap() {
        let trace = TestTrace::new();
        let [file, buffers] = handles(&trace);
        let mut text = RecordText::new("tr".into(), Some(file), 10, false);
        assert_eq!(text.overlay(&buffers, u64::MAX - 1, 0..5), Err(0..5));
        assert_eq!(text.overlay(&buffers, u64::MAX / 4, 0..5), Ok(()));
        assert_eq!(read(&text), ["0123456789", "abcde"]);
    }

    #[test]
    fn records_of_another_host_are_corrected_wherever_a_read_begins_and_ends() {
        let record = |time: u64, pid: u32| {
            let time = format!("{:010}:{:09}", time / 1_000_000_000, time % 1_000_000_000);
            format!("{time}:0000007:{pid:07}:0x7fc5de3f86c0:02:04:0:7:0:0:0:0\n")
        };
        let lines = |shift: u64, pid: u32| [1, 2, 3].map(|time| record(time + shift, pid)).concat();
        let trace = TestTrace::new();
        let (bytes, buffers) = (lines(5, 7), lines(6, 8));
        let file = trace.file("tr", &bytes).handle("tr", 9);
        let buffers_file = trace.file("trbuf", &buffers).handle("trbuf", 9);
        let host = HostView { shift: 2_000_000_000, renumbered: [(7, 9_999_999)].into(), ..HostView::default() };
        let mut text = RecordText::new("tr".into(), Some(file), bytes.len() as u64, false);
        // The second of the file's three lines continues in the trbuf, at a place within its head.
        let half = record(0, 7).len() as u64 + 15;
        text.overlay(&buffers_file, half, half..half + 30).unwrap();
        text.append(&buffers_file, 0..buffers.len() as u64);
        let unchanged = read_in_pieces(&text, 4096).concat();
        text.host = Some(Arc::new(host.clone()));
        let mut expected = unchanged.into_bytes();
        host.correct_lines(&mut expected);
        for size in [1, 2, 7, 35, 36, 37, 83, 4096] {
            assert_eq!(read_in_pieces(&text, size).concat().as_bytes(), expected, "{size}");
        }
    }

    #[test]
    fn a_file_that_shrinks_is_an_error() {
        let trace = TestTrace::new();
        let [file, _] = handles(&trace);
        let text = RecordText::new("tr".into(), Some(file), 12, false);
        assert_eq!(text.read_at(&mut [0; 4], 10).unwrap_err().to_string(), "became shorter while being read");
    }
}
