//! Writes text from the slots to the record files.
//!
//! The order of steps ensures that each record is written exactly once, also if the process dies between two steps. For
//! each region: the note (`write_intent_offset`, then `write_intent`), the text, `write_position` without that text, and
//! the note cleared. A ring that has wrapped takes these steps twice, for the older records first. All noted text of a
//! file is written before other text is added to the file, so that nothing is added where noted text belongs.

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
use spec::info::{RINGS_REUSED, UNCOUNTED_KEY};
use spec::names::FileName;

use super::claim::ClaimedTrbuf;
use super::file_operations::FileOperations;
use super::holes::Holes;
use super::recovery_plan::{CompletenessNote, RegionRecovery, UncountedLoss};
use crate::support::diagnostics::{Diagnostics, reason};
use crate::trace::buffers::region_text::chunks;
use crate::trace::buffers::slots::read_up_to;
use crate::trace::file_names::ProcessFiles;
use crate::trace::thread_completeness;

/// The recovery of one trbuf.
pub struct RecoveryWriter<'a> {
    trbuf: &'a Path,
    process: &'a ProcessFiles,
    claimed: &'a ClaimedTrbuf,
    operations: &'a mut dyn FileOperations,
    diagnostics: &'a Diagnostics,
    /// The records that were written.
    pub records: u64,
    /// The files that they were written to.
    pub files: BTreeSet<u16>,
    /// The lost records that loss records count which were added.
    counted: u64,
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
    region: &'a RegionRecovery,
    /// The text, as a range of the slot; may be empty.
    text: Range<usize>,
    /// What remains in the region afterwards, as a range of the slot.
    remaining: Range<usize>,
}

impl<'a> Addition<'a> {
    /// The additions that a region makes, in order.
    fn of(region: &'a RegionRecovery) -> impl Iterator<Item = Addition<'a>> {
        let unwritten = &region.unwritten;
        let older = region.older.iter();
        let older = older.map(|older| Addition { region, text: older.clone(), remaining: unwritten.clone() });
        let newer = Addition { region, text: unwritten.clone(), remaining: unwritten.end..unwritten.end };
        older.chain((!newer.text.is_empty()).then_some(newer))
    }
}

impl<'a> RecoveryWriter<'a> {
    /// A writer that has written nothing yet.
    pub fn new(
        trbuf: &'a Path,
        process: &'a ProcessFiles,
        claimed: &'a ClaimedTrbuf,
        operations: &'a mut dyn FileOperations,
        diagnostics: &'a Diagnostics,
    ) -> RecoveryWriter<'a> {
        RecoveryWriter {
            trbuf,
            process,
            claimed,
            operations,
            diagnostics,
            records: 0,
            files: BTreeSet::new(),
            counted: 0,
        }
    }

    /// Completes the record file with this number; `false` if text remains in the trbuf, which is reported.
    pub fn complete_file(&mut self, number: u16, regions: Vec<RegionRecovery>) -> bool {
        if regions.is_empty() {
            return true;
        }
        let path = self.records_path(number);
        let result = self.write_regions(number, &path, regions);
        self.unless_failed(&path, "cannot be completed", result)
    }

    /// Adds the losses of threads to their record file, which is complete else; `false` if one remains in the trbuf, which is reported.
    pub fn add_losses(&mut self, number: u16, losses: &[UncountedLoss]) -> bool {
        let path = self.records_path(number);
        let result = losses.iter().try_fold(true, |complete, loss| {
            let Some(line) = loss.line(&path)? else { return Ok(complete) };
            let region = loss.place(&line, self.claimed, self.operations)?;
            self.counted += u64::from(loss.records);
            Ok(self.write_regions(number, &path, vec![region])? && complete)
        });
        self.unless_failed(&path, "cannot note what its threads have lost", result)
    }

    fn records_path(&self, number: u16) -> PathBuf {
        self.process.path(FileName::Records { process: self.process.number, lwp: number })
    }

    /// The result; `false` if it is an error, which is reported.
    fn unless_failed(&self, path: &Path, what: &str, result: io::Result<bool>) -> bool {
        result.unwrap_or_else(|error| {
            self.diagnostics.report_damage(path.display(), format_args!("{what}: {}", reason(&error)));
            false
        })
    }

    fn write_regions(&mut self, number: u16, path: &Path, mut regions: Vec<RegionRecovery>) -> io::Result<bool> {
        let file = self.open(path)?;
        let size = file.metadata()?.len();
        let mut target = TargetFile { number, path: path.to_owned(), file, size };
        let mut complete = true;
        regions.sort_by_key(|region| region.write_intent.as_ref().map(|(place, _)| *place));
        let mut replayed = Vec::new();
        for region in regions {
            match &region.write_intent {
                Some((place, range)) if !self.replay(&mut target, &region, *place, range)? => complete = false,
                _ => replayed.push(region),
            }
        }
        replayed.sort_by_key(|region| (region.slot, region.number));
        let additions: Vec<Addition<'_>> = replayed.iter().flat_map(Addition::of).collect();
        let lengths = additions.iter().map(|addition| addition.text.len() as u64);
        let mut holes = Holes::find(&target.file, target.size, lengths.filter(|&length| length > 0))?;
        for addition in &additions {
            let hole = holes.take(addition.text.len() as u64);
            self.append(&mut target, addition, hole)?;
        }
        info!("{}: {} texts added", path.display(), additions.len());
        Ok(complete)
    }

