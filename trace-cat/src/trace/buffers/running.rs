//! What a running process has recorded and not yet written: copied, since it goes on recording while it is read.
//!
//! The copy is a temporary file that is laid out as the trbuf is, with holes where nothing was copied: so a place in it is a
//! place in the trbuf, and no region is ever held in memory. How it is made sure that the copy is of one moment depends on
//! the kind of buffers: see `buffers` and `rings`.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::thread;
use std::time::Duration;

use spec::buffer::{self, FileEntry, Header, Owner, PAGE, REGION_AT, REGIONS, SLOTS_AT, Shape};
use spec::names::LWP_MASK;

use super::dead::{Leftovers, State, slots};
use super::region_text::{PIECE, pieces};
use super::ring_snapshot::Look;
use super::slots::read_up_to;
use super::{copy_buffers, copy_rings};
use crate::support::diagnostics::{Diagnostics, reason};
use crate::support::temporary_files::temporary;
use crate::trace::liveness::alive;

/// How often all is copied anew when the process was writing its rings to its files, and how long that is waited for each
/// time.
const TURNS: usize = 5;
const PATIENCE: Duration = Duration::from_millis(20);

/// The buffers of a running process, as they stood.
#[derive(Debug)]
pub struct Copied {
    /// What they held.
    pub leftovers: Leftovers,
    /// How many bytes of each record file were written or on their way then, by its number.
    pub ends: Vec<u64>,
    /// How large the slots are.
    pub shape: Shape,
}

impl Copied {
    /// How many bytes of the record file with this number come before what was copied.
    pub fn end(&self, number: u16) -> u64 {
        self.ends.get(usize::from(number)).copied().unwrap_or(0)
    }
}

/// The slot of a thread of a running process, which changes while it is read.
#[derive(Clone, Copy, Debug)]
pub struct Slot<'a> {
    /// The trbuf.
    pub file: &'a File,
    /// Where in it the slot begins.
    pub at: u64,
    /// How large the slots are.
    pub shape: Shape,
    /// The thread.
    pub lwp: u32,
}

impl Slot<'_> {
    /// Its first page as it is now; `None` if it is another thread's.
    ///
    /// # Errors
    /// What reading says.
    pub fn page(&self) -> io::Result<Option<[u8; PAGE]>> {
        let mut page = [0; PAGE];
        read_up_to(self.file, &mut page, self.at)?;
        Ok((buffer::slot_lwp(&page) == Ok(Some(self.lwp))).then_some(page))
    }

    /// How many bytes of the thread's record file are written or given to a writer.
    ///
    /// # Errors
    /// What reading says.
    pub fn end(&self) -> io::Result<u64> {
        const SIZE: usize = size_of::<FileEntry>();
        let number = (self.lwp & LWP_MASK) as usize;
        let mut entry = [0; SIZE];
        let length = read_up_to(self.file, &mut entry, (PAGE + number * SIZE) as u64)?;
        Ok(end(&entry[..length]))
    }

    /// The words of a ring as they are now; `None` if they are being changed or the slot is another thread's.
    ///
    /// # Errors
    /// What reading says.
    pub fn look(&self, region: usize, of: fn([&[u8]; 2], Shape, usize) -> Option<Look>) -> io::Result<Option<Look>> {
        let (Some(first), Some(second)) = (self.page()?, self.page()?) else { return Ok(None) };
        Ok(of([&first, &second], self.shape, region))
    }

    /// A part of a region as a place in the trbuf.
    pub fn place(&self, region: usize, part: &Range<u32>) -> Range<u64> {
        let base = self.at + REGION_AT[region & (REGIONS - 1)] as u64;
        base + u64::from(part.start)..base + u64::from(part.end)
    }
}

/// Copies what is in the trbuf `file` of `owner`, which ran just now.
pub fn state(path: &Path, file: File, owner: &Owner, diagnostics: &Diagnostics) -> State {
    let owner = &mut { *owner };
    for _ in 0..TURNS {
        let is_ring = owner.shape.is_ring();
        let copied = if is_ring {
            copy_rings::copy(path, &file, owner, diagnostics)
        } else {
            copy_buffers::copy(path, &file, owner, diagnostics)
        };
        let copied = match copied {
            Ok(copied) => copied,
            Err(error) => {
                diagnostics.report_damage(path.display(), format_args!("its buffers cannot be copied: {}", reason(&error)));
                return State::Alive;
            }
        };
        let is_gone = alive(&file, owner) == Some(false);
        // What it became by an exec may have slots of another size: then what was copied is nothing.
        let changed = shape_of(&file).ok().flatten().filter(|&shape| shape != owner.shape);
        owner.shape = changed.unwrap_or(owner.shape);
        if is_gone {
            return slots(path, file, owner, diagnostics).map(State::Dead).unwrap_or_else(|error| {
                diagnostics.report_damage(path.display(), reason(&error));
                State::None
            });
        }
        if let Some(copied) = copied.filter(|_| changed.is_none()) {
            if is_ring {
                diagnostics.report_note(path.display(), format_args!("process {} runs; its rings are read as they stand", owner.pid));
            }
            return State::Running(copied);
        }
        thread::sleep(PATIENCE);
    }
    diagnostics.report_note(
        path.display(),
        format_args!("process {} is writing its rings to its files; they are left out", owner.pid),
    );
    State::Alive
}

/// How many bytes of each record file are written or given to a writer.
///
/// # Errors
/// What reading says.
pub fn ends(file: &File) -> io::Result<Vec<u64>> {
    let mut entries = vec![0; SLOTS_AT - PAGE];
    let length = read_up_to(file, &mut entries, PAGE as u64)?;
    Ok(entries[..length].chunks(size_of::<FileEntry>()).map(end).collect())
}

/// What an entry says; 0 as long as the process has not made the file.
fn end(entry: &[u8]) -> u64 {
    let at = std::mem::offset_of!(FileEntry, end);
    entry.get(at..at + 8).and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_le_bytes)
}

/// How large a trbuf's slots are now; `None` if it does not say.
///
/// # Errors
/// What reading says.
pub fn shape_of(file: &File) -> io::Result<Option<Shape>> {
    let mut header = [0; size_of::<Header>()];
    let length = read_up_to(file, &mut header, 0)?;
    Ok(Owner::parse(&header[..length]).ok().map(|owner| owner.shape))
}

/// Copies `range` of `file` to the same place in `copy`.
///
/// # Errors
/// What reading or writing says.
pub fn copy_range(file: &File, copy: &File, range: Range<u64>) -> io::Result<()> {
    let mut buffer = vec![0; PIECE.min((range.end - range.start) as usize)];
    for piece in pieces(range) {
        let bytes = &mut buffer[..(piece.end - piece.start) as usize];
        let length = read_up_to(file, bytes, piece.start)?;
        copy.write_all_at(&bytes[..length], piece.start).map_err(temporary)?;
    }
    Ok(())
}
