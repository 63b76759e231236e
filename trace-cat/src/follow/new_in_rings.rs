//! Reads what is new in the rings of a running process's thread.

use std::io;
use std::ops::RangeInclusive;

use memchr::memchr;
use spec::buffer::{PAGE, REGIONS};

use super::emitted_records::{LastEmitted, is_in_order};
use super::growing_file::GrowingFile;
use super::growing_files::GrowingFiles;
use super::live_thread::{LiveThread, RingPosition, record_time};
use super::reorder_window::Intake;
use crate::record::columns;
use crate::trace::buffers::live_slot::LiveSlot;
use crate::trace::buffers::ring_snapshot::{RingSnapshot, SurvivingText};
use crate::trace::buffers::slots::read_up_to;
use crate::trace::buffers::surviving_copy::{SurvivingCopy, copy_until_it_survives};

/// How often a ring is copied before it is left for the next round. Each attempt copies only the newer half of the one before:
/// the less text, the sooner it is copied than overwritten.
const ATTEMPTS: u32 = 6;
/// How many bytes of a ring are read at a time.
const READ_MAX: u32 = 4 << 20;

/// The new text of a ring.
#[derive(Clone, Debug, PartialEq, Eq)]
struct NewRingText {
    text: SurvivingText,
    /// Records were overwritten before they were read.
    missed: bool,
    /// It begins where the last reading ended.
    continues: bool,
}

impl NewRingText {
    /// The new text of a snapshot, if the ring was read up to `known`.
    fn since(snapshot: RingSnapshot, known: Option<RingPosition>) -> NewRingText {
        let all = snapshot.all();
        let Some(known) = known else { return NewRingText { text: all, missed: false, continues: false } };
        if snapshot.wrap_count == known.wrap_count && snapshot.end >= known.end {
            // All text that is new is before the end.
            let text = SurvivingText { older: 0..0, newer: known.end..snapshot.end, truncated: false };
            return NewRingText { text, missed: false, continues: true };
        }
        if snapshot.wrap_count == known.wrap_count.wrapping_add(1) {
            let end = snapshot.wrap_position;
            let from = if snapshot.has_wrapped() { snapshot.start.max(known.end).min(end) } else { end };
            let missed = from > known.end;
            let text = SurvivingText { older: from..end, newer: 0..snapshot.end, truncated: missed && from < end };
            return NewRingText { text, missed, continues: !missed };
        }
        // The ring was written out and has begun again, or it has overtaken the reader.
        NewRingText { text: all, missed: snapshot.wrap_count > known.wrap_count, continues: false }
    }
}

/// The oldest `most` bytes of a text.
fn oldest(text: &SurvivingText, most: u32) -> SurvivingText {
    let SurvivingText { older, newer, truncated } = text.clone();
    let first = older.start..older.end.min(older.start.saturating_add(most));
    let remaining = most - (first.end - first.start);
    SurvivingText { older: first, newer: newer.start..newer.end.min(newer.start.saturating_add(remaining)), truncated }
}

/// The new text of a region, as it was read.
struct RingRead {
    text: Vec<u8>,
    /// It may begin in the middle of a record.
    truncated: bool,
    /// It begins where the last reading ended.
    continues: bool,
    /// Records were overwritten before they were read.
    missed: bool,
    position: RingPosition,
}

/// The result of reading a region.
enum RingReadOutcome {
    Read(RingRead),
    /// Its text is on its way to the record file.
    BeingWritten,
    /// It is overwritten faster than it can be read.
    Overtaken,
}

/// Takes what the thread has recorded since the last round; returns whether records were overwritten before they were read.
/// `page` is the slot's first page, which was just read, and after it `end`, that of the file.
///
/// The first region is read first, so that what signal handlers recorded before its last record is in the text of the others.
/// All regions are taken, or none, since the first region's emitted records are known only by their times.
pub fn read_new(
    slot: &LiveSlot,
    page: &[u8; PAGE],
    end: u64,
    thread: &mut LiveThread,
    files: &mut GrowingFiles,
    intake: &mut Intake,
) -> io::Result<bool> {
    if end != thread.end {
        // The ring has been written out, for an exec, and begins anew, perhaps at the same position.
        (thread.end, thread.ring_positions) = (end, [None; REGIONS]);
    }
    let (mut page, mut texts) = (*page, [const { None }; REGIONS]);
    for (region, text) in texts.iter_mut().enumerate() {
        let now = RingSnapshot::after([&page, &page], slot.layout, region)
            .map(|snapshot| RingPosition { wrap_count: snapshot.wrap_count, end: snapshot.end });
        if now.is_some() && now == thread.ring_positions[region] {
            continue;
        }
        match read_region(slot, region, thread.ring_positions[region])? {
            RingReadOutcome::Read(read) => *text = Some(read),
            // The records of the other regions are known one by one.
            RingReadOutcome::Overtaken if region == 0 => {}
            RingReadOutcome::Overtaken | RingReadOutcome::BeingWritten => return Ok(false),
        }
        // Before the last record that was read, signal handlers may have recorded what the page did not show.
        let Some(now) = slot.page()? else { return Ok(false) };
        page = now;
    }
    if slot.end()? != end {
        return Ok(false);
    }
    let Some(growing) = files.get(thread.file) else { return Ok(false) };
    let mut missed = false;
    for (region, read) in texts.into_iter().enumerate() {
        let Some(read) = read else { continue };
        emit(region, &read.text, [read.truncated, read.continues], growing, intake);
        thread.ring_positions[region] = Some(read.position);
        missed |= read.missed;
    }
    Ok(missed)
}

