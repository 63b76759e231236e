//! Streams the records of one time, file by file, if they are more than memory holds.
//!
//! Records of one time need not be sorted. A first walk over all files takes the records before the first one of the file that
//! is stamped after its call, and a second walk takes the others (see [`sort_keys`](super::sort_keys)).

use std::io;

use super::input::MergeInput;
use super::loser_tree::LineBuffer;
use super::sort_keys::StampTable;
use crate::support::diagnostics::Diagnostics;
use crate::trace::record_reader::{RecordItem, RecordReader};

/// Bytes that are read at a time, and that are output at a time.
const BUFFER: usize = 64 * 1024;

/// Appends all records of `time` to `batch`, in order, and calls `push`, which empties `batch`, when there is much.
pub fn stream(
    inputs: &[MergeInput],
    numbers: &[u32],
    time: u64,
    stamps: &StampTable,
    batch: &mut LineBuffer,
    push: &mut dyn FnMut(&mut LineBuffer),
    diagnostics: &Diagnostics,
) {
    let mut buffer = vec![0; BUFFER];
    let mut walk_input = |number: u32, start: u64, stop: &mut dyn FnMut(&[u8]) -> bool| {
        let input = &inputs[number as usize];
        let mut walk = EqualTimeWalk { input, time, batch: &mut *batch, push: &mut *push, buffer: &mut buffer };
        walk.until(start, stop).unwrap_or_else(|error| {
            input.fail(&error, diagnostics);
            None
        })
    };
    let is_stamped_after = |line: &[u8]| line.first_chunk().is_some_and(|head| stamps.after(head) == 1);
    let stops: Vec<Option<u64>> =
        numbers.iter().map(|&number| walk_input(number, 0, &mut { is_stamped_after })).collect();
    for (&number, start) in numbers.iter().zip(stops) {
        if let Some(start) = start {
            walk_input(number, start, &mut |_| false);
        }
    }
    push(batch);
}

struct EqualTimeWalk<'a> {
    input: &'a MergeInput,
    time: u64,
    batch: &'a mut LineBuffer,
    push: &'a mut dyn FnMut(&mut LineBuffer),
    buffer: &'a mut Vec<u8>,
}

impl EqualTimeWalk<'_> {
    /// Takes the records from the offset `start` up to the first that `stop` is true for. Returns the offset of that record.
    fn until(&mut self, start: u64, stop: &mut dyn FnMut(&[u8]) -> bool) -> io::Result<Option<u64>> {
        for blocks in self.input.index.find(self.time..self.time + 1) {
            let range = self.input.index.place(&blocks);
            if range.end <= start {
                continue;
            }
            let range = range.start.max(start)..range.end;
            let mut records = RecordReader::new(self.input.text.clone(), range, std::mem::take(self.buffer));
            let result = loop {
                match records.next() {
                    Ok(Some(RecordItem::Record { time })) if time == self.time => {
                        if stop(records.line()) {
                            break Ok(Some(records.item_start));
                        }
                        self.batch.push(records.line());
                        if self.batch.filled().len() >= BUFFER {
                            (self.push)(self.batch);
                        }
                    }
                    Ok(Some(_)) => {}
                    Ok(None) => break Ok(None),
                    Err(error) => break Err(error),
                }
            };
            *self.buffer = records.into_buffer();
            if !matches!(result, Ok(None)) {
                return result;
            }
        }
        Ok(None)
    }
}
