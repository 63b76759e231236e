//! Opens a trbuf and reads what it holds, as the state of its process requires.

use std::io;
use std::path::Path;

use spec::buffer::{Owner, PAGE};
use spec::info;
use spec::names::FileName;

use super::dead_process::read_leftovers;
use super::leftovers::ProcessState;
use super::live_slot::read_layout;
use super::running_process_copy;
use super::slots::{holds_only_zeros, is_blank, is_left_blank, read_up_to};
use crate::support::diagnostics::{Diagnostics, reason};
use crate::trace::file_handle::open_if_present;
use crate::trace::file_names::{ProcessFiles, split_name};
use crate::trace::process_liveness::{has_writer, owner_is_alive};

/// Inspects the trbuf at `path`, which need not exist. Reports what is wrong with it.
pub fn inspect(path: &Path, diagnostics: &Diagnostics) -> ProcessState {
    try_inspect(path, diagnostics).unwrap_or_else(|error| {
        diagnostics.report_damage(path.display(), reason(&error));
        ProcessState::None
    })
}

fn try_inspect(path: &Path, diagnostics: &Diagnostics) -> io::Result<ProcessState> {
    let Some(file) = open_if_present(path)? else { return Ok(ProcessState::None) };
    let mut page = [0; PAGE];
    let mut length = read_up_to(&file, &mut page, 0)?;
    if is_blank(&page) {
        // The owner is about to record. It may write while its files are read, so an incomplete line is no damage.
        if has_writer(&file) != Some(false) {
            return Ok(ProcessState::Alive);
        }
        // Nobody writes to the trbuf any more. If it is still blank, its owner died before it recorded anything.
        length = read_up_to(&file, &mut page, 0)?;
        if is_blank(&page) {
            if !is_left_blank(&file)? {
                diagnostics.report_damage(path.display(), "its first page is blank; what its process left is not read");
            } else if had_buffers(path) && holds_only_zeros(&file, 0)? {
                diagnostics.report_damage(path.display(), "it is blank; what its process left in it is gone");
            }
            return Ok(ProcessState::None);
        }
    }
    let owner = match Owner::parse(&page[..length]) {
        Ok(owner) => owner,
        Err(damage) => {
            diagnostics.report_damage(path.display(), damage);
            return Ok(ProcessState::None);
        }
    };
    // In a sandbox a process does not know what /proc says of it: it is read as if it ran.
    let is_spare = matches!(split_name(path).1, Some(FileName::Spare { .. }));
    let is_alive = owner_is_alive(&file, &owner).or_else(|| is_spare.then_some(true));
    if read_layout(&file, &owner)?.is_none() {
        // It ended a moment ago, and all that it recorded is in its files.
        return Ok(ProcessState::None);
    }
    match is_alive {
        Some(true) => Ok(running_process_copy::copy(path, file, &owner, diagnostics)),
        Some(false) => read_leftovers(path, file, &owner, diagnostics).map(ProcessState::Dead),
        None => {
            diagnostics
                .report_damage(path.display(), "it is unknown whether its process runs; its records are left out");
            Ok(ProcessState::Alive)
        }
    }
}

/// Whether the process has written its trinfo, as it does once it has recorded something, and its trbuf has a header; and that does not say
/// that the buffers were in the process's own memory, nor how many records were lost, as it does at the end: then it is that of an earlier
/// process with this number, and the trbuf's had just begun when it was killed. An empty one may be left of a beginning that was
/// interrupted.
fn had_buffers(path: &Path) -> bool {
    let Some(FileName::Buffers(number)) = split_name(path).1 else { return false };
    let info = std::fs::read(ProcessFiles::of_file(path, number).path(FileName::Info(number)));
    let is_open = |is_open: bool, (key, value): (&[u8], &[u8])| match (key, value) {
        (b"format", _) => true,
        (b"lost", _) | (b"buffer", b"anonymous") => false,
        _ => is_open,
    };
    info.is_ok_and(|text| info::lines(&text).fold(false, is_open))
}
