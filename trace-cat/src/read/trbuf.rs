//! What a dead process left in its buffers, as places in the trbuf. The text itself stays there until it is merged.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;

use log::info;
use spec::buffer::{self, Damage, Owner, PAGE, REGIONS, SLOT_SIZE, SLOTS_AT};
use spec::names::LWP_MASK;

use super::alive::alive;
use super::check;
use super::handle::{Descriptors, Handle};
use super::slots::{Found, Slots, read_up_to};
use crate::names;
use crate::say::{Say, reason};

/// What one region still holds, as places in the trbuf.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leftover {
    /// Text that belongs at a place in the record file, where it may stand already, all or in part.
    pub pending: Option<(u64, Range<u64>)>,
    /// Text that is in no file.
    pub unwritten: Range<u64>,
}

/// Everything that a dead process left, by the last three digits of the record files' names.
#[derive(Debug)]
pub struct Leftovers {
    /// The trbuf.
    pub handle: Arc<Handle>,
    /// In the order of slots and regions.
    pub files: BTreeMap<u16, Vec<Leftover>>,
}

/// What a trbuf tells of its process.
#[derive(Debug)]
pub enum State {
    /// There is none, or none that can be read: what the record files hold is all there is.
    None,
    /// The process runs, and may be writing its files.
    Alive,
    /// The process is gone.
    Dead(Leftovers),
}

/// Looks at the trbuf at `path`, which need not exist.
pub fn examine(path: &Path, say: &Say) -> State {
    let file = match OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return State::None,
        Err(error) => {
            say.damage(path.display(), reason(&error));
            return State::None;
        }
    };
    read(path, file, say).unwrap_or_else(|error| {
        say.damage(path.display(), reason(&error));
        State::None
    })
}

fn read(path: &Path, file: File, say: &Say) -> io::Result<State> {
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
            say.damage(path.display(), damage);
            return Ok(State::None);
        }
    };
    match alive(&file, &owner) {
        Some(true) => {
            info!("{}: process {} runs", path.display(), owner.pid);
            Ok(State::Alive)
        }
        Some(false) => slots(path, file, &owner, say).map(State::Dead),
        None => {
            say.damage(path.display(), "cannot tell whether its process runs; what it holds is left out");
            Ok(State::Alive)
        }
    }
}

/// Goes over the slots, which are read one at a time.
fn slots(path: &Path, file: File, owner: &Owner, say: &Say) -> io::Result<Leftovers> {
    if file.metadata()?.len() < SLOTS_AT as u64 {
        say.damage(path.display(), Damage::Short);
    }
    let mut files: BTreeMap<u16, Vec<Leftover>> = BTreeMap::new();
    let mut losses = Losses::default();
    let mut slot = vec![0; SLOT_SIZE];
    let mut slots = Slots::new(&file)?;
    while let Some(found) = slots.next(&mut slot)? {
        let (index, at) = match found {
            Found::Slot { index, at } => (index, at),
            Found::Cut { index } => {
                say.damage(path.display(), format_args!("slot {index}: cut short"));
                continue;
            }
        };
        losses.add(&slot);
        let tell = |damage: Damage| say.damage(path.display(), format_args!("slot {index}: {damage}"));
        match buffer::slot_lwp(&slot) {
            Ok(Some(lwp)) => {
                let file_number = (lwp & LWP_MASK) as u16;
                for region in 0..REGIONS {
                    if let Some(leftover) = region_rest(&file, &mut slot, at, region, &tell)? {
                        files.entry(file_number).or_default().push(leftover);
                    }
                }
            }
            Ok(None) => {}
            Err(damage) => tell(damage),
        }
    }
    losses.tell(path, owner, say);
    let count: usize = files.values().map(Vec::len).sum();
    info!("{}: a dead process's; text is left in {count} regions", path.display());
    let handle = Arc::new(Handle::new(path.to_owned(), file, &Descriptors::new(0))?);
    Ok(Leftovers { handle, files })
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
    pub fn tell(&self, path: &Path, owner: &Owner, say: &Say) {
        let Losses { records, cause } = *self;
        if records > 0 {
            let why = names::errno(cause.into()).map_or(cause.to_string(), str::to_owned);
            say.note(
                path.display(),
                format_args!("process {} lost {records} records before it died ({why})", owner.pid),
            );
        }
    }
}

/// What a region still holds, or `None` if that is nothing. `slot` has the slot's first page, and room for the rest.
fn region_rest(
    file: &File,
    slot: &mut [u8],
    at: u64,
    region: usize,
    tell: &dyn Fn(Damage),
) -> io::Result<Option<Leftover>> {
    let rest = match buffer::rest(slot, region) {
        Ok(rest) => rest,
        Err(damage) => {
            tell(damage);
            return Ok(None);
        }
    };
    let mut pending = rest.pending;
    if let Some((_, range)) = &pending {
        read_up_to(file, &mut slot[range.clone()], at + range.start as u64)?;
        // Laid over a file's good lines, bad ones would do more harm than their loss.
        if !whole_records(&slot[range.clone()]) {
            tell(Damage::Text(region));
            pending = None;
        }
    }
    if pending.is_none() && rest.unwritten.is_empty() {
        return Ok(None);
    }
    let place = |range: Range<usize>| at + range.start as u64..at + range.end as u64;
    Ok(Some(Leftover {
        pending: pending.map(|(offset, range)| (offset, place(range))),
        unwritten: place(rest.unwritten),
    }))
}

/// Whether `text` is nothing but records, or nothing at all.
pub fn whole_records(text: &[u8]) -> bool {
    match text.strip_suffix(b"\n") {
        Some(lines) => lines.split(|&byte| byte == b'\n').all(|line| check::check(line).is_ok()),
        None => text.is_empty(),
    }
}
