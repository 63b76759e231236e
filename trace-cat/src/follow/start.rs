//! Where following begins: at the position in each file and buffer at which the merge of the existing records ends.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use memchr::memrchr;
use spec::buffer::{REGION_OFFSETS, SLOTS_OFFSET};
use spec::names::FileName;
use spec::record::{RECORD_LEN_MAX, TIME_WIDTH};

use super::directory_watch::DirectoryWatch;
use super::emitted_records::{EmittedRecords, LastEmitted, is_in_order};
use super::follower::Follower;
use super::growing_file::GrowingFile;
use super::growing_files::GrowingFiles;
use super::live_thread::record_time;
use super::past::{BEGINNING, Past};
use super::reorder_window::Intake;
use super::running_process::RunningProcess;
use crate::options::{CommandError, Options};
use crate::output::destination;
use crate::record::columns;
use crate::report::runs;
use crate::support::diagnostics::{Diagnostics, reason};
use crate::support::monotonic_clock::monotonic;
use crate::trace::buffers::leftovers::ProcessLeftovers;
use crate::trace::file_handle::{self, DescriptorBudget, FileHandle};
use crate::trace::file_names::{ProcessFiles, owner_of_records, split_name};
use crate::trace::hosts::HostTable;
use crate::trace::inputs;
use crate::trace::known_files::KnownFiles;
use crate::trace::record_text::RecordText;

impl<'a> Follower<'a> {
    /// Finds the existing files and processes. The returned texts are to be merged; following goes on from there.
    ///
    /// # Errors
    /// The output is one of the inputs.
    pub fn start(
        options: &Options,
        hold: u64,
        diagnostics: &'a Diagnostics,
    ) -> Result<(Follower<'a>, Vec<Arc<RecordText>>), CommandError> {
        // Clocks are compared by what is known at the end.
        HostTable::take_for_one(&options.paths);
        let mut watches: Vec<DirectoryWatch> = options.paths.iter().filter_map(watch).collect();
        let mut at = 0;
        while let Some(outer) = watches.get(at) {
            watches.extend(outer.subdirectories());
            at += 1;
        }
        let paths = if options.runs.last {
            // Existing files of other runs are not followed.
            watches.iter_mut().for_each(|watch| drop(watch.read_changes()));
            runs::find_runs(&options.paths).last().map_or(options.paths.clone(), runs::ProgramRun::paths)
        } else {
            options.paths.clone()
        };
        let descriptors = DescriptorBudget::from_limit();
        let inputs = inputs::collect_if_any(&paths, &descriptors, diagnostics);
        let journal = options.printing.output.as_deref();
        let outputs =
            [journal.and_then(|path| destination::output_identity(Some(path))), destination::output_identity(None)];
        if outputs.into_iter().flatten().any(|output| inputs.has(output)) {
            return Err(CommandError::Usage("the output is one of the inputs".to_owned()));
        }
        let inputs::TraceInputs { texts, running, dead, .. } = inputs;
        let running = running.into_iter().map(|(process, copied)| (process, copied.leftovers));
        // A process that executes another program has no memory mapped for a moment. Its new image writes the leftovers.
        let (executing, dead): (Vec<_>, Vec<_>) = dead.into_iter().partition(|(process, _)| may_be_executing(process));
        let mut merged = KnownFiles::default();
        for (_, ProcessLeftovers { handle, .. }) in &dead {
            merged.insert(handle.identity, &handle.path);
        }
        let mut files = GrowingFiles::new(descriptors);
        let mut indexes: HashMap<ProcessFiles, Vec<(u16, usize)>> = HashMap::new();
        for text in &texts {
            let Some((handle, length)) = text.file() else { continue };
            let owner = owner_of_records(&text.path);
            let is_final = text.is_completed()
                && !executing.iter().any(|(process, _)| owner.as_ref().is_some_and(|(owner, _)| owner == process));
            let position = if is_final { length } else { line_start(handle, length).unwrap_or(length) };
            let index = files.add(GrowingFile::new(text.path.clone(), Some(handle.clone()), position));
            if let Some((process, number)) = owner {
                indexes.entry(process).or_default().push((number, index));
            }
        }
        let mut follow = Follower {
            watches,
            processes: Vec::new(),
            has_begun: !texts.is_empty() || running.len() > 0,
            files,
            intake: Intake::default(),
            clock_offset: realtime_offset(),
            origin: None,
            past: Past::default(),
            hold,
            idle_rounds: 0,
            merged,
            unready: Vec::new(),
            has_reported_lateness: false,
            is_cut_short: false,
            diagnostics,
        };
        for (process, leftovers) in running.chain(executing) {
            let indexes = indexes.remove(&process).unwrap_or_default();
            follow.resume(process, &leftovers, &indexes);
        }
        if let Some(offset) = follow.processes.iter().map(RunningProcess::offset).min() {
            follow.clock_offset = offset;
        }
        if options.begins_now() {
            follow.origin = texts.iter().filter_map(|text| first_time(text)).min();
            let running: HashSet<_> = follow.processes.iter().map(|running| &running.process).collect();
            let runs = |text: &&Arc<RecordText>| {
                owner_of_records(&text.path).is_some_and(|(process, _)| running.contains(&process))
            };
            follow.past = Past::of(texts.iter().filter(runs));
            return Ok((follow, Vec::new()));
        }
        Ok((follow, texts))
    }

