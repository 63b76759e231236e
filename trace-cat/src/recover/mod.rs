//! `--recover`: writes what dead processes left in their trbufs to the record files, so that grep and awk find it there.
//!
//! Recovery may be killed between any two of its steps, or in the middle of a write, and be run again: then each record is in
//! its file once. It follows the recorder's own protocol (`spec::buffer`): text that is about to be written is first
//! noted in its region with its place in the file, and the note is cleared when the text is written.

mod claim;
#[cfg(test)]
mod death_tests;
mod file_operations;
mod holes;
mod in_flight;
mod loss_records;
#[cfg(test)]
mod loss_tests;
mod recovery_plan;
mod recovery_writer;
#[cfg(test)]
mod ring_tests;
#[cfg(test)]
mod tests;
mod trbuf_search;

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::support::diagnostics::{Diagnostics, reason};
use crate::support::progress::Amount;
use crate::support::visible_text::visible;
use crate::trace::buffers::spare::{self, SpareContents};
use crate::trace::file_handle;
use crate::trace::file_names::{ProcessFiles, is_subdirectory, split_name};
use crate::trace::process_liveness::has_writer;
use claim::claim;
use file_operations::{FileOperations, RealFileOperations};
use recovery_plan::plan_recovery;
use recovery_writer::RecoveryWriter;
use spec::names::FileName;
pub use trbuf_search::find_trbufs;

/// Recovers every trbuf that `paths`, directories or trbufs, stand for, and writes the result of each to `out`. A trbuf that
/// cannot be recovered is reported and stays as it is.
pub fn recover(paths: &[PathBuf], out: &mut dyn Write, diagnostics: &Diagnostics) -> io::Result<()> {
    let trbufs = find_trbufs(paths, diagnostics);
    let phase = diagnostics.start_phase("recovering", Amount::Files(trbufs.len() as u64));
    for path in trbufs {
        match as_owner_of_subdirectory(&path, || recover_trbuf(&path, &mut RealFileOperations, diagnostics)) {
            Ok(Some(result)) => {
                let RecoveryResult { pid, records, files, removed } = result;
                let kept = if removed { "" } else { "; the trbuf is kept" };
                let path = path.display().to_string();
                let path = visible(&path);
                let line = format_args!("{path}: process {pid}: {records} records recovered into {files} files{kept}");
                diagnostics.without_progress(|| writeln!(out, "{line}"))?;
            }
            Ok(None) => {}
            Err(error) => diagnostics.report_damage(path.display(), reason(&error)),
        }
        phase.advance(1);
    }
    out.flush()
}

/// Does `work` on the file at `path` with the rights of the directory's owner, if the directory is another user's part of a
/// trace and this process is root's: what the owner has put there leads root nowhere.
fn as_owner_of_subdirectory<T>(path: &Path, work: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let directory = path.parent().filter(|directory| is_subdirectory(directory));
    let owner = directory.and_then(|directory| fs::symlink_metadata(directory).ok()).map(|directory| directory.uid());
    // SAFETY: the calls take no pointers, and concern this thread only.
    let set = |user: u32| unsafe { libc::setfsuid(user) } as u32;
    let own = set(u32::MAX);
    let Some(owner) = owner.filter(|&owner| own == 0 && owner != 0) else { return work() };
    set(owner);
    let result = match set(u32::MAX) == owner {
        true => work(),
        false => Err(io::Error::last_os_error()),
    };
    set(own);
    result
}

/// The result of recovering a trbuf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct RecoveryResult {
    /// The process that it belonged to.
    pid: u32,
    /// Records that were not in their files, or not completely.
    records: u64,
    /// The number of files they were written to.
    files: usize,
    /// All of it is in the files, and the trbuf was removed.
    removed: bool,
}

/// Recovers the trbuf at `path`; `None` if its process runs, or another recovery has removed it, or if it
/// is a spare one, which is removed.
fn recover_trbuf(
    path: &Path,
    operations: &mut dyn FileOperations,
    diagnostics: &Diagnostics,
) -> io::Result<Option<RecoveryResult>> {
    let number = match split_name(path).1 {
        Some(FileName::Buffers(number)) => number,
        Some(FileName::Spare { process, number }) => match spare::contents(path, number)? {
            Some(SpareContents::Buffers(_)) => FileName::number_of_spare(process, number),
            // Only this file has the number.
            Some(SpareContents::Losses(_)) => return Ok(None),
            // A child in a sandbox may claim it.
            Some(SpareContents::Blank) if has_writer(&file_handle::open(path)?) != Some(false) => return Ok(None),
            // It holds nothing. Its process was killed, or else does without it.
            _ => match operations.remove(path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => return Ok(None),
            },
        },
        _ => return Err(io::Error::other("neither a directory nor a trbuf")),
    };
    let process = ProcessFiles::of_file(path, number);
    let Some(claimed) = claim(path)? else { return Ok(None) };
    in_flight::place_records(&claimed, operations)?;
    loss_records::clear_placed(&claimed, operations)?;
    let plan = plan_recovery(path, &claimed, diagnostics)?;
    let mut writer = RecoveryWriter::new(path, &process, &claimed, operations, diagnostics);
    let has_notes = writer.write_notes(&plan.notes, plan.reused_rings);
    let mut complete = plan.complete && has_notes;
    for (number, regions) in plan.files {
        let losses = plan.losses.get(&number).map_or(&[][..], Vec::as_slice);
        complete &= writer.complete_file(number, regions) && writer.add_losses(number, losses);
    }
    // What remains in the trbuf has its count there.
    complete = complete && writer.write_losses(plan.lost, plan.uncounted);
    let (records, files) = (writer.records, writer.files.len());
    if complete {
        claimed.remove(path, operations)?;
    }
    Ok(Some(RecoveryResult { pid: claimed.owner.pid, records, files, removed: complete }))
}
