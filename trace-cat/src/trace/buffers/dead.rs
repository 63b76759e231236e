//! What a dead process left in its buffers, as places in the trbuf. The text itself stays there until it is merged.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;

use log::info;
use spec::buffer::{self, Damage, Owner, PAGE, REGIONS, SLOTS_AT, Shape};
use spec::names::LWP_MASK;

use super::region_text::{first_record, whole_records};
use super::running;
use super::running::Copied;
use super::slots::{Found, Slots, read_up_to};
use crate::record::errno_names::errno;
use crate::support::diagnostics::{Diagnostics, reason};
use crate::trace::completeness;
use crate::trace::completeness::Whole;
use crate::trace::file_handle::{Descriptors, Handle};
use crate::trace::liveness::alive;

/// What one region still holds, as places in the trbuf.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leftover {
    /// Text that belongs at a place in the record file, where it may stand already, all or in part.
    pub pending: Option<(u64, Range<u64>)>,
    /// Text that is in no file: the older records of a ring that has begun anew, from the first whole one on.
    pub older: Range<u64>,
    /// Text that is in no file, after that.
    pub unwritten: Range<u64>,
}

impl Leftover {
    /// Where its oldest record begins, or `None` if there is none.
    pub fn oldest(&self) -> Option<u64> {
        let pending = self.pending.as_ref().map(|(_, range)| range);
        let mut ranges = pending.into_iter().chain([&self.older, &self.unwritten]);
        ranges.find(|range| !range.is_empty()).map(|range| range.start)
    }
}

/// Everything that is in no file, by the last three digits of the record files' names.
#[derive(Debug)]
pub struct Leftovers {
    /// The trbuf, or a copy of it.
    pub handle: Arc<Handle>,
    /// In the order of slots and regions.
    pub files: BTreeMap<u16, Vec<Leftover>>,
    /// The threads that overwrote records, and from what moment on each is complete.
    pub whole: Vec<Whole>,
}

/// What a trbuf tells of its process.
#[derive(Debug)]
pub enum State {
    /// There is none, or none that can be read: what the record files hold is all there is.
    None,
    /// The process runs, and its buffers could not be copied.
    Alive,
    /// The process runs; what is in its buffers was copied.
    Running(Copied),
    /// The process is gone.
    Dead(Leftovers),
}

impl State {
    /// What is in no file, if that is known.
    pub fn leftovers(&self) -> Option<&Leftovers> {
        match self {
            State::None | State::Alive => None,
            State::Running(copied) => Some(&copied.leftovers),
            State::Dead(leftovers) => Some(leftovers),
        }
    }
}

/// Looks at the trbuf at `path`, which need not exist.
pub fn examine(path: &Path, diagnostics: &Diagnostics) -> State {
    let file = match OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return State::None,
        Err(error) => {
            diagnostics.report_damage(path.display(), reason(&error));
            return State::None;
        }
    };
    read(path, file, diagnostics).unwrap_or_else(|error| {
        diagnostics.report_damage(path.display(), reason(&error));
        State::None
    })
}

fn read(path: &Path, file: File, diagnostics: &Diagnostics) -> io::Result<State> {
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    let mut page = [0; PAGE];
    let length = read_up_to(&file, &mut page, 0)?;
    if page.iter().all(|&byte| byte == 0) {
        // Its owner died before it recorded anything, or is about to begin.
        return Ok(State::None);
    }
    let owner = match Owner::parse(&page[..length]) {
        Ok(owner) => owner,
        Err(damage) => {
            diagnostics.report_damage(path.display(), damage);
            return Ok(State::None);
        }
    };
    match alive(&file, &owner) {
        Some(true) => Ok(running::state(path, file, &owner, diagnostics)),
        Some(false) => slots(path, file, &owner, diagnostics).map(State::Dead),
        None => {
            diagnostics.report_damage(path.display(), "cannot tell whether its process runs; what it holds is left out");
            Ok(State::Alive)
        }
    }
}

