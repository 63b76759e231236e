//! From the slots to the record files.
//!
//! The order of steps is what makes it exactly once. For each region: the note (`write_intent_offset`, then `write_intent`), the
//! text, then `write_position` without that text, then the note goes. A ring that has begun anew goes in two such steps, the older
//! records first. All noted text of a file is written before anything is added to the file, so that nothing is added
//! where noted text belongs.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io;
use std::mem::offset_of;
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use log::{debug, info};
use memchr::memchr_iter;
use spec::buffer::{REGION_OFFSETS, REGIONS, RegionWordOffsets, SlotHeader, pack_range, region_word_offsets};
use spec::names::FileName;

use super::claim::ClaimedTrbuf;
use super::file_operations::FileOperations;
use super::holes::Holes;
use super::recovery_plan::{CompletenessNote, RegionRecovery};
use crate::support::diagnostics::{Diagnostics, reason};
use crate::trace::buffers::region_text::chunks;
use crate::trace::buffers::slots::read_up_to;
use crate::trace::file_names::ProcessFiles;
use crate::trace::thread_completeness;

/// The work on one trbuf.
pub struct RecoveryWriter<'a> {
    trbuf: &'a Path,
    process: &'a ProcessFiles,
    claimed: &'a ClaimedTrbuf,
    hand: &'a mut dyn FileOperations,
    diagnostics: &'a Diagnostics,
    records: u64,
    files: BTreeSet<u16>,
}

/// A record file that is being completed.
struct TargetFile {
    number: u16,
    path: PathBuf,
    file: File,
    size: u64,
}

/// Text that is added to a record file.
struct Addition<'a> {
    job: &'a RegionRecovery,
    /// As a range of the slot; may be empty.
    text: Range<usize>,
    /// What is then left of the region, as a range of the slot.
    left: Range<usize>,
}

impl<'a> Addition<'a> {
    /// What of a region is added, in order.
    fn of(job: &'a RegionRecovery) -> impl Iterator<Item = Addition<'a>> {
        let end = job.unwritten.end;
        let older = job.older.iter().map(|older| Addition { job, text: older.clone(), left: job.unwritten.clone() });
        let newer = Addition { job, text: job.unwritten.clone(), left: end..end };
        older.chain((!newer.text.is_empty()).then_some(newer))
    }
}

impl<'a> RecoveryWriter<'a> {
    /// Nothing is done yet.
    pub fn new(
        trbuf: &'a Path,
        process: &'a ProcessFiles,
        claimed: &'a ClaimedTrbuf,
        hand: &'a mut dyn FileOperations,
        diagnostics: &'a Diagnostics,
    ) -> RecoveryWriter<'a> {
        RecoveryWriter { trbuf, process, claimed, hand, diagnostics, records: 0, files: BTreeSet::new() }
    }

    /// How many records went to how many files.
    pub fn counts(&self) -> (u64, usize) {
        (self.records, self.files.len())
    }

    /// Completes the record file with this number; `false` if something had to be left in the trbuf, which is told.
    pub fn file(&mut self, number: u16, jobs: Vec<RegionRecovery>) -> bool {
        if jobs.is_empty() {
            return true;
        }
        let path = self.process.path(FileName::Records { process: self.process.number, lwp: number });
        self.complete(number, &path, jobs).unwrap_or_else(|error| {
            self.diagnostics.report_damage(path.display(), format_args!("cannot be completed: {}", reason(&error)));
            false
        })
    }

