//! What is new in the rings of a running process.

use std::io;
use std::ops::RangeInclusive;

use memchr::memchr;
use spec::buffer::REGIONS;

use super::growing_file::GrowingFile;
use super::growing_files::GrowingFiles;
use super::intake::Intake;
use super::live_thread::{LiveThread, RingPosition, time_of};
use crate::record::columns;
use crate::trace::buffers::live_slot::LiveSlot;
use crate::trace::buffers::ring_snapshot::{RingSnapshot, SurvivingText};
use crate::trace::buffers::slots::read_up_to;

/// How often a ring is copied before it is left for the next time, each time only the newer half of what was copied
/// before: less text is sooner copied than overwritten.
const ATTEMPTS: u32 = 6;
/// Bytes of a ring that are taken at a time.
const MOST: u32 = 4 << 20;

/// What of a ring is new.
#[derive(Clone, Debug, PartialEq, Eq)]
struct NewRingText {
    text: SurvivingText,
    /// Records were overwritten before they were read.
    missed: bool,
    /// It begins where reading ended.
    continues: bool,
}

impl NewRingText {
    /// What is new at this look, if it was read up to `known`.
    fn since(look: RingSnapshot, known: Option<RingPosition>) -> NewRingText {
        let all = look.all();
        let Some(known) = known else { return NewRingText { text: all, missed: false, continues: false } };
        let wrapped = !all.older.is_empty() || look.start > look.end;
        if look.wrap_count == known.wrap_count && look.end >= known.end {
            // Nothing that has not been read lies behind the end.
            let text = SurvivingText { older: 0..0, newer: known.end..look.end, cut: false };
            return NewRingText { text, missed: false, continues: true };
        }
        if look.wrap_count == known.wrap_count.wrapping_add(1) {
            let from = if wrapped { look.start.max(known.end).min(look.wrap_position) } else { look.wrap_position };
            let missed = from > known.end;
            let older = from..look.wrap_position;
            let cut = missed && !older.is_empty();
            return NewRingText { text: SurvivingText { older, newer: 0..look.end, cut }, missed, continues: !missed };
        }
        // It was written out and has begun again, or it was overtaken.
        NewRingText { text: all, missed: look.wrap_count > known.wrap_count, continues: false }
    }
}

/// The oldest `most` bytes of a text.
fn oldest(text: &SurvivingText, most: u32) -> SurvivingText {
    let SurvivingText { older, newer, cut } = text.clone();
    let first = older.start..older.end.min(older.start.saturating_add(most));
    let rest = most - (first.end - first.start);
    SurvivingText { older: first, newer: newer.start..newer.end.min(newer.start.saturating_add(rest)), cut }
}

/// What was read of a region.
struct RingRead {
    text: Vec<u8>,
    /// It need not begin where a record does.
    cut: bool,
    continues: bool,
    /// Records were overwritten before they were read.
    missed: bool,
    place: RingPosition,
}

/// What came of reading a region.
enum RingReadOutcome {
    Read(RingRead),
    /// It is on its way to the record file.
    Leaving,
    /// It changes faster than it can be read.
    Lost,
}

/// Takes what the thread has recorded since the last time, and says whether records were overwritten before they were read.
/// `page` is the slot's first page, which was just read.
///
/// The first region is read first: what signal handlers recorded before its last record is then found in the others. So all
/// are taken together, or none: what the first one has seen is known by time alone.
///
/// # Errors
/// What reading says.
pub fn take(
    slot: &LiveSlot,
    page: &[u8],
    thread: &mut LiveThread,
    sources: &mut GrowingFiles,
    intake: &mut Intake,
) -> io::Result<bool> {
    let end = slot.end()?;
    if end != thread.end {
        // It has been written out, for an exec, and begins anew, perhaps at the same place.
        (thread.end, thread.rings) = (end, [None; REGIONS]);
    }
    let mut found = [const { None }; REGIONS];
    for (region, found) in found.iter_mut().enumerate() {
        let now = RingSnapshot::after([page, page], slot.shape, region)
            .map(|look| RingPosition { wrap_count: look.wrap_count, end: look.end });
        if now.is_some() && now == thread.rings[region] {
            continue;
        }
        match read(slot, region, thread.rings[region])? {
            RingReadOutcome::Read(read) => *found = Some(read),
            // The others' records are known one by one.
            RingReadOutcome::Lost if region == 0 => {}
            RingReadOutcome::Lost | RingReadOutcome::Leaving => return Ok(false),
        }
    }
    if slot.end()? != end {
        return Ok(false);
    }
    let Some(source) = sources.get(thread.source) else { return Ok(false) };
    let mut missed = false;
    for (region, read) in found.into_iter().enumerate() {
        let Some(read) = read else { continue };
        put(region, &read.text, [read.cut, read.continues], source, intake);
        thread.rings[region] = Some(read.place);
        missed |= read.missed;
    }
    Ok(missed)
}

