//! `--recover`: puts what dead processes left in their trbufs into the record files, for those who go on with grep and
//! awk.
//!
//! ```text
//! trbuf_search      which trbufs
//! claim             one of them, for this process alone, if its owner has gone for good
//! recovery_plan     which of its slots are good, and what they hold
//! writer            writes that to the record files, and clears it from the slot
//! holes             places in a record file that were taken and never written
//! file_operations   every change of a file, one by one
//! ```
//!
//! It may be killed between any two of its steps, and in the middle of a write, and be run again: each record then
//! stands in its file once. It follows the recorder's own protocol (`spec::buffer`): what is about to be written is first noted
//! in its region with its place in the file, and the note goes when it is written.

mod claim;
#[cfg(test)]
mod death_tests;
mod file_operations;
mod holes;
mod recovery_plan;
mod recovery_writer;
#[cfg(test)]
mod ring_tests;
#[cfg(test)]
mod tests;
mod trbuf_search;

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use log::info;

use crate::support::diagnostics::{Diagnostics, reason, visible};
use crate::support::progress::Amount;
use crate::trace::file_names::{ProcessFiles, split_name};
use claim::{Claim, claim};
use file_operations::{FileOperations, RealFileOperations};
use recovery_plan::judge;
use recovery_writer::RecoveryWriter;
use spec::names::FileName;

/// Recovers every trbuf that `paths`, directories or trbufs, stand for, and tells in `out` what came of each.
///
/// # Errors
/// What `out` says. What cannot be recovered is told and left as it is.
pub fn recover(paths: &[PathBuf], out: &mut dyn Write, diagnostics: &Diagnostics) -> io::Result<()> {
    let trbufs = trbuf_search::trbufs(paths, diagnostics);
    let phase = diagnostics.start_phase("recovering", Amount::Files(trbufs.len() as u64));
    for path in trbufs {
        match one(&path, &mut RealFileOperations, diagnostics) {
            Ok(Some(outcome)) => {
                let RecoveryResult { pid, records, files, removed } = outcome;
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

/// What came of a trbuf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct RecoveryResult {
    /// Its process.
    pid: u32,
    /// Records that were not in their files, or not whole.
    records: u64,
    /// The files they went to.
    files: usize,
    /// Nothing is left, and the trbuf has gone.
    removed: bool,
}

/// Recovers the trbuf at `path`; `None` if that is not for us to do.
fn one(path: &Path, hand: &mut dyn FileOperations, diagnostics: &Diagnostics) -> io::Result<Option<RecoveryResult>> {
    let (prefix, Some(FileName::Buffers(number))) = split_name(path) else {
        return Err(io::Error::other("neither a directory nor a trbuf"));
    };
    let process =
        ProcessFiles { directory: path.parent().unwrap_or(Path::new("")).to_owned(), prefix: prefix.into(), number };
    let claimed = match claim(path)? {
        Claim::Ours(claimed) => claimed,
        Claim::Runs => {
            info!("{}: its process runs, and writes it itself", path.display());
            return Ok(None);
        }
        Claim::Gone => {
            info!("{}: somebody else has just recovered it", path.display());
            return Ok(None);
        }
    };
    let judged = judge(path, &claimed, diagnostics)?;
    let mut writing = RecoveryWriter::new(path, &process, &claimed, hand, diagnostics);
    let noted = writing.note(&judged.noted);
    let mut complete = judged.complete && noted;
    for (number, jobs) in judged.files {
        complete &= writing.file(number, jobs);
    }
    let (records, files) = writing.counts();
    if complete {
        claimed.remove(path, hand)?;
    }
    Ok(Some(RecoveryResult { pid: claimed.owner.pid, records, files, removed: complete }))
}
