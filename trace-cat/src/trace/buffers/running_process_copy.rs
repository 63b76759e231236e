//! What a running process has recorded and not yet written: copied, since it goes on recording while it is read.
//!
//! The copy is a temporary file that is laid out as the trbuf is, with holes where nothing was copied: so a place in it is a
//! place in the trbuf, and no region is ever held in memory. How it is made sure that the copy is of one moment depends on
//! the kind of buffers: see `buffers` and `rings`.

use std::fs::File;
use std::path::Path;
use std::thread;
use std::time::Duration;

use spec::buffer::Owner;

use super::dead_process::read_leftovers;
use super::live_slot::read_layout;
use super::process_state::ProcessState;
use super::{copy_buffers, copy_rings};
use crate::support::diagnostics::{Diagnostics, reason};
use crate::trace::process_liveness::owner_is_alive;

/// How often all is copied anew when the process was writing its rings to its files, and how long that is waited for each
/// time.
const TURNS: usize = 5;
const PATIENCE: Duration = Duration::from_millis(20);

/// Copies what is in the trbuf `file` of `owner`, which ran just now.
pub fn copy(path: &Path, file: File, owner: &Owner, diagnostics: &Diagnostics) -> ProcessState {
    let owner = &mut { *owner };
    for _ in 0..TURNS {
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
        let is_gone = owner_is_alive(&file, owner) == Some(false);
        // What it became by an exec may have slots of another size: then what was copied is nothing.
        let changed = read_layout(&file).ok().flatten().filter(|&shape| shape != owner.layout);
        owner.layout = changed.unwrap_or(owner.layout);
        if is_gone {
            return read_leftovers(path, file, owner, diagnostics).map(ProcessState::Dead).unwrap_or_else(|error| {
                diagnostics.report_damage(path.display(), reason(&error));
                ProcessState::None
            });
        }
        if let Some(copied) = copied.filter(|_| changed.is_none()) {
            if is_ring {
                diagnostics.report_note(
                    path.display(),
                    format_args!("process {} runs; its rings are read as they stand", owner.pid),
                );
            }
            return ProcessState::Running(copied);
        }
        thread::sleep(PATIENCE);
    }
    diagnostics.report_note(
        path.display(),
        format_args!("process {} is writing its rings to its files; they are left out", owner.pid),
    );
    ProcessState::Alive
}
