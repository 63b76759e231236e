//! What is new in the rings of a running process.

use std::fs::File;
use std::io;
use std::ops::{Range, RangeInclusive};
use std::path::Path;

use memchr::memchr;
use spec::buffer::{self, PAGE, REGION_AT, REGIONS, Shape};
use spec::names::LWP_MASK;

use super::intake::Intake;
use super::live::{Thread, time_of};
use super::source::{Source, Sources};
use crate::read::columns;
use crate::read::running::end_of;
use crate::read::slots::read_up_to;
use crate::read::survivors::{Good, Look};
use crate::say::Say;

/// How often a ring is copied before it is left for the next time, each time only the newer half of what was copied
/// before: less text is sooner copied than overwritten.
const ATTEMPTS: u32 = 6;
/// Bytes of a ring that are taken at a time.
const MOST: u32 = 4 << 20;

/// How far a ring has been read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// How often it had begun anew.
    laps: u32,
    /// Up to which byte of the region.
    end: u32,
}

/// What of a ring is new.
#[derive(Clone, Debug, PartialEq, Eq)]
struct New {
    text: Good,
    /// Records were overwritten before they were read.
    missed: bool,
    /// It begins where reading ended.
    continues: bool,
}

impl New {
    /// What is new at this look, if it was read up to `known`.
    fn since(look: Look, known: Option<Place>) -> New {
        let all = look.all();
        let Some(known) = known else { return New { text: all, missed: false, continues: false } };
        let wrapped = !all.older.is_empty() || look.start > look.end;
        if look.laps == known.laps && look.end >= known.end {
            // Nothing that has not been read lies behind the end.
            let text = Good { older: 0..0, newer: known.end..look.end, cut: false };
            return New { text, missed: false, continues: true };
        }
        if look.laps == known.laps.wrapping_add(1) {
            let from = if wrapped { look.start.max(known.end).min(look.wrapped_at) } else { look.wrapped_at };
            let missed = from > known.end;
            let older = from..look.wrapped_at;
            let cut = missed && !older.is_empty();
            return New { text: Good { older, newer: 0..look.end, cut }, missed, continues: !missed };
        }
        // It was written out and has begun again, or it was overtaken.
        New { text: all, missed: look.laps > known.laps, continues: false }
    }
}

/// The oldest `most` bytes of a text.
fn oldest(text: &Good, most: u32) -> Good {
    let Good { older, newer, cut } = text.clone();
    let first = older.start..older.end.min(older.start.saturating_add(most));
    let rest = most - (first.end - first.start);
    Good { older: first, newer: newer.start..newer.end.min(newer.start.saturating_add(rest)), cut }
}

/// Reads the rings of one slot.
pub struct Reader<'a> {
    pub file: &'a File,
    /// Where the slot begins.
    pub at: u64,
    pub shape: Shape,
    pub path: &'a Path,
    pub say: &'a Say,
}

