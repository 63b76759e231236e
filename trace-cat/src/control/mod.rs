//! Changes what running processes record.
//!
//! `target_search` finds the trbufs of the processes that are meant, `controlled_process` maps the words in one, and
//! `status_table` and `snapshot` are what else can be had of a running process.

mod controlled_process;
mod snapshot;
mod status_table;
mod target_search;

use spec::buffer::Settings;

use crate::options::{CommandError, OnOff, RecordingLevel, SetOptions};
use crate::support::diagnostics::{Diagnostics, reason};
pub use status_table::print_status;

/// Changes all processes that are meant. What cannot be changed is reported.
///
/// # Errors
/// A snapshot that cannot be written.
pub fn set(options: &SetOptions, diagnostics: &Diagnostics) -> Result<(), CommandError> {
    let change = |settings: &mut Settings| {
        let before = settings.clone();
        if let Some(events) = options.events {
            settings.events = events;
        }
        if let Some(level) = options.level {
            settings.only_blocked = level == RecordingLevel::Blocked;
        }
        if let Some(detail) = options.detail {
            settings.detail = detail == OnOff::On;
        }
        settings.stack_frames = options.stack.unwrap_or(settings.stack_frames);
        settings.paused = options.pause || settings.paused && !options.resume;
        if *settings != before {
            settings.generation = settings.generation.wrapping_add(1);
        }
        settings.flushes = settings.flushes.wrapping_add(options.flush.into());
    };
    let targets = target_search::find_to_change(&options.targets, diagnostics);
    if options.has_changes() {
        for process in &targets {
            if let Err(error) = process.change(change) {
                diagnostics.report_damage(process.path.display(), reason(&error));
            }
        }
    }
    match &options.snapshot {
        Some(directory) if !targets.is_empty() => snapshot::copy(&targets, directory, diagnostics),
        _ => Ok(()),
    }
}

impl SetOptions {
    /// Whether anything is to be changed in the process.
    fn has_changes(&self) -> bool {
        let SetOptions { events, level, stack, detail, pause, resume, flush, .. } = self;
        events.is_some() || level.is_some() || stack.is_some() || detail.is_some() || *pause || *resume || *flush
    }
}
