//! Which slots of a trbuf are undamaged, and what they hold.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::Path;

use spec::buffer::{self, Damage, PAGE, REGIONS, SlotLayout};
use spec::names::LWP_MASK;

use super::claim::ClaimedTrbuf;
use crate::support::diagnostics::Diagnostics;
use crate::trace::buffers::complete_from::{self, CompleteFrom};
use crate::trace::buffers::lost_records::LostRecords;
use crate::trace::buffers::region_text::{first_record, holds_complete_records};
use crate::trace::buffers::slots::{SlotEntry, Slots};

/// What one region holds that is to be written to its record file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegionRecovery {
    /// The beginning of its slot in the trbuf.
    pub slot: u64,
    /// The region's number.
    pub number: usize,
    /// Text that was being written: the place in the record file, and the text as a range of the slot.
    pub write_intent: Option<(u64, Range<usize>)>,
    /// The older complete records of a ring that has wrapped, as a range of the slot.
    pub older: Option<Range<usize>>,
    /// The text that follows those, as a range of the slot.
    pub unwritten: Range<usize>,
}

impl RegionRecovery {
    /// The place in the trbuf of a range of the slot.
    pub fn place(&self, range: &Range<usize>) -> Range<u64> {
        self.slot + range.start as u64..self.slot + range.end as u64
    }

    /// All texts, the oldest first.
    fn texts(&self) -> impl Iterator<Item = &Range<usize>> {
        self.write_intent.as_ref().map(|(_, range)| range).into_iter().chain(&self.older).chain([&self.unwritten])
    }
}

/// A thread that overwrote records, which is to be noted in its slot and in the trinfo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompletenessNote {
    /// From when on the thread is complete.
    pub complete_from: CompleteFrom,
    /// The beginning of its slot in the trbuf.
    pub slot: u64,
    /// The slot's header has the time, and no region has a wrap count.
    pub is_in_slot: bool,
}

/// Records of a thread that were lost, and that no loss record counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UncountedLoss {
    pub lwp: u32,
    /// The beginning of its slot in the trbuf.
    pub slot: u64,
    pub records: u32,
    /// The `errno` value of the last cause.
    pub cause: u32,
}

/// What is to be written from a trbuf.
pub struct RecoveryPlan {
    /// The regions by the last three digits of their record files' names.
    pub files: BTreeMap<u16, Vec<RegionRecovery>>,
    /// The threads that overwrote records.
    pub notes: Vec<CompletenessNote>,
    /// Threads that had ended and whose rings were reused, to be noted in the trinfo.
    pub reused_rings: u64,
    /// Records of threads that were lost and that no loss record counts, by the same digits.
    pub losses: BTreeMap<u16, Vec<UncountedLoss>>,
    /// What no loss record counts, with these.
    pub uncounted: u64,
    /// All that the process has lost.
    pub lost: u64,
    /// No slot is damaged.
    pub complete: bool,
}

/// Plans the recovery of every slot. Reports the damaged ones, which stay as they are.
pub fn plan_recovery(path: &Path, claimed: &ClaimedTrbuf, diagnostics: &Diagnostics) -> io::Result<RecoveryPlan> {
    let (file, layout) = (&claimed.buffers, claimed.owner.layout);
    let mut losses = LostRecords::of_header(file);
    let mut plan = RecoveryPlan {
        files: BTreeMap::new(),
        notes: Vec::new(),
        reused_rings: losses.reused_rings,
        losses: BTreeMap::new(),
        uncounted: 0,
        lost: 0,
        complete: true,
    };
    let mut page = [0; PAGE];
    let mut slots = Slots::new(file, layout)?;
    let mut report_slot = |index, damage: &dyn Display| {
        plan.complete = false;
        diagnostics.report_damage(path.display(), format_args!("slot {index}: {damage}"));
    };
    while let Some(entry) = slots.next(&mut page)? {
        let (index, at) = match entry {
            SlotEntry::Slot { index, at } => (index, at),
            SlotEntry::Incomplete { index } => {
                report_slot(index, &"truncated");
                continue;
            }
        };
        losses.add(&page);
        let contents = match buffer::slot_lwp(&page) {
            Ok(None) => continue,
            Ok(Some(lwp)) => read_slot(file, &page, layout, at)?.map(|contents| (lwp, contents)),
            Err(damage) => Err(damage),
        };
        match contents {
            Ok((lwp, SlotContents { regions, oldest })) => {
                let complete_from = complete_from::of_slot(file, &page, lwp, &oldest)?;
                let is_in_slot = complete_from.map(|thread| thread.from) == complete_from::noted_in_slot(&page)
                    && (0..REGIONS).all(|region| complete_from::wrap_count(&page, region) == 0);
                let note = |complete_from| CompletenessNote { complete_from, slot: at, is_in_slot };
                plan.notes.extend(complete_from.map(note));
                let number = (lwp & LWP_MASK) as u16;
                plan.files.entry(number).or_default().extend(regions);
                if let Ok(Some((records, cause))) = buffer::slot_lost(&page) {
                    plan.losses.entry(number).or_default().push(UncountedLoss { lwp, slot: at, records, cause });
                }
            }
            Err(damage) => report_slot(index, &damage),
        }
    }
    losses.report(path, &claimed.owner, diagnostics);
    (plan.uncounted, plan.lost) = (losses.records, losses.in_all.max(losses.records));
    Ok(plan)
}

/// What the regions of one slot hold.
struct SlotContents {
    regions: Vec<RegionRecovery>,
    /// The place in the trbuf of the oldest record of each region that has overwritten records.
    oldest: Vec<u64>,
}

/// Reads the regions of the slot at `at`, which `page` begins; or returns what is wrong with the slot.
fn read_slot(file: &File, page: &[u8], layout: SlotLayout, at: u64) -> io::Result<Result<SlotContents, Damage>> {
    let (mut regions, mut oldest) = (Vec::new(), Vec::new());
    for region in 0..REGIONS {
        let leftover = match buffer::region_leftover(page, layout, region) {
            Ok(leftover) => leftover,
            Err(damage) => return Ok(Err(damage)),
        };
        let mut recovery = RegionRecovery {
            slot: at,
            number: region,
            write_intent: leftover.write_intent,
            older: None,
            unwritten: leftover.unwritten,
        };
        if !leftover.older.is_empty() {
            let Some(first) = first_record(file, &recovery.place(&leftover.older))? else {
                return Ok(Err(Damage::Text(region)));
            };
            recovery.older = Some((first - at) as usize..leftover.older.end);
        }
        for range in recovery.texts() {
            if !holds_complete_records(file, recovery.place(range))? {
                return Ok(Err(Damage::Text(region)));
            }
        }
        if recovery.older.is_some() || (layout.is_ring() && complete_from::wrap_count(page, region) > 0) {
            oldest.extend(recovery.texts().find(|range| !range.is_empty()).map(|range| recovery.place(range).start));
        }
        if recovery.texts().any(|range| !range.is_empty()) {
            regions.push(recovery);
        }
    }
    Ok(Ok(SlotContents { regions, oldest }))
}
