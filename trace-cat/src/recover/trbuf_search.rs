//! Which trbufs there are.

use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use spec::names::FileName;

use crate::support::diagnostics::{Diagnostics, reason};
use crate::trace::file_names::split_name;

/// The trbufs that `paths` stand for, in order: those that are named, and those in the directories that are named and in
/// the subdirectories that processes of other PID namespaces made there. What was set aside has to be named.
pub fn trbufs(paths: &[PathBuf], diagnostics: &Diagnostics) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for path in paths {
        match fs::metadata(path) {
            Ok(metadata) if metadata.is_dir() => directory(path, true, &mut found, diagnostics),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                diagnostics.report_damage(path.display(), reason(&error))
            }
            // What else it is, is told when it is looked at.
            _ => found.push(path.clone()),
        }
    }
    found
}

fn directory(path: &Path, outermost: bool, found: &mut Vec<PathBuf>, diagnostics: &Diagnostics) {
    let entries = match fs::read_dir(path).and_then(Iterator::collect::<Result<Vec<_>, _>>) {
        Ok(entries) => entries,
        Err(error) => return diagnostics.report_damage(path.display(), reason(&error)),
    };
    let mut paths: Vec<PathBuf> = entries.iter().map(fs::DirEntry::path).collect();
    paths.sort();
    let is_trbuf = |path: &PathBuf| matches!(split_name(path), (b"", Some(FileName::Buffers(_))));
    found.extend(paths.iter().filter(|path| is_trbuf(path)).cloned());
    if outermost {
        // A link could lead anywhere.
        let is_real = |path: &&PathBuf| fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_dir());
        for inner in paths.iter().filter(|path| is_namespace(path)).filter(is_real) {
            directory(inner, false, found, diagnostics);
        }
    }
}

/// Whether it is called `ns` and a number.
fn is_namespace(path: &Path) -> bool {
    let digits = path.file_name().and_then(|name| name.as_bytes().strip_prefix(b"ns"));
    digits.is_some_and(|digits| !digits.is_empty() && digits.iter().all(u8::is_ascii_digit))
}
