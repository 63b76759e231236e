//! The processes of trace directories, from the names of their files and from trinfo.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::fs::{self, DirEntry};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use spec::info::{self, RINGS_REUSED};
use spec::names::{FileName, pid_of_spare};

use crate::support::shell::quoted;
use crate::support::visible_text::visible_bytes;
use crate::trace::buffers::spare::{self, SpareContents};
use crate::trace::counted_losses::CountedLosses;
use crate::trace::file_handle::{self, read_info};
use crate::trace::file_names::{FileGroup, ProcessFiles, is_present_subdirectory, split_name};
use crate::trace::host_directories::pid_in_records;
use crate::trace::host_view::HostView;
use crate::trace::hosts::HostTable;

/// A process with files in a directory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessInfo {
    /// The process ID: from trinfo, or else the number in the names of the process's files.
    pub pid: u32,
    /// The process ID of its parent, 0 if unknown.
    pub parent: u32,
    /// The process ID of the process that forked it, in that process's PID namespace; 0 if unknown.
    pub forked_from: u32,
    /// What its files' names begin with: `old.START.` if another process got their names, else nothing.
    pub prefix: Vec<u8>,
    /// When it began, in clock ticks since the boot; 0 if unknown.
    pub start: u64,
    /// The boot, and the PID namespace that `pid` and `parent` are of; both as trinfo has them.
    pub system: [Vec<u8>; 2],
    /// The command line of its last program; empty if unknown.
    pub command: String,
    /// Paths of its record files.
    pub records: Vec<PathBuf>,
    /// Reasons why calls may be missing in its records.
    pub notes: Vec<String>,
    /// How many records its rings have room for; `None` if it has none. Older ones may be missing.
    pub ring: Option<String>,
    /// How many records its programs have lost, as they have counted.
    pub lost: u64,
    /// The paths of its trbufs; as inputs they stand for the record files, too.
    pub buffers: Vec<PathBuf>,
    /// What is added to the times of its records, nanoseconds.
    pub shift: i64,
    /// The process ID on its own host, if it is known by another number because another host has the same one.
    pub own_pid: Option<u32>,
}

/// The processes of a directory, in the order of their names; those whose files were renamed come last. What they recorded as
/// another user or in another PID namespace, in subdirectories, is theirs.
pub fn processes_in_directory(directory: &Path) -> Vec<ProcessInfo> {
    let mut named: BTreeMap<(Vec<u8>, u32), ProcessInfo> = BTreeMap::new();
    let owner = file_handle::owner_of_subdirectory(directory);
    let mut inner = Vec::new();
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = directory.join(entry.file_name());
        if is_present_subdirectory(&path) {
            inner.extend(processes_in_directory(&path));
            continue;
        }
        let (prefix, Some(name)) = split_name(&path) else { continue };
        let number = match name {
            FileName::Records { process: number, .. } | FileName::Buffers(number) | FileName::Info(number) => number,
            FileName::Spare { process, number } => FileName::number_of_spare(process, number),
            FileName::Clock | FileName::Control => continue,
        };
        if owner.as_ref().is_some_and(|owner| !file_handle::is_path_of_owner(&path, owner)) {
            continue;
        }
        let process = named.entry((prefix.to_owned(), number)).or_insert_with(|| ProcessInfo {
            pid: number,
            prefix: prefix.to_owned(),
            ..ProcessInfo::default()
        });
        match name {
            FileName::Records { .. } if !is_file(&entry) => {}
            FileName::Records { .. } => process.records.push(path),
            FileName::Buffers(_) => process.buffers.push(path),
            FileName::Info(_) => process.read(&path),
            FileName::Spare { number, .. } => process.read_spare(path, number),
            FileName::Clock | FileName::Control => {}
        }
    }
    add_programs_of_makers(&mut named);
    // A process with nothing but a trinfo has no record.
    let has_records = |process: &ProcessInfo| !process.records.is_empty() || !process.buffers.is_empty();
    let mut processes: Vec<ProcessInfo> = named.into_values().filter(has_records).collect();
    let mut known: HashMap<Identity, usize> =
        processes.iter().enumerate().map(|(index, process)| (process.identity(), index)).collect();
    for process in inner {
        match known.get(&process.identity()) {
            Some(&index) => processes[index].add(process),
            None => {
                known.insert(process.identity(), processes.len());
                processes.push(process);
            }
        }
    }
    processes.iter_mut().for_each(|process| process.records.sort());
    processes
}