/// Reads what is new in a region that was read up to `known`.
fn read(slot: &LiveSlot, region: usize, known: Option<RingPosition>) -> io::Result<RingReadOutcome> {
    let mut halvings = 0;
    for _ in 0..ATTEMPTS {
        let Some(before) = slot.ring_snapshot(region, RingSnapshot::before)? else { continue };
        if before.leaving {
            return Ok(RingReadOutcome::Leaving);
        }
        let new = NewRingText::since(before, known);
        let part = oldest(&new.text.newest(new.text.len() >> halvings), MOST);
        if part.len() == 0 {
            let place = RingPosition { wrap_count: before.wrap_count, end: before.end };
            let (continues, missed) = (new.continues, new.missed);
            return Ok(RingReadOutcome::Read(RingRead { text: Vec::new(), cut: false, continues, missed, place }));
        }
        let mut text = copy(slot, region, &part)?;
        let Some(after) = slot.ring_snapshot(region, RingSnapshot::after)? else { continue };
        let Some(good) = before.surviving(&part, after) else {
            halvings += 1;
            continue;
        };
        let place = place_behind(before, &part, &text);
        let less = (part.len() - good.len()) as usize;
        text.drain(..less);
        let missed = new.missed || less > 0 || halvings > 0;
        let continues = new.continues && !missed;
        return Ok(RingReadOutcome::Read(RingRead { text, cut: part.cut || less > 0, continues, missed, place }));
    }
    Ok(RingReadOutcome::Lost)
}

/// Gives on the records of a text of a region, of which the first is cut if `cut`, and the last may be. It `continues`
/// what was read before.
fn put(region: usize, text: &[u8], [cut, continues]: [bool; 2], source: &mut GrowingFile, intake: &mut Intake) {
    let from = if cut { memchr(b'\n', text).map_or(text.len(), |newline| newline + 1) } else { 0 };
    let mut stretch: Option<(u32, RangeInclusive<u64>)> = None;
    for line in text[from..].split_inclusive(|&byte| byte == b'\n') {
        let Some(time) = time_of(line) else { continue };
        if region == 0 {
            // A signal handler's record may have come between a thread's look at the clock and its record: then what is
            // new may be earlier than what has been seen.
            if continues || !source.seen.ring_has(time, line) {
                intake.put(time, line);
            }
            let (first, last) = stretch.map_or((time, time), |(_, times)| times.into_inner());
            stretch = Some((columns::lwpid(line), first.min(time)..=last.max(time)));
        } else if continues || !source.seen.has(time, line) {
            source.seen.note(time, line);
            intake.put(time, line);
        }
    }
    if let Some((lwp, times)) = stretch {
        source.seen.note_ring(lwp, times, continues);
    }
}

/// The bytes of a part of a region.
fn copy(slot: &LiveSlot, region: usize, part: &SurvivingText) -> io::Result<Vec<u8>> {
    let mut text = vec![0; part.len() as usize];
    let older = (part.older.end - part.older.start) as usize;
    read_up_to(slot.file, &mut text[..older], slot.place(region, &part.older).start)?;
    read_up_to(slot.file, &mut text[older..], slot.place(region, &part.newer).start)?;
    Ok(text)
}

/// How far a ring has been read with `part`, whose bytes are `text`: up to its last newline.
fn place_behind(look: RingSnapshot, part: &SurvivingText, text: &[u8]) -> RingPosition {
    let whole = memchr::memrchr(b'\n', text).map_or(0, |newline| newline as u32 + 1);
    let older = part.older.end - part.older.start;
    // Up to the end of the older part may be up to the middle of all that is older.
    match whole.checked_sub(older).filter(|&newer| newer > 0 || older == 0) {
        Some(newer) => RingPosition { wrap_count: look.wrap_count, end: part.newer.start + newer },
        None => RingPosition { wrap_count: look.wrap_count.wrapping_sub(1), end: part.older.start + whole },
    }
}

#[cfg(test)]
#[path = "new_in_rings_tests.rs"]
mod tests;