    /// Follows a process of whose buffers `leftovers` were read; `indexes` are those of its existing record files.
    fn resume(&mut self, process: ProcessFiles, leftovers: &ProcessLeftovers, indexes: &[(u16, usize)]) {
        let covered = self.watches.iter().any(|watch| watch.covers(&process));
        let files = leftovers.files.iter();
        for (number, left) in files.filter(|(number, _)| covered || indexes.iter().any(|(known, _)| known == *number)) {
            let path = process.path(FileName::Records { process: process.number, lwp: *number });
            let index = self.files.index(&path);
            let Some(growing) = self.files.get(index) else { continue };
            for leftover in left {
                let intended = leftover.write_intent.iter().map(|(_, range)| range);
                for range in intended.chain([&leftover.older, &leftover.unwritten]) {
                    if let Err(error) = note_emitted(&mut growing.emitted, leftovers, range.clone()) {
                        self.diagnostics.report_damage(path.display(), reason(&error));
                    }
                }
            }
        }
        let path = process.buffers_path();
        // If the process has ended meanwhile, its record files hold the records that are not printed yet.
        if let Ok(Some(mut live)) = file_handle::open(&path).and_then(|file| RunningProcess::new(process, path, file)) {
            for &(number, index) in indexes {
                live.adopt(number, index, &mut self.files);
            }
            if !covered {
                live.files_are_fixed = true;
            }
            self.processes.push(live);
        }
    }
}

/// The directory to watch for new files: a directory, or the one of a trbuf.
fn watch(path: &PathBuf) -> Option<DirectoryWatch> {
    if fs::metadata(path).is_ok_and(|metadata| metadata.is_dir()) {
        return Some(DirectoryWatch::new(path, None));
    }
    match split_name(path) {
        (b"", Some(FileName::Buffers(number))) => Some(DirectoryWatch::new(path.parent()?, Some(number))),
        _ => None,
    }
}

/// The start of the last line of a file of `length` bytes, if that line is incomplete, else `length`.
fn line_start(handle: &FileHandle, length: u64) -> io::Result<u64> {
    let mut bytes = [0; 2 * RECORD_LEN_MAX];
    let from = length.saturating_sub(bytes.len() as u64);
    let count = handle.read_at(&mut bytes[..(length - from) as usize], from)?;
    Ok(memrchr(b'\n', &bytes[..count]).map_or(length, |newline| from + newline as u64 + 1))
}

/// The least time of the first records of `text`.
fn first_time(text: &RecordText) -> Option<u64> {
    let mut bytes = vec![0; BEGINNING];
    let length = text.read_at(&mut bytes, text.stretch(0)?.start).ok()?;
    let lines = bytes[..length].split_inclusive(|&byte| byte == b'\n');
    lines.filter_map(record_time).min()
}

/// Whether the process, whose trbuf nobody has mapped, may map it again, because it has not ended.
fn may_be_executing(process: &ProcessFiles) -> bool {
    let path = process.buffers_path();
    let opened = file_handle::open(&path).and_then(|file| RunningProcess::new(process.clone(), path, file));
    matches!(opened, Ok(Some(process)) if !process.is_gone())
}

/// Notes that the records in a range of the trbuf or its copy are emitted.
fn note_emitted(emitted: &mut EmittedRecords, leftovers: &ProcessLeftovers, range: Range<u64>) -> io::Result<()> {
    let layout = leftovers.layout;
    let in_slot = (range.start.max(SLOTS_OFFSET as u64) - SLOTS_OFFSET as u64) % layout.slot_size() as u64;
    let is_ring = layout.is_ring() && in_slot >= REGION_OFFSETS[0] as u64;
    let (mut first, mut from) = (None, range.start);
    if is_ring {
        // The times of the first and the last record are enough.
        let mut time = [0; TIME_WIDTH];
        first = leftovers.handle.read_at(&mut time, range.start).ok().and_then(|_| columns::time(&time));
        from = from.max(range.end.saturating_sub(2 * RECORD_LEN_MAX as u64));
    }
    let mut text = vec![0; (range.end - from) as usize];
    let mut filled = 0;
    while filled < text.len() {
        match leftovers.handle.read_at(&mut text[filled..], from + filled as u64)? {
            0 => break,
            count => filled += count,
        }
    }
    for line in text.split_inclusive(|&byte| byte == b'\n') {
        match record_time(line) {
            Some(last) if is_ring && is_in_order(line) => {
                let first = first.unwrap_or(last);
                emitted.note_span(columns::lwpid(line), first.min(last)..=last, LastEmitted::after(None, last), true);
            }
            Some(time) => emitted.note(time, line),
            None => {}
        }
    }
    Ok(())
}

/// The difference between the wall clock and `CLOCK_MONOTONIC`, nanoseconds.
fn realtime_offset() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_nanos() as i64);
    now - monotonic() as i64
}
