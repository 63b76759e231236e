//! Copies the buffers of a running process.
//!
//! Text moves from a buffer to its file at any time, and has to be read from exactly one of the two. Whoever writes a
//! buffer to the file becomes the slot's writer, and then takes a range of the file, by which the file's `end` grows. So a
//! copy is consistent if there was no writer when it began and the file's end is the same afterwards: the copied text
//! follows that end, and what precedes the end is in the file. A write that was noted and abandoned, by a jump out of a
//! signal handler or because the process is stopped, is overlaid on the file as if the process were dead.
//!
//! The buffers of threads that share a file are copied together. All others are copied one after the other, since a thread
//! at full speed fills a buffer in a tenth of a millisecond. So the copy of each file is of one time, but not of the same
//! time for all files.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::thread;
use std::time::Duration;

use log::info;
use spec::buffer::{self, Owner, PAGE, REGIONS, SlotLayout, region_word_offsets, u64_at, unpack_range};
use spec::names::LWP_MASK;

use super::leftovers::{CopiedBuffers, LeftoverPlaces, ProcessLeftovers};
use super::live_slot::{LiveSlot, ends, read_range};
use super::lost_records::LostRecords;
use super::slots::{SlotEntry, Slots};
use crate::support::diagnostics::Diagnostics;
use crate::support::monotonic_clock::monotonic;
use crate::support::temporary_files::temporary_file_error;
use crate::trace::file_handle::DescriptorBudget;

/// How often the buffers for one file are copied before they are left out.
const ATTEMPTS_MAX: u32 = 64;
/// How many of those attempts, the last, copy although there is a writer, assuming that the write was abandoned.
const ATTEMPTS_WITH_WRITER: u32 = 8;
/// By how much each pause between two attempts is longer than the one before. The pauses add up to a second, since on a busy
/// machine a writer may wait long for a processor or the disk: 40 milliseconds were not enough beside ten other programs, and
/// 200 not beside forty.
const PAUSE_STEP: Duration = Duration::from_micros(500);

/// Copies the buffers of `owner`, whose trbuf is `file`. Never returns `None`, unlike `copy_rings::copy`.
pub fn copy(path: &Path, file: &File, owner: &Owner, diagnostics: &Diagnostics) -> io::Result<Option<CopiedBuffers>> {
    let mut complete_until = monotonic().saturating_add_signed(owner.realtime_offset);
    let copy = tempfile::tempfile().map_err(temporary_file_error)?;
    let mut groups: BTreeMap<u16, Vec<LiveSlot>> = BTreeMap::new();
    let mut page = [0; PAGE];
    let mut losses = LostRecords::default();
    let mut slots = Slots::new(file, owner.layout)?;
    while let Some(entry) = slots.next(&mut page)? {
        let SlotEntry::Slot { at, .. } = entry else { continue };
        losses.add(&page);
        let Some(lwp) = buffer::slot_lwp(&page).ok().flatten() else { continue };
        groups.entry((lwp & LWP_MASK) as u16).or_default().push(LiveSlot { file, at, layout: owner.layout, lwp });
    }
    let mut ends = ends(file)?;
    let mut files = BTreeMap::new();
    for (number, slots) in groups {
        let group = SlotGroup { copy: &copy, slots };
        match group.copy_with_patience()? {
            Some((end, leftovers)) => {
                ends[usize::from(number)] = end;
                files.insert(number, leftovers);
            }
            None => {
                let message =
                    format_args!("LWP {} is writing all the time; its newest records are left out", group.slots[0].lwp);
                diagnostics.report_note(path.display(), message);
                complete_until = 0;
            }
        }
    }
    info!("{}: process {} runs; its buffers are copied", path.display(), owner.pid);
    let leftovers = ProcessLeftovers::new(path, copy, owner, files, Vec::new(), &DescriptorBudget::new(1))?;
    let leftovers = leftovers.with_losses(losses.complete(file));
    let copied_at = monotonic().saturating_add_signed(owner.realtime_offset);
    Ok(Some(CopiedBuffers { pid: owner.pid, leftovers, ends, copied_at, complete_until }))
}

/// The slots whose text belongs to one record file; at least one.
struct SlotGroup<'a> {
    copy: &'a File,
    slots: Vec<LiveSlot<'a>>,
}

