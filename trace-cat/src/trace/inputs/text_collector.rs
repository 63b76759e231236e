//! A text of each record file, completed with what its process has in its buffers.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io::{self, Seek as _, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use log::info;
use spec::buffer::SpareLosses;
use spec::names::FileName;

use super::path_search::{PathSearch, RequestedFile, STANDARD_INPUT, UnreadFiles};
use super::spooled_file::spool;
use crate::support::diagnostics::{Diagnostics, reason};
use crate::support::progress::{Amount, Phase};
use crate::support::temporary_files::temporary_file_error;
use crate::trace::buffers::inspection;
use crate::trace::buffers::leftovers::{CopiedBuffers, ProcessLeftovers, ProcessState};
use crate::trace::buffers::spare;
use crate::trace::file_handle::{self, DescriptorBudget, FileHandle, FileIdentity};
use crate::trace::file_names::{ProcessFiles, listed_directory, owner_of_records, split_name};
use crate::trace::hosts::HostTable;
use crate::trace::known_files::KnownFiles;
use crate::trace::record_text::RecordText;
use crate::trace::thread_completeness::ThreadCompleteness;

/// What is to be merged.
#[derive(Debug, Default)]
pub struct TraceInputs {
    /// The texts in the order of their names, which decides between records of the same time.
    pub texts: Vec<Arc<RecordText>>,
    /// Every record file that is read.
    pub identities: HashSet<FileIdentity>,
    /// Every trbuf that was inspected.
    pub buffers: KnownFiles,
    /// The processes that run, with what the texts hold of their buffers.
    pub running: Vec<(ProcessFiles, CopiedBuffers)>,
    /// The processes that nobody's memory shows any more, with what the texts hold of their buffers.
    pub dead: Vec<(ProcessFiles, ProcessLeftovers)>,
    /// The hosts of the directories. There is none if all are read as they are.
    pub hosts: Arc<HostTable>,
}

impl TraceInputs {
    /// The IDs of the processes that run, as their records have them, each with the time of its copy.
    pub fn running_until(&self) -> Vec<(u32, u64)> {
        self.running.iter().map(|(_, copied)| (copied.pid, copied.copied_at)).collect()
    }

    /// Up to when the records of all running processes are complete; `None` if none runs.
    pub fn complete_until(&self) -> Option<u64> {
        self.running.iter().map(|(_, copied)| copied.complete_until).min()
    }

    /// What is left of each process, with its ID as its records show it.
    fn all_leftovers(&self) -> impl Iterator<Item = (u32, &ProcessLeftovers)> {
        let running = self.running.iter().map(|(process, copied)| (process, &copied.leftovers));
        let dead = self.dead.iter().map(|(process, leftovers)| (process, leftovers));
        running.chain(dead).map(|(process, leftovers)| {
            let host = self.hosts.view(&process.directory);
            (host.map_or(leftovers.pid, |host| host.shown(leftovers.pid)), leftovers)
        })
    }

    /// The processes whose trbufs were there.
    pub fn with_buffers(&self) -> impl Iterator<Item = u32> {
        self.all_leftovers().map(|(pid, _)| pid)
    }

    /// How many records each process lost that no loss record counts, by the process ID that its records show.
    pub fn unreported_losses(&self) -> Vec<(u32, u64)> {
        let losing = self.all_leftovers().filter(|(_, leftovers)| leftovers.lost > 0);
        losing.map(|(pid, leftovers)| (pid, leftovers.lost)).collect()
    }

    /// How many records each process whose buffers were read has lost, with those that loss records count; if any.
    pub fn losses_in_all(&self) -> Vec<(u32, u64)> {
        let losing = self.all_leftovers().filter(|(_, leftovers)| leftovers.lost_in_all > 0);
        losing.map(|(pid, leftovers)| (pid, leftovers.lost_in_all)).collect()
    }