/// Reads the new text of a region that was read up to `known`.
fn read_region(slot: &LiveSlot, region: usize, known: Option<RingPosition>) -> io::Result<RingReadOutcome> {
    let (mut chosen, mut text) = (None, Vec::new());
    let choose = |snapshot: RingSnapshot, overwritten: u32| {
        let new = NewRingText::since(snapshot, known);
        let wanted = oldest(&new.text.newest(new.text.len() >> overwritten), READ_MAX);
        chosen = Some((snapshot, new.missed || overwritten > 0, new.continues, wanted.clone()));
        wanted
    };
    let copy = |wanted: &SurvivingText| {
        text = vec![0; wanted.len() as usize];
        let (older, newer) = text.split_at_mut((wanted.older.end - wanted.older.start) as usize);
        read_up_to(slot.file, older, slot.place(region, &wanted.older).start)?;
        read_up_to(slot.file, newer, slot.place(region, &wanted.newer).start).map(drop)
    };
    let copied = copy_until_it_survives(slot, region, ATTEMPTS, choose, copy)?;
    let (surviving, (snapshot, missed, continues, wanted)) = match (copied, chosen) {
        (SurvivingCopy::Copied(surviving, _), Some(chosen)) => (surviving, chosen),
        (SurvivingCopy::BeingWritten, _) => return Ok(RingReadOutcome::BeingWritten),
        _ => return Ok(RingReadOutcome::Overtaken),
    };
    // If nothing was wanted, nothing was copied, and the text is that of an attempt before.
    text.truncate(wanted.len() as usize);
    let position = position_after(snapshot, &wanted, &text);
    let overwritten = (wanted.len() - surviving.len()) as usize;
    text.drain(..overwritten);
    let missed = missed || overwritten > 0;
    let (truncated, continues) = (wanted.truncated || overwritten > 0, continues && !missed);
    Ok(RingReadOutcome::Read(RingRead { text, truncated, continues, missed, position }))
}

/// Emits the records of a region's text, whose first record is incomplete if `truncated`, and whose last one may be. The text
/// `continues` what was read before.
fn emit(region: usize, text: &[u8], [truncated, continues]: [bool; 2], growing: &mut GrowingFile, intake: &mut Intake) {
    let from = if truncated { memchr(b'\n', text).map_or(text.len(), |newline| newline + 1) } else { 0 };
    let mut known = (!continues).then(|| growing.emitted.spans().clone());
    let mut span: Option<(u32, RangeInclusive<u64>, LastEmitted)> = None;
    for line in text[from..].split_inclusive(|&byte| byte == b'\n') {
        let Some(time) = record_time(line) else { continue };
        if region == 0 && is_in_order(line) {
            // A signal handler may record between a thread's clock reading and its record: then a new record may be earlier
            // than the last emitted one.
            let lwp = columns::lwpid(line);
            if known.as_mut().is_none_or(|known| !known.take(lwp, time)) {
                intake.window.push(time, line);
            }
            let last = LastEmitted::after(span.as_ref().map(|&(_, _, last)| last), time);
            let (first, latest) = span.map_or((time, time), |(_, times, _)| times.into_inner());
            span = Some((lwp, first.min(time)..=latest.max(time), last));
        } else if continues || !growing.emitted.has(time, line) {
            growing.emitted.note(time, line);
            intake.window.push(time, line);
        }
    }
    if let Some((lwp, times, last)) = span {
        growing.emitted.note_span(lwp, times, last, continues);
    }
}

/// How far a ring has been read with `wanted`, whose bytes are `text`: up to its last newline.
fn position_after(snapshot: RingSnapshot, wanted: &SurvivingText, text: &[u8]) -> RingPosition {
    let complete = memchr::memrchr(b'\n', text).map_or(0, |newline| newline as u32 + 1);
    let older = wanted.older.end - wanted.older.start;
    // The end of the older range may be the middle of all older text.
    match complete.checked_sub(older).filter(|&newer| newer > 0 || older == 0) {
        Some(newer) => RingPosition { wrap_count: snapshot.wrap_count, end: wanted.newer.start + newer },
        None => RingPosition { wrap_count: snapshot.wrap_count.wrapping_sub(1), end: wanted.older.start + complete },
    }
}

#[cfg(test)]
#[path = "new_in_rings_tests.rs"]
mod tests;