/// Gives processes that recorded in spare trbufs, and so have no trinfo, the program of the process that made the trbufs, which
/// is their ancestor; and those whose trbufs have been recovered the ID that is in their records.
fn add_programs_of_makers(named: &mut BTreeMap<(Vec<u8>, u32), ProcessInfo>) {
    let keys: Vec<(Vec<u8>, u32)> = named.keys().cloned().collect();
    for (prefix, number) in keys {
        let FileName::Spare { process: maker, .. } = FileName::buffers(number) else { continue };
        let first = FileName::number_of_spare(maker, 0);
        let maker = named.get(&(prefix.clone(), maker)).or_else(|| {
            // It has recorded nothing itself: the first of its children stands for it.
            let others = named.range((prefix.clone(), first)..=(prefix.clone(), first | 31));
            let mut others = others.map(|(_, process)| process);
            others.find(|process| !process.buffers.is_empty() || !process.records.is_empty())
        });
        let Some(maker) = maker.cloned() else { continue };
        let Some(process) = named.get_mut(&(prefix, number)) else { continue };
        process.parent = if maker.pid == process.pid { 0 } else { maker.pid };
        process.command = maker.command;
        (process.start, process.system) = (maker.start, maker.system);
        if let Some(first) = process.records.first().filter(|_| process.pid == number) {
            process.pid = pid_in_records(first).unwrap_or(number);
        }
    }
}

/// The processes with files in these groups, by their numbers. The commands of processes of one number are joined: records do not
/// tell them apart.
pub fn processes_in_groups(groups: &[FileGroup]) -> HashMap<u32, ProcessInfo> {
    let view = |directory: &Path| groups.iter().find(|group| group.directory == directory)?.host.clone();
    let mut processes: HashMap<u32, ProcessInfo> = HashMap::new();
    for process in groups.chunk_by(|a, b| a.directory == b.directory).flat_map(|groups| {
        let mut processes = processes_in_directory(&groups[0].directory);
        processes.iter_mut().for_each(|process| process.show_host(view));
        processes.into_iter().filter(|process| groups.iter().any(|group| group.prefix == process.prefix))
    }) {
        match processes.entry(process.pid) {
            Entry::Vacant(place) => drop(place.insert(process)),
            Entry::Occupied(known) if known.get().command != process.command => {
                known.into_mut().command += &format!(", {}", process.command);
            }
            Entry::Occupied(_) => {}
        }
    }
    processes
}

/// What tells processes of one number apart: prefix, number, start and system.
type Identity = (Vec<u8>, u32, u64, [Vec<u8>; 2]);

/// Whether an entry is a regular file, or a symbolic link to one.
fn is_file(entry: &DirEntry) -> bool {
    entry.file_type().is_ok_and(|kind| match kind.is_symlink() {
        true => entry.path().metadata().is_ok_and(|metadata| metadata.is_file()),
        false => kind.is_file(),
    })
}

impl ProcessInfo {
    /// True if the files were renamed, because another process got their names.
    pub fn is_renamed(&self) -> bool {
        !self.prefix.is_empty()
    }

    /// The inputs that have all its records.
    pub fn paths(&self) -> impl Iterator<Item = &PathBuf> {
        self.records.iter().chain(&self.buffers)
    }

    /// The reasons why calls may be missing, with its rings, whether or not they have overwritten anything.
    pub fn limits(&self) -> impl Iterator<Item = &String> {
        self.notes.iter().chain(&self.ring)
    }

    /// The paths of its trinfos: in each directory of its files there may be one.
    pub fn info_paths(&self) -> Vec<PathBuf> {
        let path = |path: &PathBuf| {
            let number = match split_name(path).1? {
                FileName::Records { process, .. } | FileName::Buffers(process) => process,
                _ => return None,
            };
            Some(ProcessFiles::of_file(path, number).path(FileName::Info(number)))
        };
        let mut paths: Vec<PathBuf> = self.paths().filter_map(path).collect();
        paths.sort();
        paths.dedup();
        paths
    }