    /// The processes of which records are missing that are newer than the last that are there: of these threads, or, if it is `None`, of
    /// all.
    pub fn missing_newest(&self) -> Vec<(u32, Option<Vec<u32>>)> {
        let missing = self.all_leftovers().filter_map(|(pid, leftovers)| match leftovers.has_own_memory {
            true => Some((pid, None)),
            false => Some((pid, Some(leftovers.losing.clone()))).filter(|_| !leftovers.losing.is_empty()),
        });
        missing.collect()
    }

    /// Whether the existing file with this number is one of those that are read.
    pub fn has(&self, identity: FileIdentity) -> bool {
        self.identities.contains(&identity) || self.buffers.has(identity)
    }
}

/// Collects what `paths`, files or directories, stand for. What cannot be read is reported and left out.
pub fn collect(paths: &[PathBuf], descriptors: &DescriptorBudget, diagnostics: &Diagnostics) -> TraceInputs {
    let hosts = HostTable::of(paths);
    hosts.report(diagnostics);
    collect_found(PathSearch::of(paths, false, diagnostics), hosts, descriptors, diagnostics)
}

/// As [`collect`], but a directory without a trace is no damage, and records are read as they are, whatever host they are of.
pub fn collect_if_any(paths: &[PathBuf], descriptors: &DescriptorBudget, diagnostics: &Diagnostics) -> TraceInputs {
    collect_found(PathSearch::of(paths, true, diagnostics), Arc::default(), descriptors, diagnostics)
}

/// As [`collect`], for processes that were running when their trbufs were seen, and may have ended meanwhile. Records are read as they are.
pub fn collect_processes(
    processes: Vec<ProcessFiles>,
    descriptors: &DescriptorBudget,
    diagnostics: &Diagnostics,
) -> TraceInputs {
    collect_found(PathSearch::of_processes(processes, diagnostics), Arc::default(), descriptors, diagnostics)
}

fn collect_found(
    search: PathSearch,
    hosts: Arc<HostTable>,
    descriptors: &DescriptorBudget,
    diagnostics: &Diagnostics,
) -> TraceInputs {
    let mut collector = TextCollector {
        inputs: TraceInputs { hosts, ..TraceInputs::default() },
        states: HashMap::new(),
        used_leftovers: HashSet::new(),
        completeness: ThreadCompleteness::default(),
        irregular: UnreadFiles::default(),
        descriptors,
        diagnostics,
    };
    // An argument may be a pipe, and reading a pipe is a phase of its own.
    let phase = match search.files.iter().any(|file| file.is_argument) {
        true => Phase::hidden(),
        false => diagnostics.start_phase("opening", Amount::Files(search.files.len() as u64)),
    };
    for file in search.files {
        collector.add_file(file);
        phase.advance(1);
    }
    drop(phase);
    collector.add_new_files(&search.processes);
    for process in search.processes {
        collector.add_files_never_made(&process);
    }
    for (path, number, losses) in search.losses {
        collector.add_losses(path, number, &losses);
    }
    collector.completeness.report(diagnostics);
    collector.irregular.report("not a regular file", diagnostics);
    let TextCollector { mut inputs, states, .. } = collector;
    for (process, state) in states.into_values() {
        match state {
            ProcessState::Running(mut copied) => {
                if let Some(host) = inputs.hosts.view(&process.directory) {
                    copied.pid = host.shown(copied.pid);
                    (copied.copied_at, copied.complete_until) =
                        (host.time(copied.copied_at), host.time(copied.complete_until));
                }
                inputs.running.push((process, copied));
            }
            ProcessState::Dead(leftovers) => inputs.dead.push((process, leftovers)),
            ProcessState::None | ProcessState::Alive => {}
        }
    }
    inputs.texts.sort_by(|a, b| (a.path.file_name(), &a.path).cmp(&(b.path.file_name(), &b.path)));
    info!("{} files to merge", inputs.texts.len());
    inputs
}

