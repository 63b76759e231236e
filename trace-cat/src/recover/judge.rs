//! Which slots of a trbuf can be trusted, and what they hold.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::Path;

use spec::buffer::{self, Damage, REGIONS, SLOT_SIZE};
use spec::names::LWP_MASK;

use super::claim::Claimed;
use crate::read::slots::{Found, Slots, read_up_to};
use crate::read::trbuf::{Losses, whole_records};
use crate::say::Say;

/// What one region holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// Where in the trbuf its slot begins.
    pub slot: u64,
    /// Which region of the slot.
    pub region: usize,
    /// Bytes that belong at a place in the record file, as a range of the slot.
    pub pending: Option<(u64, Range<usize>)>,
    /// Bytes that are in no file, as a range of the slot.
    pub unwritten: Range<usize>,
}

/// What is to be done about a trbuf.
pub struct Judged {
    /// By the last three digits of the record files' names.
    pub files: BTreeMap<u16, Vec<Job>>,
    /// No slot is damaged.
    pub complete: bool,
}

/// Looks at every slot, and tells which ones are damaged: of those nothing is touched.
///
/// # Errors
/// What reading says.
pub fn judge(path: &Path, claimed: &Claimed, say: &Say) -> io::Result<Judged> {
    let mut judged = Judged { files: BTreeMap::new(), complete: true };
    let mut losses = Losses::default();
    let mut slot = vec![0; SLOT_SIZE];
    let mut slots = Slots::new(&claimed.buffers)?;
    while let Some(found) = slots.next(&mut slot)? {
        let (index, at) = match found {
            Found::Slot { index, at } => (index, at),
            Found::Cut { index } => {
                judged.complete = false;
                say.damage(path.display(), format_args!("slot {index}: cut short"));
                continue;
            }
        };
        losses.add(&slot);
        let jobs = buffer::slot_lwp(&slot).map(|lwp| lwp.map(|lwp| (lwp, jobs(&claimed.buffers, &mut slot, at))));
        match jobs {
            Ok(None) => {}
            Ok(Some((lwp, jobs))) => match jobs? {
                Ok(jobs) => judged.files.entry((lwp & LWP_MASK) as u16).or_default().extend(jobs),
                Err(damage) => {
                    judged.complete = false;
                    say.damage(path.display(), format_args!("slot {index}: {damage}"));
                }
            },
            Err(damage) => {
                judged.complete = false;
                say.damage(path.display(), format_args!("slot {index}: {damage}"));
            }
        }
    }
    losses.tell(path, &claimed.owner, say);
    Ok(judged)
}

/// What the regions of one slot, whose header is read, hold; or what is wrong with it.
fn jobs(file: &File, slot: &mut [u8], at: u64) -> io::Result<Result<Vec<Job>, Damage>> {
    let mut jobs = Vec::new();
    for region in 0..REGIONS {
        let rest = match buffer::rest(slot, region) {
            Ok(rest) => rest,
            Err(damage) => return Ok(Err(damage)),
        };
        let pending = rest.pending.as_ref().map(|(_, range)| range);
        for range in pending.into_iter().chain([&rest.unwritten]) {
            let text = &mut slot[range.clone()];
            if read_up_to(file, text, at + range.start as u64)? < range.len() || !whole_records(text) {
                return Ok(Err(Damage::Text(region)));
            }
        }
        if pending.is_some() || !rest.unwritten.is_empty() {
            jobs.push(Job { slot: at, region, pending: rest.pending, unwritten: rest.unwritten });
        }
    }
    Ok(Ok(jobs))
}
