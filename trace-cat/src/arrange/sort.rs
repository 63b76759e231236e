//! `--sort`: by thread or by event, and by time within those.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, BufRead};

use log::info;
use memchr::memchr;

use crate::options::SortOrder;
use crate::record::columns;
use crate::support::diagnostics::Diagnostics;
use crate::support::progress::{Amount, Phase};
use crate::support::temporary_files::TemporaryRuns;

/// Bytes of records that are in memory at most; beyond that, sorted parts are in a temporary file.
const IN_MEMORY: usize = 32 << 20;
/// Bytes that are given away at a time.
const CHUNK_LEN: usize = 256 << 10;

/// Takes records in the order of time and gives them back in another.
pub struct Sorter {
    order: SortOrder,
    most: usize,
    lines: Vec<u8>,
    /// Of each line its key, where it is and how long.
    index: Vec<(u64, u32, u32)>,
    parts: Option<TemporaryRuns>,
    /// Of all lines.
    bytes: u64,
}

impl Sorter {
    /// One that sorts by `order`; `None` for the order in which records come anyway.
    pub fn new(order: SortOrder) -> Option<Sorter> {
        (order != SortOrder::Time).then(|| Sorter::with(order, IN_MEMORY))
    }

    fn with(order: SortOrder, most: usize) -> Sorter {
        Sorter { order, most, lines: Vec::new(), index: Vec::new(), parts: None, bytes: 0 }
    }

    /// Adds some lines.
    ///
    /// # Errors
    /// What a temporary file says.
    pub fn push(&mut self, lines: &[u8]) -> io::Result<()> {
        self.bytes += lines.len() as u64;
        let mut at = 0;
        while let Some(length) = memchr(b'\n', &lines[at..]) {
            let line = &lines[at..=at + length];
            at += line.len();
            if self.lines.len() + line.len() > self.most && !self.index.is_empty() {
                self.spill()?;
            }
            self.index.push((key(self.order, line), self.lines.len() as u32, line.len() as u32));
            self.lines.extend_from_slice(line);
        }
        Ok(())
    }

    fn spill(&mut self) -> io::Result<()> {
        let parts = match &mut self.parts {
            Some(parts) => parts,
            none => none.insert(TemporaryRuns::new()?),
        };
        // The place breaks ties, which keeps the order of time.
        self.index.sort_unstable();
        for &(_, at, length) in &self.index {
            parts.push(&self.lines[at as usize..][..length as usize])?;
        }
        parts.end();
        self.lines.clear();
        self.index.clear();
        Ok(())
    }

    /// Gives all lines to `put`, in order, many at a time.
    ///
    /// # Errors
    /// What `put` or a temporary file says.
    pub fn finish(mut self, put: &mut dyn FnMut(&[u8]) -> io::Result<()>, diagnostics: &Diagnostics) -> io::Result<()> {
        let phase = diagnostics.start_phase("sorting", Amount::Bytes(self.bytes));
        let mut piece = SortedOutput { bytes: Vec::with_capacity(CHUNK_LEN + (4 << 10)), put, phase };
        if self.parts.is_none() {
            self.index.sort_unstable();
            for &(_, at, length) in &self.index {
                piece.push(&self.lines[at as usize..][..length as usize])?;
            }
            return piece.flush();
        }
        self.spill()?;
        (self.lines, self.index) = (Vec::new(), Vec::new());
        let Some(parts) = self.parts else { return Ok(()) };
        info!("{} sorted parts in a temporary file", parts.count());
        let mut readers = parts.into_readers()?;
        let mut lines = vec![Vec::new(); readers.len()];
        let mut heap = BinaryHeap::new();
        let mut next = |number: usize, line: &mut Vec<u8>, heap: &mut BinaryHeap<_>| -> io::Result<()> {
            line.clear();
            if readers[number].read_until(b'\n', line)? > 0 {
                // Earlier parts come first where keys are equal: they are earlier in time.
                heap.push(Reverse((key(self.order, line), number)));
            }
            Ok(())
        };
        for (number, line) in lines.iter_mut().enumerate() {
            next(number, line, &mut heap)?;
        }
        while let Some(Reverse((_, number))) = heap.pop() {
            piece.push(&lines[number])?;
            next(number, &mut lines[number], &mut heap)?;
        }
        piece.flush()
    }
}

/// What the record `line` is sorted by.
fn key(order: SortOrder, line: &[u8]) -> u64 {
    match order {
        SortOrder::Tid => columns::tid(line),
        SortOrder::Event => {
            let (category, number, _) = columns::event(line);
            u64::from(category) << 8 | u64::from(number)
        }
        SortOrder::Time => columns::time(line).unwrap_or(0),
    }
}

/// Lines on their way out.
struct SortedOutput<'a> {
    bytes: Vec<u8>,
    put: &'a mut dyn FnMut(&[u8]) -> io::Result<()>,
    phase: Phase<'a>,
}

impl SortedOutput<'_> {
    fn push(&mut self, line: &[u8]) -> io::Result<()> {
        self.bytes.extend_from_slice(line);
        if self.bytes.len() >= CHUNK_LEN { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        (self.put)(&self.bytes)?;
        self.phase.advance(self.bytes.len() as u64);
        self.bytes.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::support::diagnostics::tests::recorded_diagnostics;
    use crate::testing::seeded_random::SeededRandom;

    #[test]
    fn equal_keys_keep_their_order_in_memory_and_in_parts() {
        let mut random = SeededRandom::seeded("sort", 10);
        for round in 0..40 {
            let lines: Vec<String> = (0..random.below(800))
                .map(|time| {
                    let (tid, lwp) = ([0x7fc5_de3f_86c0_u64, 0xff_7fc5_de3f_86c0, 5][random.below(3)], random.below(9));
                    let (category, number) = (random.below(3), random.below(100));
                    format!(
                        "1795174740:{:09}:{lwp:07}:0000001:{tid:#014x}:{category:02}:{number:02}:0:{time}:0:0:0:0\n",
                        time / 3
                    )
                })
                .collect();
            for order in [SortOrder::Tid, SortOrder::Event] {
                let mut expected = lines.clone();
                expected.sort_by_key(|line| {
                    let fields: Vec<&str> = line.split(':').collect();
                    match order {
                        SortOrder::Tid => u64::from_str_radix(&fields[4][2..], 16).unwrap(),
                        _ => format!("{}{}", fields[5], fields[6]).parse().unwrap(),
                    }
                });
                let mut sorter = Sorter::with(order, [1 << 20, 1 + random.below(9000)][round % 2]);
                for piece in lines.chunks(1 + random.below(90)) {
                    sorter.push(piece.concat().as_bytes()).unwrap();
                }
                let mut out = Vec::new();
                let mut put = |lines: &[u8]| {
                    out.extend_from_slice(lines);
                    Ok(())
                };
                sorter.finish(&mut put, &recorded_diagnostics().0).unwrap();
                assert!(out == expected.concat().as_bytes(), "round {round}, {order:?}");
            }
        }
        assert!(Sorter::new(SortOrder::Time).is_none());
    }
}
