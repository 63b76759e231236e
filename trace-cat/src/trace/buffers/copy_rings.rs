//! The rings of a process that runs, copied: nothing of them is in a file before it ends.
//!
//! The process goes on recording while they are copied. What it may have overwritten meanwhile is left out of the copy
//! (see `survivors`).

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;

use log::info;
use spec::buffer::{self, Owner, PAGE, REGIONS};
use spec::names::LWP_MASK;

use super::complete_from;
use super::leftovers::{CopiedBuffers, ProcessLeftovers, RegionLeftover};
use super::live_slot::{LiveSlot, copy_range, ends};
use super::region_text::first_record;
use super::ring_snapshot::{RingSnapshot, SurvivingText};
use super::slots::{SlotEntry, Slots};
use crate::support::diagnostics::Diagnostics;
use crate::support::temporary_files::temporary_file_error;
use crate::trace::file_handle::{DescriptorBudget, FileHandle};

/// How often one ring is copied before it is given up, each time only the newer half of what was copied before: less
/// text is sooner copied than overwritten.
const ATTEMPTS: u32 = 12;

/// Copies all rings; `None` if meanwhile some were written to their files, where they would be found once more.
///
/// # Errors
/// What reading or a temporary file says.
pub fn copy(path: &Path, file: &File, owner: &Owner, diagnostics: &Diagnostics) -> io::Result<Option<CopiedBuffers>> {
    let before = ends(file)?;
    let copy = tempfile::tempfile().map_err(temporary_file_error)?;
    let mut files: BTreeMap<u16, Vec<RegionLeftover>> = BTreeMap::new();
    let mut wholes = Vec::new();
    let mut page = [0; PAGE];
    let mut slots = Slots::new(file, owner.layout)?;
    while let Some(found) = slots.next(&mut page)? {
        // The last slot is cut short while the process makes it.
        let SlotEntry::Slot { index, at } = found else { continue };
        let Some(lwp) = buffer::slot_lwp(&page).ok().flatten() else { continue };
        let rings = SlotRings { slot: LiveSlot { file, at, shape: owner.layout, lwp }, copy: &copy };
        let (mut left, mut oldest) = (Vec::new(), Vec::new());
        for region in 0..REGIONS {
            match rings.region(region)? {
                RingCopyOutcome::Copied(leftover, overwrote) => {
                    if overwrote {
                        oldest.extend(leftover.oldest());
                    }
                    left.extend(leftover.oldest().is_some().then_some(leftover));
                }
                RingCopyOutcome::Lost => {
                    diagnostics.report_note(
                        path.display(),
                        format_args!("slot {index}: region {region} cannot be copied, so fast does it change"),
                    );
                }
                RingCopyOutcome::Gone => {}
                RingCopyOutcome::Leaving => return Ok(None),
            }
        }
        wholes.extend(complete_from::of_slot(&copy, &page, lwp, &oldest)?);
        files.entry((lwp & LWP_MASK) as u16).or_default().extend(left);
    }
    files.retain(|_, left| !left.is_empty());
    if ends(file)? != before {
        return Ok(None);
    }
    let count: usize = files.values().map(Vec::len).sum();
    info!("{}: process {} runs; {count} rings copied", path.display(), owner.pid);
    let handle = Arc::new(FileHandle::new(path.to_owned(), copy, &DescriptorBudget::new(1))?);
    Ok(Some(CopiedBuffers {
        leftovers: ProcessLeftovers { handle, files, whole: wholes },
        ends: before,
        shape: owner.layout,
    }))
}

/// What came of copying one ring.
enum RingCopyOutcome {
    /// It is copied, and whether records before the copied ones were overwritten.
    Copied(RegionLeftover, bool),
    /// Its thread overwrites it faster than it can be copied.
    Lost,
    /// It is not this thread's any more: it was written out for an exec, which the end of the file tells, or the thread has
    /// ended, and its records have made room for another one's.
    Gone,
    /// It is on its way to the record file.
    Leaving,
}

/// The rings of one slot.
struct SlotRings<'a> {
    slot: LiveSlot<'a>,
    copy: &'a File,
}

impl SlotRings<'_> {
    /// Copies one of them.
    fn region(&self, region: usize) -> io::Result<RingCopyOutcome> {
        for attempt in 0..ATTEMPTS {
            let Some(before) = self.slot.ring_snapshot(region, RingSnapshot::before)? else { continue };
            if before.leaving {
                return Ok(RingCopyOutcome::Leaving);
            }
            let all = before.all();
            let copied = all.newest(all.len() >> attempt);
            for part in [&copied.older, &copied.newer] {
                copy_range(self.slot.file, self.copy, self.slot.place(region, part))?;
            }
            let Some(after) = self.slot.ring_snapshot(region, RingSnapshot::after)? else { continue };
            if let Some(good) = before.surviving(&copied, after) {
                let overwrote = after.wrap_count > 0 || good.cut;
                return Ok(RingCopyOutcome::Copied(self.leftover(region, &good)?, overwrote));
            }
        }
        Ok(if self.slot.page()?.is_some() { RingCopyOutcome::Lost } else { RingCopyOutcome::Gone })
    }

    /// What was copied of a region, from its first whole record on.
    fn leftover(&self, region: usize, good: &SurvivingText) -> io::Result<RegionLeftover> {
        let [mut older, mut unwritten] = [&good.older, &good.newer].map(|part| self.slot.place(region, part));
        if good.cut {
            let first = if older.is_empty() { &mut unwritten } else { &mut older };
            first.start = first_record(self.copy, first)?.unwrap_or(first.end);
        }
        Ok(RegionLeftover { pending: None, older, unwritten })
    }
}
