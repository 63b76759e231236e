//! The bytes of one record file as they would stand if nothing had been interrupted: the file itself, over it what a
//! dead process was in the middle of writing, and behind it what the process had not begun to write.
//!
//! Nothing is copied together; a list of pieces says where the bytes at a place come from.

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::buffers::leftovers::RegionLeftover;
use super::file_handle::FileHandle;
use crate::support::diagnostics::Diagnostics;

/// Where a piece's bytes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ByteOrigin {
    /// In the record file.
    File,
    /// In the process's trbuf.
    Buffers,
}

/// Bytes that lie together, in the text and where they come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TextChunk {
    at: u64,
    length: u64,
    origin: ByteOrigin,
    offset: u64,
}

impl TextChunk {
    fn end(&self) -> u64 {
        self.at + self.length
    }
}

/// One record file's text.
#[derive(Debug)]
pub struct RecordText {
    path: PathBuf,
    file: Option<Arc<FileHandle>>,
    buffers: Option<Arc<FileHandle>>,
    /// In order, without overlap, none empty. What lies between two pieces is missing: a line ends there.
    pieces: Vec<TextChunk>,
    /// How many bytes of the file are read.
    length: u64,
    growing: bool,
    appended: bool,
}

impl RecordText {
    /// The text of a file of which `length` bytes are to be read. `growing`: a process may be writing it.
    pub fn new(path: PathBuf, file: Option<Arc<FileHandle>>, length: u64, growing: bool) -> RecordText {
        let length = if file.is_some() { length } else { 0 };
        let piece = TextChunk { at: 0, length, origin: ByteOrigin::File, offset: 0 };
        let pieces = if length > 0 { vec![piece] } else { Vec::new() };
        RecordText { path, file, buffers: None, pieces, length, growing, appended: false }
    }

    /// A text that is `range` of a file.
    pub fn slice(file: Arc<FileHandle>, range: Range<u64>) -> RecordText {
        let length = range.end.saturating_sub(range.start);
        let mut text = RecordText::new(file.path().to_owned(), Some(file), length, false);
        text.pieces.iter_mut().for_each(|piece| piece.offset = range.start);
        text
    }

    /// Puts `range` of the trbuf over the bytes from `at` on.
    ///
    /// # Errors
    /// The range, if the text would grow past what a number can say.
    pub fn overlay(&mut self, buffers: &Arc<FileHandle>, at: u64, range: Range<u64>) -> Result<(), Range<u64>> {
        let length = range.end.saturating_sub(range.start);
        let Some(end) = at.checked_add(length).filter(|&end| end < u64::MAX / 2) else {
            return Err(range);
        };
        if length == 0 {
            return Ok(());
        }
        let mut pieces = Vec::with_capacity(self.pieces.len() + 2);
        for &piece in &self.pieces {
            if piece.at < at {
                pieces.push(TextChunk { length: piece.length.min(at - piece.at), ..piece });
            }
            if piece.end() > end {
                let cut = end.saturating_sub(piece.at);
                pieces.push(TextChunk {
                    at: piece.at + cut,
                    length: piece.length - cut,
                    offset: piece.offset + cut,
                    ..piece
                });
            }
        }
        pieces.push(TextChunk { at, length, origin: ByteOrigin::Buffers, offset: range.start });
        pieces.sort_by_key(|piece| piece.at);
        self.pieces = pieces;
        self.buffers = Some(buffers.clone());
        Ok(())
    }

    /// Adds `range` of the trbuf at the end, on a line of its own.
    pub fn append(&mut self, buffers: &Arc<FileHandle>, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        // A byte is left out, so that an incomplete line before it stays one by itself.
        let at = self.pieces.last().map_or(0, |piece| piece.end() + 1);
        self.pieces.push(TextChunk {
            at,
            length: range.end - range.start,
            origin: ByteOrigin::Buffers,
            offset: range.start,
        });
        self.buffers = Some(buffers.clone());
        self.appended = true;
    }

    /// Puts what was found of it in the process's trbuf over it and behind it. What cannot belong there is told.
    pub fn add_leftovers(&mut self, buffers: &Arc<FileHandle>, found: &[RegionLeftover], diagnostics: &Diagnostics) {
        for (at, range) in found.iter().filter_map(|leftover| leftover.pending.clone()) {
            if let Err(range) = self.overlay(buffers, at, range) {
                let place = format_args!("{}: byte {}", buffers.path().display(), range.start);
                diagnostics.report_damage(place, "text that belongs at an impossible place");
            }
        }
        for leftover in found {
            self.append(buffers, leftover.older.clone());
            self.append(buffers, leftover.unwritten.clone());
        }
    }

    /// The record file's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file, and how many bytes of it are read; `None` if there is none.
    pub fn file(&self) -> Option<(&Arc<FileHandle>, u64)> {
        Some((self.file.as_ref()?, self.length))
    }

    /// Whether a process may be writing to it: an incomplete line is then no damage.
    pub fn growing(&self) -> bool {
        self.growing
    }