    /// Notes from when on threads that overwrote records are complete: in their slots first, so that the times are known when
    /// the oldest records have left their slots, then in the trinfo, with how many threads' rings were reused. `false` if a note
    /// cannot be written, which is reported.
    pub fn write_notes(&mut self, notes: &[CompletenessNote], reused: u64) -> bool {
        if notes.is_empty() && reused == 0 {
            return true;
        }
        let path = self.process.path(FileName::Info(self.process.number));
        let result = self.write_notes_to(&path, notes, reused);
        self.unless_failed(&path, "cannot note what threads have overwritten", result.map(|()| true))
    }

    /// Notes in the trinfo how many records the process has lost, and how many of these no loss record counts: of `uncounted` those that
    /// were not added. `false` if they cannot be written, which is reported.
    pub fn write_losses(&mut self, lost: u64, uncounted: u64) -> bool {
        if lost == 0 {
            return true;
        }
        let path = self.process.path(FileName::Info(self.process.number));
        let uncounted = uncounted.saturating_sub(self.counted);
        let result = thread_completeness::read_trinfo(&path).and_then(|known| {
            let mut lines = known.losses.line_for(lost).unwrap_or_default();
            if uncounted > known.uncounted {
                lines += &format!("{UNCOUNTED_KEY} {uncounted}\n");
            }
            self.add_to_trinfo(&path, &lines)
        });
        self.unless_failed(&path, "cannot note how many records were lost", result.map(|()| true))
    }

    fn write_notes_to(&mut self, path: &Path, notes: &[CompletenessNote], reused: u64) -> io::Result<()> {
        for CompletenessNote { complete_from, slot, .. } in notes.iter().filter(|note| !note.is_in_slot) {
            let at = slot + offset_of!(SlotHeader, complete_from) as u64;
            self.operations.write(&self.claimed.buffers, &complete_from.from.to_le_bytes(), at)?;
            // With the time noted, the oldest record of a region does not count any more.
            for region in 0..REGIONS {
                self.operations.write(
                    &self.claimed.buffers,
                    &[0; 4],
                    slot + region_word_offsets(region).wrap_count as u64,
                )?;
            }
        }
        let known = thread_completeness::read_trinfo(path)?;
        let missing = notes.iter().map(|note| note.complete_from).filter(|thread| !known.threads.contains(thread));
        let mut lines: String = missing.map(|thread| thread.line()).collect();
        if reused > known.reused {
            lines += &format!("note {}\n", RINGS_REUSED.join(&reused.to_string()));
        }
        self.add_to_trinfo(path, &lines)
    }

    /// Adds lines to the trinfo.
    fn add_to_trinfo(&mut self, path: &Path, lines: &str) -> io::Result<()> {
        if lines.is_empty() {
            return Ok(());
        }
        let file = self.open(path)?;
        let size = file.metadata()?.len();
        let at = end_of_lines(&file, size)?;
        if at > size {
            self.operations.write(&file, b"\n", size)?;
        }
        self.operations.write(&file, lines.as_bytes(), at)
    }