    /// Makes the numbers those by which the processes of several hosts are known, and the command that of a host.
    pub fn show_host(&mut self, view: impl Fn(&Path) -> Option<Arc<HostView>>) {
        let directory = self.paths().next().and_then(|path| path.parent());
        let Some(host) = directory.and_then(view) else { return };
        self.command = format!("{} {}: {}", host.name, self.pid, self.command);
        self.own_pid = Some(self.pid).filter(|own| host.shown(*own) != *own);
        for number in [&mut self.pid, &mut self.parent, &mut self.forked_from] {
            *number = host.shown(*number);
        }
        self.shift = host.shift;
    }

    /// The same, where who made it may have recorded in another directory of the trace.
    pub fn show_in(&mut self, hosts: &HostTable) {
        let (parent, maker) = (self.parent, self.forked_from);
        self.show_host(|directory| hosts.view(directory));
        (self.parent, self.forked_from) = (hosts.shown_beside(self.pid, parent), hosts.shown_parent(self.pid, maker));
    }

    fn identity(&self) -> Identity {
        (self.prefix.clone(), self.pid, self.start, self.system.clone())
    }

    /// Takes the spare trbuf at `path`, if a child in a sandbox has claimed it or counts losses there.
    fn read_spare(&mut self, path: PathBuf, number: u8) {
        let stand_in = pid_of_spare(self.pid);
        match spare::contents(&path, number).ok().flatten() {
            Some(SpareContents::Buffers(pid)) => {
                self.pid = pid.unwrap_or(self.pid);
                if self.pid == stand_in {
                    let note = "its process ID is one that no process has: it ran in a PID namespace of its own";
                    self.notes.push(note.to_owned());
                }
            }
            Some(SpareContents::Losses(_)) => {
                self.pid = stand_in;
                self.notes.push("it stands for processes in a sandbox that found no buffer".to_owned());
            }
            Some(SpareContents::Blank) | None => return,
        }
        self.buffers.push(path);
    }

    /// Adds what the process has recorded in another directory, later.
    fn add(&mut self, later: ProcessInfo) {
        self.records.extend(later.records);
        self.buffers.extend(later.buffers);
        self.command = later.command;
        self.notes.extend(later.notes);
        self.ring = later.ring.or(self.ring.take());
        // It goes on counting.
        self.lost = self.lost.max(later.lost);
        self.notes.sort();
        self.notes.dedup();
    }

    /// Takes values from a trinfo. An exec appends to the file, so the last value counts.
    fn read(&mut self, path: &Path) {
        let Ok(text) = read_info(path) else { return };
        let (mut incomplete, mut losses) = (0, CountedLosses::after(self.lost));
        for (key, value) in info::lines(&text) {
            let number = || std::str::from_utf8(value).ok()?.parse::<u32>().ok();
            let text = || visible_bytes(value);
            losses.add_line(key, value);
            match key {
                b"pid" => self.pid = number().unwrap_or(self.pid),
                b"ppid" => self.parent = number().unwrap_or(0),
                b"forked_from" => self.forked_from = number().unwrap_or(0),
                b"start" => {
                    self.start = std::str::from_utf8(value).ok().and_then(|text| text.parse().ok()).unwrap_or(0)
                }
                b"boot_id" => self.system[0] = value.to_owned(),
                b"pidns" => self.system[1] = value.to_owned(),
                b"cmdline" => self.command = command(value),
                b"level" if value == b"blocked" => {
                    self.notes.push("only calls that blocked were recorded (THR_TRACE_LEVEL)".to_owned());
                }
                b"ring" => {
                    let ring = format!("each thread's ring has room for {} bytes of records (THR_TRACE_RING)", text());
                    self.ring = Some(ring);
                }
                b"complete_from" => incomplete += 1,
                b"note" => add_note(&mut self.notes, text()),
                _ => {}
            }
        }
        self.lost = losses.in_all();
        if incomplete > 0 {
            self.notes.push(format!("{incomplete} of its threads' rings overwrote older records"));
        }
        // Each program of the process has appended its own.
        self.notes.sort();
        self.notes.dedup();
    }
}

