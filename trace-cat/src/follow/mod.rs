//! `--follow`: prints what running processes record, as it happens.
//!
//! ```text
//! directory_watch ──► running_process ──► intake ──► reorder_window ──► printer
//! which files         new_in_buffers                 in order           journal,
//!                     new_in_rings                                      filter, format
//!                     growing_files: what comes to files
//! ```
//!
//! `start` merges what there is at first as always; every buffer and file goes on from where that ended. Then all of them are
//! read some hundred times a second. A record is read in its thread's buffer, or in the file if it left the buffer between two
//! reads, never twice: `emitted_records` knows what was read from a buffer.
//!
//! The processes notice nothing: what is read is memory that the kernel holds anyway, by `pread`, so that a file that becomes
//! shorter is an error and no signal.

mod directory_watch;
mod emitted_records;
mod follower;
mod growing_file;
mod growing_files;
mod intake;
mod live_thread;
mod new_in_buffers;
mod new_in_rings;
mod printer;
mod reorder_window;
mod running_process;
mod start;
mod stop_signal;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::merge::{Merge, MergeLimits};
use crate::options::CommandError;
use crate::options::Options;
use crate::output::destination;
use crate::record::columns;
use crate::support::diagnostics::{Diagnostics, reason};
use crate::support::duration::duration_text;
use crate::support::error::Error;
use crate::trace::file_handle;
use crate::trace::file_names::ProcessFiles;
use crate::trace::process_liveness::has_writer;
use crate::trace::record_text::RecordText;
use directory_watch::DirectoryWatch;
use follower::{Follower, monotonic};
use printer::Printer;
use reorder_window::ReorderWindow;
use running_process::RunningProcess;

/// Bytes of records that may wait; when there are more, what others wait for is read first.
const ROOM: usize = 24 << 20;
/// Bytes that are read of one file at a time.
const CHUNK: u64 = 2 << 20;
/// How long a file may be there before the kernel has opened it for the process that makes it.
const MAKING: Duration = Duration::from_secs(1);
/// Looks without anything new after the last process has ended.
const GRACE: u32 = 3;

/// Prints a trace and what is added to it, until it is told to end or nothing more can come.
///
/// # Errors
/// What prevents that.
pub fn follow(options: &Options, diagnostics: &Diagnostics) -> Result<(), CommandError> {
    stop_signal::listen();
    // Records are printed at the latest when they are as old as the window: the look before that is the last one that can.
    let window = options.following.window;
    let interval = Duration::from_nanos((window / 10).clamp(1_000_000, 10_000_000));
    let hold = window.saturating_sub(2 * interval.as_nanos() as u64);
    let began = monotonic();
    let (mut follow, texts) = Follower::start(options, hold, diagnostics)?;
    let mut printer = Printer::new(&options.printing, &options.selection, &options.paths, diagnostics)?;
    // They may lie beside what is followed.
    let journal = options.printing.output.as_deref().and_then(|path| destination::output_identity(Some(path)));
    follow.sources.leave_out([journal, destination::output_identity(None)]);
    follow.catch_up(texts, follow.clock.time(began).saturating_sub(hold), &mut printer)?;
    loop {
        let began = Instant::now();
        let ends = stop_signal::to_end();
        if ends || follow.idle > 0 {
            // It may be the last look.
            follow.watches.iter_mut().for_each(DirectoryWatch::hurry);
        }
        // What this look does not find may have been made from now on.
        let horizon = follow.clock.time(monotonic()).saturating_sub(hold);
        follow.read_new();
        let all = ends || follow.has_nothing() || options.following.until_exit && follow.has_ended();
        if all {
            follow.read_rest();
        }
        follow.release(horizon, all, &mut printer)?;
        if all || printer.is_done(follow.intake.window.horizon()) {
            break;
        }
        if follow.sources.behind().is_none() {
            sleep(interval.saturating_sub(began.elapsed()));
        }
    }
    follow.tell_late(window);
    Ok(printer.end()?)
}

