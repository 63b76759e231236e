//! From when on a thread is complete that overwrote records in its ring, as its slot tells.

use std::fs::File;
use std::io;

use spec::buffer::{SlotHeader, region_word_offsets};
use spec::record::NANOS_PER_SECOND;

use super::region_text::time_at;

/// The key of a trinfo's lines about this.
const KEY: &str = "complete_from";

/// A thread that has overwritten records, and when the oldest was made that it kept: nanoseconds since the Epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CompleteFrom {
    /// The thread.
    pub lwp: u32,
    /// When it begins to be complete.
    pub from: u64,
}

impl CompleteFrom {
    /// The thread and the moment as a line of a trinfo.
    pub fn line(&self) -> String {
        format!("{KEY} {} {}\n", self.lwp, raw(self.from))
    }

    /// What a line of a trinfo, without its newline, says; `None` if it is about something else or cut short.
    pub fn parse(line: &[u8]) -> Option<CompleteFrom> {
        let value = std::str::from_utf8(line).ok()?.strip_prefix(KEY)?.strip_prefix(' ')?;
        let (lwp, moment) = value.split_once(' ')?;
        let (seconds, nanoseconds) = moment.split_once('.')?;
        let number = |digits: &str, width: usize| -> Option<u64> {
            let all = digits.len() == width && digits.bytes().all(|byte| byte.is_ascii_digit());
            if all { digits.parse().ok() } else { None }
        };
        let from = number(seconds, 10)? * NANOS_PER_SECOND + number(nanoseconds, 9)?;
        Some(CompleteFrom { lwp: number(lwp, lwp.len())?.try_into().ok()?, from })
    }
}

/// A time as it stands in trinfo: the first two fields of a record with a point between them.
pub fn raw(time: u64) -> String {
    format!("{:010}.{:09}", time / NANOS_PER_SECOND, time % NANOS_PER_SECOND)
}

/// How often region `region` of a slot, whose first page this is, has begun anew.
pub fn wrap_count(page: &[u8], region: usize) -> u32 {
    let at = region_word_offsets(region).wrap_count;
    page.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map_or(0, u32::from_le_bytes)
}

/// From when on the thread of a slot, whose first page this is, is complete; `None` if it has overwritten nothing.
/// `oldest`: where in the file those of its regions that have overwritten records begin.
///
/// # Errors
/// What reading says.
pub fn of_slot(file: &File, page: &[u8], lwp: u32, oldest: &[u64]) -> io::Result<Option<CompleteFrom>> {
    // A region whose records are on their way to the file has noted the moment and forgotten its laps.
    let mut latest = noted(page);
    for &at in oldest {
        latest = latest.max(time_at(file, at)?);
    }
    Ok(latest.map(|from| CompleteFrom { lwp, from }))
}

/// What a slot's header says itself, nanoseconds since the Epoch.
pub fn noted(page: &[u8]) -> Option<u64> {
    let at = std::mem::offset_of!(SlotHeader, complete_from);
    let time = page.get(at..at + 8).and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_le_bytes);
    (time != 0).then_some(time)
}
