//! Directories that are copies of others, as of a trace that was copied while its program ran: what is in both is read once.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::{fs, io};

use memchr::memchr;
use memchr::memmem::Finder;
use spec::info;
use spec::names::FileName;
use spec::record::RECORD_LEN_MAX;

use super::buffers::slots::read_up_to;
use super::file_handle::{self, read_info};
use super::file_names::{is_read_with, listed_directory, split_name, with_subdirectories};
use crate::record::columns;
use crate::support::diagnostics::Diagnostics;

/// Bytes that are compared at once.
const BLOCK_SIZE: usize = 1 << 16;

/// A file of a directory.
struct NamedFile {
    size: u64,
    /// It has records that are in no other file.
    is_buffers: bool,
    /// Of another one than buffers, if the line is complete.
    first_line: Option<Vec<u8>>,
    /// The time of its last record, if it has a first line.
    last_time: Option<u64>,
}

/// A directory's files, by their paths within it.
type NamedFiles = BTreeMap<PathBuf, NamedFile>;

/// A directory among the paths, or a file, which has no files.
struct NamedDirectory {
    path: PathBuf,
    /// Without symbolic links.
    real: PathBuf,
    files: NamedFiles,
    /// The first record of each file that has one, as it is printed: no other thread of this boot has one of that time. And the names of
    /// these files, and of buffers, which may have all records of a process.
    keys: BTreeSet<Vec<u8>>,
    /// `None` without a trinfo.
    boot: Option<Vec<u8>>,
}

/// These paths without the directories that are copies of others or of a part of them, which is reported.
pub fn without_copies(paths: Vec<PathBuf>, diagnostics: &Diagnostics) -> Vec<PathBuf> {
    if paths.len() < 2 {
        return paths;
    }
    let mut kept: Vec<Option<NamedDirectory>> = Vec::new();
    let mut of_key: HashMap<Vec<u8>, Vec<usize>> = HashMap::new();
    for path in paths {
        let directory = NamedDirectory::read(path);
        let (mut is_copy, mut shares_with) = (false, None);
        let others: BTreeSet<usize> =
            directory.keys.iter().filter_map(|key| of_key.get(key)).flatten().copied().collect();
        for index in others {
            let other = &mut kept[index];
            let Some(earlier) = other.as_ref().filter(|earlier| directory.may_be_copy_of(earlier)) else {
                continue;
            };
            let [this, that] = [&directory, earlier].map(|directory| directory.path.display());
            if directory.is_part_of(earlier) {
                diagnostics.report_note(this, format_args!("has nothing that {that} has not; it is not read"));
                is_copy = true;
                break;
            }
            if earlier.is_part_of(&directory) {
                diagnostics.report_note(that, format_args!("has nothing that {this} has not; it is not read"));
                *other = None;
            } else if shares_with.is_none() && directory.shares_records_with(earlier) {
                shares_with = Some(that.to_string());
            }
        }
        // One note for each directory, however many there are.
        if let Some(that) = shares_with.filter(|_| !is_copy) {
            let what = format_args!("has records that {that} has, too; where both are read, they count twice");
            diagnostics.report_note(directory.path.display(), what);
        }
        for key in directory.keys.iter().filter(|_| !is_copy) {
            of_key.entry(key.clone()).or_default().push(kept.len());
        }
        kept.push((!is_copy).then_some(directory));
    }
    kept.into_iter().flatten().map(|directory| directory.path).collect()
}

impl NamedDirectory {
    fn read(path: PathBuf) -> NamedDirectory {
        let files = files_of(&path);
        let key = |(name, file): (&PathBuf, &NamedFile)| match split_name(name) {
            // What an ended process left that had the number before is read of one directory at most.
            (b"", Some(FileName::Records { .. })) => [file.first_line.clone(), Some(bytes_of(name))],
            (b"", _) => [file.is_buffers.then(|| bytes_of(name)), None],
            _ => [None, None],
        };
        let keys = files.iter().flat_map(key).flatten().collect();
        let mut trinfos = files.keys().filter(|name| matches!(split_name(name).1, Some(FileName::Info(_))));
        let boot = trinfos.find_map(|name| {
            let text = read_info(&path.join(name)).ok()?;
            info::value(&text, "boot_id").map(<[u8]>::to_owned)
        });
        let real = fs::canonicalize(&path).unwrap_or_else(|_| path.clone());
        NamedDirectory { path, real, files, keys, boot }
    }

    /// Whether the records are of the same boot, as far as that is known, and neither directory is the other one, by another path, or
    /// read with that, which is known by their files.
    fn may_be_copy_of(&self, other: &NamedDirectory) -> bool {
        let is_of_another_boot = self.boot.is_some() && other.boot.is_some() && self.boot != other.boot;
        let is_same = is_read_with(&self.real, &other.real) || is_read_with(&other.real, &self.real);
        !is_of_another_boot && !is_same
    }

