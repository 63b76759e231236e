//! Finds the trbufs to recover.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use spec::names::FileName;

use crate::support::diagnostics::{Diagnostics, reason};
use crate::trace::file_names::{split_name, with_subdirectories};

/// The trbufs that `paths` stand for, in order. A directory stands for the trbufs in it and in the subdirectories that
/// processes of other users and PID namespaces made there; those that were renamed (`old.*`) are among them.
pub fn find_trbufs(paths: &[PathBuf], diagnostics: &Diagnostics) -> Vec<PathBuf> {
    let mut trbufs = Vec::new();
    for path in paths {
        match fs::metadata(path) {
            Ok(metadata) if metadata.is_dir() => {
                with_subdirectories(path).iter().for_each(|path| add_directory(path, &mut trbufs, diagnostics));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                diagnostics.report_damage(path.display(), reason(&error))
            }
            // A path that is no trbuf is reported when it is recovered.
            _ => trbufs.push(path.clone()),
        }
    }
    trbufs
}

/// Adds the trbufs in a directory, which is an argument or a subdirectory of one.
fn add_directory(path: &Path, trbufs: &mut Vec<PathBuf>, diagnostics: &Diagnostics) {
    let entries = match fs::read_dir(path).and_then(Iterator::collect::<Result<Vec<_>, _>>) {
        Ok(entries) => entries,
        Err(error) => return diagnostics.report_damage(path.display(), reason(&error)),
    };
    let is_trbuf = |path: &PathBuf| matches!(split_name(path).1, Some(FileName::Buffers(_) | FileName::Spare { .. }));
    let mut paths: Vec<PathBuf> = entries.iter().map(fs::DirEntry::path).filter(is_trbuf).collect();
    paths.sort();
    trbufs.append(&mut paths);
}
