//! The records of one moment, when there are too many for the memory: streamed, file by file.
//!
//! At one time there is nothing to sort: the order is a walk over all files for what stands before their first record that
//! is stamped after its call, and another one for the rest (see [`sort_keys`](super::sort_keys)).

use std::io;
use std::ops::Range;

use super::input::MergeInput;
use super::loser_tree::LineBuffer;
use super::sort_keys::StampTable;
use crate::support::diagnostics::Diagnostics;
use crate::trace::record_reader::{RecordItem, RecordReader};

/// Bytes of the buffer that is read through.
const BUFFER: usize = 64 * 1024;

/// Gives all records of `time` to `piece`, and calls `full` whenever there is something; it empties the piece.
pub fn stream(
    inputs: &[MergeInput],
    numbers: &[u32],
    time: u64,
    stamps: &StampTable,
    piece: &mut LineBuffer,
    full: &mut dyn FnMut(&mut LineBuffer),
    diagnostics: &Diagnostics,
) {
    let mut rests = Vec::with_capacity(numbers.len());
    let mut buffer = vec![0; BUFFER];
    for &number in numbers {
        let input = &inputs[number as usize];
        let mut walk = EqualTimeWalk { input, time, piece, full, buffer };
        let result = walk.until(0, &mut |line| line.first_chunk().is_some_and(|head| stamps.after(head) == 1));
        rests.push(result.unwrap_or_else(|error| {
            input.fail(&error, diagnostics);
            None
        }));
        buffer = walk.buffer;
    }
    for (&number, rest) in numbers.iter().zip(rests) {
        let Some(from) = rest else { continue };
        let input = &inputs[number as usize];
        let mut walk = EqualTimeWalk { input, time, piece, full, buffer };
        if let Err(error) = walk.until(from, &mut |_| false) {
            input.fail(&error, diagnostics);
        }
        buffer = walk.buffer;
    }
    full(piece);
}

struct EqualTimeWalk<'a> {
    input: &'a MergeInput,
    time: u64,
    piece: &'a mut LineBuffer,
    full: &'a mut dyn FnMut(&mut LineBuffer),
    buffer: Vec<u8>,
}

impl EqualTimeWalk<'_> {
    /// Gives records from `from` on, up to the first that is not wanted any more. Returns where that one is.
    fn until(&mut self, from: u64, stop: &mut dyn FnMut(&[u8]) -> bool) -> io::Result<Option<u64>> {
        let times = self.time..self.time + 1;
        for blocks in self.input.index.find(times) {
            let Range { start, end } = self.input.index.place(&blocks);
            if end <= from {
                continue;
            }
            let place = start.max(from)..end;
            let mut records = RecordReader::new(self.input.text.clone(), place, std::mem::take(&mut self.buffer));
            let found = loop {
                match records.next() {
                    Ok(Some(RecordItem::Record { time })) if time == self.time => {
                        if stop(records.line()) {
                            break Ok(Some(records.began()));
                        }
                        self.piece.push(records.line());
                        if self.piece.filled().len() >= BUFFER {
                            (self.full)(self.piece);
                        }
                    }
                    Ok(Some(_)) => {}
                    Ok(None) => break Ok(None),
                    Err(error) => break Err(error),
                }
            };
            self.buffer = records.into_buffer();
            match found {
                Ok(None) => {}
                found => return found,
            }
        }
        Ok(None)
    }
}
