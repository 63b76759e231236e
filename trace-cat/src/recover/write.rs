//! From the slots to the record files.
//!
//! The order of steps is what makes it exactly once. For each region: the note (`pending_at`, then `pending`), the
//! text, then `filled` without that text, then the note goes. All noted text of a file is written before anything is
//! added to the file, so that nothing is added where noted text belongs.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use log::{debug, info};
use memchr::memchr_iter;
use spec::buffer::{REGION_AT, Words, pack, words_at};
use spec::names::Name;

use super::claim::Claimed;
use super::hand::Hand;
use super::holes::Holes;
use super::judge::Job;
use crate::read::process::Process;
use crate::read::slots::read_up_to;
use crate::say::{Say, reason};

/// The work on one trbuf.
pub struct Writing<'a> {
    trbuf: &'a Path,
    process: &'a Process,
    claimed: &'a Claimed,
    hand: &'a mut dyn Hand,
    say: &'a Say,
    records: u64,
    files: BTreeSet<u16>,
}

/// A record file that is being completed.
struct Target {
    number: u16,
    path: PathBuf,
    file: File,
    size: u64,
}

impl<'a> Writing<'a> {
    /// Nothing is done yet.
    pub fn new(
        trbuf: &'a Path,
        process: &'a Process,
        claimed: &'a Claimed,
        hand: &'a mut dyn Hand,
        say: &'a Say,
    ) -> Writing<'a> {
        Writing { trbuf, process, claimed, hand, say, records: 0, files: BTreeSet::new() }
    }

    /// How many records went to how many files.
    pub fn counts(&self) -> (u64, usize) {
        (self.records, self.files.len())
    }

    /// Completes the record file with this number; `false` if something had to be left in the trbuf, which is told.
    pub fn file(&mut self, number: u16, jobs: Vec<Job>) -> bool {
        if jobs.is_empty() {
            return true;
        }
        let path = self.process.path(Name::Records { process: self.process.number, lwp: number });
        self.complete(number, &path, jobs).unwrap_or_else(|error| {
            self.say.damage(path.display(), format_args!("cannot be completed: {}", reason(&error)));
            false
        })
    }

    fn complete(&mut self, number: u16, path: &Path, mut jobs: Vec<Job>) -> io::Result<bool> {
        let file = self.open(path)?;
        let size = file.metadata()?.len();
        let mut target = Target { number, path: path.to_owned(), file, size };
        let mut complete = true;
        jobs.sort_by_key(|job| job.pending.as_ref().map(|(place, _)| *place));
        let mut appended = Vec::new();
        for job in jobs {
            match &job.pending {
                Some((place, range)) if !self.replay(&mut target, &job, *place, range)? => complete = false,
                _ => appended.push(job),
            }
        }
        appended.retain(|job| !job.unwritten.is_empty());
        appended.sort_by_key(|job| (job.slot, job.region));
        let lengths = appended.iter().map(|job| job.unwritten.len() as u64);
        let mut holes = Holes::find(&target.file, target.size, lengths)?;
        for job in &appended {
            let hole = holes.take(job.unwritten.len() as u64);
            self.append(&mut target, job, hole)?;
        }
        info!("{}: {} regions written", path.display(), appended.len());
        Ok(complete)
    }

    /// Opens a record file, or makes it.
    fn open(&mut self, path: &Path) -> io::Result<File> {
        let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
        let file = match OpenOptions::new().read(true).write(true).custom_flags(flags).open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => self.hand.create(path)?,
            Err(error) => return Err(error),
        };
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(io::Error::other("not a regular file"));
        }
        if metadata.uid() != self.claimed.user {
            // One that we have just made, now or before we were interrupted, may be empty and not yet given away.
            if metadata.len() != 0 || metadata.nlink() != 1 {
                return Err(io::Error::other("belongs to another user than the trbuf"));
            }
            self.hand.give(&file, self.claimed.user, self.claimed.group)?;
        }
        Ok(file)
    }

    /// Writes noted text once more; `false` if something else stands at its place.
    fn replay(&mut self, target: &mut Target, job: &Job, place: u64, range: &Range<usize>) -> io::Result<bool> {
        let text = self.text(job, range)?;
        if place < target.size {
            // A write that was cut leaves the first part, and a hole where another wrote behind it.
            let mut there = vec![0; text.len().min(usize::try_from(target.size - place).unwrap_or(usize::MAX))];
            read_up_to(&target.file, &mut there, place)?;
            if there.iter().zip(&text).any(|(there, byte)| there != byte && *there != 0) {
                let place = format_args!("{}: byte {place}", target.path.display());
                self.say.damage(place, format_args!("not what {} has for this place", self.trbuf.display()));
                return Ok(false);
            }
            let same = there.iter().zip(&text).take_while(|(there, byte)| there == byte).count();
            if same < text.len() {
                self.write(target, &text, place, same)?;
            }
        } else {
            // Nothing of it is there: either it begins where the file ends, or what was before it in the file is missing
            // too, and would only be a hole.
            let end = self.end_of_lines(target)?;
            if end != place {
                self.word(job, words_at(job.region).pending_at, end)?;
            }
            self.write_at_end(target, &text, end)?;
        }
        self.clear(job)?;
        Ok(true)
    }

    /// Notes text, writes it at the end of the file or into a hole, and forgets the note.
    fn append(&mut self, target: &mut Target, job: &Job, hole: Option<u64>) -> io::Result<()> {
        let text = self.text(job, &job.unwritten)?;
        let place = match hole {
            Some(hole) => hole,
            None => self.end_of_lines(target)?,
        };
        debug!("{}: {} bytes to byte {place}", target.path.display(), text.len());
        let words = words_at(job.region);
        self.word(job, words.pending_at, place)?;
        self.word(job, words.pending, packed(job.region, &job.unwritten))?;
        match hole {
            Some(_) => self.write(target, &text, place, 0)?,
            None => self.write_at_end(target, &text, place)?,
        }
        self.word(job, words.filled, packed(job.region, &(job.unwritten.end..job.unwritten.end)))?;
        self.word(job, words.pending, 0)
    }

    /// Where the next line of the file begins: a byte behind its end, if it ends in the middle of a line.
    fn end_of_lines(&self, target: &Target) -> io::Result<u64> {
        let Some(last) = target.size.checked_sub(1) else { return Ok(0) };
        let mut byte = [0];
        target.file.read_exact_at(&mut byte, last)?;
        Ok(if byte == *b"\n" { target.size } else { target.size + 1 })
    }

    /// Writes `text` at `place`, which [`Writing::end_of_lines`] gave.
    fn write_at_end(&mut self, target: &mut Target, text: &[u8], place: u64) -> io::Result<()> {
        if place > target.size {
            self.hand.write(&target.file, b"\n", target.size)?;
        }
        self.write(target, text, place, 0)
    }

    /// Writes `text`, of which `same` bytes are there already, and counts its records.
    fn write(&mut self, target: &mut Target, text: &[u8], place: u64, same: usize) -> io::Result<()> {
        self.hand.write(&target.file, &text[same..], place + same as u64)?;
        target.size = target.size.max(place + text.len() as u64);
        self.records += memchr_iter(b'\n', &text[same..]).count() as u64;
        self.files.insert(target.number);
        Ok(())
    }

    /// Ends the noted write of a region: its text leaves `filled`, then the note goes.
    fn clear(&mut self, job: &Job) -> io::Result<()> {
        let Words { filled, pending, .. } = words_at(job.region);
        self.word(job, filled, packed(job.region, &job.unwritten))?;
        self.word(job, pending, 0)
    }

    fn word(&mut self, job: &Job, at: usize, word: u64) -> io::Result<()> {
        self.hand.write(&self.claimed.buffers, &word.to_le_bytes(), job.slot + at as u64)
    }

    fn text(&self, job: &Job, range: &Range<usize>) -> io::Result<Vec<u8>> {
        let mut text = vec![0; range.len()];
        self.claimed.buffers.read_exact_at(&mut text, job.slot + range.start as u64)?;
        Ok(text)
    }
}

/// A range of a slot as the word for one of the region.
fn packed(region: usize, range: &Range<usize>) -> u64 {
    let within = |at: usize| (at - REGION_AT[region]) as u32;
    pack(within(range.start)..within(range.end))
}