/// Goes over the slots, of which the first pages are read, one at a time.
pub fn slots(path: &Path, file: File, owner: &Owner, diagnostics: &Diagnostics) -> io::Result<Leftovers> {
    if file.metadata()?.len() < SLOTS_AT as u64 {
        diagnostics.report_damage(path.display(), Damage::Short);
    }
    let mut files: BTreeMap<u16, Vec<Leftover>> = BTreeMap::new();
    let mut wholes = Vec::new();
    let mut losses = Losses::default();
    let mut page = [0; PAGE];
    let mut slots = Slots::new(&file, owner.shape)?;
    while let Some(found) = slots.next(&mut page)? {
        let (index, at) = match found {
            Found::Slot { index, at } => (index, at),
            Found::Cut { index } => {
                diagnostics.report_damage(path.display(), format_args!("slot {index}: cut short"));
                continue;
            }
        };
        losses.add(&page);
        let tell = |damage: Damage| diagnostics.report_damage(path.display(), format_args!("slot {index}: {damage}"));
        match buffer::slot_lwp(&page) {
            Ok(Some(lwp)) => {
                let place = Place { file: &file, page: &page, at, shape: owner.shape };
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
                wholes.extend(completeness::of_slot(&file, &page, lwp, &oldest)?);
            }
            Ok(None) => {}
            Err(damage) => tell(damage),
        }
    }
    losses.tell(path, owner, diagnostics);
    files.retain(|_, left| !left.is_empty());
    let count: usize = files.values().map(Vec::len).sum();
    info!("{}: a dead process's; text is left in {count} regions", path.display());
    let handle = Arc::new(Handle::new(path.to_owned(), file, &Descriptors::new(0))?);
    Ok(Leftovers { handle, files, whole: wholes })
}

/// Records that a process dropped and died before it could say so in its trace.
#[derive(Debug, Default)]
pub struct Losses {
    records: u64,
    cause: u32,
}

impl Losses {
    /// Adds those of a slot, whose header `slot` begins with.
    pub fn add(&mut self, slot: &[u8]) {
        if let Ok(Some((records, cause))) = buffer::slot_lost(slot) {
            self.records += u64::from(records);
            self.cause = cause;
        }
    }

    /// Says how many there were, if there were any, and why. A loss that the program counted is no damage.
    pub fn tell(&self, path: &Path, owner: &Owner, diagnostics: &Diagnostics) {
        let Losses { records, cause } = *self;
        if records > 0 {
            let why = errno(cause.into()).map_or(cause.to_string(), str::to_owned);
            diagnostics.report_note(
                path.display(),
                format_args!("process {} lost {records} records before it died ({why})", owner.pid),
            );
        }
    }
}

/// A slot of a dead process's trbuf.
struct Place<'a> {
    file: &'a File,
    page: &'a [u8; PAGE],
    at: u64,
    shape: Shape,
}

impl Place<'_> {
    /// What a region still holds, and whether it is a ring that has overwritten records.
    fn region(&self, region: usize, tell: &dyn Fn(Damage)) -> io::Result<(Leftover, bool)> {
        let place = |range: Range<usize>| self.at + range.start as u64..self.at + range.end as u64;
        let rest = match buffer::rest(self.page, self.shape, region) {
            Ok(rest) => rest,
            Err(damage) => {
                tell(damage);
                return Ok((Leftover { pending: None, older: 0..0, unwritten: 0..0 }, false));
            }
        };
        let mut pending = rest.pending.map(|(offset, range)| (offset, place(range)));
        if let Some((_, range)) = &pending {
            // Laid over a file's good lines, bad ones would do more harm than their loss.
            if !whole_records(self.file, range.clone())? {
                tell(Damage::Text(region));
                pending = None;
            }
        }
        let overwrote = self.shape.is_ring() && (!rest.older.is_empty() || completeness::laps(self.page, region) > 0);
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
        Ok((Leftover { pending, older, unwritten: place(rest.unwritten) }, overwrote))
    }
}