    fn complete(&mut self, number: u16, path: &Path, mut jobs: Vec<RegionRecovery>) -> io::Result<bool> {
        let file = self.open(path)?;
        let size = file.metadata()?.len();
        let mut target = TargetFile { number, path: path.to_owned(), file, size };
        let mut complete = true;
        jobs.sort_by_key(|job| job.pending.as_ref().map(|(place, _)| *place));
        let mut rest = Vec::new();
        for job in jobs {
            match &job.pending {
                Some((place, range)) if !self.replay(&mut target, &job, *place, range)? => complete = false,
                _ => rest.push(job),
            }
        }
        rest.sort_by_key(|job| (job.slot, job.region));
        let additions: Vec<Addition<'_>> = rest.iter().flat_map(Addition::of).collect();
        let lengths = additions.iter().map(|addition| addition.text.len() as u64);
        let mut holes = Holes::find(&target.file, target.size, lengths.filter(|&length| length > 0))?;
        for addition in &additions {
            let hole = holes.take(addition.text.len() as u64);
            self.append(&mut target, addition, hole)?;
        }
        info!("{}: {} texts added", path.display(), additions.len());
        Ok(complete)
    }

    /// Notes from when on threads that overwrote records are complete: in their slots first, so that it stays what it is when
    /// the oldest have gone to their file, then in the trinfo. `false` if that could not be written, which is told.
    pub fn note(&mut self, noted: &[CompletenessNote]) -> bool {
        if noted.is_empty() {
            return true;
        }
        let path = self.process.path(FileName::Info(self.process.number));
        self.note_in(&path, noted).map(|()| true).unwrap_or_else(|error| {
            let what = format_args!("cannot note what threads have overwritten: {}", reason(&error));
            self.diagnostics.report_damage(path.display(), what);
            false
        })
    }

    fn note_in(&mut self, path: &Path, noted: &[CompletenessNote]) -> io::Result<()> {
        for CompletenessNote { whole, slot, .. } in noted.iter().filter(|noted| !noted.done) {
            let at = slot + offset_of!(SlotHeader, complete_from) as u64;
            self.hand.write(&self.claimed.buffers, &whole.from.to_le_bytes(), at)?;
            // What is oldest in a region no longer counts when the moment is noted.
            for region in 0..REGIONS {
                self.hand.write(
                    &self.claimed.buffers,
                    &[0; 4],
                    slot + region_word_offsets(region).wrap_count as u64,
                )?;
            }
        }
        let file = self.open(path)?;
        let there = thread_completeness::of_trinfo(path)?.wholes;
        let missing = noted.iter().filter(|noted| !there.contains(&noted.whole));
        let lines: String = missing.map(|noted| noted.whole.line()).collect();
        if lines.is_empty() {
            return Ok(());
        }
        let size = file.metadata()?.len();
        let at = end_of_lines(&file, size)?;
        if at > size {
            self.hand.write(&file, b"\n", size)?;
        }
        self.hand.write(&file, lines.as_bytes(), at)
    }

    /// Opens a file of the process, or makes it.
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
    fn replay(
        &mut self,
        target: &mut TargetFile,
        job: &RegionRecovery,
        place: u64,
        range: &Range<usize>,
    ) -> io::Result<bool> {
        let text = job.place(range);
        if place < target.size {
            let Some(same) = self.same(target, &text, place)? else {
                let place = format_args!("{}: byte {place}", target.path.display());
                self.diagnostics
                    .report_damage(place, format_args!("not what {} has for this place", self.trbuf.display()));
                return Ok(false);
            };
            if same < range.len() as u64 {
                self.write(target, &text, place, same)?;
            }
        } else {
            // Nothing of it is there: either it begins where the file ends, or what was before it in the file is missing
            // too, and would only be a hole.
            let end = end_of_lines(&target.file, target.size)?;
            if end != place {
                self.word(job, region_word_offsets(job.region).write_intent_offset, end)?;
            }
            self.write_at_end(target, &text, end)?;
        }
        self.take_out(job, &job.unwritten)?;
        Ok(true)
    }

    /// How much of the trbuf's `text` stands in the file at `place` from its beginning on; `None` if something else does.
    fn same(&self, target: &TargetFile, text: &Range<u64>, place: u64) -> io::Result<Option<u64>> {
        let (mut same, mut differs) = (0, false);
        for piece in chunks(text.clone()) {
            // A write that was cut leaves the first part, and a hole where another wrote behind it.
            let at = place + (piece.start - text.start);
            let text = self.text(&piece)?;
            let mut there =
                vec![0; text.len().min(usize::try_from(target.size.saturating_sub(at)).unwrap_or(usize::MAX))];
            read_up_to(&target.file, &mut there, at)?;
            if there.iter().zip(&text).any(|(there, byte)| there != byte && *there != 0) {
                return Ok(None);
            }
            if !differs {
                let length = there.iter().zip(&text).take_while(|(there, byte)| there == byte).count();
                same += length as u64;
                differs = length < text.len();
            }
        }
        Ok(Some(same))
    }