impl Reader<'_> {
    /// Takes what the thread has recorded since the last time. `page` is the slot's first page, which was just read.
    ///
    /// # Errors
    /// What reading says.
    pub fn take(&self, page: &[u8], thread: &mut Thread, sources: &mut Sources, intake: &mut Intake) -> io::Result<()> {
        // The first region comes first: what a signal handler recorded before the last record there is then seen too.
        for region in 0..REGIONS {
            let now =
                Look::after([page, page], self.shape, region).map(|look| Place { laps: look.laps, end: look.end });
            if now.is_some() && now == thread.rings[region] {
                continue;
            }
            for attempt in 0..ATTEMPTS {
                let end = end_of(self.file, (thread.lwp & LWP_MASK) as u16)?;
                if end != thread.end {
                    // It has been written out, for an exec, and begins anew, perhaps at the same place.
                    (thread.end, thread.rings) = (end, [None; REGIONS]);
                }
                let Some(before) = self.look(region, thread.lwp, Look::before)? else { continue };
                if before.leaving {
                    // It is coming to the file.
                    return Ok(());
                }
                let new = New::since(before, thread.rings[region]);
                let part = oldest(&new.text.newest(new.text.len() >> attempt), MOST);
                if part.len() == 0 {
                    thread.rings[region] = Some(Place { laps: before.laps, end: before.end });
                    break;
                }
                let text = self.copy(region, &part)?;
                let Some(after) = self.look(region, thread.lwp, Look::after)? else { continue };
                let Some(good) = before.survivors(&part, after) else { continue };
                if end_of(self.file, (thread.lwp & LWP_MASK) as u16)? != end {
                    continue;
                }
                let less = (part.len() - good.len()) as usize;
                let missed = new.missed || less > 0 || attempt > 0;
                let Some(source) = sources.get(thread.source) else { return Ok(()) };
                self.put(region, &text[less..], [part.cut || less > 0, new.continues && !missed], source, intake);
                thread.rings[region] = Some(place_behind(before, &part, &text));
                if missed && !thread.told {
                    thread.told = true;
                    let what = format_args!("LWP {} overwrites records before they are read", thread.lwp);
                    self.say.note(self.path.display(), what);
                }
                break;
            }
        }
        Ok(())
    }

    /// Gives on the records of a text of a region, of which the first is cut if `cut`, and the last may be. It `continues`
    /// what was read before.
    fn put(&self, region: usize, text: &[u8], [cut, continues]: [bool; 2], source: &mut Source, intake: &mut Intake) {
        let from = if cut { memchr(b'\n', text).map_or(text.len(), |newline| newline + 1) } else { 0 };
        let mut stretch: Option<(u32, RangeInclusive<u64>)> = None;
        for line in text[from..].split_inclusive(|&byte| byte == b'\n') {
            let Some(time) = time_of(line) else { continue };
            if region == 0 {
                // A signal handler's record may have come between a thread's look at the clock and its record: then what is
                // new may be earlier than what has been seen.
                if continues || !source.seen.ring_has(time, line) {
                    intake.put(time, line);
                }
                let (first, last) = stretch.map_or((time, time), |(_, times)| times.into_inner());
                stretch = Some((columns::lwpid(line), first.min(time)..=last.max(time)));
            } else if continues || !source.seen.has(time, line) {
                source.seen.note(time, line);
                intake.put(time, line);
            }
        }
        if let Some((lwp, times)) = stretch {
            source.seen.note_ring(lwp, times, continues);
        }
    }

    fn copy(&self, region: usize, part: &Good) -> io::Result<Vec<u8>> {
        let mut text = vec![0; part.len() as usize];
        let older = (part.older.end - part.older.start) as usize;
        let place = |range: &Range<u32>| self.at + REGION_AT[region & (REGIONS - 1)] as u64 + u64::from(range.start);
        read_up_to(self.file, &mut text[..older], place(&part.older))?;
        read_up_to(self.file, &mut text[older..], place(&part.newer))?;
        Ok(text)
    }

    /// The region's words as they are now; `None` if they are being changed or the slot is another thread's.
    fn look(
        &self,
        region: usize,
        lwp: u32,
        of: fn([&[u8]; 2], Shape, usize) -> Option<Look>,
    ) -> io::Result<Option<Look>> {
        let mut pages = [[0; PAGE]; 2];
        for page in &mut pages {
            read_up_to(self.file, page, self.at)?;
            if buffer::slot_lwp(page) != Ok(Some(lwp)) {
                return Ok(None);
            }
        }
        Ok(of([&pages[0], &pages[1]], self.shape, region))
    }
}

/// How far a ring has been read with `part`, whose bytes are `text`: up to its last newline.
fn place_behind(look: Look, part: &Good, text: &[u8]) -> Place {
    let whole = memchr::memrchr(b'\n', text).map_or(0, |newline| newline as u32 + 1);
    let older = part.older.end - part.older.start;
    // Up to the end of the older part may be up to the middle of all that is older.
    match whole.checked_sub(older).filter(|&newer| newer > 0 || older == 0) {
        Some(newer) => Place { laps: look.laps, end: part.newer.start + newer },
        None => Place { laps: look.laps.wrapping_sub(1), end: part.older.start + whole },
    }
}

#[cfg(test)]
#[path = "ring_tests.rs"]
mod tests;
