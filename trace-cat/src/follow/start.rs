//! Where following begins: each file and buffer goes on from where the merge of what there was at first ends.

use std::collections::HashMap;
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
use super::emitted_records::EmittedRecords;
use super::follower::{FollowClock, Follower, monotonic};
use super::growing_file::GrowingFile;
use super::growing_files::GrowingFiles;
use super::intake::Intake;
use super::live_thread::time_of;
use super::reorder_window::ReorderWindow;
use super::running_process::RunningProcess;
use crate::options::CommandError;
use crate::options::Options;
use crate::output::destination;
use crate::record::columns;
use crate::report::runs;
use crate::support::diagnostics::{Diagnostics, reason};
use crate::trace::buffers::leftovers::CopiedBuffers;
use crate::trace::file_handle;
use crate::trace::file_handle::{DescriptorBudget, FileHandle};
use crate::trace::file_names::{ProcessFiles, split_name};
use crate::trace::inputs;
use crate::trace::record_text::RecordText;

impl<'a> Follower<'a> {
    /// Finds what there is. The texts of that are to be merged; everything else goes on from there.
    ///
    /// # Errors
    /// The output is one of the inputs.
    pub fn start(
        options: &Options,
        hold: u64,
        diagnostics: &'a Diagnostics,
    ) -> Result<(Follower<'a>, Vec<Arc<RecordText>>), CommandError> {
        let mut watches: Vec<DirectoryWatch> = options.paths.iter().filter_map(watch).collect();
        let paths = if options.last {
            // What there is beside the newest run stays out of it.
            watches.iter_mut().for_each(|watch| drop(watch.read_changes()));
            runs::find_runs(&options.paths).last().map_or(options.paths.clone(), runs::ProgramRun::paths)
        } else {
            options.paths.clone()
        };
        let descriptors = DescriptorBudget::half_of_the_limit();
        let inputs = inputs::collect_if_any(&paths, &descriptors, diagnostics);
        let journal = options.printing.output.as_deref();
        let outputs =
            [journal.and_then(|path| destination::output_identity(Some(path))), destination::output_identity(None)];
        if outputs.into_iter().flatten().any(|output| inputs.identities.contains(&output)) {
            return Err(CommandError::Usage("the output is one of the inputs".to_owned()));
        }
        let inputs::TraceInputs { texts, identities, running, dead } = inputs;
        let mut sources = GrowingFiles::new(identities, descriptors);
        let mut places: HashMap<ProcessFiles, Vec<(u16, usize)>> = HashMap::new();
        for text in &texts {
            let Some((handle, length)) = text.file() else { continue };
            let position = match text.is_completed() {
                true => length,
                false => line_start(handle, length).unwrap_or(length),
            };
            let place = sources.add(GrowingFile::new(text.path().to_owned(), Some(handle.clone()), position));
            if let Some((process, number)) = owner(text.path().to_owned()) {
                places.entry(process).or_default().push((number, place));
            }
        }
        let mut follow = Follower {
            watches,
            lives: Vec::new(),
            any: !texts.is_empty() || !running.is_empty(),
            sources,
            intake: Intake::new(ReorderWindow::new(0)),
            clock: FollowClock { offset: wall_clock(), hold },
            idle: 0,
            dead,
            unready: Vec::new(),
            diagnostics,
        };
        for (process, copied) in running {
            let places = places.remove(&process).unwrap_or_default();
            follow.go_on(process, &copied, &places);
        }
        if let Some(offset) = follow.lives.iter().map(RunningProcess::offset).min() {
            follow.clock.offset = offset;
        }
        Ok((follow, texts))
    }

