//! The trace_inflight record of a thread whose process died while the thread released something.

use std::fs::File;
use std::io;
use std::mem::offset_of;

use spec::buffer::{self, IN_FLIGHT_EVENT_AT, Owner, PAGE, REGIONS, SlotHeader, u64_at};
use spec::record::{NANOS_PER_SECOND, RECORD_LEN_MAX};
use spec::{EVENTS, Record, id};

use super::slots::read_up_to;

/// Whether the slot that `page` begins notes a release.
pub fn has_note(page: &[u8]) -> bool {
    u64_at(page, offset_of!(SlotHeader, in_flight)).is_some_and(|note| note != 0)
}

/// The line, with its newline, for the release that the slot at `at` notes; `None` if it notes none, or if the last record
/// in one of its regions is that of the release.
pub fn pending_line(file: &File, page: &[u8; PAGE], at: u64, owner: &Owner) -> io::Result<Option<String>> {
    let Some((line, thread_end)) = line(page, owner) else { return Ok(None) };
    for region in 0..REGIONS {
        let Ok(leftover) = buffer::region_leftover(page, owner.layout, region) else { continue };
        let intended = leftover.write_intent.map(|(_, range)| range);
        for range in intended.into_iter().chain([leftover.unwritten]) {
            let length = range.len().min(RECORD_LEN_MAX);
            let mut tail = vec![0; length];
            let length = read_up_to(file, &mut tail, at + (range.end - length) as u64)?;
            let last = tail[..length].strip_suffix(b"\n").unwrap_or_default();
            let last = last.rsplit(|&byte| byte == b'\n').next().unwrap_or_default();
            // The time and the thread.
            if last.starts_with(&line.as_bytes()[..thread_end]) {
                return Ok(None);
            }
        }
    }
    Ok(Some(line))
}

/// The line, and where its columns of time and thread end.
fn line(page: &[u8; PAGE], owner: &Owner) -> Option<(String, usize)> {
    let note = u64_at(page, offset_of!(SlotHeader, in_flight)).filter(|&note| note != 0)?;
    let since = u64_at(page, offset_of!(SlotHeader, in_flight_since))?;
    let event = EVENTS.get((note >> IN_FLIGHT_EVENT_AT) as usize)?;
    let call = u32::from(event.category) * 100 + u32::from(event.number);
    let object = note & ((1 << IN_FLIGHT_EVENT_AT) - 1);
    let time = since.wrapping_add_signed(owner.realtime_offset);
    let lwp = buffer::slot_lwp(page).ok()??;
    let tid = u64_at(page, offset_of!(SlotHeader, tid))?;
    let columns = format!(
        "{:010}:{:09}:{lwp:07}:{:07}:{tid:#014x}:",
        time / NANOS_PER_SECOND,
        time % NANOS_PER_SECOND,
        owner.pid
    );
    let event_text = std::str::from_utf8(&id::TRACE_INFLIGHT_0.event_text).ok()?;
    let line = format!("{columns}{event_text}{call}:{object:#x}:0:0:0\n");
    // A damaged note makes no record.
    Record::parse(line.trim_end().as_bytes()).ok()?;
    Some((line, columns.len()))
}
