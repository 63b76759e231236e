//! What is known of the time before the start, if nothing of it is printed.

use std::ops::Range;
use std::sync::Arc;

use super::live_thread::record_time;
use crate::calls::pairing::{CallKey, OpenCalls};
use crate::record::call_stack::is_stack;
use crate::record::columns;
use crate::trace::record_text::RecordText;

/// How many bytes of a text have its first record: one that signal handlers interrupted comes after theirs. As many have the last
/// records of a thread that waits.
pub const BEGINNING: usize = 16 << 10;
/// In how many bytes at the beginning of a text names of threads are looked for. They are given soon after a thread begins, and a large
/// trace is not to be read for them.
const NAMING: u64 = 512 << 10;

/// Records from before the start, in the order of time.
#[derive(Debug, Default)]
pub struct Past {
    /// The entry records of calls that are open.
    pub open_calls: Vec<Box<[u8]>>,
    /// Records that name threads.
    pub names: Vec<Box<[u8]>>,
}

impl Past {
    /// The past that these texts of running processes have. A thread that waits records nothing, so the entry record is among the
    /// last ones.
    pub fn of<'a>(texts: impl Iterator<Item = &'a Arc<RecordText>>) -> Past {
        let mut open = OpenCalls::default();
        let mut names = Vec::new();
        for text in texts {
            let last = text.end().saturating_sub(BEGINNING as u64);
            let first = read(text, 0..NAMING.min(last));
            let last = read(text, last..text.end());
            // The first and the last line may have been cut.
            let [first, last] = [&first, &last]
                .map(|bytes| columns::lines(bytes).filter(|line| record_time(line).is_some()).collect::<Vec<_>>());
            for line in first.iter().chain(&last).copied().filter(|line| columns::sets_name(line)) {
                names.push((columns::time(line), Box::from(line)));
            }
            for line in last {
                let event = columns::event(line);
                match event.2 {
                    _ if is_stack(line) => {}
                    1 => open.begin(CallKey::of(line, event), (columns::time(line), Box::from(line))),
                    2 => drop(open.end(CallKey::of(line, event))),
                    _ => {}
                }
            }
        }
        let mut open_calls: Vec<_> = open.into_open_calls().into_iter().map(|(_, entry)| entry).collect();
        open_calls.sort();
        names.sort();
        Past {
            open_calls: open_calls.into_iter().map(|(_, line)| line).collect(),
            names: names.into_iter().map(|(_, line)| line).collect(),
        }
    }
}

/// What can be read of these places of a text.
fn read(text: &RecordText, places: Range<u64>) -> Vec<u8> {
    let (mut bytes, mut at) = (Vec::new(), places.start);
    while let Some(stretch) = text.stretch(at).filter(|stretch| stretch.start < places.end) {
        let start = bytes.len();
        bytes.resize(start + (stretch.end.min(places.end) - stretch.start) as usize, 0);
        let Ok(length @ 1..) = text.read_at(&mut bytes[start..], stretch.start) else {
            bytes.truncate(start);
            break;
        };
        bytes.truncate(start + length);
        at = stretch.start + length as u64;
    }
    bytes
}
