//! The record files and the processes that paths stand for. Only names decide here; no record file is opened.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use log::debug;
use spec::buffer::SpareLosses;
use spec::names::FileName;

use crate::support::diagnostics::{Diagnostics, reason};
use crate::support::inherited_state;
use crate::trace::buffers::slots::read_up_to;
use crate::trace::buffers::spare::{self, SpareContents};
use crate::trace::file_handle;
use crate::trace::file_names::{ProcessFiles, is_present_subdirectory, is_split_name, listed_directory, split_name};

/// The version of the trace format that this program knows.
const FORMAT: i64 = 1;

/// The path of the standard input, which is never opened by it: a socket has no path that can be opened, a file may belong
/// to another user, and an opened file begins anew.
pub const STANDARD_INPUT: &str = "/dev/stdin";

/// A record file to be read.
pub struct RequestedFile {
    /// Where it is.
    pub path: PathBuf,
    /// It stands on the command line, and was not discovered in a directory.
    pub is_argument: bool,
}

/// Files that have names of a trace's files and are not read.
#[derive(Debug, Default)]
pub struct UnreadFiles(BTreeSet<PathBuf>);

impl UnreadFiles {
    pub fn add(&mut self, path: PathBuf) {
        self.0.insert(path);
    }

    /// Reports them in one message, if there are any.
    pub fn report(&self, why: &str, diagnostics: &Diagnostics) {
        let Some(first) = self.0.first() else { return };
        match self.0.len() - 1 {
            0 => diagnostics.report_note(first.display(), format_args!("{why}; it is not read")),
            more => {
                diagnostics.report_note(first.display(), format_args!("{why}; it is not read, nor are {more} more"))
            }
        }
    }
}

/// The result of the search, and how it is made.
pub struct PathSearch<'a> {
    /// The record files, perhaps some of them twice.
    pub files: Vec<RequestedFile>,
    /// The processes that have a trbuf, perhaps some of them twice.
    pub processes: Vec<ProcessFiles>,
    /// The pages where children in a sandbox have counted what they lost, each with the number of its name.
    pub losses: Vec<(PathBuf, u32, SpareLosses)>,
    /// A directory without a trace is no damage.
    may_be_empty: bool,
    diagnostics: &'a Diagnostics,
}

