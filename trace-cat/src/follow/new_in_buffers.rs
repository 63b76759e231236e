//! What is new in the buffers of a running process's thread.
//!
//! What stands in a buffer comes to the file some day, and may do so at any moment. So a buffer's text is taken only if the
//! file's `end` was the same before and after it was copied (`trace::buffers::copy_buffers` says why that tells), and what has been taken is
//! noted, to be left out when the file has it ([`super::emitted_records`]). What left a buffer before it was seen there is found in
//! the file.

use std::io;
use std::ops::Range;

use spec::buffer::{self, PAGE, REGIONS, SlotLayout};

use super::growing_files::GrowingFiles;
use super::intake::Intake;
use super::live_thread::{LiveThread, time_of};
use crate::trace::buffers::copy_buffers::only_grew;
use crate::trace::buffers::live_slot::LiveSlot;
use crate::trace::buffers::slots::read_up_to;

/// How often a buffer is copied before it is left for the next time.
const ATTEMPTS: usize = 4;

/// Takes what the thread has recorded since the last time. `page` is the slot's first page, which was just read.
///
/// # Errors
/// What reading says.
pub fn take(
    slot: &LiveSlot,
    page: &[u8; PAGE],
    thread: &mut LiveThread,
    sources: &mut GrowingFiles,
    intake: &mut Intake,
) -> io::Result<()> {
    let Some(source) = sources.get(thread.source) else { return Ok(()) };
    if thread.end == slot.end()? && is_taken(page, slot.shape, thread) {
        return Ok(());
    }
    for _ in 0..ATTEMPTS {
        // First the end: what leaves the buffer after the page was read shows in it.
        let end = slot.end()?;
        let Some(page) = slot.page()? else { return Ok(()) };
        if buffer::slot_writer(&page) != Ok(0) {
            // It is coming to the file.
            return Ok(());
        }
        let Some(found) = NewBufferText::copy(slot, &page, thread, end)? else { return Ok(()) };
        let grew = |after: &[u8; PAGE]| (0..REGIONS).all(|region| only_grew(&page, after, region));
        if !slot.page()?.as_ref().is_some_and(grew) || slot.end()? != end {
            continue;
        }
        for (text, is_new) in &found.texts {
            for line in text.split_inclusive(|&byte| byte == b'\n') {
                let Some(time) = time_of(line) else { continue };
                if *is_new || !source.seen.has(time, line) {
                    source.seen.note(time, line);
                    intake.put(time, line);
                }
            }
        }
        (thread.end, thread.taken) = (end, found.there);
        return Ok(());
    }
    Ok(())
}

/// What was found in the regions of a slot.
struct NewBufferText {
    /// Which bytes of the slot are there.
    there: [Range<usize>; REGIONS],
    /// Those that may be new, and whether all of them are.
    texts: [(Vec<u8>, bool); REGIONS],
}

impl NewBufferText {
    /// Copies what may be new, if the file ends at `end`; `None` if the slot's words are impossible.
    fn copy(slot: &LiveSlot, page: &[u8], thread: &LiveThread, end: u64) -> io::Result<Option<NewBufferText>> {
        let mut there = [const { 0..0 }; REGIONS];
        let mut texts = [const { (Vec::new(), false) }; REGIONS];
        for (region, (there, (text, is_new))) in there.iter_mut().zip(&mut texts).enumerate() {
            let Ok(rest) = buffer::region_leftover(page, slot.shape, region) else { return Ok(None) };
            *there = rest.unwritten;
            let taken = &thread.taken[region];
            // If nothing has left since, what was taken is there still.
            *is_new = thread.end == end && there.start == taken.start && there.end >= taken.end;
            let from = if *is_new { taken.end } else { there.start };
            text.resize(there.end - from, 0);
            if !text.is_empty() && read_up_to(slot.file, text, slot.at + from as u64)? < text.len() {
                return Ok(None);
            }
        }
        Ok(Some(NewBufferText { there, texts }))
    }
}

/// Whether a slot holds nothing but what has been taken, if nothing has left it since.
fn is_taken(page: &[u8], shape: SlotLayout, thread: &LiveThread) -> bool {
    let is_taken = |region: usize| {
        buffer::region_leftover(page, shape, region).is_ok_and(|rest| rest.unwritten == thread.taken[region])
    };
    (0..REGIONS).all(is_taken)
}