    /// Notes text, writes it at the end of the file or into a hole, and forgets the note.
    fn append(&mut self, target: &mut TargetFile, addition: &Addition<'_>, hole: Option<u64>) -> io::Result<()> {
        let Addition { job, text, left } = addition;
        if text.is_empty() {
            // Of the older records of a ring that has begun anew no whole one is left.
            return self.take_out(job, left);
        }
        let place = match hole {
            Some(hole) => hole,
            None => end_of_lines(&target.file, target.size)?,
        };
        debug!("{}: {} bytes to byte {place}", target.path.display(), text.len());
        let words = region_word_offsets(job.region);
        self.word(job, words.write_intent_offset, place)?;
        self.word(job, words.write_intent, packed(job.region, text))?;
        match hole {
            Some(_) => self.write(target, &job.place(text), place, 0)?,
            None => self.write_at_end(target, &job.place(text), place)?,
        }
        self.take_out(job, left)
    }

    /// Writes `text` of the trbuf at `place`, which [`end_of_lines`] gave.
    fn write_at_end(&mut self, target: &mut TargetFile, text: &Range<u64>, place: u64) -> io::Result<()> {
        if place > target.size {
            self.hand.write(&target.file, b"\n", target.size)?;
        }
        self.write(target, text, place, 0)
    }

    /// Writes `text` of the trbuf, of which `same` bytes are there already, and counts its records.
    fn write(&mut self, target: &mut TargetFile, text: &Range<u64>, place: u64, same: u64) -> io::Result<()> {
        for piece in chunks(text.start + same..text.end) {
            let bytes = self.text(&piece)?;
            let at = place + (piece.start - text.start);
            self.hand.write(&target.file, &bytes, at)?;
            target.size = target.size.max(at + bytes.len() as u64);
            self.records += memchr_iter(b'\n', &bytes).count() as u64;
        }
        self.files.insert(target.number);
        Ok(())
    }

    /// Ends the noted write of a region, of which `left` stays: its text leaves `write_position`, then the note goes.
    fn take_out(&mut self, job: &RegionRecovery, left: &Range<usize>) -> io::Result<()> {
        let RegionWordOffsets { write_position: filled, write_intent: pending, .. } = region_word_offsets(job.region);
        self.word(job, filled, packed(job.region, left))?;
        self.word(job, pending, 0)
    }

    fn word(&mut self, job: &RegionRecovery, at: usize, word: u64) -> io::Result<()> {
        self.hand.write(&self.claimed.buffers, &word.to_le_bytes(), job.slot + at as u64)
    }

    /// A piece of the trbuf.
    fn text(&self, piece: &Range<u64>) -> io::Result<Vec<u8>> {
        let mut text = vec![0; (piece.end - piece.start) as usize];
        self.claimed.buffers.read_exact_at(&mut text, piece.start)?;
        Ok(text)
    }
}

/// Where the next line of a file of `size` bytes begins: a byte behind its end, if it ends in the middle of a line.
fn end_of_lines(file: &File, size: u64) -> io::Result<u64> {
    let Some(last) = size.checked_sub(1) else { return Ok(0) };
    let mut byte = [0];
    file.read_exact_at(&mut byte, last)?;
    Ok(if byte == *b"\n" { size } else { size + 1 })
}

/// A range of a slot as the word for one of the region.
fn packed(region: usize, range: &Range<usize>) -> u64 {
    let within = |at: usize| (at - REGION_OFFSETS[region]) as u32;
    pack_range(within(range.start)..within(range.end))
}
