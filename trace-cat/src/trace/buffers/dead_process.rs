//! What a dead process left in its buffers, as places in the trbuf. No text is copied, unless a thread was releasing
//! something: then the text and the record of the release are put into a copy.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Arc;

use log::info;
use spec::buffer::{self, Damage, Owner, PAGE, REGIONS, SLOTS_OFFSET, SlotLayout};
use spec::names::LWP_MASK;

use super::complete_from;
use super::in_flight;
use super::leftovers::{LeftoverPlaces, ProcessLeftovers};
use super::live_slot::copy_range;
use super::lost_records::LostRecords;
use super::region_text::{first_record, holds_complete_records};
use super::slots::{SlotEntry, Slots};
use crate::support::diagnostics::Diagnostics;
use crate::support::temporary_files::temporary_file_error;
use crate::trace::file_handle::{DescriptorBudget, FileHandle};

/// Reads the slots of the trbuf `file` of `owner`, one at a time. Reports what is damaged.
pub fn read_leftovers(
    path: &Path,
    file: File,
    owner: &Owner,
    diagnostics: &Diagnostics,
) -> io::Result<ProcessLeftovers> {
    if file.metadata()?.len() < SLOTS_OFFSET as u64 {
        diagnostics.report_damage(path.display(), Damage::Short);
    }
    let mut files: BTreeMap<u16, Vec<LeftoverPlaces>> = BTreeMap::new();
    let mut complete_from = Vec::new();
    let mut losses = LostRecords::of_header(&file);
    let mut in_flight = Vec::new();
    let mut page = [0; PAGE];
    let mut slots = Slots::new(&file, owner.layout)?;
    while let Some(entry) = slots.next(&mut page)? {
        let (index, at) = match entry {
            SlotEntry::Slot { index, at } => (index, at),
            SlotEntry::Incomplete { index } => {
                diagnostics.report_damage(path.display(), format_args!("slot {index}: truncated"));
                continue;
            }
        };
        losses.add(&page);
        let report = |damage: Damage| diagnostics.report_damage(path.display(), format_args!("slot {index}: {damage}"));
        match buffer::slot_lwp(&page) {
            Ok(Some(lwp)) => {
                let slot = DeadSlot { file: &file, page: &page, at, layout: owner.layout };
                let leftovers = files.entry((lwp & LWP_MASK) as u16).or_default();
                let mut oldest = Vec::new();
                for region in 0..REGIONS {
                    let (leftover, overwrote) = slot.region(region, &report)?;
                    if overwrote {
                        oldest.extend(leftover.oldest_offset());
                    }
                    leftovers.extend(leftover.oldest_offset().is_some().then_some(leftover));
                }
                complete_from.extend(complete_from::of_slot(&file, &page, lwp, &oldest)?);
                let line = in_flight::pending_line(&file, &page, at, owner)?;
                in_flight.extend(line.map(|line| ((lwp & LWP_MASK) as u16, line)));
            }
            Ok(None) => {}
            Err(damage) => report(damage),
        }
    }
    losses.report(path, owner, diagnostics);
    info!("{}: its process is dead", path.display());
    if in_flight.is_empty() {
        let leftovers = ProcessLeftovers::new(path, file, owner, files, complete_from, &DescriptorBudget::new(0))?;
        return Ok(leftovers.with_losses(losses));
    }
    let copy = copy_with(&file, &mut files, in_flight)?;
    let handle = Arc::new(FileHandle::copied(path.to_owned(), &file, copy)?);
    let leftovers = ProcessLeftovers::of_handle(handle, owner, files, complete_from);
    Ok(leftovers.with_losses(losses))
}

/// Copies the text in `files` to a file that has it at the same places, and adds `lines`, each with the number of its
/// record file.
fn copy_with(
    file: &File,
    files: &mut BTreeMap<u16, Vec<LeftoverPlaces>>,
    lines: Vec<(u16, String)>,
) -> io::Result<File> {
    let copy = tempfile::tempfile().map_err(temporary_file_error)?;
    for leftover in files.values().flatten() {
        let intended = leftover.write_intent.iter().map(|(_, range)| range);
        for range in intended.chain([&leftover.older, &leftover.unwritten]) {
            copy_range(file, &copy, range.clone())?;
        }
    }
    let mut end = file.metadata()?.len();
    for (number, line) in lines {
        copy.write_all_at(line.as_bytes(), end).map_err(temporary_file_error)?;
        let place = end..end + line.len() as u64;
        end = place.end;
        let leftover = LeftoverPlaces { write_intent: None, older: 0..0, unwritten: place };
        files.entry(number).or_default().push(leftover);
    }
    Ok(copy)
}

/// A slot of a dead process's trbuf.
struct DeadSlot<'a> {
    file: &'a File,
    page: &'a [u8; PAGE],
    /// The beginning of the slot in the trbuf.
    at: u64,
    layout: SlotLayout,
}

impl DeadSlot<'_> {
    /// What a region holds that is in no record file, and whether it is a ring that has overwritten records.
    fn region(&self, region: usize, report: &dyn Fn(Damage)) -> io::Result<(LeftoverPlaces, bool)> {
        let place = |range: Range<usize>| self.at + range.start as u64..self.at + range.end as u64;
        let region_leftover = match buffer::region_leftover(self.page, self.layout, region) {
            Ok(leftover) => leftover,
            Err(damage) => {
                report(damage);
                return Ok((LeftoverPlaces { write_intent: None, older: 0..0, unwritten: 0..0 }, false));
            }
        };
        let mut write_intent = region_leftover.write_intent.map(|(offset, range)| (offset, place(range)));
        if let Some((_, range)) = &write_intent {
            // Damaged lines would replace good lines of the record file.
            if !holds_complete_records(self.file, range.clone())? {
                report(Damage::Text(region));
                write_intent = None;
            }
        }
        let overwrote = self.layout.is_ring()
            && (!region_leftover.older.is_empty() || complete_from::wrap_count(self.page, region) > 0);
        let mut older = place(region_leftover.older);
        if !older.is_empty() {
            match first_record(self.file, &older)? {
                Some(first) => older.start = first,
                None => {
                    report(Damage::Text(region));
                    older.start = older.end;
                }
            }
        }
        Ok((LeftoverPlaces { write_intent, older, unwritten: place(region_leftover.unwritten) }, overwrote))
    }
}
