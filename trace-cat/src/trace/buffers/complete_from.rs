//! From when on a thread is complete that overwrote records in its rings, by its slot or by a line of the trinfo.

use std::fs::File;
use std::io;
use std::mem::offset_of;

use spec::buffer::{SlotHeader, region_word_offsets, u32_at, u64_at};
use spec::record::NANOS_PER_SECOND;

use super::region_text::time_at;

/// The key of such a line of a trinfo.
const KEY: &str = "complete_from";

/// A thread that overwrote records, and from when on it is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CompleteFrom {
    /// The thread.
    pub lwp: u32,
    /// The time from which on none of its records was overwritten, nanoseconds since the Epoch.
    pub from: u64,
}

impl CompleteFrom {
    /// The thread and the time as a line of a trinfo.
    pub fn line(&self) -> String {
        format!("{KEY} {} {}\n", self.lwp, raw(self.from))
    }

    /// Parses a line of a trinfo, without its newline; `None` if it has another key or is truncated.
    pub fn parse(line: &[u8]) -> Option<CompleteFrom> {
        let value = std::str::from_utf8(line).ok()?.strip_prefix(KEY)?.strip_prefix(' ')?;
        let (lwp, time) = value.split_once(' ')?;
        let (seconds, nanoseconds) = time.split_once('.')?;
        let number = |digits: &str, width: usize| -> Option<u64> {
            let is_valid = digits.len() == width && digits.bytes().all(|byte| byte.is_ascii_digit());
            if is_valid { digits.parse().ok() } else { None }
        };
        let from = number(seconds, 10)? * NANOS_PER_SECOND + number(nanoseconds, 9)?;
        Some(CompleteFrom { lwp: number(lwp, lwp.len())?.try_into().ok()?, from })
    }
}

/// A time as a trinfo has it: the first two fields of a record with a point between them.
pub fn raw(time: u64) -> String {
    format!("{:010}.{:09}", time / NANOS_PER_SECOND, time % NANOS_PER_SECOND)
}

/// How often region `region` of the slot that `page` begins has wrapped.
pub fn wrap_count(page: &[u8], region: usize) -> u32 {
    u32_at(page, region_word_offsets(region).wrap_count).unwrap_or(0)
}

/// From when on the thread of the slot that `page` begins is complete; `None` if it has overwritten nothing. `oldest` has
/// the beginning of the oldest record of each region that has overwritten records, as a place in the file.
pub fn of_slot(file: &File, page: &[u8], lwp: u32, oldest: &[u64]) -> io::Result<Option<CompleteFrom>> {
    // A region whose records are being written to the file has stored the time in the header and reset its wrap count.
    let mut latest = noted_in_slot(page);
    for &at in oldest {
        latest = latest.max(time_at(file, at)?);
    }
    Ok(latest.map(|from| CompleteFrom { lwp, from }))
}

/// The time in the header of the slot that `page` begins, nanoseconds since the Epoch; `None` if it has none.
pub fn noted_in_slot(page: &[u8]) -> Option<u64> {
    u64_at(page, offset_of!(SlotHeader, complete_from)).filter(|&time| time != 0)
}
