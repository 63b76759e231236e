//! What the files of trace directories show of their hosts.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use spec::names::{FileName, pid_of_spare};
use spec::record::RECORD_LEN_MAX;
use spec::{Record, info};

use super::buffers::slots::read_up_to;
use super::buffers::spare::{self, SpareContents};
use super::file_handle::{self, read_info};
use super::file_names::{is_present_subdirectory, is_subdirectory, listed_directory, split_name, subdirectories_of};
use super::host_clock::HostClock;
use crate::support::visible_text::visible_bytes;

/// The last of the numbers that a record can have for a process, from which on downwards they are given anew.
pub const LAST_NUMBER: u32 = 9_999_999;

/// What the files of a directory show.
#[derive(Default)]
pub struct DirectoryFacts {
    pub name: String,
    pub boot_ids: BTreeSet<String>,
    /// What its clock adds to CLOCK_MONOTONIC.
    pub offset: i64,
    pub clock: HostClock,
    pub processes: BTreeSet<u32>,
    /// The PID namespaces and the starts of those whose trinfo has both, by their numbers.
    pub identities: BTreeMap<u32, (u64, u64)>,
    /// The PID namespace that the directory is for; `None` for all but `ns*`.
    pub namespace: Option<u64>,
}

/// What the files of the directories show. The times in the subdirectories for PID namespaces are those of the directory.
pub fn read_facts(directories: &[PathBuf]) -> Vec<DirectoryFacts> {
    let mut facts: Vec<DirectoryFacts> = directories.iter().map(|directory| DirectoryFacts::read(directory)).collect();
    for index in 0..facts.len() {
        if facts[index].namespace.is_some()
            && let Some(outer) = directories[index].ancestors().skip(1).find_map(|outer| {
                let position = directories.iter().position(|directory| directory == outer)?;
                (!facts[position].clock.is_empty()).then_some(position)
            })
        {
            facts[index].offset = facts[outer].offset;
        }
    }
    facts
}

impl DirectoryFacts {
    fn read(directory: &Path) -> DirectoryFacts {
        let mut facts = DirectoryFacts { namespace: namespace_of(directory), ..DirectoryFacts::default() };
        facts.add(directory);
        facts
    }

    /// The PID namespaces that are known of its processes, which may be there more than once.
    pub fn namespaces(&self) -> impl Iterator<Item = u64> {
        self.namespace.into_iter().chain(self.identities.values().map(|(namespace, _)| *namespace))
    }

    fn add(&mut self, directory: &Path) {
        let mut trinfos = Vec::new();
        for entry in fs::read_dir(listed_directory(directory)).into_iter().flatten().flatten() {
            let path = directory.join(entry.file_name());
            if is_present_subdirectory(&path) {
                if namespace_of(&path).is_none() {
                    self.add(&path);
                }
                continue;
            }
            match split_name(&path).1 {
                Some(FileName::Info(_)) => trinfos.push(path),
                Some(FileName::Records { process, .. }) if process > LAST_NUMBER => {
                    // The file of a child that recorded in a spare trbuf, and is not named by its ID.
                    self.processes.extend(pid_in_records(&path));
                }
                Some(FileName::Records { process, .. } | FileName::Buffers(process)) => {
                    _ = self.processes.insert(process)
                }
                Some(FileName::Spare { process, number }) => {
                    let stand_in = pid_of_spare(FileName::number_of_spare(process, number));
                    self.processes.extend([Some(stand_in), pid_of_trspare(&path, number)].into_iter().flatten());
                }
                Some(FileName::Clock | FileName::Control) | None => {}
            }
        }
        trinfos.sort();
        for text in trinfos.iter().filter_map(|path| read_info(path).ok()) {
            let number = |key: &str| info::number(&text, key);
            let word = |key: &str| info::value(&text, key).map(|value| String::from_utf8_lossy(value).into_owned());
            self.boot_ids.extend(word("boot_id").filter(|id| !id.is_empty() && !id.bytes().all(|byte| byte == b'0')));
            let pid = number("pid").and_then(|pid| u32::try_from(pid).ok());
            self.processes.extend(pid);
            // It is 0 where /proc does not show it.
            let unsigned =
                |key: &str| number(key).and_then(|number| u64::try_from(number).ok()).filter(|&number| number != 0);
            self.identities.extend(pid.zip(unsigned("pidns").zip(unsigned("start"))));
            if self.name.is_empty() {
                let name: Vec<u8> = info::unescape(info::value(&text, "host").unwrap_or_default()).collect();
                self.name = visible_bytes(&name);
            }
            // A process in a time namespace has another offset, and the same clock.
            if let Some(offset) = number("offset") {
                if self.clock.is_empty() {
                    self.offset = offset;
                }
                self.clock.add(&text, self.offset);
            }
        }
    }
}

/// The process ID in the first record of a file.
pub fn pid_in_records(path: &Path) -> Option<u32> {
    let mut head = [0; RECORD_LEN_MAX];
    let length = read_up_to(&file_handle::open(path).ok()?, &mut head, 0).ok()?;
    let line = head[..length].split(|&byte| byte == b'\n').next()?;
    Record::parse(line).ok().map(|record| record.pid)
}

/// The process ID of a child in a sandbox that has claimed the spare trbuf at `path`.
fn pid_of_trspare(path: &Path, number: u8) -> Option<u32> {
    match spare::contents(path, number) {
        Ok(Some(SpareContents::Buffers(pid))) => pid,
        _ => None,
    }
}

/// The PID namespace that a directory is for, if its name is that of such a subdirectory.
pub fn namespace_of(directory: &Path) -> Option<u64> {
    let name = directory.file_name().filter(|_| is_subdirectory(directory))?;
    name.to_str()?.strip_prefix("ns")?.parse().ok()
}

/// Adds the subdirectories for PID namespaces that a directory has, also as those of its subdirectories.
fn add_namespaces(directory: &Path, directories: &mut Vec<PathBuf>) {
    for subdirectory in subdirectories_of(directory) {
        if namespace_of(&subdirectory).is_some() && !directories.contains(&subdirectory) {
            directories.push(subdirectory.clone());
        }
        add_namespaces(&subdirectory, directories);
    }
}

/// The directories that `paths` are or are in, each once. Their subdirectories for PID namespaces are among them, those for users are not.
pub fn directories_of(paths: &[PathBuf]) -> Vec<PathBuf> {
    let mut directories: Vec<PathBuf> = Vec::new();
    for path in paths {
        let is_directory = path.is_dir();
        let directory = match path.parent() {
            _ if is_directory => outer_directory(path),
            Some(parent) if split_name(path).1.is_some() => outer_directory(parent),
            _ => continue,
        };
        if !directories.iter().any(|known| known == directory) {
            directories.push(directory.to_owned());
        }
        if is_directory {
            add_namespaces(path, &mut directories);
        }
    }
    directories
}

/// The directory whose subdirectory of another user this one is, or this one.
pub fn outer_directory(mut directory: &Path) -> &Path {
    while is_subdirectory(directory)
        && namespace_of(directory).is_none()
        && let Some(parent) = directory.parent()
    {
        directory = parent;
    }
    directory
}
