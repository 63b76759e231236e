//! `--follow`: prints what running processes record, as it happens.
//!
//! ```text
//! directory_watch ──► running_process ──► reorder_window ──► printer
//! which files         new_in_buffers      in order           journal,
//!                     new_in_rings                           filter, format
//!                     growing_files
//! ```
//!
//! At first the existing records are merged as without `--follow`, and `start` notes how far each buffer and file was read. From
//! there on all of them are read some hundred times a second. A record is read from its thread's buffer, or from the file if it
//! left the buffer between two reads, but never twice: `emitted_records` knows what was read from a buffer.
//!
//! The processes notice nothing, because the kernel holds their buffers in memory anyway. Buffers are read by `pread`: a mapped
//! file that becomes shorter would raise a signal.

mod directory_events;
mod directory_watch;
mod emitted_records;
mod follower;
mod growing_file;
mod growing_files;
mod line_tail;
mod live_thread;
mod live_timeline;
mod new_in_buffers;
mod new_in_rings;
mod past;
mod printer;
mod reorder_window;
mod running_process;
mod start;
mod stop_signal;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::merge::{Merge, MergeLimits};
use crate::options::{CommandError, Options, TimePoint};
use crate::output::destination;
use crate::record::columns;
use crate::support::diagnostics::{Diagnostics, reason};
use crate::support::duration::duration_text;
use crate::support::error::Error;
use crate::support::monotonic_clock::monotonic;
use crate::trace::file_handle;
use crate::trace::file_names::ProcessFiles;
use crate::trace::process_liveness::has_writer;
use crate::trace::record_text::RecordText;
use directory_watch::DirectoryWatch;
use follower::Follower;
use printer::{LateRecords, Printer};
use reorder_window::ReorderWindow;
use running_process::RunningProcess;

/// Bytes of records that may wait; when there are more, only the files that others wait for are read.
const ROOM: usize = 24 << 20;
/// Bytes that are read of one file at a time.
const CHUNK: u64 = 2 << 20;
/// A trbuf that is younger than this may not yet be open in the process that makes it.
const CREATION_TIME: Duration = Duration::from_secs(1);
/// How late the records of a running process may be read, nanoseconds, before that is reported, unless the window is longer.
const REPORTED_LATENESS: u64 = 1_000_000_000;
/// How many rounds without anything new show that no process runs any more.
const IDLE_ROUNDS: u32 = 3;

/// Prints a trace and what is added to it, until a signal or the options end that, or nothing more can be added.
pub fn follow(options: &Options, diagnostics: &Diagnostics) -> Result<(), CommandError> {
    stop_signal::catch_signals();
    // A record is printed when it is as old as the window, at the latest: by the last round before that.
    let window = options.following.window;
    let interval = Duration::from_nanos((window / 10).clamp(1_000_000, 10_000_000));
    let hold = window.saturating_sub(2 * interval.as_nanos() as u64);
    let began = monotonic();
    let (mut follow, texts) = Follower::start(options, hold, diagnostics)?;
    let (mut selection, mut begin) = (options.selection.clone(), 0);
    if selection.since == Some(TimePoint::Now) {
        // The processes' time need not be that of the wall clock.
        let now = follow.horizon(began).saturating_add(hold);
        selection.since = (!options.begins_now()).then_some(TimePoint::At(now));
        begin = now;
    }
    let mut printer = Printer::new(&options.printing, &selection, &options.paths, diagnostics)?;
    if options.begins_now() {
        printer.leave_out_before(begin);
    }
    follow.leave_out_outputs(options);
    if let Some(origin) = follow.origin {
        printer.begin(origin);
    }
    printer.know(&follow.past);
    follow.catch_up(texts, follow.horizon(began), &mut printer)?;
    let present = loop {
        let began = Instant::now();
        let is_stopped = stop_signal::is_requested();
        if is_stopped || follow.idle_rounds > 0 {
            // This round may be the last one.
            follow.watches.iter_mut().for_each(DirectoryWatch::read_next_time);
        }
        // Records that this round does not find are made from now on.
        let round_began = monotonic();
        let horizon = follow.horizon(round_began);
        follow.read_new();
        let is_last = is_stopped || follow.has_no_sources() || options.following.until_exit && follow.has_ended();
        if is_last {
            follow.read_last();
        }
        follow.release((horizon, round_began), is_last, &mut printer)?;
        if is_last || printer.is_done(follow.intake.window.horizon) {
            break horizon;
        }
        if follow.files.behind().is_none() {
            sleep(interval.saturating_sub(began.elapsed()));
        }
    };
    follow.report_late(printer.late, window);
    let running = follow.processes.iter().filter(|process| !process.is_gone());
    let running: Vec<(u32, u64)> = running.map(|process| (process.pid(), present)).collect();
    Ok(printer.end(&running)?)
}

