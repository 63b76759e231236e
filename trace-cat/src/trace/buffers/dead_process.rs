//! What a dead process left in its buffers, as places in the trbuf. The text itself stays there until it is merged.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use log::info;
use spec::buffer::{self, Damage, Owner, PAGE, REGIONS, SLOTS_OFFSET, SlotLayout};
use spec::names::LWP_MASK;

use super::complete_from;
use super::leftovers::{ProcessLeftovers, RegionLeftover};
use super::lost_records::LostRecords;
use super::region_text::{first_record, holds_complete_records};
use super::slots::{SlotEntry, Slots};
use crate::support::diagnostics::Diagnostics;
use crate::trace::file_handle::{DescriptorBudget, FileHandle};

/// Goes over the slots, of which the first pages are read, one at a time.
pub fn read_leftovers(
    path: &Path,
    file: File,
    owner: &Owner,
    diagnostics: &Diagnostics,
) -> io::Result<ProcessLeftovers> {
    if file.metadata()?.len() < SLOTS_OFFSET as u64 {
        diagnostics.report_damage(path.display(), Damage::Short);
    }
    let mut files: BTreeMap<u16, Vec<RegionLeftover>> = BTreeMap::new();
    let mut wholes = Vec::new();
    let mut losses = LostRecords::default();
    let mut page = [0; PAGE];
    let mut slots = Slots::new(&file, owner.layout)?;
    while let Some(found) = slots.next(&mut page)? {
        let (index, at) = match found {
            SlotEntry::Slot { index, at } => (index, at),
            SlotEntry::Cut { index } => {
                diagnostics.report_damage(path.display(), format_args!("slot {index}: cut short"));
                continue;
            }
        };
        losses.add(&page);
        let tell = |damage: Damage| diagnostics.report_damage(path.display(), format_args!("slot {index}: {damage}"));
        match buffer::slot_lwp(&page) {
            Ok(Some(lwp)) => {
                let place = DeadSlot { file: &file, page: &page, at, shape: owner.layout };
                let left = files.entry((lwp & LWP_MASK) as u16).or_default();
                let mut oldest = Vec::new();
                for region in 0..REGIONS {
                    let (leftover, overwrote) = place.region(region, &tell)?;
                    if overwrote {
                        oldest.extend(leftover.oldest());
                    }
                    if leftover.oldest().is_some() {
                        left.push(leftover);
                    }
                }
                wholes.extend(complete_from::of_slot(&file, &page, lwp, &oldest)?);
            }
            Ok(None) => {}
            Err(damage) => tell(damage),
        }
    }
    losses.tell(path, owner, diagnostics);
    files.retain(|_, left| !left.is_empty());
    let count: usize = files.values().map(Vec::len).sum();
    info!("{}: a dead process's; text is left in {count} regions", path.display());
    let handle = Arc::new(FileHandle::new(path.to_owned(), file, &DescriptorBudget::new(0))?);
    Ok(ProcessLeftovers { handle, files, whole: wholes })
}

/// A slot of a dead process's trbuf.
struct DeadSlot<'a> {
    file: &'a File,
    page: &'a [u8; PAGE],
    at: u64,
    shape: SlotLayout,
}

impl DeadSlot<'_> {
    /// What a region still holds, and whether it is a ring that has overwritten records.
    fn region(&self, region: usize, tell: &dyn Fn(Damage)) -> io::Result<(RegionLeftover, bool)> {
        let place = |range: Range<usize>| self.at + range.start as u64..self.at + range.end as u64;
        let rest = match buffer::region_leftover(self.page, self.shape, region) {
            Ok(rest) => rest,
            Err(damage) => {
                tell(damage);
                return Ok((RegionLeftover { pending: None, older: 0..0, unwritten: 0..0 }, false));
            }
        };
        let mut pending = rest.write_intent.map(|(offset, range)| (offset, place(range)));
        if let Some((_, range)) = &pending {
            // Laid over a file's good lines, bad ones would do more harm than their loss.
            if !holds_complete_records(self.file, range.clone())? {
                tell(Damage::Text(region));
                pending = None;
            }
        }
        let overwrote =
            self.shape.is_ring() && (!rest.older.is_empty() || complete_from::wrap_count(self.page, region) > 0);
        let mut older = place(rest.older);
        if !older.is_empty() {
            match first_record(self.file, &older)? {
                Some(first) => older.start = first,
                None => {
                    tell(Damage::Text(region));
                    older.start = older.end;
                }
            }
        }
        Ok((RegionLeftover { pending, older, unwritten: place(rest.unwritten) }, overwrote))
    }
}
