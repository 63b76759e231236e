//! Directories that are copies of others, as of a trace that was copied while its program ran: what is in both is read once.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

use memchr::memchr;
use spec::info;
use spec::names::FileName;
use spec::record::RECORD_LEN_MAX;

use super::buffers::slots::read_up_to;
use super::file_handle::{self, read_info};
use super::file_names::{is_subdirectory, listed_directory, split_name};
use crate::support::diagnostics::Diagnostics;

/// The sizes of a directory's record files and trinfos, by their paths within it.
type FileSizes = BTreeMap<PathBuf, u64>;

/// What tells a directory apart from others that are no copies of it.
#[derive(PartialEq, Eq, Hash)]
struct FirstRecord {
    file: PathBuf,
    line: Vec<u8>,
    boot: Vec<u8>,
}

/// A directory among the paths, or a file, which has no files.
struct NamedDirectory {
    path: PathBuf,
    files: FileSizes,
}

/// These paths without the directories of which another one is a copy that has at least as much. They are reported.
pub fn without_copies(paths: Vec<PathBuf>, diagnostics: &Diagnostics) -> Vec<PathBuf> {
    if paths.len() < 2 {
        return paths;
    }
    let mut kept: Vec<NamedDirectory> = Vec::new();
    let mut by_first_record: HashMap<FirstRecord, usize> = HashMap::new();
    for path in paths {
        let files = file_sizes(&path);
        let directory = NamedDirectory { path, files };
        let Some(first) = directory.first_record() else {
            kept.push(directory);
            continue;
        };
        let known = *by_first_record.entry(first).or_insert(kept.len());
        let Some(earlier) = kept.get_mut(known).filter(|earlier| !is_same(&earlier.path, &directory.path)) else {
            kept.push(directory);
            continue;
        };
        let what = |copy: &NamedDirectory, of: &NamedDirectory| {
            let of = of.path.display();
            diagnostics.report_note(copy.path.display(), format_args!("has nothing that {of} has not; it is not read"));
        };
        if directory.is_part_of(earlier) {
            what(&directory, earlier);
        } else if earlier.is_part_of(&directory) {
            what(earlier, &directory);
            *earlier = directory;
        } else {
            let both = format_args!("has records that {} has, too; they count twice", earlier.path.display());
            diagnostics.report_note(directory.path.display(), both);
            kept.push(directory);
        }
    }
    kept.into_iter().map(|directory| directory.path).collect()
}

impl NamedDirectory {
    /// The first record file that is not empty, and its first record: no other one has that time and that thread, of the same boot.
    fn first_record(&self) -> Option<FirstRecord> {
        let is_record_file = |name: &Path| matches!(split_name(name).1, Some(FileName::Records { .. }));
        let (name, _) = self.files.iter().find(|(name, size)| **size > 0 && is_record_file(name))?;
        let mut line = vec![0; RECORD_LEN_MAX + 1];
        let length = read_up_to(&file_handle::open(&self.path.join(name)).ok()?, &mut line, 0).ok()?;
        line.truncate(memchr(b'\n', &line[..length])?);
        let mut trinfos = self.files.keys().filter(|name| matches!(split_name(name).1, Some(FileName::Info(_))));
        let trinfo = trinfos.next().and_then(|name| read_info(&self.path.join(name)).ok()).unwrap_or_default();
        let boot = info::value(&trinfo, "boot_id").unwrap_or_default().to_owned();
        Some(FirstRecord { file: name.clone(), line, boot })
    }

    /// Whether another directory has all files of this one, and at least as much in each.
    fn is_part_of(&self, other: &NamedDirectory) -> bool {
        self.files.iter().all(|(name, size)| other.files.get(name).is_some_and(|others| others >= size))
    }
}

/// Whether both paths lead to one directory.
fn is_same(a: &Path, b: &Path) -> bool {
    fs::canonicalize(a).ok().is_some_and(|a| fs::canonicalize(b).is_ok_and(|b| a == b))
}

/// The files of a directory and of what other users' processes and other PID namespaces have in it; none if it is a file.
fn file_sizes(directory: &Path) -> FileSizes {
    let mut sizes = FileSizes::new();
    let mut unread = vec![PathBuf::new()];
    while let Some(within) = unread.pop() {
        let entries = fs::read_dir(listed_directory(&directory.join(&within)));
        for entry in entries.into_iter().flatten().flatten() {
            let name = within.join(entry.file_name());
            let Ok(metadata) = entry.metadata() else { continue };
            if metadata.is_dir() && is_subdirectory(&name) {
                unread.push(name);
            } else if metadata.is_file()
                && matches!(split_name(&name).1, Some(FileName::Records { .. } | FileName::Info(_)))
            {
                sizes.insert(name, metadata.len());
            }
        }
    }
    sizes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::support::diagnostics::tests::recorded_diagnostics;
    use crate::testing::test_trace::record_lines;

    #[test]
    fn what_is_in_two_directories_is_read_once() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        let write = |name: &str, files: &[(&str, String)]| {
            fs::create_dir_all(path(name).join("u1000")).unwrap();
            files.iter().for_each(|(file, text)| fs::write(path(name).join(file), text).unwrap());
        };
        let (first, second) =
            (("tr.0000001.001", record_lines(1..5, 1)), ("u1000/tr.0000002.002", record_lines(3..9, 2)));
        write("whole", &[first.clone(), second.clone(), ("trinfo.0000001", "format 1\n".to_owned())]);
        write("copy", &[first.clone(), second.clone(), ("trinfo.0000001", "format 1\n".to_owned())]);
        write("earlier", &[("tr.0000001.001", record_lines(1..3, 1))]);
        // Files of one name, of other processes.
        write("other", &[("tr.0000001.001", record_lines(2..5, 1))]);
        write("twin", &[first.clone(), ("trinfo.0000001", "boot_id 2\n".to_owned())]);
        write("more", &[first, ("tr.0000003.003", record_lines(1..4, 3))]);
        std::os::unix::fs::symlink(path("whole"), path("link")).unwrap();
        let read = |names: &[&str]| {
            let (diagnostics, messages) = recorded_diagnostics();
            let kept = without_copies(names.iter().map(|name| path(name)).collect(), &diagnostics);
            assert!(!diagnostics.has_damage());
            let names: Vec<String> =
                kept.iter().map(|path| path.file_name().unwrap().to_string_lossy().into_owned()).collect();
            (names.join(" "), messages.text().matches("is not read").count(), messages.text().matches("twice").count())
        };
        let kept = |names: &str, left_out: usize, twice: usize| (names.to_owned(), left_out, twice);
        assert_eq!(read(&["whole", "copy"]), kept("whole", 1, 0));
        assert_eq!(read(&["earlier", "other", "whole"]), kept("whole other", 1, 0));
        assert_eq!(read(&["whole", "earlier", "copy"]), kept("whole", 2, 0));
        assert_eq!(read(&["whole", "more"]), kept("whole more", 0, 1));
        assert_eq!(read(&["whole", "other"]), kept("whole other", 0, 0));
        assert_eq!(read(&["twin", "whole"]), kept("twin whole", 0, 0), "of another boot");
        // One directory by two paths is known by its files.
        assert_eq!(read(&["whole", "link"]), kept("whole link", 0, 0));
        assert_eq!(read(&["copy"]), kept("copy", 0, 0));
    }
}
