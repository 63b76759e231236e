//! From the paths on the command line to the texts that are to be merged.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, IsTerminal as _, Read as _, Write as _};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use log::{debug, info};
use spec::names::FileName;

use crate::support::diagnostics::{Diagnostics, reason};
use crate::support::inherited_state;
use crate::support::progress::{Amount, Phase};
use crate::support::temporary_files::temporary_file_error;
use crate::trace::buffers::inspection;
use crate::trace::buffers::leftovers::CopiedBuffers;
use crate::trace::buffers::process_state::ProcessState;
use crate::trace::buffers::slots::read_up_to;
use crate::trace::file_handle;
use crate::trace::file_handle::{DescriptorBudget, FileHandle, FileIdentity};
use crate::trace::file_names::{ProcessFiles, split_name};
use crate::trace::record_text::RecordText;
use crate::trace::thread_completeness::Completeness;

/// The format of traces that is known here.
const FORMAT: i64 = 1;

/// What is to be read.
#[derive(Debug, Default)]
pub struct TraceInputs {
    /// The texts in the order of their names, which decides between records of the same time.
    pub texts: Vec<Arc<RecordText>>,
    /// Every file that is read, trbufs included.
    pub identities: HashSet<FileIdentity>,
    /// The processes that run, with what of them is in the texts.
    pub running: Vec<(ProcessFiles, CopiedBuffers)>,
    /// The trbufs of dead processes, whose rest is in the texts.
    pub dead: HashSet<FileIdentity>,
}

/// Finds what `paths`, files or directories, stand for. What cannot be read is told and left out.
pub fn collect(paths: &[PathBuf], descriptors: &DescriptorBudget, diagnostics: &Diagnostics) -> TraceInputs {
    find(paths, false, descriptors, diagnostics)
}

/// Does the same where nothing need be there yet.
pub fn collect_if_any(paths: &[PathBuf], descriptors: &DescriptorBudget, diagnostics: &Diagnostics) -> TraceInputs {
    find(paths, true, descriptors, diagnostics)
}

fn find(
    paths: &[PathBuf],
    may_be_empty: bool,
    descriptors: &DescriptorBudget,
    diagnostics: &Diagnostics,
) -> TraceInputs {
    let mut search = PathSearch { wanted: Vec::new(), processes: Vec::new(), may_be_empty, diagnostics };
    for path in paths {
        search.argument(path);
    }
    let mut collector = InputCollector {
        inputs: TraceInputs::default(),
        states: HashMap::new(),
        taken: HashSet::new(),
        wholes: Completeness::default(),
        descriptors,
        diagnostics,
    };
    // What is named may be a pipe, which has a phase of its own.
    let phase = match search.wanted.iter().any(|wanted| wanted.named) {
        true => Phase::hidden(),
        false => diagnostics.start_phase("opening", Amount::Files(search.wanted.len() as u64)),
    };
    for wanted in search.wanted {
        collector.file(wanted);
        phase.advance(1);
    }
    drop(phase);
    collector.files_made_meanwhile(&search.processes);
    for process in search.processes {
        collector.rest_of_process(&process);
    }
    collector.wholes.tell(diagnostics);
    let InputCollector { mut inputs, states, .. } = collector;
    inputs.running = states
        .into_values()
        .filter_map(|(process, state)| match state {
            ProcessState::Running(copied) => Some((process, copied)),
            _ => None,
        })
        .collect();
    inputs.texts.sort_by(|a, b| (a.path().file_name(), a.path()).cmp(&(b.path().file_name(), b.path())));
    info!("{} files to merge", inputs.texts.len());
    inputs
}

/// A record file that was asked for.
struct WantedFile {
    path: PathBuf,
    /// Whose it is, and the last three digits of its name, if the name tells.
    owner: Option<(ProcessFiles, u16)>,
    /// It was named on the command line, not found in a directory.
    named: bool,
}

/// The first step: names.
struct PathSearch<'a> {
    wanted: Vec<WantedFile>,
    processes: Vec<ProcessFiles>,
    /// A directory without a trace is no damage.
    may_be_empty: bool,
    diagnostics: &'a Diagnostics,
}