impl SlotGroup<'_> {
    /// As [`copy`](SlotGroup::copy), again and again. If the thread writes each time, but has written all that was recorded before
    /// the first attempt, that is enough, since what is recorded while the buffers are copied is partly read anyway.
    fn copy_with_patience(&self) -> io::Result<Option<(u64, Vec<LeftoverPlaces>)>> {
        let mut emptied = EmptiedBuffer::default();
        for attempt in 0..ATTEMPTS_MAX {
            let copied = self.copy(attempt + ATTEMPTS_WITH_WRITER >= ATTEMPTS_MAX)?;
            if copied.is_some() {
                return Ok(copied);
            }
            if let Some((end, unwritten)) = self.written()? {
                emptied.note(end, unwritten);
            }
            thread::sleep(PAUSE_STEP * attempt);
        }
        Ok(emptied.end.map(|end| (end, Vec::new())))
    }

    /// The end of the file, and how much text of the thread's is not in it. `None` while it is being written, or if that is not
    /// the only text that belongs to the file.
    fn written(&self) -> io::Result<Option<(u64, usize)>> {
        let [slot] = self.slots[..] else { return Ok(None) };
        let end = slot.end()?;
        let Some(page) = slot.page()? else { return Ok(None) };
        Ok(unwritten_text(&page, slot.layout)
            .filter(|_| slot.end().is_ok_and(|after| after == end))
            .map(|text| (end, text)))
    }

    /// Copies their text; returns the end of the file, which the text follows, and the text's places. `None` if the copy is
    /// not consistent because of a write. `ignore_writer`: assume that a slot's writer abandoned its write.
    ///
    /// The text is read into memory first: a disk that is busy would let the thread write its buffer again before the copy is made.
    fn copy(&self, ignore_writer: bool) -> io::Result<Option<(u64, Vec<LeftoverPlaces>)>> {
        let end = self.slots[0].end()?;
        let mut leftovers = Vec::new();
        let mut texts = Vec::new();
        for slot in &self.slots {
            let Some(page) = slot.page()? else { continue };
            if !ignore_writer && buffer::slot_writer(&page) != Ok(0) {
                return Ok(None);
            }
            for region in 0..REGIONS {
                let Ok(region_leftover) = buffer::region_leftover(&page, slot.layout, region) else { return Ok(None) };
                let place = |range: Range<usize>| slot.at + range.start as u64..slot.at + range.end as u64;
                let write_intent = region_leftover.write_intent.map(|(at, range)| (at, place(range)));
                let leftover =
                    LeftoverPlaces { write_intent, older: 0..0, unwritten: place(region_leftover.unwritten) };
                for range in leftover.write_intent.iter().map(|(_, range)| range).chain([&leftover.unwritten]) {
                    texts.push((range.start, read_range(slot.file, range)?));
                }
                leftovers.extend(leftover.oldest_offset().is_some().then_some(leftover));
            }
            if !slot.page()?.is_some_and(|after| (0..REGIONS).all(|region| only_grew(&page, &after, region))) {
                return Ok(None);
            }
        }
        if self.slots[0].end()? != end {
            return Ok(None);
        }
        for (at, text) in texts {
            self.copy.write_all_at(&text, at).map_err(temporary_file_error)?;
        }
        Ok(Some((end, leftovers)))
    }
}

/// The bytes that the first region of a slot holds; `None` while something is being written, or if signal handlers have text in
/// the others.
fn unwritten_text(page: &[u8], layout: SlotLayout) -> Option<usize> {
    let leftover = |region| buffer::region_leftover(page, layout, region).ok().filter(|it| it.write_intent.is_none());
    let others_are_empty = (1..REGIONS).all(|region| leftover(region).is_some_and(|it| it.unwritten.is_empty()));
    let is_quiet = buffer::slot_writer(page) == Ok(0) && others_are_empty;
    leftover(0).filter(|_| is_quiet).map(|it| it.unwritten.len())
}

/// How much of a thread's text is certainly in its file, from readings of its slot, one after the other. Text only leaves the buffer
/// when all of it is written.
#[derive(Debug, Default)]
struct EmptiedBuffer {
    unwritten: usize,
    is_emptied: bool,
    /// The end of the file at a time after all that the first reading found had been written.
    end: Option<u64>,
}

