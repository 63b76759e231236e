//! Shows the progress of work that takes more than two seconds, in one line on a terminal.
//!
//! Work consists of phases. Only the outermost phase is shown; a phase within it is part of it. No thread is needed: the code
//! that does the work draws the line, a few times a second at most.

use std::fmt;
use std::io::{self, IsTerminal as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

/// Work that takes no longer is not shown.
const PATIENCE: Duration = Duration::from_secs(2);
/// How many times a second the line changes at most.
const RATE: u8 = 5;

/// How much a phase has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// A number of bytes.
    Bytes(u64),
    /// A number of files.
    Files(u64),
    /// Bytes, whose number is not known before their end.
    Unknown,
}

pub struct Progress {
    bar: ProgressBar,
    /// Where the line will be drawn; `None` once it is drawn, or must not be drawn any more.
    target: Mutex<Option<ProgressDrawTarget>>,
    patience: Duration,
    /// When the first phase began.
    start: OnceLock<Instant>,
    /// A phase is in progress.
    busy: AtomicBool,
}

impl Progress {
    /// A line on stderr, if stderr is a terminal to which no log is written.
    pub fn on_stderr() -> Option<Progress> {
        let target = (io::stderr().is_terminal() && log::max_level() <= log::LevelFilter::Warn)
            .then(|| ProgressDrawTarget::stderr_with_hz(RATE))?;
        (!target.is_hidden()).then(|| Progress::new(target, PATIENCE))
    }

    fn new(target: ProgressDrawTarget, patience: Duration) -> Progress {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        Progress {
            bar,
            target: Mutex::new(Some(target)),
            patience,
            start: OnceLock::new(),
            busy: AtomicBool::new(false),
        }
    }

    /// Begins a phase, unless it is part of another.
    pub fn phase(&self, what: &'static str, amount: Amount) -> Phase<'_> {
        // ORDERING: phases begin and end in one thread; the flag publishes nothing.
        if self.busy.swap(true, Ordering::Relaxed) {
            return Phase(None);
        }
        self.start.get_or_init(Instant::now);
        let (template, length) = match amount {
            Amount::Bytes(bytes) => ("{percent} % of {binary_total_bytes}{left}", Some(bytes)),
            Amount::Files(files) => ("{percent} % of {len} files{left}", Some(files)),
            Amount::Unknown => ("{binary_bytes}", None),
        };
        if let Ok(style) = ProgressStyle::with_template(&format!("trace-cat: {{msg}}: {template}")) {
            self.bar.set_style(style.with_key("left", time_left));
        }
        self.bar.set_message(what);
        match length {
            Some(length) => self.bar.set_length(length),
            None => self.bar.unset_length(),
        }
        self.bar.reset();
        Phase(Some(self))
    }

    /// Calls `write`, which may write to the terminal, while the line is not shown.
    pub fn suspend<T>(&self, write: impl FnOnce() -> T) -> T {
        self.bar.suspend(write)
    }

    /// Removes the line for good.
    pub fn stop(&self) {
        // The lock is held, so that no other thread draws the line meanwhile.
        let mut target = self.target.lock().unwrap_or_else(PoisonError::into_inner);
        *target = None;
        self.bar.finish_and_clear();
        self.bar.set_draw_target(ProgressDrawTarget::hidden());
    }

    fn advance(&self, amount: u64) {
        if self.start.get().is_some_and(|start| start.elapsed() >= self.patience)
            && let Some(target) = self.target.lock().unwrap_or_else(PoisonError::into_inner).take()
        {
            self.bar.set_draw_target(target);
        }
        self.bar.inc(amount);
    }
}

/// Writes the time left, except at the very beginning, when it is unknown, and within the last second.
fn time_left(state: &ProgressState, out: &mut dyn fmt::Write) {
    let left = state.eta();
    if state.fraction() >= 0.01 && left.as_secs() > 0 {
        let _ = write!(out, ", {:#} left", HumanDuration(left));
    }
}

/// A phase that has begun; dropping it ends the phase.
#[must_use]
pub struct Phase<'a>(Option<&'a Progress>);

impl Phase<'_> {
    /// A phase that is not shown.
    pub fn hidden() -> Phase<'static> {
        Phase(None)
    }

    /// Reports that `amount` more of the phase is done.
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