impl PathSearch<'_> {
    fn argument(&mut self, path: &Path) {
        let path = if path == "-" { Path::new("/dev/stdin") } else { path };
        if path == "/dev/stdin" && inherited_state::was_closed(libc::STDIN_FILENO) {
            return self.diagnostics.report_damage(path.display(), "is closed");
        }
        if fs::metadata(path).is_ok_and(|metadata| metadata.is_dir()) {
            let found = self.directory(path, |prefix, _| prefix.is_empty());
            if found == Some(0) && !self.may_be_empty {
                self.diagnostics.report_damage(path.display(), "no trace here (no file tr.xxxxxxx.yyy)");
            }
            return;
        }
        let (prefix, name) = split_name(path);
        let directory = path.parent().unwrap_or(Path::new("")).to_owned();
        match name {
            Some(FileName::Buffers(number)) => {
                // A trbuf stands for its process.
                if let Err(error) = fs::symlink_metadata(path) {
                    return self.diagnostics.report_damage(path.display(), reason(&error));
                }
                let process = ProcessFiles { directory, prefix: prefix.to_owned(), number };
                let listed = if process.directory.as_os_str().is_empty() { Path::new(".") } else { &process.directory };
                self.directory(listed, |prefix, name| {
                    *prefix == process.prefix && matches!(name, FileName::Records { process, .. } if process == number)
                });
                self.processes.push(process);
            }
            Some(FileName::Info(_) | FileName::Clock) => debug!("{}: holds no records", path.display()),
            Some(FileName::Records { process, lwp }) => {
                let process = ProcessFiles { directory, prefix: prefix.to_owned(), number: process };
                self.wanted.push(WantedFile { path: path.to_owned(), owner: Some((process, lwp)), named: true });
            }
            None => self.wanted.push(WantedFile { path: path.to_owned(), owner: None, named: true }),
        }
    }

    /// Takes a directory's record files and processes whose prefix and name are wanted; returns how many, or `None`
    /// if the directory cannot be read.
    fn directory(&mut self, directory: &Path, wants: impl Fn(&[u8], FileName) -> bool) -> Option<usize> {
        let mut count = 0;
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
            let (prefix, Some(parsed)) = split_name(&path) else { continue };
            if !wants(prefix, parsed) {
                continue;
            }
            let process = |number| ProcessFiles { directory: directory.to_owned(), prefix: prefix.to_owned(), number };
            match parsed {
                FileName::Records { process: number, lwp } => {
                    let owner = Some((process(number), lwp));
                    self.wanted.push(WantedFile { path, owner, named: false });
                }
                FileName::Buffers(number) => self.processes.push(process(number)),
                FileName::Info(_) => {
                    self.format(&path);
                    continue;
                }
                FileName::Clock => continue,
            }
            count += 1;
        }
        Some(count)
    }
}

impl PathSearch<'_> {
    /// Tells if a process's files are of a later format than this program knows. They are read all the same: lines that are
    /// not understood are told one by one.
    fn format(&self, path: &Path) {
        // It is the first line.
        let mut text = [0; 32];
        let length = file_handle::open(path).and_then(|file| read_up_to(&file, &mut text, 0)).unwrap_or(0);
        if let Some(format) = spec::info::number(&text[..length], "format").filter(|&format| format != FORMAT) {
            self.diagnostics
                .report_damage(path.display(), format_args!("format {format}; this trace-cat knows format {FORMAT}"));
        }
    }
}

/// The second step: files.
struct InputCollector<'a> {
    inputs: TraceInputs,
    /// What is known of each trbuf.
    states: HashMap<PathBuf, (ProcessFiles, ProcessState)>,
    /// What of which trbuf has found its text.
    taken: HashSet<(FileIdentity, u16)>,
    /// From what moment on threads are complete.
    wholes: Completeness,
    descriptors: &'a DescriptorBudget,
    diagnostics: &'a Diagnostics,
}