impl EmptiedBuffer {
    fn note(&mut self, end: u64, unwritten: usize) {
        self.is_emptied |= unwritten == 0 || unwritten < self.unwritten;
        self.unwritten = unwritten;
        if self.is_emptied {
            self.end = Some(end);
        }
    }
}

/// Whether text was only appended to the region between reading the slot's first page as `before` and as `after`.
pub fn only_grew(before: &[u8], after: &[u8], region: usize) -> bool {
    let words = region_word_offsets(region);
    let written = |page: &[u8]| u64_at(page, words.write_position).map(unpack_range);
    match (written(before), written(after)) {
        (Some(old), Some(new)) => {
            new.start == old.start
                && new.end >= old.end
                && u64_at(before, words.write_intent) == u64_at(after, words.write_intent)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::trbuf_image::TrbufImage;
    use spec::buffer::{CONTROL_OFFSET, ControlWords, Header, NOTE_OWN_MEMORY, SlotHeader, pack_range};
    use std::mem::offset_of;

    #[test]
    fn text_is_counted_while_nobody_writes_and_only_the_thread_has_some() {
        let page = |words: &[(usize, u64)]| {
            let mut page = [0; PAGE];
            words.iter().for_each(|(at, word)| page[*at..at + 8].copy_from_slice(&word.to_le_bytes()));
            unwritten_text(&page, SlotLayout::BUFFERS)
        };
        let text = (region_word_offsets(0).write_position, pack_range(0..100));
        assert_eq!((page(&[]), page(&[text])), (Some(0), Some(100)));
        assert_eq!(page(&[text, (region_word_offsets(0).write_intent, pack_range(0..100))]), None);
        assert_eq!(page(&[text, (region_word_offsets(1).write_position, pack_range(0..83))]), None);
        assert_eq!(page(&[text, (offset_of!(SlotHeader, writer), 7)]), None);
    }

    #[test]
    fn what_was_recorded_before_is_in_the_file_once_the_buffer_has_less_text() {
        let mut emptied = EmptiedBuffer::default();
        let mut end_after = |end, unwritten| {
            emptied.note(end, unwritten);
            emptied.end
        };
        assert_eq!(end_after(1000, 700), None);
        // Text of signal handlers.
        assert_eq!(end_after(1100, 800), None);
        assert_eq!(end_after(1900, 100), Some(1900));
        assert_eq!(end_after(2000, 900), Some(2000));

        let mut emptied = EmptiedBuffer::default();
        emptied.note(1000, 0);
        assert_eq!(emptied.end, Some(1000));
    }

    /// A process counts its losses also where it has stopped recording, so that no record will.
    #[test]
    fn what_a_running_process_has_lost_is_known_from_its_header() {
        let mut image = TrbufImage::with_text(5, "text\n");
        image.set_lost(0, 4, libc::EFBIG as u32);
        image.put(CONTROL_OFFSET + offset_of!(ControlWords, lost), &7u64.to_le_bytes());
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("trbuf.0000001");
        std::fs::write(&path, &image.bytes).unwrap();
        let owner = Owner::parse(&image.bytes[..PAGE]).unwrap();
        let copied = copy(&path, &File::open(&path).unwrap(), &owner, &Diagnostics::new(drop)).unwrap().unwrap();
        let ProcessLeftovers { lost, lost_in_all, losing, has_own_memory, .. } = copied.leftovers;
        assert_eq!((lost, lost_in_all, losing, has_own_memory), (4, 7, vec![5], false));
    }

    /// Where the header is in the process's own memory, too, what has been written is only in the length of the file.
    #[test]
    fn all_of_a_file_is_read_whose_end_nobody_can_read() {
        let end = |notes: u32, end: usize| {
            let mut image = TrbufImage::new();
            image.put(offset_of!(Header, notes), &notes.to_le_bytes());
            image.set_file_end(5, end);
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join("trbuf.0000001");
            std::fs::write(&path, &image.bytes).unwrap();
            let owner = Owner::parse(&image.bytes[..PAGE]).unwrap();
            copy(&path, &File::open(&path).unwrap(), &owner, &Diagnostics::new(drop)).unwrap().unwrap().end(5)
        };
        assert_eq!([end(0, 0), end(0, 70), end(NOTE_OWN_MEMORY, 70), end(NOTE_OWN_MEMORY, 0)], [0, 70, 70, u64::MAX]);
    }
}