impl<'a> PathSearch<'a> {
    /// Finds what `paths`, which are files or directories, stand for, and reports what cannot be read.
    pub fn of(paths: &[PathBuf], may_be_empty: bool, diagnostics: &'a Diagnostics) -> PathSearch<'a> {
        let mut search =
            PathSearch { files: Vec::new(), processes: Vec::new(), losses: Vec::new(), may_be_empty, diagnostics };
        paths.iter().for_each(|path| search.add_argument(path));
        if let Some(path) = paths.iter().find(|path| is_without_records(path))
            && search.files.is_empty()
            && search.processes.is_empty()
            && !may_be_empty
        {
            diagnostics.report_damage(path.display(), "holds no records: name the directory, or files tr.xxxxxxx.yyy");
        }
        search
    }

    /// Finds the files of processes. One that has ended since its trbuf was seen has none any more: what it recorded is in the others.
    pub fn of_processes(processes: Vec<ProcessFiles>, diagnostics: &'a Diagnostics) -> PathSearch<'a> {
        let mut search = PathSearch::of(&[], true, diagnostics);
        processes.into_iter().for_each(|process| search.add_process(process));
        search
    }

    fn add_argument(&mut self, path: &Path) {
        let path = if path == "-" { Path::new(STANDARD_INPUT) } else { path };
        if path == STANDARD_INPUT && inherited_state::was_closed(libc::STDIN_FILENO) {
            return self.diagnostics.report_damage(path.display(), "is closed");
        }
        if fs::metadata(path).is_ok_and(|metadata| metadata.is_dir()) {
            let count = self.add_directory_with_subdirectories(path);
            if count == Some(0) && !self.add_split_files(path) && !self.may_be_empty {
                let hint = subdirectory_hint(path);
                self.diagnostics
                    .report_damage(path.display(), format_args!("no trace here (no file tr.xxxxxxx.yyy){hint}"));
            }
            return;
        }
        match split_name(path).1 {
            Some(FileName::Buffers(number)) => {
                // A trbuf stands for all files of its process.
                if let Err(error) = fs::symlink_metadata(path) {
                    return self.diagnostics.report_damage(path.display(), reason(&error));
                }
                self.add_process(ProcessFiles::of_file(path, number));
            }
            Some(FileName::Spare { process, number }) => _ = self.add_spare(path.to_owned(), process, number),
            Some(_) if is_without_records(path) => debug!("{}: holds no records", path.display()),
            _ => self.files.push(RequestedFile { path: path.to_owned(), is_argument: true }),
        }
    }

    fn add_process(&mut self, process: ProcessFiles) {
        let accepted = |prefix: &[u8], name| {
            *prefix == process.prefix
                && matches!(name, FileName::Records { process: number, .. } if number == process.number)
        };
        self.add_directory(listed_directory(&process.directory), accepted, &mut Vec::new());
        self.processes.push(process);
    }

    /// Adds a trace directory and what processes of other users and PID namespaces have recorded in it; returns how many files
    /// and processes, or `None` if the directory cannot be read.
    fn add_directory_with_subdirectories(&mut self, path: &Path) -> Option<usize> {
        let mut subdirectories = Vec::new();
        let mut count = self.add_directory(path, |prefix, _| prefix.is_empty(), &mut subdirectories)?;
        while let Some(inner) = subdirectories.pop() {
            // A subdirectory of another user's cannot be read by all.
            count += self.add_directory(&inner, |prefix, _| prefix.is_empty(), &mut subdirectories).unwrap_or(0);
        }
        Some(count)
    }

    /// Adds the files that `--split` has made in a directory; returns whether there are any.
    fn add_split_files(&mut self, directory: &Path) -> bool {
        let entries = fs::read_dir(directory).into_iter().flatten().flatten();
        let paths = entries.map(|entry| directory.join(entry.file_name())).filter(|path| is_split_name(path));
        let before = self.files.len();
        self.files.extend(paths.map(|path| RequestedFile { path, is_argument: false }));
        self.files.len() > before
    }

    /// Adds a directory's record files and processes whose prefix and name are `accepted`; returns how many, or `None`
    /// if the directory cannot be read. Its subdirectories are added to `subdirectories`.
    fn add_directory(
        &mut self,
        directory: &Path,
        accepted: impl Fn(&[u8], FileName) -> bool,
        subdirectories: &mut Vec<PathBuf>,
    ) -> Option<usize> {
        let mut count = 0;
        let mut unread = UnreadFiles::default();
        let owner = file_handle::owner_of_subdirectory(directory);
        let entries = fs::read_dir(directory)
            .map_err(|error| self.diagnostics.report_damage(directory.display(), reason(&error)));
        for entry in entries.ok()? {
            let name = match entry {
                Ok(entry) => entry.file_name().into_vec(),
                Err(error) => {
                    self.diagnostics.report_damage(directory.display(), reason(&error));
                    break;
                }
            };
            let path = directory.join(OsStr::from_bytes(&name));
            if is_present_subdirectory(&path) {
                subdirectories.push(path);
                continue;
            }
            let (prefix, Some(parsed)) = split_name(&path) else { continue };
            if !accepted(prefix, parsed) {
                continue;
            }
            if let Some(owner) = &owner
                && !file_handle::is_path_of_owner(&path, owner)
            {
                unread.add(path);
                continue;
            }
            match parsed {
                FileName::Records { .. } => self.files.push(RequestedFile { path, is_argument: false }),
                FileName::Buffers(number) => self.processes.push(ProcessFiles::of_file(&path, number)),
                FileName::Info(_) => {
                    self.check_format(&path);
                    continue;
                }
                FileName::Spare { process, number } => {
                    if !self.add_spare(path, process, number) {
                        continue;
                    }
                }
                FileName::Clock | FileName::Control => continue,
            }
            count += 1;
        }
        unread.report("no file of the directory's owner", self.diagnostics);
        Some(count)
    }

    /// Adds a spare trbuf if a child in a sandbox has claimed it, or if it counts losses; whether that is so.
    fn add_spare(&mut self, path: PathBuf, process: u32, number: u8) -> bool {
        let files = FileName::number_of_spare(process, number);
        match spare::contents(&path, number) {
            Ok(Some(SpareContents::Buffers(_))) => self.processes.push(ProcessFiles::of_file(&path, files)),
            Ok(Some(SpareContents::Losses(losses))) => self.losses.push((path, files, losses)),
            Ok(Some(SpareContents::Blank) | None) => return false,
            Err(error) => {
                self.diagnostics.report_damage(path.display(), reason(&error));
                return false;
            }
        }
        true
    }

    /// Reports a process whose trinfo names another format than this program knows. Its files are read all the same:
    /// lines that are no records are reported one by one.
    fn check_format(&self, path: &Path) {
        // The format stands in the first line.
        let mut text = [0; 32];
        let length = file_handle::open(path).and_then(|file| read_up_to(&file, &mut text, 0)).unwrap_or(0);
        if let Some(format) = spec::info::number(&text[..length], "format").filter(|&format| format != FORMAT) {
            self.diagnostics
                .report_damage(path.display(), format_args!("format {format}; this trace-cat knows format {FORMAT}"));
        }
    }
}

/// Whether the name is that of a file beside the records: about a process, or the directory.
fn is_without_records(path: &Path) -> bool {
    matches!(split_name(path).1, Some(FileName::Info(_) | FileName::Clock | FileName::Control))
}

/// Which directories below one without a trace have any: somebody named the directory that `run` made them in.
fn subdirectory_hint(directory: &Path) -> String {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(|path| has_trace(path)).collect();
    // The newest run of a program is mostly meant.
    found.sort_by_cached_key(|path| fs::metadata(path).and_then(|metadata| metadata.modified()).ok());
    match found.split_last() {
        None => String::new(),
        Some((newest, [])) => format!("; there is one in {}", newest.display()),
        Some((newest, others)) => {
            format!("; there are {} below it, the newest in {}", others.len() + 1, newest.display())
        }
    }
}

/// Whether a directory itself has records.
fn has_trace(directory: &Path) -> bool {
    let mut entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries
        .any(|entry| matches!(split_name(&entry.path()), (b"", Some(FileName::Records { .. } | FileName::Buffers(_)))))
}
