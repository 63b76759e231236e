//! Which slots of a trbuf can be trusted, and what they hold.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::Path;

use spec::buffer::{self, Damage, PAGE, REGIONS, SlotLayout};
use spec::names::LWP_MASK;

use super::claim::ClaimedTrbuf;
use crate::support::diagnostics::Diagnostics;
use crate::trace::buffers::complete_from;
use crate::trace::buffers::complete_from::CompleteFrom;
use crate::trace::buffers::lost_records::LostRecords;
use crate::trace::buffers::region_text::{first_record, holds_complete_records};
use crate::trace::buffers::slots::{SlotEntry, Slots};

/// What one region holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegionRecovery {
    /// Where in the trbuf its slot begins.
    pub slot: u64,
    /// Which region of the slot.
    pub region: usize,
    /// Bytes that belong at a place in the record file, as a range of the slot.
    pub pending: Option<(u64, Range<usize>)>,
    /// If it is a ring that has begun anew: the older whole records, which are in no file, as a range of the slot.
    pub older: Option<Range<usize>>,
    /// Bytes that are in no file, after those, as a range of the slot.
    pub unwritten: Range<usize>,
}

impl RegionRecovery {
    /// Where in the trbuf a range of the slot is.
    pub fn place(&self, range: &Range<usize>) -> Range<u64> {
        self.slot + range.start as u64..self.slot + range.end as u64
    }

    /// Everything in its order.
    fn texts(&self) -> impl Iterator<Item = &Range<usize>> {
        self.pending.as_ref().map(|(_, range)| range).into_iter().chain(&self.older).chain([&self.unwritten])
    }
}

/// A thread that has overwritten records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompletenessNote {
    /// From when on it is complete.
    pub whole: CompleteFrom,
    /// Where in the trbuf its slot begins.
    pub slot: u64,
    /// The slot's header says it, and no region knows of its laps any more.
    pub done: bool,
}

/// What is to be done about a trbuf.
pub struct RecoveryPlan {
    /// By the last three digits of the record files' names.
    pub files: BTreeMap<u16, Vec<RegionRecovery>>,
    /// The threads that have overwritten records.
    pub noted: Vec<CompletenessNote>,
    /// No slot is damaged.
    pub complete: bool,
}

/// Looks at every slot, and tells which ones are damaged: of those nothing is touched.
///
/// # Errors
/// What reading says.
pub fn judge(path: &Path, claimed: &ClaimedTrbuf, diagnostics: &Diagnostics) -> io::Result<RecoveryPlan> {
    let mut judged = RecoveryPlan { files: BTreeMap::new(), noted: Vec::new(), complete: true };
    let mut losses = LostRecords::default();
    let mut page = [0; PAGE];
    let (file, shape) = (&claimed.buffers, claimed.owner.layout);
    let mut slots = Slots::new(file, shape)?;
    while let Some(found) = slots.next(&mut page)? {
        let (index, at) = match found {
            SlotEntry::Slot { index, at } => (index, at),
            SlotEntry::Cut { index } => {
                judged.complete = false;
                diagnostics.report_damage(path.display(), format_args!("slot {index}: cut short"));
                continue;
            }
        };
        losses.add(&page);
        let jobs = buffer::slot_lwp(&page).map(|lwp| lwp.map(|lwp| (lwp, jobs(file, &page, shape, at))));
        match jobs {
            Ok(None) => {}
            Ok(Some((lwp, jobs))) => match jobs? {
                Ok(SlotContents { jobs, oldest }) => {
                    let whole = complete_from::of_slot(file, &page, lwp, &oldest)?;
                    let done = whole.is_some_and(|whole| complete_from::noted(&page) == Some(whole.from))
                        && (0..REGIONS).all(|region| complete_from::wrap_count(&page, region) == 0);
                    judged.noted.extend(whole.map(|whole| CompletenessNote { whole, slot: at, done }));
                    judged.files.entry((lwp & LWP_MASK) as u16).or_default().extend(jobs);
                }
                Err(damage) => {
                    judged.complete = false;
                    diagnostics.report_damage(path.display(), format_args!("slot {index}: {damage}"));
                }
            },
            Err(damage) => {
                judged.complete = false;
                diagnostics.report_damage(path.display(), format_args!("slot {index}: {damage}"));
            }
        }
    }
    losses.tell(path, &claimed.owner, diagnostics);
    Ok(judged)
}

/// What the regions of one slot hold.
struct SlotContents {
    jobs: Vec<RegionRecovery>,
    /// Where in the trbuf the oldest record is of each region that has overwritten some.
    oldest: Vec<u64>,
}

/// What the regions of one slot, whose first page is read, hold; or what is wrong with it.
fn jobs(file: &File, page: &[u8], shape: SlotLayout, at: u64) -> io::Result<Result<SlotContents, Damage>> {
    let (mut jobs, mut oldest) = (Vec::new(), Vec::new());
    for region in 0..REGIONS {
        let rest = match buffer::region_leftover(page, shape, region) {
            Ok(rest) => rest,
            Err(damage) => return Ok(Err(damage)),
        };
        let mut job =
            RegionRecovery { slot: at, region, pending: rest.write_intent, older: None, unwritten: rest.unwritten };
        if !rest.older.is_empty() {
            let Some(first) = first_record(file, &job.place(&rest.older))? else {
                return Ok(Err(Damage::Text(region)));
            };
            job.older = Some((first - at) as usize..rest.older.end);
        }
        for range in job.texts() {
            if !holds_complete_records(file, job.place(range))? {
                return Ok(Err(Damage::Text(region)));
            }
        }
        if job.older.is_some() || (shape.is_ring() && complete_from::wrap_count(page, region) > 0) {
            oldest.extend(job.texts().find(|range| !range.is_empty()).map(|range| job.place(range).start));
        }
        if job.texts().any(|range| !range.is_empty()) {
            jobs.push(job);
        }
    }
    Ok(Ok(SlotContents { jobs, oldest }))
}