    /// Whether files of both begin with one record, or one begins with a record that the other's file of that name has, too, as two
    /// snapshots of a ring. Buffers of one name may be of different processes.
    fn shares_records_with(&self, other: &NamedDirectory) -> bool {
        let begins_within = |(name, file): (&PathBuf, &NamedFile)| {
            let mut files = [(self, file), (other, other.files.get(name)?)].map(|(directory, file)| {
                let line = file.first_line.as_ref()?;
                Some((columns::time(line)?, file.last_time, line, directory.path.join(name)))
            });
            files.sort();
            let [Some((_, last, _, earlier)), Some((first, _, line, _))] = files else { return None };
            let may_overlap = last >= Some(first);
            Some(may_overlap && has_line(&earlier, line).unwrap_or(false))
        };
        let mut shared = self.keys.intersection(&other.keys);
        shared.any(|key| key.contains(&b':')) || self.files.iter().filter_map(begins_within).any(|is_shared| is_shared)
    }

    /// Whether another directory has all files of this one, each of which begins with what is in this one's. Buffers are the same: what
    /// is in these is written to a file, or overwritten, later.
    fn is_part_of(&self, other: &NamedDirectory) -> bool {
        let begins_with = |name: &PathBuf| begins_with(&other.path.join(name), &self.path.join(name));
        let is_likely = |(name, file): (&PathBuf, &NamedFile)| {
            let Some(others) = other.files.get(name) else { return false };
            let has_line = file.first_line.is_none() || file.first_line == others.first_line;
            has_line && if file.is_buffers { others.size == file.size } else { others.size >= file.size }
        };
        // A trinfo is written anew.
        let is_info = |name: &PathBuf| matches!(split_name(name).1, Some(FileName::Info(_)));
        self.files.iter().all(is_likely) && self.files.keys().all(|name| is_info(name) || begins_with(name))
    }
}

/// The first line of a file, if it is complete.
fn first_line(path: &Path) -> Option<Vec<u8>> {
    let mut line = vec![0; RECORD_LEN_MAX + 1];
    let length = read_up_to(&file_handle::open(path).ok()?, &mut line, 0).ok()?;
    line.truncate(memchr(b'\n', &line[..length])?);
    Some(line)
}

/// The time of the last record in a file of this size, if there is one at its end.
fn last_time(path: &Path, size: u64) -> Option<u64> {
    let mut tail = vec![0; 2 * RECORD_LEN_MAX];
    let at = size.saturating_sub(tail.len() as u64);
    let length = read_up_to(&file_handle::open(path).ok()?, &mut tail, at).ok()?;
    tail[..length].split(|&byte| byte == b'\n').filter_map(columns::time).next_back()
}

/// Whether both files can be read, and the first one begins with what is in the other one.
fn begins_with(whole: &Path, part: &Path) -> bool {
    let (Ok(whole), Ok(part)) = (file_handle::open(whole), file_handle::open(part)) else { return false };
    let mut blocks = [vec![0; BLOCK_SIZE], vec![0; BLOCK_SIZE]];
    let mut at = 0;
    loop {
        let [of_whole, of_part] = &mut blocks;
        match (read_up_to(&whole, of_whole, at), read_up_to(&part, of_part, at)) {
            (Ok(_), Ok(0)) => return true,
            (Ok(others), Ok(length)) if others >= length && of_whole[..length] == of_part[..length] => {
                at += length as u64
            }
            _ => return false,
        }
    }
}

/// Whether a file has this line, a record that is no earlier than the file's first.
fn has_line(path: &Path, line: &[u8]) -> io::Result<bool> {
    let (file, finder) = (file_handle::open(path)?, Finder::new(line));
    let mut block = vec![0; BLOCK_SIZE + line.len()];
    for at in (0..).step_by(BLOCK_SIZE) {
        let length = read_up_to(&file, &mut block, at)?;
        if length == 0 || finder.find(&block[..length]).is_some() {
            return Ok(length > 0);
        }
        // Files are in the order of time, nearly.
        let last = block[..length].split(|&byte| byte == b'\n').nth(1).and_then(columns::time);
        if last > columns::time(line) {
            break;
        }
    }
    Ok(false)
}

fn bytes_of(path: &Path) -> Vec<u8> {
    path.as_os_str().as_bytes().to_owned()
}