/// Adds a note of a process to earlier ones. A count of reused rings goes on from the one before, and stands for it.
pub fn add_note(notes: &mut Vec<String>, note: String) {
    if note.starts_with(RINGS_REUSED[0]) {
        notes.retain(|earlier| !earlier.starts_with(RINGS_REUSED[0]));
    }
    notes.push(note);
}

/// A command line as it could be typed, or the title by which a server has replaced its own; control characters are escaped.
pub fn command(escaped: &[u8]) -> String {
    let words: Vec<Vec<u8>> = escaped.split(|&byte| byte == b' ').map(|word| info::unescape(word).collect()).collect();
    // A title is one text, with NULs or spaces up to where the arguments ended.
    if words[0].contains(&b' ') && words[1..].iter().all(Vec::is_empty) {
        return visible_bytes(words[0].trim_ascii_end());
    }
    words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_are_found_by_their_files() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        for name in ["tr.0000001.002", "tr.0000001.001", "trbuf.0000002", "old.1.tr.0000003.001", "trclock", "tr.x"] {
            fs::write(path(name), "").unwrap();
        }
        let text = "format 1\npid 1\nppid 7\ncmdline sh -c a\\x20b\nlost 2\nlost 3\n\
                    format 1\npid 1\nppid 7\nlost 0\ncmdline sort -n\nlost 4\n";
        fs::write(path("trinfo.0000001"), text).unwrap();
        fs::write(path("trinfo.0000009"), "pid 9\n").unwrap();
        let processes = processes_in_directory(directory.path());
        let expected = [
            ProcessInfo {
                pid: 1,
                parent: 7,
                command: "sort -n".to_owned(),
                lost: 7,
                records: vec![path("tr.0000001.001"), path("tr.0000001.002")],
                ..ProcessInfo::default()
            },
            ProcessInfo { pid: 2, buffers: vec![path("trbuf.0000002")], ..ProcessInfo::default() },
            ProcessInfo {
                pid: 3,
                prefix: b"old.1.".to_vec(),
                records: vec![path("old.1.tr.0000003.001")],
                ..ProcessInfo::default()
            },
        ];
        assert_eq!(processes, expected);
        assert!(processes_in_directory(&path("none")).is_empty());
    }

    #[test]
    fn what_a_process_recorded_as_another_user_is_its_own() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        fs::create_dir_all(path("u65534/ns7")).unwrap();
        for (name, text) in [
            ("trinfo.0000001", "pid 1\nstart 5\npidns 3\ncmdline root\n"),
            ("tr.0000001.001", ""),
            ("trbuf.0000001", ""),
            ("u65534/trinfo.0000001", "pid 1\nstart 5\npidns 3\ncmdline nobody\n"),
            ("u65534/tr.0000001.001", ""),
            ("u65534/trbuf.0000001", ""),
            ("u65534/trinfo.0000002", "pid 2\nppid 1\nstart 6\npidns 3\n"),
            ("u65534/tr.0000002.002", ""),
            ("u65534/ns7/trinfo.0000001", "pid 1\nstart 6\npidns 7\n"),
            ("u65534/ns7/tr.0000001.001", ""),
        ] {
            fs::write(path(name), text).unwrap();
        }
        std::os::unix::fs::symlink(path("tr.0000001.001"), path("u65534/tr.0000009.009")).unwrap();
        let processes = processes_in_directory(directory.path());
        let shown: Vec<_> = processes.iter().map(|process| (process.pid, process.paths().count())).collect();
        assert_eq!(shown, [(1, 4), (2, 1), (1, 1)]);
        assert_eq!(processes[0].command, "nobody");
    }

    #[test]
    fn commands_can_be_read() {
        assert_eq!(command(b"sh -c a\\x20b;\\x1b"), r"sh -c $'a b;\x1b'");
        assert_eq!(command(b"echo it's a\\x5cb \""), r#"echo 'it'\''s' 'a\b' '"'"#);
        assert_eq!(command(b"x  y"), "x '' y");
        assert_eq!(command(b"nginx:\\x20worker\\x20process    "), "nginx: worker process");
        assert_eq!(command(b""), "''");
    }
}
