//! How far the work is, in one line on a terminal, when it takes more than two seconds.
//!
//! Work consists of phases, and only the outermost one is shown: what is read within it is part of it. There is no thread
//! for this; whoever has done some of the work draws, a few times a second at most.

use std::fmt;
use std::io::{self, IsTerminal as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

/// Work that is done before is not worth a line.
const PATIENCE: Duration = Duration::from_secs(2);
/// How often a second the line changes at most.
const RATE: u8 = 5;

/// How much a phase has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// So many bytes.
    Bytes(u64),
    /// So many files.
    Files(u64),
    /// Bytes, and only their end will tell how many.
    Unknown,
}

/// The line.
pub struct Progress {
    bar: ProgressBar,
    /// Where it goes as soon as it is time; nowhere once it does, or when there is no place for it any more.
    place: Mutex<Option<ProgressDrawTarget>>,
    patience: Duration,
    /// When the first phase began.
    start: OnceLock<Instant>,
    /// A phase is being shown.
    busy: AtomicBool,
}

impl Progress {
    /// One that is shown on the terminal that stderr is, if it is one, and no log goes there.
    pub fn on_stderr() -> Option<Progress> {
        let place = (io::stderr().is_terminal() && log::max_level() <= log::LevelFilter::Warn)
            .then(|| ProgressDrawTarget::stderr_with_hz(RATE))?;
        (!place.is_hidden()).then(|| Progress::new(place, PATIENCE))
    }

    fn new(place: ProgressDrawTarget, patience: Duration) -> Progress {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        Progress { bar, place: Mutex::new(Some(place)), patience, start: OnceLock::new(), busy: AtomicBool::new(false) }
    }

    /// Begins a phase, unless it is part of another.
    pub fn phase(&self, what: &'static str, amount: Amount) -> Phase<'_> {
        // ORDERING: phases begin and end in one thread; the flag publishes nothing.
        if self.busy.swap(true, Ordering::Relaxed) {
            return Phase(None);
        }
        self.start.get_or_init(Instant::now);
        let (rest, length) = match amount {
            Amount::Bytes(bytes) => ("{percent} % of {binary_total_bytes}{left}", Some(bytes)),
            Amount::Files(files) => ("{percent} % of {len} files{left}", Some(files)),
            Amount::Unknown => ("{binary_bytes}", None),
        };
        if let Ok(style) = ProgressStyle::with_template(&format!("trace-cat: {{msg}}: {rest}")) {
            self.bar.set_style(style.with_key("left", left));
        }
        self.bar.set_message(what);
        match length {
            Some(length) => self.bar.set_length(length),
            None => self.bar.unset_length(),
        }
        self.bar.reset();
        Phase(Some(self))
    }

    /// Writes something else to a terminal, without the line in its way.
    pub fn suspend<T>(&self, write: impl FnOnce() -> T) -> T {
        self.bar.suspend(write)
    }

    /// Shows nothing any more.
    pub fn stop(&self) {
        // Kept, so that nobody puts the line there meanwhile.
        let mut place = self.place.lock().unwrap_or_else(PoisonError::into_inner);
        *place = None;
        self.bar.finish_and_clear();
        self.bar.set_draw_target(ProgressDrawTarget::hidden());
    }

    fn advance(&self, amount: u64) {
        if self.start.get().is_some_and(|start| start.elapsed() >= self.patience)
            && let Some(place) = self.place.lock().unwrap_or_else(PoisonError::into_inner).take()
        {
            self.bar.set_draw_target(place);
        }
        self.bar.inc(amount);
    }
}

/// How much longer it will take; not said at the very beginning, when nobody knows, nor within the last second.
fn left(state: &ProgressState, out: &mut dyn fmt::Write) {
    let left = state.eta();
    if state.fraction() >= 0.01 && left.as_secs() > 0 {
        let _ = write!(out, ", {:#} left", HumanDuration(left));
    }
}

/// Some work that has begun; it is done when this is dropped.
#[must_use]
pub struct Phase<'a>(Option<&'a Progress>);

impl Phase<'_> {
    /// One of which nothing is shown.
    pub fn hidden() -> Phase<'static> {
        Phase(None)
    }

    /// Tells that so much more of it is done.
    pub fn advance(&self, amount: u64) {
        if let Some(progress) = self.0 {
            progress.advance(amount);
        }
    }
}

impl Drop for Phase<'_> {
    fn drop(&mut self) {
        if let Some(progress) = self.0 {
            progress.bar.finish_and_clear();
            // ORDERING: as in `phase`.
            progress.busy.store(false, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
#[path = "progress_tests.rs"]
mod tests;