    /// Opens a file of the process, or creates it.
    fn open(&mut self, path: &Path) -> io::Result<File> {
        let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
        let file = match OpenOptions::new().read(true).write(true).custom_flags(flags).open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => self.operations.create(path)?,
            Err(error) => return Err(error),
        };
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(io::Error::other("not a regular file"));
        }
        if metadata.nlink() != 1 {
            // The other name may be that of a file of this user which somebody else has linked into the directory.
            return Err(io::Error::other("has another name, too"));
        }
        if metadata.uid() != self.claimed.user {
            // A file that a recovery has just created is empty and may not yet have its owner, as when the recovery was killed.
            if metadata.len() != 0 {
                return Err(io::Error::other("belongs to another user than the trbuf"));
            }
            self.operations.change_owner(&file, self.claimed.user, self.claimed.group)?;
        }
        Ok(file)
    }

    /// Writes noted text once more; `false` if its place has other bytes, which is reported.
    fn replay(
        &mut self,
        target: &mut TargetFile,
        region: &RegionRecovery,
        place: u64,
        range: &Range<usize>,
    ) -> io::Result<bool> {
        let text = region.place(range);
        if place < target.size {
            let Some(written) = self.written_length(target, &text, place)? else {
                let place = format_args!("{}: byte {place}", target.path.display());
                self.diagnostics
                    .report_damage(place, format_args!("not what {} has for this place", self.trbuf.display()));
                return Ok(false);
            };
            if written < range.len() as u64 {
                self.write(target, &text, place, written)?;
            }
        } else {
            // No byte of the text is in the file. Its place is the end of the file, or after it: then text that belonged
            // before it is missing, too, and only a hole would stand for that.
            let end = end_of_lines(&target.file, target.size)?;
            if end != place {
                self.write_word(region, region_word_offsets(region.number).write_intent_offset, end)?;
            }
            self.write_at_end(target, &text, end)?;
        }
        self.clear_note(region, &region.unwritten)?;
        Ok(true)
    }

    /// How many bytes of the trbuf's `text` the file has at `place`, counted from the beginning of the text; `None` if the file
    /// has other bytes there.
    fn written_length(&self, target: &TargetFile, text: &Range<u64>, place: u64) -> io::Result<Option<u64>> {
        let (mut written, mut differs) = (0, false);
        for chunk in chunks(text.clone()) {
            // An incomplete write leaves the beginning, and NUL bytes after it if another thread wrote after its range.
            let at = place + (chunk.start - text.start);
            let text = self.read_trbuf(&chunk)?;
            let mut there =
                vec![0; text.len().min(usize::try_from(target.size.saturating_sub(at)).unwrap_or(usize::MAX))];
            read_up_to(&target.file, &mut there, at)?;
            if there.iter().zip(&text).any(|(there, byte)| there != byte && *there != 0) {
                return Ok(None);
            }
            if !differs {
                let length = there.iter().zip(&text).take_while(|(there, byte)| there == byte).count();
                written += length as u64;
                differs = length < text.len();
            }
        }
        Ok(Some(written))
    }

    /// Notes text, writes it at the end of the file or into a hole, and clears the note.
    fn append(&mut self, target: &mut TargetFile, addition: &Addition<'_>, hole: Option<u64>) -> io::Result<()> {
        let Addition { region, text, remaining } = addition;
        if text.is_empty() {
            // A ring that has wrapped has no complete older record left.
            return self.clear_note(region, remaining);
        }
        let place = match hole {
            Some(hole) => hole,
            None => end_of_lines(&target.file, target.size)?,
        };
        debug!("{}: {} bytes to byte {place}", target.path.display(), text.len());
        let words = region_word_offsets(region.number);
        self.write_word(region, words.write_intent_offset, place)?;
        self.write_word(region, words.write_intent, pack_slot_range(region.number, text))?;
        match hole {
            Some(_) => self.write(target, &region.place(text), place, 0)?,
            None => self.write_at_end(target, &region.place(text), place)?,
        }
        self.clear_note(region, remaining)
    }

    /// Writes `text` of the trbuf at `place`, which [`end_of_lines`] gave.
    fn write_at_end(&mut self, target: &mut TargetFile, text: &Range<u64>, place: u64) -> io::Result<()> {
        if place > target.size {
            self.operations.write(&target.file, b"\n", target.size)?;
        }
        self.write(target, text, place, 0)
    }

    /// Writes `text` of the trbuf at `place`, where its first `written` bytes are already, and counts its records.
    fn write(&mut self, target: &mut TargetFile, text: &Range<u64>, place: u64, written: u64) -> io::Result<()> {
        for chunk in chunks(text.start + written..text.end) {
            let bytes = self.read_trbuf(&chunk)?;
            let at = place + (chunk.start - text.start);
            self.operations.write(&target.file, &bytes, at)?;
            target.size = target.size.max(at + bytes.len() as u64);
            self.records += memchr_iter(b'\n', &bytes).count() as u64;
        }
        self.files.insert(target.number);
        Ok(())
    }

    /// Ends the noted write of a region: `write_position` is set to what remains, and then the note is cleared.
    fn clear_note(&mut self, region: &RegionRecovery, remaining: &Range<usize>) -> io::Result<()> {
        let RegionWordOffsets { write_position, write_intent, .. } = region_word_offsets(region.number);
        self.write_word(region, write_position, pack_slot_range(region.number, remaining))?;
        self.write_word(region, write_intent, 0)
    }

    fn write_word(&mut self, region: &RegionRecovery, at: usize, word: u64) -> io::Result<()> {
        self.operations.write(&self.claimed.buffers, &word.to_le_bytes(), region.slot + at as u64)
    }

    fn read_trbuf(&self, range: &Range<u64>) -> io::Result<Vec<u8>> {
        let mut text = vec![0; (range.end - range.start) as usize];
        self.claimed.buffers.read_exact_at(&mut text, range.start)?;
        Ok(text)
    }
}

/// Where the next line of a file of `size` bytes begins: one byte after its end if it ends within a line.
fn end_of_lines(file: &File, size: u64) -> io::Result<u64> {
    let Some(last) = size.checked_sub(1) else { return Ok(0) };
    let mut byte = [0];
    file.read_exact_at(&mut byte, last)?;
    Ok(if byte == *b"\n" { size } else { size + 1 })
}

/// The word for a range of a region, which is given as a range of the slot.
fn pack_slot_range(region: usize, range: &Range<usize>) -> u64 {
    let within = |at: usize| (at - REGION_OFFSETS[region]) as u32;
    pack_range(within(range.start)..within(range.end))
}