/// The files of a directory and of what other users' processes and other PID namespaces have in it; none if it is a file.
fn files_of(directory: &Path) -> NamedFiles {
    let mut files = NamedFiles::new();
    for within in with_subdirectories(directory) {
        for entry in fs::read_dir(listed_directory(&within)).into_iter().flatten().flatten() {
            let path = within.join(entry.file_name());
            let Ok(metadata) = entry.metadata() else { continue };
            let kind = split_name(&path).1.filter(|_| metadata.is_file());
            let Some(kind) = kind.filter(|kind| !matches!(kind, FileName::Clock | FileName::Control)) else { continue };
            let Ok(name) = path.strip_prefix(directory) else { continue };
            let is_buffers = matches!(kind, FileName::Buffers(_) | FileName::Spare { .. });
            let first_line = if is_buffers { None } else { first_line(&path) };
            let last_time = first_line.as_ref().and_then(|_| last_time(&path, metadata.len()));
            files.insert(name.to_owned(), NamedFile { size: metadata.len(), is_buffers, first_line, last_time });
        }
    }
    files
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
        let first = ("tr.0000001.001", record_lines(1..5, 1));
        let second = ("u1000/tr.0000002.002", record_lines(3..9, 2));
        let trinfo = |boot: &str| ("trinfo.0000001", format!("boot_id {boot}\n"));
        write("whole", &[first.clone(), second.clone(), trinfo("1")]);
        write("copy", &[first.clone(), second.clone(), trinfo("1")]);
        write("earlier", &[("tr.0000001.001", record_lines(1..3, 1))]);
        // A file that was made later, but whose name is before the others.
        write("later", &[("tr.0000000.001", record_lines(4..9, 3)), first.clone(), second, trinfo("1")]);
        // Files of one name, of other processes.
        write("other", &[("tr.0000001.001", record_lines(12..15, 1))]);
        // Snapshots of a ring, and a directory that was damaged.
        write("shot", &[("tr.0000001.001", record_lines(20..2000, 1))]);
        write("next-shot", &[("tr.0000001.001", record_lines(1500..4000, 1))]);
        let (line, rest) = first.1.split_at(first.1.find('\n').unwrap() + 1);
        write("damaged", &[(first.0, format!("{line}{}", "\0".repeat(rest.len())))]);
        write("twin", &[first.clone(), trinfo("2")]);
        write("more", &[first.clone(), ("tr.0000003.003", record_lines(2..4, 3))]);
        // Killed programs, the buffers of one of which were not copied.
        write("buffers", &[first.clone(), ("trbuf.0000001", "records".to_owned())]);
        write("newer", &[first.clone(), ("trbuf.0000001", "Records".to_owned())]);
        write("same", &[first.clone(), ("trbuf.0000001", "records".to_owned())]);
        write("unbuffered", std::slice::from_ref(&first));
        // All of a killed program is in its buffers, and other processes may have their name.
        write("ring", &[("trbuf.0000001", "records".to_owned())]);
        write("ring-copy", &[("trbuf.0000001", "records".to_owned())]);
        write("other-ring", &[("trbuf.0000001", "Records".to_owned())]);
        // The first thread has written nothing when the directory is copied.
        write("late", &[("tr.0000001.001", record_lines(1..9, 1)), ("tr.0000001.002", record_lines(4..9, 2))]);
        write("late-copy", &[("tr.0000001.001", String::new()), ("tr.0000001.002", record_lines(4..6, 2))]);
        // Another process has the number now.
        write("again", &[("tr.0000001.001", record_lines(10..14, 1)), ("old.1.tr.0000001.001", first.1.clone())]);
        write("whole/backup", std::slice::from_ref(&first));
        write("within/u1000", std::slice::from_ref(&first));
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
        assert_eq!(read(&["earlier", "other", "whole"]), kept("other whole", 1, 0));
        assert_eq!(read(&["whole", "earlier", "copy"]), kept("whole", 2, 0));
        assert_eq!(read(&["whole", "later"]), kept("later", 1, 0));
        assert_eq!(read(&["whole", "more"]), kept("whole more", 0, 1));
        assert_eq!(read(&["more", "whole", "copy"]), kept("more whole", 1, 1));
        assert_eq!(read(&["whole", "other"]), kept("whole other", 0, 0));
        assert_eq!(read(&["twin", "whole"]), kept("twin whole", 0, 0), "of another boot");
        assert_eq!(read(&["unbuffered", "buffers"]), kept("buffers", 1, 0));
        assert_eq!(read(&["buffers", "same"]), kept("buffers", 1, 0));
        assert_eq!(read(&["buffers", "newer"]), kept("buffers newer", 0, 1));
        assert_eq!(read(&["ring", "ring-copy"]), kept("ring", 1, 0));
        assert_eq!(read(&["ring", "other-ring"]), kept("ring other-ring", 0, 0));
        assert_eq!(read(&["late", "late-copy"]), kept("late", 1, 0));
        assert_eq!(read(&["late-copy", "late"]), kept("late", 1, 0));
        assert_eq!(read(&["again", "unbuffered"]), kept("again unbuffered", 0, 0));
        assert_eq!(read(&["within", "within/u1000"]), kept("within u1000", 0, 0));
        // One directory by two paths is known by its files.
        assert_eq!(read(&["whole", "link"]), kept("whole link", 0, 0));
        assert_eq!(read(&["shot", "next-shot"]), kept("shot next-shot", 0, 1));
        assert_eq!(read(&["next-shot", "shot"]), kept("next-shot shot", 0, 1));
        assert_eq!(read(&["damaged", "unbuffered"]), kept("damaged unbuffered", 0, 1));
        assert_eq!(read(&["whole", "whole/backup"]), kept("whole", 1, 0));
        assert_eq!(read(&["copy"]), kept("copy", 0, 0));
    }
}