impl InputCollector<'_> {
    fn state(&mut self, process: &ProcessFiles) -> &ProcessState {
        match self.states.entry(process.path(FileName::Buffers(process.number))) {
            Entry::Occupied(known) => &known.into_mut().1,
            Entry::Vacant(new) => {
                // The same one may be there by another name: `DIR ./DIR`.
                let metadata = fs::metadata(new.key());
                let identity = metadata.map(|metadata| (metadata.dev(), metadata.ino()));
                let first = identity.as_ref().map_or(true, |identity| self.inputs.identities.insert(*identity));
                let state = if first { inspection::inspect(new.key(), self.diagnostics) } else { ProcessState::None };
                if matches!(state, ProcessState::Dead(_)) {
                    self.inputs.dead.extend(identity);
                }
                let told = state.leftovers().map_or(&[][..], |leftovers| &leftovers.whole);
                self.wholes.process(process, told, self.diagnostics);
                &new.insert((process.clone(), state)).1
            }
        }
    }

    /// Adds a record file, put together with what its process left.
    fn file(&mut self, wanted: WantedFile) {
        // The trbuf comes first: once its owner is dead, the file does not change any more.
        let mut growing = false;
        let mut rest = None;
        let mut end = u64::MAX;
        if let Some((process, number)) = &wanted.owner {
            let state = self.state(process);
            if let Some(leftovers) = state.leftovers() {
                let found = leftovers.files.get(number).cloned().unwrap_or_default();
                rest = Some((leftovers.handle.clone(), *number, found));
            }
            match state {
                ProcessState::None | ProcessState::Dead(_) => {}
                ProcessState::Alive => growing = true,
                // What comes to the file from then on is in the copy.
                ProcessState::Running(copied) => (growing, end) = (true, copied.end(*number)),
            }
            self.wholes.file(process, *number);
        }
        let (file, length) = match self.open(&wanted) {
            Ok(Some((file, length))) => (Some(Arc::new(file)), length),
            Ok(None) => return,
            Err(error) => {
                let left = rest.as_ref().is_some_and(|(_, _, found)| !found.is_empty());
                if !left || error.kind() != io::ErrorKind::NotFound {
                    self.diagnostics.report_damage(wanted.path.display(), reason(&error));
                }
                if !left {
                    return;
                }
                (None, 0)
            }
        };
        let mut text = RecordText::new(wanted.path, file, length.min(end), growing);
        if let Some((handle, number, found)) = rest
            && self.taken.insert((handle.identity(), number))
        {
            text.add_leftovers(&handle, &found, self.diagnostics);
        }
        self.inputs.texts.push(Arc::new(text));
    }

    /// Opens a file with its length, or `None` if it is read already or is no file of records.
    fn open(&mut self, wanted: &WantedFile) -> io::Result<Option<(FileHandle, u64)>> {
        let metadata = fs::metadata(&wanted.path)?;
        if !metadata.is_file() && !wanted.named {
            info!("{}: not a regular file", wanted.path.display());
            return Ok(None);
        }
        let identity = (metadata.dev(), metadata.ino());
        if self.inputs.identities.contains(&identity) {
            info!("{}: named twice, read once", wanted.path.display());
            return Ok(None);
        }
        let opened = if metadata.is_file() {
            let file = file_handle::open(&wanted.path)?;
            // A live process may append: what is there now is what will be read.
            let length = file.metadata()?.len();
            (FileHandle::new(wanted.path.clone(), file, self.descriptors)?, length)
        } else {
            spool(&wanted.path, self.diagnostics)?
        };
        self.inputs.identities.insert(identity);
        Ok(Some(opened))
    }

    /// Adds files that processes have made since the directory was read, before their trbuf was: they may have run on until
    /// then, or have come to their end.
    fn files_made_meanwhile(&mut self, processes: &[ProcessFiles]) {
        let mut by_directory: HashMap<&Path, HashSet<(&[u8], u32)>> = HashMap::new();
        for process in processes {
            self.state(process);
            by_directory.entry(&process.directory).or_default().insert((&process.prefix, process.number));
        }
        if by_directory.is_empty() {
            return;
        }
        let known: HashSet<PathBuf> = self.inputs.texts.iter().map(|text| text.path().to_owned()).collect();
        for (directory, processes) in by_directory {
            let listed = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
            // That it can be read has been seen.
            for entry in fs::read_dir(listed).into_iter().flatten().flatten() {
                let path = directory.join(entry.file_name());
                let (prefix, Some(FileName::Records { process: number, lwp })) = split_name(&path) else { continue };
                if processes.contains(&(prefix, number)) && !known.contains(&path) {
                    let process = ProcessFiles { directory: directory.to_owned(), prefix: prefix.to_owned(), number };
                    self.file(WantedFile { path, owner: Some((process, lwp)), named: false });
                }
            }
        }
    }

    /// Adds what a process left, or has in its buffers, for record files that were not made.
    fn rest_of_process(&mut self, process: &ProcessFiles) {
        let Some(leftovers) = self.state(process).leftovers() else { return };
        let handle = leftovers.handle.clone();
        let files = leftovers.files.clone();
        for (number, found) in files {
            if !self.taken.insert((handle.identity(), number)) {
                continue;
            }
            self.wholes.file(process, number);
            let path = process.path(FileName::Records { process: process.number, lwp: number });
            let mut text = RecordText::new(path, None, 0, false);
            text.add_leftovers(&handle, &found, self.diagnostics);
            self.inputs.texts.push(Arc::new(text));
        }
    }
}

/// Copies what a pipe or a device holds to a temporary file, since records are read twice.
fn spool(path: &Path, diagnostics: &Diagnostics) -> io::Result<(FileHandle, u64)> {
    let mut from = File::open(path)?;
    let mut to = tempfile::tempfile().map_err(temporary_file_error)?;
    // Not on the terminal on which it is typed.
    let phase = if from.is_terminal() { Phase::hidden() } else { diagnostics.start_phase("reading", Amount::Unknown) };
    let (mut length, mut buffer) = (0, vec![0; 256 << 10]);
    loop {
        let count = match from.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        to.write_all(&buffer[..count]).map_err(temporary_file_error)?;
        length += count as u64;
        phase.advance(count as u64);
    }
    debug!("{}: {length} bytes put aside", path.display());
    Ok((FileHandle::unnamed(path.to_owned(), to), length))
}
