//! Copies the rings of a running process, whose records are in no file before the process ends.
//!
//! The process goes on recording meanwhile. What it may have overwritten before it was copied is left out (see
//! `ring_snapshot`).

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::Path;

use log::info;
use spec::buffer::{self, Owner, PAGE, REGIONS};
use spec::names::LWP_MASK;

use super::complete_from;
use super::leftovers::{CopiedBuffers, LeftoverPlaces, ProcessLeftovers};
use super::live_slot::{LiveSlot, copy_range, ends};
use super::lost_records::LostRecords;
use super::region_text::first_record;
use super::ring_snapshot::SurvivingText;
use super::slots::{SlotEntry, Slots};
use super::surviving_copy::{SurvivingCopy, copy_until_it_survives};
use crate::support::diagnostics::Diagnostics;
use crate::support::monotonic_clock::monotonic;
use crate::support::temporary_files::temporary_file_error;
use crate::trace::file_handle::DescriptorBudget;

/// How often one ring is copied before it is left out.
const ATTEMPTS_MAX: u32 = 12;

/// Copies all rings; `None` if some of them were written to their files meanwhile, where they would be read once more.
pub fn copy(path: &Path, file: &File, owner: &Owner, diagnostics: &Diagnostics) -> io::Result<Option<CopiedBuffers>> {
    let mut complete_until = monotonic().saturating_add_signed(owner.realtime_offset);
    let before = ends(file)?;
    let copy = tempfile::tempfile().map_err(temporary_file_error)?;
    let mut files: BTreeMap<u16, Vec<LeftoverPlaces>> = BTreeMap::new();
    let mut complete_from = Vec::new();
    let mut page = [0; PAGE];
    let mut losses = LostRecords::default();
    let mut slots = Slots::new(file, owner.layout)?;
    while let Some(entry) = slots.next(&mut page)? {
        // The last slot is incomplete while the process makes it.
        let SlotEntry::Slot { index, at } = entry else { continue };
        losses.add(&page);
        let Some(lwp) = buffer::slot_lwp(&page).ok().flatten() else { continue };
        let rings = SlotRings { slot: LiveSlot { file, at, layout: owner.layout, lwp }, copy: &copy };
        let (mut leftovers, mut oldest) = (Vec::new(), Vec::new());
        for region in 0..REGIONS {
            match rings.copy_region(region)? {
                RingCopy::Copied { leftover, overwrote } => {
                    if overwrote {
                        oldest.extend(leftover.oldest_offset());
                    }
                    leftovers.extend(leftover.oldest_offset().is_some().then_some(leftover));
                }
                RingCopy::Overwritten => {
                    diagnostics.report_note(
                        path.display(),
                        format_args!("slot {index}: region {region} changes too fast to be copied"),
                    );
                    complete_until = 0;
                }
                RingCopy::Gone => {}
                RingCopy::BeingWritten => return Ok(None),
            }
        }
        complete_from.extend(complete_from::of_slot(&copy, &page, lwp, &oldest)?);
        files.entry((lwp & LWP_MASK) as u16).or_default().extend(leftovers);
    }
    if ends(file)? != before {
        return Ok(None);
    }
    info!("{}: process {} runs; its rings are copied", path.display(), owner.pid);
    let leftovers = ProcessLeftovers::new(path, copy, owner, files, complete_from, &DescriptorBudget::new(1))?;
    let leftovers = leftovers.with_losses(losses.complete(file));
    let copied_at = monotonic().saturating_add_signed(owner.realtime_offset);
    Ok(Some(CopiedBuffers { pid: owner.pid, leftovers, ends: before, copied_at, complete_until }))
}

/// The result of copying one ring of a slot.
enum RingCopy {
    /// It is copied. `overwrote`: records before the copied ones were overwritten.
    Copied { leftover: LeftoverPlaces, overwrote: bool },
    /// Its thread overwrites it faster than it can be copied.
    Overwritten,
    /// The slot is another thread's by now: this thread's records were written for an exec, which the end of the file
    /// shows, or the thread has ended, and another thread's records replaced its own.
    Gone,
    /// It is being written to the record file.
    BeingWritten,
}

/// The rings of one slot.
struct SlotRings<'a> {
    slot: LiveSlot<'a>,
    copy: &'a File,
}

impl SlotRings<'_> {
    fn copy_region(&self, region: usize) -> io::Result<RingCopy> {
        let result = copy_until_it_survives(
            &self.slot,
            region,
            ATTEMPTS_MAX,
            |snapshot, overwritten| {
                let all = snapshot.all();
                all.newest(all.len() >> overwritten)
            },
            |text| {
                for range in [&text.older, &text.newer] {
                    copy_range(self.slot.file, self.copy, self.slot.place(region, range))?;
                }
                Ok(())
            },
        )?;
        Ok(match result {
            SurvivingCopy::Copied(text, after) => RingCopy::Copied {
                leftover: self.leftover(region, &text)?,
                overwrote: after.wrap_count > 0 || text.truncated,
            },
            SurvivingCopy::BeingWritten => RingCopy::BeingWritten,
            SurvivingCopy::Overwritten if self.slot.page()?.is_some() => RingCopy::Overwritten,
            SurvivingCopy::Overwritten => RingCopy::Gone,
        })
    }

    /// The places of a region's copied text, from its first complete record on.
    fn leftover(&self, region: usize, text: &SurvivingText) -> io::Result<LeftoverPlaces> {
        let [mut older, mut unwritten] = [&text.older, &text.newer].map(|range| self.slot.place(region, range));
        if text.truncated {
            let first = if older.is_empty() { &mut unwritten } else { &mut older };
            first.start = first_record(self.copy, first)?.unwrap_or(first.end);
        }
        Ok(LeftoverPlaces { write_intent: None, older, unwritten })
    }
}
