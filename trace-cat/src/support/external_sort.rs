//! Sorts records that may be more than memory holds: sorted runs of them are written to a temporary file and merged.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::io::{self, BufRead, BufReader, Read};

use log::info;

use super::temporary_files::{TemporaryFile, TemporaryFileRange};

/// Bytes of memory that the buffers of all runs take while they are merged, unless there are too many runs.
const MERGE_MEMORY: usize = 16 << 20;

/// Records of at most 65,535 bytes in memory, with their keys: what becomes one run.
#[derive(Debug)]
pub struct SortBuffer<K> {
    bytes: Vec<u8>,
    /// The key, the start and the length of each record.
    index: Vec<(K, u32, u16)>,
    /// Bytes of records for which there is room.
    capacity: usize,
}

impl<K: Ord + Copy> SortBuffer<K> {
    /// An empty buffer for `capacity` bytes of records.
    pub fn new(capacity: usize) -> SortBuffer<K> {
        SortBuffer { bytes: Vec::new(), index: Vec::new(), capacity: capacity.min(u32::MAX as usize) }
    }

    pub fn length(&self) -> usize {
        self.bytes.len()
    }

    /// True if a record of `length` bytes can be pushed. An empty buffer has room for any record.
    pub fn has_room(&self, length: usize) -> bool {
        self.bytes.is_empty() || self.bytes.len() + length <= self.capacity
    }

    pub fn push(&mut self, key: K, record: &[u8]) {
        self.index.push((key, self.bytes.len() as u32, record.len() as u16));
        self.bytes.extend_from_slice(record);
    }

    /// Gives all records to `take` in order and removes them. Records with equal keys keep their order.
    pub fn drain(&mut self, take: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        // The start breaks ties, which keeps the order of records with equal keys.
        self.index.sort_unstable();
        for &(_, start, length) in &self.index {
            take(&self.bytes[start as usize..][..usize::from(length)])?;
        }
        self.bytes.clear();
        self.index.clear();
        Ok(())
    }
}

/// Takes records in any order and gives them back in the order of their keys.
#[derive(Debug)]
pub struct ExternalSort<K> {
    key: fn(&[u8]) -> K,
    buffer: SortBuffer<K>,
    /// The runs, one behind the other, and where each of them ends. The length of a record is before the record.
    runs: Option<(TemporaryFile, Vec<u64>)>,
}

impl<K: Ord + Copy> ExternalSort<K> {
    /// Sorts by `key`, with at most `memory` bytes of records in memory.
    pub fn new(key: fn(&[u8]) -> K, memory: usize) -> ExternalSort<K> {
        ExternalSort { key, buffer: SortBuffer::new(memory), runs: None }
    }

    /// True if no record is in a temporary file.
    pub fn is_in_memory(&self) -> bool {
        self.runs.is_none()
    }

    /// Adds a record of at most 65,535 bytes.
    pub fn push(&mut self, record: &[u8]) -> io::Result<()> {
        if !self.buffer.has_room(record.len()) {
            self.write_run()?;
        }
        self.buffer.push((self.key)(record), record);
        Ok(())
    }

    fn write_run(&mut self) -> io::Result<()> {
        let (file, ends) = match &mut self.runs {
            Some(runs) => runs,
            none => none.insert((TemporaryFile::new()?, Vec::new())),
        };
        self.buffer.drain(&mut |record| {
            file.push(&(record.len() as u16).to_le_bytes())?;
            file.push(record)
        })?;
        ends.push(file.length);
        Ok(())
    }

    /// Gives all records to `take` in order. Records with equal keys keep the order in which they were pushed.
    pub fn finish(mut self, take: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        if self.is_in_memory() {
            return self.buffer.drain(take);
        }
        self.write_run()?;
        let ExternalSort { key, buffer, runs } = self;
        drop(buffer);
        let Some((mut file, ends)) = runs else { return Ok(()) };
        info!("{} sorted runs in a temporary file", ends.len());
        file.flush()?;
        let file = file.file();
        let buffer = (MERGE_MEMORY / ends.len()).clamp(4 << 10, 64 << 10);
        let mut runs = Vec::with_capacity(ends.len());
        // Earlier runs come first where keys are equal.
        let mut heap = BinaryHeap::with_capacity(ends.len());
        let mut start = 0;
        for (number, end) in ends.into_iter().enumerate() {
            let range = TemporaryFileRange { file, range: start..end };
            let mut run = RunReader { reader: BufReader::with_capacity(buffer, range), record: Vec::new() };
            if run.advance()? {
                heap.push(Reverse((key(&run.record), number)));
            }
            runs.push(run);
            start = end;
        }
        while let Some(mut first) = heap.peek_mut() {
            let Reverse((first_key, number)) = &mut *first;
            let run = &mut runs[*number];
            take(&run.record)?;
            if run.advance()? {
                *first_key = key(&run.record);
            } else {
                PeekMut::pop(first);
            }
        }
        Ok(())
    }
}

/// A run that is being merged.
struct RunReader<'a> {
    reader: BufReader<TemporaryFileRange<'a>>,
    record: Vec<u8>,
}

impl RunReader<'_> {
    /// Goes to the next record; returns `false` at the end of the run.
    fn advance(&mut self) -> io::Result<bool> {
        if self.reader.fill_buf()?.is_empty() {
            return Ok(false);
        }
        let mut length = [0; 2];
        self.reader.read_exact(&mut length)?;
        self.record.resize(usize::from(u16::from_le_bytes(length)), 0);
        self.reader.read_exact(&mut self.record)?;
        Ok(true)
    }
}