    /// Goes on with a process of which `copied` was read; `places` are those of its files that there are.
    fn go_on(&mut self, process: ProcessFiles, copied: &CopiedBuffers, places: &[(u16, usize)]) {
        let covered = self.watches.iter().any(|watch| watch.covers(&process));
        let files = copied.leftovers.files.iter();
        for (number, left) in files.filter(|(number, _)| covered || places.iter().any(|(known, _)| known == *number)) {
            let path = process.path(FileName::Records { process: process.number, lwp: *number });
            let place = self.sources.place(&path);
            let Some(source) = self.sources.get(place) else { continue };
            for leftover in left {
                let pending = leftover.pending.iter().map(|(_, range)| range);
                for range in pending.chain([&leftover.older, &leftover.unwritten]) {
                    if let Err(error) = note(&mut source.seen, copied, range.clone()) {
                        self.diagnostics.report_damage(path.display(), reason(&error));
                    }
                }
            }
        }
        let path = process.path(FileName::Buffers(process.number));
        // Should it have ended meanwhile, its files hold what is not printed yet.
        if let Ok(Some(mut live)) = file_handle::open(&path).and_then(|file| RunningProcess::new(process, path, file)) {
            for &(number, place) in places {
                live.adopt(number, place, &mut self.sources);
            }
            if !covered {
                live.no_more_files();
            }
            self.lives.push(live);
        }
    }
}

/// What is to be watched for new files: a directory, or that of a trbuf.
fn watch(path: &PathBuf) -> Option<DirectoryWatch> {
    if fs::metadata(path).is_ok_and(|metadata| metadata.is_dir()) {
        return Some(DirectoryWatch::new(path, None));
    }
    match split_name(path) {
        (b"", Some(FileName::Buffers(number))) => Some(DirectoryWatch::new(path.parent()?, Some(number))),
        _ => None,
    }
}

/// Whose a record file is.
fn owner(path: PathBuf) -> Option<(ProcessFiles, u16)> {
    match split_name(&path) {
        (prefix, Some(FileName::Records { process, lwp })) => {
            let directory = path.parent()?.to_owned();
            Some((ProcessFiles { directory, prefix: prefix.to_owned(), number: process }, lwp))
        }
        _ => None,
    }
}

/// Where the line begins in which a file of `length` bytes ends.
fn line_start(handle: &FileHandle, length: u64) -> io::Result<u64> {
    let mut bytes = [0; 2 * RECORD_LEN_MAX];
    let from = length.saturating_sub(bytes.len() as u64);
    let count = handle.read_at(&mut bytes[..(length - from) as usize], from)?;
    Ok(memrchr(b'\n', &bytes[..count]).map_or(length, |newline| from + newline as u64 + 1))
}

/// Notes the records of a range of what was copied.
fn note(seen: &mut EmittedRecords, copied: &CopiedBuffers, range: Range<u64>) -> io::Result<()> {
    let shape = copied.shape;
    let in_slot = (range.start.max(SLOTS_OFFSET as u64) - SLOTS_OFFSET as u64) % shape.slot_size() as u64;
    let is_ring = shape.is_ring() && in_slot >= REGION_OFFSETS[0] as u64;
    let (mut first, mut from) = (None, range.start);
    if is_ring {
        // Its first and its last record say enough.
        let mut time = [0; TIME_WIDTH];
        first = copied.leftovers.handle.read_at(&mut time, range.start).ok().and_then(|_| columns::time(&time));
        from = from.max(range.end.saturating_sub(2 * RECORD_LEN_MAX as u64));
    }
    let mut text = vec![0; (range.end - from) as usize];
    let mut filled = 0;
    while filled < text.len() {
        match copied.leftovers.handle.read_at(&mut text[filled..], from + filled as u64)? {
            0 => break,
            count => filled += count,
        }
    }
    for line in text.split_inclusive(|&byte| byte == b'\n') {
        match time_of(line) {
            Some(last) if is_ring => {
                let first = first.unwrap_or(last);
                seen.note_ring(columns::lwpid(line), first.min(last)..=last, true);
            }
            Some(time) => seen.note(time, line),
            None => {}
        }
    }
    Ok(())
}

/// What is to be added to `CLOCK_MONOTONIC` for the wall clock, nanoseconds.
fn wall_clock() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_nanos() as i64);
    now - monotonic() as i64
}
