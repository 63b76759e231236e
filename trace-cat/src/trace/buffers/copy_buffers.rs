//! The buffers of a process that runs, copied.
//!
//! Text moves from a buffer to its file at any moment, and must be found in exactly one of the two. Whoever writes a buffer
//! out becomes the slot's writer, and then takes a range of the file, by which the file's `end` grows. So a copy is good if
//! there was no writer when it began, and the end is the same when it is made: what is copied comes behind that end, and
//! what comes before it is in the file. A write that was noted and left, by a jump out of a signal handler or because the
//! process is stopped, is laid over the file as if the process were dead.
//!
//! Threads that share a file are copied together. All others are copied one after the other, since a thread at full speed
//! fills a buffer in a tenth of a millisecond: what one thread recorded is copied up to one moment, but not all up to the
//! same.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use log::info;
use spec::buffer::{self, Owner, PAGE, REGIONS, region_word_offsets, unpack_range};
use spec::names::LWP_MASK;

use super::leftovers::{CopiedBuffers, ProcessLeftovers, RegionLeftover};
use super::live_slot::{LiveSlot, copy_range, ends};
use super::slots::{SlotEntry, Slots};
use crate::support::diagnostics::Diagnostics;
use crate::support::temporary_files::temporary_file_error;
use crate::trace::file_handle::{DescriptorBudget, FileHandle};

/// How often the buffers for one file are copied before they are given up.
const ATTEMPTS: u32 = 64;
/// How many of those, the last, take a writer that is there for one that does not go on.
const IMPATIENT: u32 = 8;
/// By so much longer each pause between them is: on a busy machine a writer may have to wait for its turn as long as the kernel
/// likes, which adds up to 40 milliseconds here.
const PAUSE: Duration = Duration::from_micros(20);

/// Copies the buffers of `owner`, whose trbuf is `file`; never `None`, unlike rings.
///
/// # Errors
/// What reading or a temporary file says.
pub fn copy(path: &Path, file: &File, owner: &Owner, diagnostics: &Diagnostics) -> io::Result<Option<CopiedBuffers>> {
    let copy = tempfile::tempfile().map_err(temporary_file_error)?;
    let mut groups: BTreeMap<u16, Vec<LiveSlot>> = BTreeMap::new();
    let mut page = [0; PAGE];
    let mut slots = Slots::new(file, owner.layout)?;
    while let Some(found) = slots.next(&mut page)? {
        let SlotEntry::Slot { at, .. } = found else { continue };
        let Some(lwp) = buffer::slot_lwp(&page).ok().flatten() else { continue };
        groups.entry((lwp & LWP_MASK) as u16).or_default().push(LiveSlot { file, at, shape: owner.layout, lwp });
    }
    let mut ends = ends(file)?;
    let mut files = BTreeMap::new();
    for (number, slots) in groups {
        let group = SlotGroup { copy: &copy, slots };
        let copied = (0..ATTEMPTS).find_map(|attempt| match group.copy(attempt + IMPATIENT < ATTEMPTS) {
            Ok(None) => {
                thread::sleep(PAUSE * attempt);
                None
            }
            done => Some(done),
        });
        match copied.transpose()?.flatten() {
            Some((end, left)) => {
                ends[usize::from(number)] = end;
                files.insert(number, left);
            }
            None => {
                let what =
                    format_args!("LWP {} is writing all the time; its newest records are left out", group.slots[0].lwp);
                diagnostics.report_note(path.display(), what);
            }
        }
    }
    files.retain(|_, left: &mut Vec<RegionLeftover>| !left.is_empty());
    let count: usize = files.values().map(Vec::len).sum();
    info!("{}: process {} runs; {count} buffers copied", path.display(), owner.pid);
    let handle = Arc::new(FileHandle::new(path.to_owned(), copy, &DescriptorBudget::new(1))?);
    Ok(Some(CopiedBuffers {
        leftovers: ProcessLeftovers { handle, files, whole: Vec::new() },
        ends,
        shape: owner.layout,
    }))
}

/// The slots whose text goes to one file: at least one.
struct SlotGroup<'a> {
    copy: &'a File,
    slots: Vec<LiveSlot<'a>>,
}

impl SlotGroup<'_> {
    /// Copies their text, and says where in the file it belongs; `None` if the file was written meanwhile. Not `patient`: a
    /// writer that is there is taken for one that does not go on.
    fn copy(&self, patient: bool) -> io::Result<Option<(u64, Vec<RegionLeftover>)>> {
        let end = self.slots[0].end()?;
        let mut left = Vec::new();
        for slot in &self.slots {
            let Some(page) = slot.page()? else { continue };
            if patient && buffer::slot_writer(&page) != Ok(0) {
                return Ok(None);
            }
            for region in 0..REGIONS {
                let Ok(rest) = buffer::region_leftover(&page, slot.shape, region) else { return Ok(None) };
                let place = |range: Range<usize>| slot.at + range.start as u64..slot.at + range.end as u64;
                let pending = rest.write_intent.map(|(at, range)| (at, place(range)));
                let leftover = RegionLeftover { pending, older: 0..0, unwritten: place(rest.unwritten) };
                for range in leftover.pending.iter().map(|(_, range)| range).chain([&leftover.unwritten]) {
                    copy_range(slot.file, self.copy, range.clone())?;
                }
                left.extend(leftover.oldest().is_some().then_some(leftover));
            }
            if !slot.page()?.is_some_and(|after| (0..REGIONS).all(|region| only_grew(&page, &after, region))) {
                return Ok(None);
            }
        }
        Ok((self.slots[0].end()? == end).then_some((end, left)))
    }
}

/// Whether the region's words say that nothing was done since `before` but append.
pub fn only_grew(before: &[u8], after: &[u8], region: usize) -> bool {
    let words = region_word_offsets(region);
    let word =
        |page: &[u8], at: usize| page.get(at..at + 8).and_then(|bytes| bytes.try_into().ok()).map(u64::from_le_bytes);
    let filled = |page: &[u8]| word(page, words.write_position).map(unpack_range);
    match (filled(before), filled(after)) {
        (Some(old), Some(new)) => {
            new.start == old.start
                && new.end >= old.end
                && word(before, words.write_intent) == word(after, words.write_intent)
        }
        _ => false,
    }
}
