//! Sorts records that may be more than memory holds: sorted runs of them are written to a temporary file and merged.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::io::{self, BufRead};

use log::info;

use super::temporary_files::{TemporaryFile, TemporaryFileRange};

/// Bytes of memory that the buffers of all runs take while they are merged, unless there are too many runs.
const MERGE_MEMORY: usize = 16 << 20;

/// An order of records, which are sequences of bytes.
pub trait RecordOrder {
    /// What records are sorted by. Records with equal keys stay in the order in which they were pushed.
    type Key: Ord + Copy;

    /// The key of `record`.
    fn key(&self, record: &[u8]) -> Self::Key;

    /// Appends the next record of `run` to `record`; nothing at the end of the run.
    ///
    /// # Errors
    /// The failure to read.
    fn read(&self, run: &mut impl BufRead, record: &mut Vec<u8>) -> io::Result<()>;
}

/// Records in memory with their keys: what becomes one run.
#[derive(Debug)]
pub struct SortBuffer<K> {
    bytes: Vec<u8>,
    /// The key, the start and the length of each record.
    index: Vec<(K, u32, u32)>,
    /// Bytes of records for which there is room.
    capacity: usize,
}

impl<K: Ord + Copy> SortBuffer<K> {
    /// An empty buffer for `capacity` bytes of records.
    pub fn new(capacity: usize) -> SortBuffer<K> {
        SortBuffer { bytes: Vec::new(), index: Vec::new(), capacity: capacity.min(u32::MAX as usize) }
    }

    /// The number of bytes of all records.
    pub fn length(&self) -> usize {
        self.bytes.len()
    }

    /// True if a record of `length` bytes can be pushed. An empty buffer has room for any record.
    pub fn has_room(&self, length: usize) -> bool {
        self.bytes.is_empty() || self.bytes.len() + length <= self.capacity
    }

    /// Adds a record.
    pub fn push(&mut self, key: K, record: &[u8]) {
        self.index.push((key, self.bytes.len() as u32, record.len() as u32));
        self.bytes.extend_from_slice(record);
    }

    /// Gives all records to `take` in order and removes them.
    ///
    /// # Errors
    /// Those of `take`.
    pub fn drain(&mut self, take: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        // The start breaks ties, which keeps the order of records with equal keys.
        self.index.sort_unstable();
        for &(_, start, length) in &self.index {
            take(&self.bytes[start as usize..][..length as usize])?;
        }
        self.bytes.clear();
        self.index.clear();
        Ok(())
    }
}

/// Takes records in any order and gives them back sorted.
#[derive(Debug)]
pub struct ExternalSort<O: RecordOrder> {
    order: O,
    buffer: SortBuffer<O::Key>,
    /// The runs, one behind the other, and where each of them ends.
    runs: Option<(TemporaryFile, Vec<u64>)>,
}

impl<O: RecordOrder> ExternalSort<O> {
    /// Sorts by `order`, with at most `memory` bytes of records in memory.
    pub fn new(order: O, memory: usize) -> ExternalSort<O> {
        ExternalSort { order, buffer: SortBuffer::new(memory), runs: None }
    }

    /// True if no record is in a temporary file.
    pub fn is_in_memory(&self) -> bool {
        self.runs.is_none()
    }

    /// Adds a record.
    ///
    /// # Errors
    /// The failure of a temporary file.
    pub fn push(&mut self, record: &[u8]) -> io::Result<()> {
        if !self.buffer.has_room(record.len()) {
            self.write_run()?;
        }
        self.buffer.push(self.order.key(record), record);
        Ok(())
    }

    fn write_run(&mut self) -> io::Result<()> {
        let (file, ends) = match &mut self.runs {
            Some(runs) => runs,
            none => none.insert((TemporaryFile::new()?, Vec::new())),
        };
        self.buffer.drain(&mut |record| file.push(record))?;
        ends.push(file.length());
        Ok(())
    }

    /// Gives all records to `take` in order.
    ///
    /// # Errors
    /// Those of `take`, and the failure of a temporary file.
    pub fn finish(mut self, take: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        if self.is_in_memory() {
            return self.buffer.drain(take);
        }
        self.write_run()?;
        let ExternalSort { order, buffer, runs } = self;
        drop(buffer);
        let Some((file, ends)) = runs else { return Ok(()) };
        info!("{} sorted runs in a temporary file", ends.len());
        merge_runs(&order, file, &ends, take)
    }
}

fn merge_runs<O: RecordOrder>(
    order: &O,
    file: TemporaryFile,
    ends: &[u64],
    take: &mut dyn FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<()> {
    let file = file.into_file()?;
    let buffer = (MERGE_MEMORY / ends.len()).clamp(4 << 10, 64 << 10);
    let mut start = 0;
    let mut runs = Vec::with_capacity(ends.len());
    // Earlier runs come first where keys are equal.
    let mut heap = BinaryHeap::with_capacity(ends.len());
    for (number, &end) in ends.iter().enumerate() {
        let mut run = RunReader { reader: TemporaryFileRange::reader(&file, start..end, buffer), record: Vec::new() };
        heap.extend(run.next(order)?.map(|key| Reverse((key, number))));
        runs.push(run);
        start = end;
    }
    while let Some(mut first) = heap.peek_mut() {
        let Reverse((_, number)) = *first;
        let run = &mut runs[number];
        take(&run.record)?;
        match run.next(order)? {
            Some(key) => *first = Reverse((key, number)),
            None => _ = PeekMut::pop(first),
        }
    }
    Ok(())
}

/// A run that is being merged.
struct RunReader<R> {
    reader: R,
    /// The current record.
    record: Vec<u8>,
}

impl<R: BufRead> RunReader<R> {
    /// Goes to the next record and returns its key; `None` at the end of the run.
    fn next<O: RecordOrder>(&mut self, order: &O) -> io::Result<Option<O::Key>> {
        self.record.clear();
        order.read(&mut self.reader, &mut self.record)?;
        Ok(if self.record.is_empty() { None } else { Some(order.key(&self.record)) })
    }
}
