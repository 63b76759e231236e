//! Reads what is new in the buffers of a running process's thread.
//!
//! The text of a buffer may move to the file at any moment. So it is taken only if the file's `end` was the same before and
//! after the text was copied (`trace::buffers::copy_buffers` has the reason), and what was taken is noted, to be left out when
//! it is in the file ([`super::emitted_records`]). Text that left a buffer before it was read is found in the file.

use std::io;
use std::ops::Range;

use memchr::memchr;
use spec::buffer::{self, PAGE, REGIONS, SlotLayout};

use super::growing_files::GrowingFiles;
use super::live_thread::{LiveThread, record_time};
use super::reorder_window::Intake;
use crate::trace::buffers::copy_buffers::only_grew;
use crate::trace::buffers::live_slot::LiveSlot;
use crate::trace::buffers::slots::read_up_to;

/// How often a buffer is copied before it is left for the next round.
const ATTEMPTS: usize = 4;

/// Takes what the thread has recorded since the last round. `page` is the slot's first page, which was just read, and after it
/// `end`, that of the file.
pub fn read_new(
    slot: &LiveSlot,
    page: &[u8; PAGE],
    end: u64,
    thread: &mut LiveThread,
    files: &mut GrowingFiles,
    intake: &mut Intake,
) -> io::Result<()> {
    let Some(growing) = files.get(thread.file) else { return Ok(()) };
    if thread.end == end && is_taken(page, slot.layout, thread) {
        return Ok(());
    }
    for _ in 0..ATTEMPTS {
        // The end is read before the page: text that leaves the buffer after that changes the end.
        let end = slot.end()?;
        let Some(page) = slot.page()? else { return Ok(()) };
        if buffer::slot_writer(&page) != Ok(0) {
            // The text is on its way to the file.
            return Ok(());
        }
        let Some(new) = NewBufferText::copy(slot, &page, thread, end)? else { return Ok(()) };
        let grew = |after: &[u8; PAGE]| (0..REGIONS).all(|region| only_grew(&page, after, region));
        if !slot.page()?.as_ref().is_some_and(grew) || slot.end()? != end {
            continue;
        }
        for (text, is_new) in &new.texts {
            let mut text = &text[..];
            while !text.is_empty() {
                let length = intake.unneeded(text, &growing.emitted);
                text = &text[length..];
                if length > 0 {
                    continue;
                }
                let (line, after) = text.split_at(memchr(b'\n', text).map_or(text.len(), |newline| newline + 1));
                text = after;
                let Some(time) = record_time(line) else { continue };
                if *is_new || !growing.emitted.has(time, line) {
                    growing.emitted.note(time, line);
                    intake.window.push(time, line);
                }
            }
        }
        (thread.end, thread.taken) = (end, new.present);
        return Ok(());
    }
    Ok(())
}

/// The text in the regions of a slot that may be new.
struct NewBufferText {
    /// Which bytes of the slot hold text that is not in the file.
    present: [Range<usize>; REGIONS],
    /// The text that may be new, and whether all of it is.
    texts: [(Vec<u8>, bool); REGIONS],
}

impl NewBufferText {
    /// Copies the text that may be new, if the file ends at `end`; `None` if the slot's words are impossible.
    fn copy(slot: &LiveSlot, page: &[u8], thread: &LiveThread, end: u64) -> io::Result<Option<NewBufferText>> {
        let mut present = [const { 0..0 }; REGIONS];
        let mut texts = [const { (Vec::new(), false) }; REGIONS];
        for (region, (present, (text, is_new))) in present.iter_mut().zip(&mut texts).enumerate() {
            let Ok(leftover) = buffer::region_leftover(page, slot.layout, region) else { return Ok(None) };
            *present = leftover.unwritten;
            let taken = &thread.taken[region];
            // If no text has left since, the text that was taken is still there.
            *is_new = thread.end == end && present.start == taken.start && present.end >= taken.end;
            let from = if *is_new { taken.end } else { present.start };
            text.resize(present.end - from, 0);
            if !text.is_empty() && read_up_to(slot.file, text, slot.at + from as u64)? < text.len() {
                return Ok(None);
            }
        }
        Ok(Some(NewBufferText { present, texts }))
    }
}

/// Whether all text of a slot has been taken, if no text has left the slot since.
fn is_taken(page: &[u8], layout: SlotLayout, thread: &LiveThread) -> bool {
    let is_taken = |region: usize| {
        buffer::region_leftover(page, layout, region).is_ok_and(|leftover| leftover.unwritten == thread.taken[region])
    };
    (0..REGIONS).all(is_taken)
}