/// The texts so far.
struct TextCollector<'a> {
    inputs: TraceInputs,
    /// The processes whose trbufs were inspected, by the paths of the trbufs.
    states: HashMap<PathBuf, (ProcessFiles, ProcessState)>,
    /// The record files whose leftovers are in a text: the trbuf, and the file's number.
    used_leftovers: HashSet<(FileIdentity, u16)>,
    completeness: ThreadCompleteness,
    /// Pipes, directories and the like.
    irregular: UnreadFiles,
    descriptors: &'a DescriptorBudget,
    diagnostics: &'a Diagnostics,
}

impl TextCollector<'_> {
    /// The state of a process, whose trbuf is inspected the first time.
    fn state(&mut self, process: &ProcessFiles) -> &ProcessState {
        match self.states.entry(process.buffers_path()) {
            Entry::Occupied(known) => &known.into_mut().1,
            Entry::Vacant(new) => {
                // `DIR ./DIR` gives the same trbuf by two paths.
                let metadata = fs::metadata(new.key());
                let identity = metadata.map(|metadata| (metadata.dev(), metadata.ino()));
                let is_first =
                    identity.as_ref().map_or(true, |identity| self.inputs.buffers.insert(*identity, new.key()));
                let state =
                    if is_first { inspection::inspect(new.key(), self.diagnostics) } else { ProcessState::None };
                let leftovers = state.leftovers();
                let complete_from = leftovers.map_or(&[][..], |leftovers| &leftovers.complete_from);
                let reused = leftovers.map_or(0, |leftovers| leftovers.reused_rings);
                self.completeness.add_process(process, complete_from, reused, self.diagnostics);
                &new.insert((process.clone(), state)).1
            }
        }
    }

    /// Adds a record file, completed with what its process has in its buffers.
    fn add_file(&mut self, requested: RequestedFile) {
        // The trbuf is read before the file: a file does not change any more once its process is known to be dead.
        let mut growing = false;
        let mut leftovers_of_file = None;
        let mut end = u64::MAX;
        if let Some((process, number)) = &owner_of_records(&requested.path) {
            let state = self.state(process);
            if let Some(leftovers) = state.leftovers() {
                let regions = leftovers.files.get(number).cloned().unwrap_or_default();
                leftovers_of_file = Some((leftovers.handle.clone(), *number, regions));
            }
            match state {
                ProcessState::None | ProcessState::Dead(_) => {}
                ProcessState::Alive => growing = true,
                // What is written to the file after this end is in the copy.
                ProcessState::Running(copied) => (growing, end) = (true, copied.end(*number)),
            }
            self.completeness.add_file(process, *number);
        }
        let (file, length) = match self.open(&requested) {
            Ok(Some((file, length))) => (Some(Arc::new(file)), length),
            Ok(None) => return,
            Err(error) => {
                let has_leftovers = leftovers_of_file.as_ref().is_some_and(|(_, _, regions)| !regions.is_empty());
                if !has_leftovers || error.kind() != io::ErrorKind::NotFound {
                    self.diagnostics.report_damage(requested.path.display(), reason(&error));
                }
                if !has_leftovers {
                    return;
                }
                (None, 0)
            }
        };
        let mut text = RecordText::new(requested.path, file, length.min(end), growing);
        if let Some((buffers, number, regions)) = leftovers_of_file
            && self.used_leftovers.insert((buffers.identity, number))
        {
            text.add_leftovers(&buffers, &regions, self.diagnostics);
        }
        self.add_text(text);
    }

    fn add_text(&mut self, mut text: RecordText) {
        text.host = text.path.parent().and_then(|directory| self.inputs.hosts.view(directory));
        self.inputs.texts.push(Arc::new(text));
    }

    /// Opens a file with its length; `None` if it is in another text already, or holds no records.
    fn open(&mut self, requested: &RequestedFile) -> io::Result<Option<(FileHandle, u64)>> {
        let mut input = match requested.path == Path::new(STANDARD_INPUT) {
            true => Some(File::from(io::stdin().as_fd().try_clone_to_owned()?)),
            false => None,
        };
        let metadata = input.as_ref().map_or_else(|| fs::metadata(&requested.path), File::metadata)?;
        if !metadata.is_file() && !requested.is_argument {
            self.irregular.add(requested.path.clone());
            return Ok(None);
        }
        if metadata.is_file()
            && let Some(input) = input.take_if(|input| input.stream_position().is_ok_and(|offset| offset > 0))
        {
            // Another process has read the beginning.
            return spool(&requested.path, input, self.diagnostics).map(Some);
        }
        let identity = (metadata.dev(), metadata.ino());
        if self.inputs.identities.contains(&identity) {
            info!("{}: named twice, read once", requested.path.display());
            return Ok(None);
        }
        let path = requested.path.clone();
        let opened = match input {
            Some(input) if metadata.is_file() => {
                let length = metadata.len();
                (FileHandle::copied(path, &input.try_clone()?, input)?, length)
            }
            None if metadata.is_file() => {
                let file = file_handle::open(&path)?;
                // A live process may append to the file; only what it holds now is read.
                let length = file.metadata()?.len();
                (FileHandle::new(path, file, self.descriptors)?, length)
            }
            input => spool(&path, input.map_or_else(|| File::open(&path), Ok)?, self.diagnostics)?,
        };
        self.inputs.identities.insert(identity);
        Ok(Some(opened))
    }

    /// Adds files that processes made after their directory was listed and before their trbuf was inspected, when they
    /// were running or ending.
    fn add_new_files(&mut self, processes: &[ProcessFiles]) {
        let mut by_directory: HashMap<&Path, HashSet<(&[u8], u32)>> = HashMap::new();
        for process in processes {
            self.state(process);
            by_directory.entry(&process.directory).or_default().insert((&process.prefix, process.number));
        }
        if by_directory.is_empty() {
            return;
        }
        let known: HashSet<PathBuf> = self.inputs.texts.iter().map(|text| text.path.clone()).collect();
        for (directory, processes) in by_directory {
            // The directory was readable before, so a failure now is not reported.
            for entry in fs::read_dir(listed_directory(directory)).into_iter().flatten().flatten() {
                let path = directory.join(entry.file_name());
                let (prefix, Some(FileName::Records { process: number, .. })) = split_name(&path) else { continue };
                if processes.contains(&(prefix, number)) && !known.contains(&path) {
                    self.add_file(RequestedFile { path, is_argument: false });
                }
            }
        }
    }

    /// Adds a text with one record: how many records children in a sandbox have lost.
    fn add_losses(&mut self, path: PathBuf, number: u32, losses: &SpareLosses) {
        let Ok(metadata) = fs::metadata(&path) else { return };
        if !self.inputs.buffers.insert((metadata.dev(), metadata.ino()), &path) {
            return;
        }
        spare::report(&path, losses, self.diagnostics);
        let line = spare::loss_record(losses, number);
        let file = tempfile::tempfile().and_then(|mut file| file.write_all(line.as_bytes()).map(|()| file));
        match file.map_err(temporary_file_error) {
            Ok(file) => {
                let file = Arc::new(FileHandle::unnamed(path.clone(), file));
                self.add_text(RecordText::new(path, Some(file), line.len() as u64, false));
            }
            Err(error) => self.diagnostics.report_damage(path.display(), reason(&error)),
        }
    }

    /// Adds texts of the record files that a process has leftovers for and never made.
    fn add_files_never_made(&mut self, process: &ProcessFiles) {
        let Some(leftovers) = self.state(process).leftovers() else { return };
        let buffers = leftovers.handle.clone();
        let files = leftovers.files.clone();
        for (number, regions) in files {
            if !self.used_leftovers.insert((buffers.identity, number)) {
                continue;
            }
            self.completeness.add_file(process, number);
            let path = process.path(FileName::Records { process: process.number, lwp: number });
            let mut text = RecordText::new(path, None, 0, false);
            text.add_leftovers(&buffers, &regions, self.diagnostics);
            self.add_text(text);
        }
    }
}
