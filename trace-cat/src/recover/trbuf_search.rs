//! Finds the trbufs to recover.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use spec::names::FileName;

use crate::support::diagnostics::{Diagnostics, reason};
use crate::trace::file_names::{is_subdirectory, split_name};

/// The trbufs that `paths` stand for, in order. A directory stands for the trbufs in it and in the subdirectories that
/// processes of other users and PID namespaces made there; those that were renamed (`old.*`) are among them.
pub fn find_trbufs(paths: &[PathBuf], diagnostics: &Diagnostics) -> Vec<PathBuf> {
    let mut trbufs = Vec::new();
    for path in paths {
        match fs::metadata(path) {
            Ok(metadata) if metadata.is_dir() => add_directory(path, true, &mut trbufs, diagnostics),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                diagnostics.report_damage(path.display(), reason(&error))
            }
            // A path that is no trbuf is reported when it is recovered.
            _ => trbufs.push(path.clone()),
        }
    }
    trbufs
}

/// Adds the trbufs in a directory, and in its subdirectories if it is `outermost`.
fn add_directory(path: &Path, outermost: bool, trbufs: &mut Vec<PathBuf>, diagnostics: &Diagnostics) {
    let entries = match fs::read_dir(path).and_then(Iterator::collect::<Result<Vec<_>, _>>) {
        Ok(entries) => entries,
        Err(error) => return diagnostics.report_damage(path.display(), reason(&error)),
    };
    let mut paths: Vec<PathBuf> = entries.iter().map(fs::DirEntry::path).collect();
    paths.sort();
    let is_trbuf = |path: &PathBuf| matches!(split_name(path).1, Some(FileName::Buffers(_) | FileName::Spare { .. }));
    trbufs.extend(paths.iter().filter(|path| is_trbuf(path)).cloned());
    if outermost {
        // A link could lead to any directory, so it is not followed.
        let is_directory = |path: &&PathBuf| fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_dir());
        for inner in paths.iter().filter(|path| is_subdirectory(path)).filter(is_directory) {
            add_directory(inner, false, trbufs, diagnostics);
        }
    }
}
