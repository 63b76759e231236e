//! A copy of what a running process has recorded and not yet written. It is needed since the process goes on recording.
//!
//! The copy is a temporary file with the layout of the trbuf and with holes where nothing was copied. So a place in the
//! copy is the place in the trbuf, and no region is held in memory. How a copy is made consistent depends on the kind of
//! buffers: see `copy_buffers` and `copy_rings`.

use std::fs::File;
use std::path::Path;
use std::thread;
use std::time::Duration;

use spec::buffer::Owner;

use super::dead_process::read_leftovers;
use super::leftovers::ProcessState;
use super::live_slot::read_layout;
use super::{copy_buffers, copy_rings};
use crate::support::diagnostics::{Diagnostics, reason};
use crate::trace::process_liveness::owner_is_alive;

/// How often all buffers are copied, if the process keeps writing its rings to its files.
const ATTEMPTS_MAX: usize = 5;
/// The pause between two attempts.
const PAUSE: Duration = Duration::from_millis(20);

/// Copies what the trbuf `file` of `owner`, which was running a moment ago, holds.
pub fn copy(path: &Path, file: File, owner: &Owner, diagnostics: &Diagnostics) -> ProcessState {
    let owner = &mut { *owner };
    for _ in 0..ATTEMPTS_MAX {
        let is_ring = owner.layout.is_ring();
        let copied = if is_ring {
            copy_rings::copy(path, &file, owner, diagnostics)
        } else {
            copy_buffers::copy(path, &file, owner, diagnostics)
        };
        let copied = match copied {
            Ok(copied) => copied,
            Err(error) => {
                diagnostics
                    .report_damage(path.display(), format_args!("its buffers cannot be copied: {}", reason(&error)));
                return ProcessState::Alive;
            }
        };
        let is_dead = owner_is_alive(&file, owner) == Some(false);
        // A program that the process executed may have slots of another layout, and then the copy is useless.
        let Ok(Some(layout)) = read_layout(&file, owner) else {
            // All that the process recorded is in its files, and the copy may be of the trbuf's next owner.
            return ProcessState::None;
        };
        let new_layout = Some(layout).filter(|&layout| layout != owner.layout);
        owner.layout = layout;
        if is_dead {
            return read_leftovers(path, file, owner, diagnostics).map(ProcessState::Dead).unwrap_or_else(|error| {
                diagnostics.report_damage(path.display(), reason(&error));
                ProcessState::None
            });
        }
        if let Some(copied) = copied.filter(|_| new_layout.is_none()) {
            if is_ring {
                diagnostics.report_note(
                    path.display(),
                    format_args!("process {} runs; its rings are read as they stand", owner.pid),
                );
            }
            return ProcessState::Running(copied);
        }
        thread::sleep(PAUSE);
    }
    diagnostics.report_note(
        path.display(),
        format_args!("process {} is writing its rings to its files; they are left out", owner.pid),
    );
    ProcessState::Alive
}