impl Follower<'_> {
    /// Never follows the outputs, which may be files in a directory that is followed.
    fn leave_out_outputs(&mut self, options: &Options) {
        let journal = options.printing.output.as_deref().and_then(|path| destination::output_identity(Some(path)));
        self.files.outputs.extend([journal, destination::output_identity(None)].into_iter().flatten());
    }

    /// Merges the records that exist at the start. Those before `horizon` are printed, and later ones wait for others.
    fn catch_up(&mut self, texts: Vec<Arc<RecordText>>, horizon: u64, printer: &mut Printer) -> Result<(), Error> {
        let Follower { intake, clock_offset, is_cut_short, diagnostics, .. } = self;
        let present = monotonic().saturating_add_signed(*clock_offset);
        intake.window = ReorderWindow::new(horizon);
        let merge = Merge::prepare(&texts, MergeLimits::default(), diagnostics).map_err(Error::temporary)?;
        let mut result = Ok(());
        let mut print = |lines: &[u8]| {
            result = lines_of(lines).try_for_each(|line| printer.put(line, 0));
            *is_cut_short |= stop_signal::is_requested();
            Ok(result.is_ok() && !*is_cut_short)
        };
        merge.run(0..horizon, None, &mut print).map_err(Error::temporary)?;
        result?;
        let (mut result, mut size) = (Ok(()), 0);
        let mut wait = |lines: &[u8]| {
            for line in lines_of(lines) {
                let time = columns::time(line).unwrap_or(0);
                intake.window.push(time, line);
                if time <= present {
                    size = intake.window.size();
                } else if intake.window.size() > size + ROOM {
                    // Nothing that is still to come can be in order with records that are ahead of the clock.
                    let put = |line: &[u8], delay| printer.put(line, delay);
                    result = intake.window.release_early(present..u64::MAX, monotonic(), put);
                    size = intake.window.size();
                }
            }
            *is_cut_short |= stop_signal::is_requested();
            Ok(result.is_ok() && !*is_cut_short)
        };
        merge.run(horizon..u64::MAX, None, &mut wait).map_err(Error::temporary)?;
        result?;
        printer.caught_up();
        Ok(())
    }

    /// A round: reads what is new in directories, buffers and files.
    fn read_new(&mut self) {
        self.idle_rounds += 1;
        let mut at = 0;
        // Reading one may add its subdirectories.
        while at < self.watches.len() {
            self.read_directory(at);
            at += 1;
        }
        for (process, path) in std::mem::take(&mut self.unready) {
            self.add_process(process, path, false);
        }
        self.read_sources();
    }

    /// Reads what is new in buffers and files.
    fn read_sources(&mut self) {
        let before = self.intake.window.count;
        let Follower { watches, processes, files, intake, diagnostics, .. } = self;
        processes.retain_mut(|live| live.read_new(files, intake, diagnostics));
        // After the buffers: what has left them by now is in files that are read in this round.
        let reported = watches.iter().filter_map(DirectoryWatch::reported_directory);
        files.set_reported_directories(reported.map(Path::to_owned).collect());
        for watch in watches {
            match watch.written() {
                Some(paths) => paths.iter().for_each(|path| files.note_written(path)),
                None => files.iter_mut().for_each(|file| file.is_written = true),
            }
        }
        if let Some(offset) = processes.iter().map(RunningProcess::offset).min() {
            self.clock_offset = offset;
        }
        let room = intake.window.size() < ROOM;
        let limit = (ROOM as u64 / 2 / files.len().max(1) as u64).clamp(16 << 10, CHUNK);
        files.read(limit, room, intake, diagnostics);
        let new = intake.window.count > before || files.behind().is_some();
        if new || !processes.is_empty() {
            self.idle_rounds = 0;
        }
    }

    /// Takes the files that are new in a directory.
    fn read_directory(&mut self, at: usize) {
        let Follower { watches, merged, files, .. } = self;
        let Some(watch) = watches.get_mut(at) else { return };
        let changes = watch.read_changes();
        let device = watch.device().unwrap_or(0);
        for inner in changes.subdirectories {
            if !watches.iter().any(|watch| watch.is_of(&inner)) {
                watches.push(inner);
            }
        }
        for (number, path) in changes.removed {
            merged.forget((device, number), &path);
            files.known.forget((device, number), &path);
        }
        self.has_begun |= !changes.buffers.is_empty();
        for (process, path) in changes.buffers {
            self.add_process(process, path, true);
        }
        let Follower { processes, files, intake, has_begun, diagnostics, .. } = self;
        for (process, number, path) in changes.records {
            let opened = files.open(&path, intake, diagnostics);
            // An output with such a name is no sign of a process.
            *has_begun |= !matches!(opened, Ok(None));
            match opened {
                Ok(Some(index)) => {
                    let owner = processes.iter_mut().find(|live| live.process == process);
                    if let Some(owner) = owner {
                        owner.adopt(number, index, files);
                    }
                }
                Ok(None) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => diagnostics.report_damage(path.display(), reason(&error)),
            }
        }
    }

    /// Follows the process whose trbuf is at `path`. This is the `first` attempt, or the trbuf was not ready before.
    fn add_process(&mut self, process: ProcessFiles, path: PathBuf, first: bool) {
        let Follower { processes, merged, unready, idle_rounds, diagnostics, .. } = self;
        let (mut is_mapped, mut is_new) = (false, false);
        let live = file_handle::open(&path).and_then(|file| {
            let age = file.metadata()?.modified()?.elapsed();
            is_mapped = has_writer(&file) == Some(true);
            is_new = age.is_ok_and(|age| age < CREATION_TIME);
            RunningProcess::new(process.clone(), path.clone(), file)
        });
        match live {
            Ok(Some(live)) if processes.iter().any(|known| known.is_same(&live)) => {}
            Ok(Some(live)) if merged.has_at(live.identity, &path) && !is_mapped => {
                // Until the process is gone for good, it may be ending, or another program may take the trbuf over.
                if !live.is_gone() {
                    *idle_rounds = 0;
                    unready.push((process, path));
                }
            }
            Ok(Some(live)) => processes.push(live),
            // The process has made the trbuf and not yet written its header.
            Ok(None) => {
                if is_mapped || is_new {
                    *idle_rounds = 0;
                }
                unready.push((process, path));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => {
                if matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE)) {
                    unready.push((process, path.clone()));
                }
                if first {
                    diagnostics.report_damage(path.display(), reason(&error));
                }
            }
        }
    }

    /// Prints the records before `horizon` and those that have waited long enough when the round `began`, or all. Reading may take
    /// long: what has waited long enough only by now may be later than a record that the next round finds.
    fn release(&mut self, (horizon, began): (u64, u64), is_last: bool, printer: &mut Printer) -> Result<(), Error> {
        let Follower { files, intake, hold, processes, .. } = self;
        let now = monotonic();
        let recorded_at = now.saturating_add_signed(self.clock_offset);
        let late = files.owned_behind().map_or(0, |behind| recorded_at.saturating_sub(behind));
        if late > REPORTED_LATENESS.max(*hold) && !std::mem::replace(&mut self.has_reported_lateness, true) {
            let what =
                format_args!("more is recorded than can be read: records are printed {} late", duration_text(late));
            self.diagnostics.report_note("--follow", what);
        }
        let (horizon, overdue) = match files.behind() {
            _ if is_last => (u64::MAX, u64::MAX),
            Some(behind) => (horizon.min(behind), 0),
            None => (horizon, began.saturating_sub(*hold)),
        };
        intake.window.release(horizon, [overdue, now], |line, delay| printer.put(line, delay))?;
        if !is_last {
            let running: Vec<(u32, u64)> =
                processes.iter().map(|process| (process.pid(), intake.window.horizon)).collect();
            printer.put_lasting_calls(intake.window.horizon, &running)?;
        }
        if intake.filter.is_none() {
            intake.filter = printer.needed_records();
        }
        if let Some(behind) = files.behind().filter(|&behind| behind > recorded_at && intake.window.size() > ROOM) {
            // The files that are read are ahead of this computer's clock.
            intake.window.release_early(recorded_at..behind, now, |line, delay| printer.put(line, delay))?;
        }
        printer.flush()
    }

    /// Whether no directory, file or process is left that could give records.
    fn has_no_sources(&self) -> bool {
        self.watches.is_empty() && self.files.len() == 0 && self.processes.is_empty()
    }

    /// Whether no process runs any more.
    fn has_ended(&self) -> bool {
        self.has_begun && self.processes.is_empty() && self.idle_rounds >= IDLE_ROUNDS
    }

    /// Reads all files for the last time, also those that the round has left out.
    fn read_last(&mut self) {
        let Follower { files, intake, is_cut_short, diagnostics, .. } = self;
        if *is_cut_short || files.behind().is_some() {
            // Without a signal following ends only when all is read.
            diagnostics
                .report_note("--follow", "stopped before all records were read; those that were not are in the trace");
        } else {
            files.iter_mut().for_each(|source| source.read(u64::MAX, true, intake, diagnostics));
        }
    }

    /// Reports how many of the printed records were late.
    fn report_late(&self, late: LateRecords, window: u64) {
        if late.count > 0 {
            let [delay, window] = [late.delay_max, window].map(duration_text);
            let what =
                format_args!("{} records arrived later than the window of {window}, by up to {delay}", late.count);
            self.diagnostics.report_note("--follow", what);
        }
    }
}

fn lines_of(lines: &[u8]) -> impl Iterator<Item = &[u8]> {
    lines.split_inclusive(|&byte| byte == b'\n')
}

#[cfg(test)]
mod load_tests;
#[cfg(test)]
mod tests;
