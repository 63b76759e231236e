//! Streams the records of one time, file by file, if they are more than memory holds.
//!
//! Records of one time need not be sorted. A first walk over all files takes the records before the first one of the file that
//! is stamped after its call, and a second walk takes the others (see [`sort_keys`](super::sort_keys)).

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
    // Takes the records of an input from the offset `start` up to the first that `stop` is true for, whose offset it returns.
    let mut walk = |number: u32, start: u64, stop: &dyn Fn(&[u8]) -> bool| -> Option<u64> {
        let input = &inputs[number as usize];
        for blocks in input.index.find(time..time + 1) {
            let range = input.index.place(&blocks);
            if range.end <= start {
                continue;
            }
            let range = range.start.max(start)..range.end;
            let mut records = RecordReader::new(input.text.clone(), range, std::mem::take(&mut buffer));
            let result = loop {
                match records.next() {
                    Ok(Some(RecordItem::Record { time: record_time })) if record_time == time => {
                        if stop(records.line()) {
                            break Ok(Some(records.item_start));
                        }
                        batch.push(records.line());
                        if batch.filled().len() >= BUFFER {
                            push(batch);
                        }
                    }
                    Ok(Some(_)) => {}
                    Ok(None) => break Ok(None),
                    Err(error) => break Err(error),
                }
            };
            buffer = records.into_buffer();
            match result {
                Ok(None) => {}
                Ok(stopped) => return stopped,
                Err(error) => {
                    input.fail(&error, diagnostics);
                    return None;
                }
            }
        }
        None
    };
    let is_stamped_after = |line: &[u8]| line.first_chunk().is_some_and(|head| stamps.after(head) == 1);
    let stops: Vec<Option<u64>> = numbers.iter().map(|&number| walk(number, 0, &is_stamped_after)).collect();
    for (&number, start) in numbers.iter().zip(stops) {
        if let Some(start) = start {
            walk(number, start, &|_| false);
        }
    }
    push(batch);
}