    /// Whether what a dead process left of it is in it, so that nothing more will come.
    pub fn is_completed(&self) -> bool {
        self.buffers.is_some() && !self.growing
    }

    /// Whether text was found that a dead process had not begun to write. It may have taken its place in the file
    /// already, which then shows as a run of NUL bytes.
    pub fn appended(&self) -> bool {
        self.appended
    }

    /// Where the text ends.
    pub fn end(&self) -> u64 {
        self.pieces.last().map_or(0, TextChunk::end)
    }

    /// How many bytes `range` has, without the gaps.
    pub fn size(&self, range: Range<u64>) -> u64 {
        let first = self.pieces.partition_point(|piece| piece.end() <= range.start);
        let pieces = self.pieces[first..].iter().take_while(|piece| piece.at < range.end);
        pieces.map(|piece| piece.end().min(range.end) - piece.at.max(range.start)).sum()
    }

    /// The first stretch without gaps that ends after `at`, as far as it lies after `at`.
    pub fn stretch(&self, at: u64) -> Option<Range<u64>> {
        let first = self.pieces.partition_point(|piece| piece.end() <= at);
        let mut end = self.pieces.get(first)?.end();
        for piece in &self.pieces[first + 1..] {
            if piece.at != end {
                break;
            }
            end = piece.end();
        }
        Some(self.pieces[first].at.max(at)..end)
    }

    /// Reads some bytes at `at`: at least one, unless `buffer` is empty or `at` lies in no stretch.
    ///
    /// # Errors
    /// What the system says; also when the file has become shorter than it was.
    pub fn read_at(&self, buffer: &mut [u8], at: u64) -> io::Result<usize> {
        let index = self.pieces.partition_point(|piece| piece.end() <= at);
        let Some(piece) = self.pieces.get(index).filter(|piece| piece.at <= at) else {
            return Ok(0);
        };
        let handle = match piece.origin {
            ByteOrigin::File => &self.file,
            ByteOrigin::Buffers => &self.buffers,
        };
        let Some(handle) = handle else { return Ok(0) };
        let room = buffer.len().min(usize::try_from(piece.end() - at).unwrap_or(usize::MAX));
        match handle.read_at(&mut buffer[..room], piece.offset + (at - piece.at))? {
            0 if room > 0 => Err(io::Error::other("became shorter while being read")),
            length => Ok(length),
        }
    }

    /// Says where `at` is, for a message: file and line, or the place in the trbuf.
    pub fn describe_place(&self, at: u64, line: u64) -> String {
        let index = self.pieces.partition_point(|piece| piece.end() <= at);
        match (self.pieces.get(index), &self.buffers) {
            (Some(piece), Some(buffers)) if piece.origin == ByteOrigin::Buffers && piece.at <= at => {
                format!("{}: byte {}", buffers.path().display(), piece.offset + (at - piece.at))
            }
            _ => format!("{}:{line}", self.path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::file_handle::{DescriptorBudget, open};
    use std::fs;

    /// The handles of a file that holds `0123456789` and of a trbuf that holds `abcdefghij`.
    fn handles(directory: &Path) -> [Arc<FileHandle>; 2] {
        [("tr", "0123456789"), ("trbuf", "abcdefghij")].map(|(name, bytes)| {
            let path = directory.join(name);
            fs::write(&path, bytes).unwrap();
            Arc::new(FileHandle::new(path.clone(), open(&path).unwrap(), &DescriptorBudget::new(9)).unwrap())
        })
    }

    /// All stretches, read two bytes at a time.
    fn read(text: &RecordText) -> Vec<String> {
        let (mut stretches, mut at) = (Vec::new(), 0);
        while let Some(stretch) = text.stretch(at) {
            let mut bytes = Vec::new();
            at = stretch.start;
            while at < stretch.end {
                let mut buffer = [0; 2];
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
        let directory = tempfile::tempdir().unwrap();
        let [file, buffers] = handles(directory.path());
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
    fn what_is_appended_starts_a_line() {
        let directory = tempfile::tempdir().unwrap();
        let [file, buffers] = handles(directory.path());
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
        assert_eq!(text.describe_place(1, 1), format!("{}: byte 2", directory.path().join("trbuf").display()));
    }

    #[test]
    fn a_wild_place_is_refused_or_costs_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let [file, buffers] = handles(directory.path());
        let mut text = RecordText::new("tr".into(), Some(file), 10, false);
        assert_eq!(text.overlay(&buffers, u64::MAX - 1, 0..5), Err(0..5));
        assert_eq!(text.overlay(&buffers, u64::MAX / 4, 0..5), Ok(()));
        assert_eq!(read(&text), ["0123456789", "abcde"]);
    }

    #[test]
    fn a_file_that_shrinks_is_an_error() {
        let directory = tempfile::tempdir().unwrap();
        let [file, _] = handles(directory.path());
        let text = RecordText::new("tr".into(), Some(file), 12, false);
        assert_eq!(text.read_at(&mut [0; 4], 10).unwrap_err().to_string(), "became shorter while being read");
    }
}