impl Follower<'_> {
    /// Prints what there is at first: what was made before `horizon`; the rest waits for what comes.
    fn catch_up(&mut self, texts: Vec<Arc<RecordText>>, horizon: u64, printer: &mut Printer) -> Result<(), Error> {
        let Follower { intake, diagnostics, .. } = self;
        intake.window = ReorderWindow::new(horizon);
        let merge = Merge::prepare(&texts, MergeLimits::default(), diagnostics).map_err(Error::temporary)?;
        let mut result = Ok(());
        let mut print = |lines: &[u8]| {
            result = lines_of(lines).try_for_each(|line| printer.put(line, false));
            Ok(result.is_ok() && !stop_signal::to_end())
        };
        merge.run(0..horizon, None, &mut print).map_err(Error::temporary)?;
        result?;
        let mut wait = |lines: &[u8]| {
            lines_of(lines).for_each(|line| intake.put(columns::time(line).unwrap_or(0), line));
            Ok(!stop_signal::to_end())
        };
        merge.run(horizon..u64::MAX, None, &mut wait).map_err(Error::temporary)?;
        printer.caught_up();
        Ok(())
    }

    /// Reads all that has come.
    fn read_new(&mut self) {
        let before = self.intake.count();
        self.idle += 1;
        for at in 0..self.watches.len() {
            self.news(at);
        }
        for (process, path) in std::mem::take(&mut self.unready) {
            self.meet(process, path, false);
        }
        let Follower { lives, sources, intake, diagnostics, .. } = self;
        lives.retain_mut(|live| live.read_new(sources, intake, diagnostics));
        if let Some(offset) = lives.iter().map(RunningProcess::offset).min() {
            self.clock.offset = offset;
        }
        let room = intake.window.size() < ROOM;
        let most = (ROOM as u64 / 2 / sources.len().max(1) as u64).clamp(16 << 10, CHUNK);
        sources.read(most, room, intake, diagnostics);
        let new = intake.count() > before || sources.behind().is_some();
        if new || !lives.is_empty() {
            self.idle = 0;
        }
    }

    /// Takes in the files that have come to a directory.
    fn news(&mut self, at: usize) {
        let Follower { watches, dead, sources, .. } = self;
        let Some(watch) = watches.get_mut(at) else { return };
        let news = match watch.read_changes() {
            Ok(news) => news,
            // The directory is gone; it may come back.
            Err(error) => return log::info!("{}", reason(&error)),
        };
        let device = watch.device().unwrap_or(0);
        for number in news.vanished {
            dead.remove(&(device, number));
            sources.vanished((device, number));
        }
        self.any |= !(news.buffers.is_empty() && news.records.is_empty());
        for (process, path) in news.buffers {
            self.meet(process, path, true);
        }
        let Follower { lives, sources, intake, diagnostics, .. } = self;
        for (process, number, path) in news.records {
            match sources.found(&path, intake, diagnostics) {
                Ok(Some(place)) => {
                    let owner = lives.iter_mut().find(|live| live.is_process(&process));
                    if let Some(owner) = owner {
                        owner.adopt(number, place, sources);
                    }
                }
                Ok(None) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => diagnostics.report_damage(path.display(), reason(&error)),
            }
        }
    }

    /// A process has made its trbuf, just now if it is the `first` time that this is seen.
    fn meet(&mut self, process: ProcessFiles, path: PathBuf, first: bool) {
        let Follower { lives, dead, unready, idle, diagnostics, .. } = self;
        let mut is_coming = false;
        let live = file_handle::open(&path).and_then(|file| {
            let age = file.metadata()?.modified()?.elapsed();
            is_coming = has_writer(&file) == Some(true) || age.is_ok_and(|age| age < MAKING);
            RunningProcess::new(process.clone(), path.clone(), file)
        });
        match live {
            Ok(Some(live)) if lives.iter().any(|known| known.identity() == live.identity()) => {}
            Ok(Some(live)) if dead.contains(&live.identity()) && live.is_gone() => {}
            Ok(Some(live)) => lives.push(live),
            // The process has made the file, and not yet written what it is.
            Ok(None) => {
                if is_coming {
                    *idle = 0;
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

    /// Prints what was made before `horizon` and what has waited long enough, or all.
    fn release(&mut self, horizon: u64, all: bool, printer: &mut Printer) -> Result<(), Error> {
        let Follower { sources, intake, clock, .. } = self;
        let now = monotonic();
        let (horizon, overdue) = match sources.behind() {
            _ if all => (u64::MAX, u64::MAX),
            Some(behind) => (horizon.min(behind), 0),
            None => (horizon, now.saturating_sub(clock.hold)),
        };
        intake.window.release(horizon, [overdue, now], |line, late| printer.put(line, late))?;
        printer.flush()
    }

    /// Whether there is nothing that anything could come from.
    fn has_nothing(&self) -> bool {
        self.watches.is_empty() && self.sources.len() == 0 && self.lives.is_empty()
    }

    /// Whether no process runs any more.
    fn has_ended(&self) -> bool {
        self.any && self.lives.is_empty() && self.idle >= GRACE
    }

    /// Reads for the last time, also of files whose turn it is not.
    fn read_rest(&mut self) {
        let Follower { sources, intake, diagnostics, .. } = self;
        if sources.behind().is_some() {
            diagnostics
                .report_note("--follow", "more was recorded than could be read until now; the rest is in the trace");
        } else {
            sources.iter_mut().for_each(|source| source.read(u64::MAX, true, intake, diagnostics));
        }
    }

    /// Tells of records that were late.
    fn tell_late(&self, window: u64) {
        let Follower { intake, diagnostics, .. } = self;
        let late = intake.window.late();
        if late.count > 0 {
            let [most, window] = [late.most, window].map(duration_text);
            let what = format_args!("{} records came later than the window of {window}, by up to {most}", late.count);
            diagnostics.report_note("--follow", what);
        }
    }
}

fn lines_of(lines: &[u8]) -> impl Iterator<Item = &[u8]> {
    lines.split_inclusive(|&byte| byte == b'\n')
}
