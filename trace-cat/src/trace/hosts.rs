//! The hosts whose traces are read together.
//!
//! Directories with different boot IDs or host names in their trinfos are of different hosts. Then their records get corrected
//! times, and processes with equal numbers get different ones (`host_view`). What has no boot ID is taken for the first host's.
//! Hosts with one boot ID are containers of one kernel: they have one clock.
//!
//! The processes' numbers are given at the first question about some directories, and stay for the life of the program, because
//! texts and names are made by parts of the program that know nothing of each other, and files may come meanwhile.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use spec::buffer::{Owner, PAGE};
use spec::info;
use spec::names::{FileName, pid_of_spare};

use super::buffers::slots::read_up_to;
use super::buffers::spare::{self, SpareContents};
use super::file_handle::{self, read_info};
use super::file_names::{is_subdirectory, listed_directory, split_name};
use super::host_clock::{ClockState, HostClock};
use super::host_view::HostView;
use crate::record::columns;
use crate::support::diagnostics::Diagnostics;
use crate::support::duration::duration_text;

/// The last of the numbers that a record can have for a process, from which on downwards they are given anew.
const LAST_NUMBER: u32 = 9_999_999;

/// The tables of the lists of directories about which was asked.
static KNOWN: Mutex<Vec<(Vec<PathBuf>, Arc<HostTable>)>> = Mutex::new(Vec::new());

/// The hosts of some directories.
#[derive(Debug, Default)]
pub struct HostTable {
    /// In the order in which the directories are named.
    pub hosts: Vec<Host>,
    /// By the directories, without their subdirectories `u*` and `ns*`; empty if there is only one host.
    views: HashMap<PathBuf, Arc<HostView>>,
}

/// A host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    pub name: String,
    /// Empty if it is not known.
    pub boot_id: String,
    pub clock_state: ClockState,
    /// What its clock is known to be wrong by at most, nanoseconds.
    pub error: Option<u64>,
    /// The directories, with what is added to the times of their records, nanoseconds.
    pub directories: Vec<(PathBuf, i64)>,
    /// How many processes it has.
    pub processes: usize,
    /// The processes that are shown with other numbers than their own, and these numbers.
    pub renumbered: BTreeMap<u32, u32>,
}

/// What the files of a directory show.
#[derive(Default)]
struct DirectoryFacts {
    name: String,
    boot_ids: BTreeSet<String>,
    /// What its clock adds to CLOCK_MONOTONIC.
    offset: i64,
    clock: HostClock,
    processes: BTreeSet<u32>,
}

impl HostTable {
    /// From now on reads what `paths` are as if it were of one host.
    pub fn take_for_one(paths: &[PathBuf]) {
        KNOWN.lock().unwrap_or_else(PoisonError::into_inner).push((directories_of(paths), Arc::default()));
    }

    /// The hosts of what `paths` are, files or directories. For fewer than two directories nothing is read, and the table is empty.
    pub fn of(paths: &[PathBuf]) -> Arc<HostTable> {
        let directories = directories_of(paths);
        if directories.len() < 2 {
            return Arc::default();
        }
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, table)) = known.iter().find(|(known, _)| *known == directories) {
            return table.clone();
        }
        let table = Arc::new(HostTable::read(&directories));
        known.push((directories, table.clone()));
        table
    }

    /// The hosts of what `paths` are, also if it is only one.
    pub fn of_all(paths: &[PathBuf]) -> Arc<HostTable> {
        let directories = directories_of(paths);
        if directories.len() < 2 { Arc::new(HostTable::read(&directories)) } else { HostTable::of(paths) }
    }

    fn read(directories: &[PathBuf]) -> HostTable {
        let facts: Vec<DirectoryFacts> = directories.iter().map(|directory| DirectoryFacts::read(directory)).collect();
        let groups = grouped(&facts);
        let clocks = Clocks::of(&facts);
        let mut used: BTreeSet<u32> = BTreeSet::new();
        let all: BTreeSet<u32> = facts.iter().flat_map(|facts| facts.processes.iter().copied()).collect();
        let mut free = (0..=LAST_NUMBER).rev().filter(|number| !all.contains(number));
        let (mut hosts, mut views) = (Vec::new(), Vec::new());
        for (index, group) in groups.iter().enumerate() {
            let processes: BTreeSet<u32> =
                group.iter().flat_map(|number| facts[*number].processes.iter().copied()).collect();
            let mut shown = |pid: u32| if used.insert(pid) { pid } else { free.next().unwrap_or(pid) };
            let shown: BTreeMap<u32, u32> = processes.iter().map(|&pid| (pid, shown(pid))).collect();
            let host = clocks.host(group, &facts, directories, &shown);
            for (directory, shift) in &host.directories {
                let own = shown.iter().map(|(own, shown)| (*shown, *own)).collect();
                let (name, renumbered) = (host.name.clone(), host.renumbered.clone());
                let view = HostView { index, name, shift: *shift, renumbered, own, bounds: Vec::new() };
                views.push((directory.clone(), view));
            }
            hosts.push(host);
        }
        let mut table = HostTable { hosts, views: HashMap::new() };
        if table.hosts.len() > 1 {
            name_apart(&mut table.hosts);
            for (directory, mut view) in views {
                view.name = table.hosts[view.index].name.clone();
                view.bounds = table.hosts.iter().map(|other| table.hosts[view.index].bound(other)).collect();
                table.views.insert(directory, Arc::new(view));
            }
        } else {
            // A single host's records are as they are.
            table.hosts.iter_mut().flat_map(|host| &mut host.directories).for_each(|(_, shift)| *shift = 0);
        }
        table
    }

    /// Whether the directories are of several hosts.
    pub fn is_multiple(&self) -> bool {
        self.hosts.len() > 1
    }

    /// How the files of `directory` are read, or those of one of its subdirectories; `None` as long as there is only one host.
    pub fn view(&self, directory: &Path) -> Option<Arc<HostView>> {
        if self.views.is_empty() { None } else { self.views.get(outer_directory(directory)).cloned() }
    }

    /// The number by which the process `pid` of the host is known that has the process `known`.
    pub fn shown_beside(&self, known: u32, pid: u32) -> u32 {
        let view = self.views.values().find(|view| view.own(known).is_some());
        view.map_or(pid, |view| view.shown(pid))
    }

    /// Reports that times are corrected, if there are several hosts, and how certain the order is.
    pub fn report(&self, diagnostics: &Diagnostics) {
        if !self.is_multiple() {
            return;
        }
        let names: Vec<&str> = self.hosts.iter().map(|host| host.name.as_str()).collect();
        let pairs = || {
            self.hosts
                .iter()
                .enumerate()
                .flat_map(|(index, one)| self.hosts[..index].iter().map(move |other| (one, other)))
        };
        let bounds = pairs().filter_map(|(one, other)| one.bound(other));
        let order = match bounds.max() {
            Some(0) => "they have one clock".to_owned(),
            Some(bound) => {
                format!("the order of hosts' records is certain if they are more than {} apart", duration_text(bound))
            }
            None => "the order of hosts' records is not known".to_owned(),
        };
        let unknown = self
            .hosts
            .iter()
            .filter(|host| host.error.is_none() && pairs().any(|(one, other)| one.bound(other).is_none()));
        let unknown: Vec<&str> = unknown.map(|host| host.name.as_str()).collect();
        let unknown = if unknown.is_empty() {
            String::new()
        } else {
            format!(", as the error of the clock is not known of {}", unknown.join(", "))
        };
        let renumbered: usize = self.hosts.iter().map(|host| host.renumbered.len()).sum();
        let renumbered = match renumbered {
            0 => String::new(),
            1 => "; 1 process is shown with another ID, since its own is also another host's".to_owned(),
            count => format!("; {count} processes are shown with other IDs, since their own are also another host's"),
        };
        let what = format_args!("{order}{unknown}{renumbered}; --hosts shows more");
        diagnostics.report_note(format_args!("hosts {}", names.join(", ")), what);
    }
}

impl Host {
    /// Records of this host and of another one may be in another order than their times have if these are not more than so many
    /// nanoseconds apart; `None` if nothing is known. In one boot all have one clock.
    fn bound(&self, other: &Host) -> Option<u64> {
        if self.boot_id == other.boot_id { Some(0) } else { self.error?.checked_add(other.error?) }
    }
}

/// The numbers of the directories that are of one host: with the same boot and host name. Several boots in one directory are of
/// one host at several times.
fn grouped(facts: &[DirectoryFacts]) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    let mut unknown = Vec::new();
    for (number, directory) in facts.iter().enumerate() {
        let is_same = |group: &&mut Vec<usize>| {
            let other = &facts[group[0]];
            (&other.boot_ids, &other.name) == (&directory.boot_ids, &directory.name)
        };
        match groups.iter_mut().find(is_same) {
            _ if directory.boot_ids.is_empty() => unknown.push(number),
            Some(group) => group.push(number),
            None => groups.push(vec![number]),
        }
    }
    match groups.first_mut() {
        Some(first) => first.extend(unknown),
        None if unknown.is_empty() => {}
        None => groups.push(unknown),
    }
    groups
}

/// The clocks of the boots.
struct Clocks<'a> {
    /// By the boot IDs of a directory.
    clocks: HashMap<&'a BTreeSet<String>, HostClock>,
    /// With only one boot, what the first directory adds to CLOCK_MONOTONIC: its times stay as they are.
    only_offset: Option<i64>,
}

impl Clocks<'_> {
    fn of(facts: &[DirectoryFacts]) -> Clocks<'_> {
        let mut clocks: HashMap<&BTreeSet<String>, HostClock> = HashMap::new();
        facts.iter().for_each(|facts| clocks.entry(&facts.boot_ids).or_default().add_all(&facts.clock));
        let boots = clocks.keys().filter(|boots| !boots.is_empty()).count();
        let first = facts.iter().find(|facts| !facts.boot_ids.is_empty());
        Clocks { clocks, only_offset: first.filter(|_| boots == 1).map(|facts| facts.offset) }
    }

    /// The host whose directories are `group`.
    fn host(
        &self,
        group: &[usize],
        facts: &[DirectoryFacts],
        directories: &[PathBuf],
        shown: &BTreeMap<u32, u32>,
    ) -> Host {
        let first = &facts[group[0]];
        // What is of several boots has had several clocks.
        let clock = self.clocks.get(&first.boot_ids).filter(|_| first.boot_ids.len() == 1);
        let correction = self.only_offset.or(clock.and_then(HostClock::correction));
        let shift = |number: &usize| {
            let directory = &facts[*number];
            let corrected = correction.filter(|_| !directory.clock.is_empty() && directory.boot_ids.len() == 1);
            (directories[*number].clone(), corrected.map_or(0, |correction| correction - directory.offset))
        };
        let has_samples = group.iter().all(|number| !facts[*number].clock.is_empty());
        Host {
            name: if first.name.is_empty() { "?".to_owned() } else { first.name.clone() },
            boot_id: first.boot_ids.iter().cloned().collect::<Vec<_>>().join(","),
            clock_state: clock.map(HostClock::state).unwrap_or_default(),
            error: clock.filter(|_| has_samples).and_then(HostClock::error),
            directories: group.iter().map(shift).collect(),
            processes: shown.len(),
            renumbered: shown.iter().filter(|(own, shown)| own != shown).map(|(own, shown)| (*own, *shown)).collect(),
        }
    }
}

/// Gives hosts of one name different ones.
fn name_apart(hosts: &mut [Host]) {
    let names: Vec<String> = hosts.iter().map(|host| host.name.clone()).collect();
    for (index, host) in hosts.iter_mut().enumerate() {
        let same = names[..index].iter().filter(|name| **name == host.name).count();
        if same > 0 {
            host.name += &format!("#{}", same + 1);
        }
    }
}

/// The directories of what was named, each once, in their order, without the subdirectories in which processes recorded.
fn directories_of(paths: &[PathBuf]) -> Vec<PathBuf> {
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
    }
    directories
}

/// The trace directory that has this subdirectory, or is this one.
fn outer_directory(mut directory: &Path) -> &Path {
    while is_subdirectory(directory)
        && let Some(parent) = directory.parent()
    {
        directory = parent;
    }
    directory
}

impl DirectoryFacts {
    fn read(directory: &Path) -> DirectoryFacts {
        let mut facts = DirectoryFacts::default();
        facts.add(directory);
        facts
    }

    fn add(&mut self, directory: &Path) {
        let mut trinfos = Vec::new();
        for entry in fs::read_dir(listed_directory(directory)).into_iter().flatten().flatten() {
            let path = directory.join(entry.file_name());
            if is_subdirectory(&path) && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                self.add(&path);
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
            self.processes.extend(number("pid").and_then(|pid| u32::try_from(pid).ok()));
            if self.name.is_empty() {
                let name: Vec<u8> = info::unescape(info::value(&text, "host").unwrap_or_default()).collect();
                self.name = String::from_utf8_lossy(&name).escape_debug().to_string();
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
fn pid_in_records(path: &Path) -> Option<u32> {
    let mut head = [0; 64];
    let length = read_up_to(&file_handle::open(path).ok()?, &mut head, 0).ok()?;
    columns::time(&head[..length]).map(|_| columns::pid(&head))
}

/// The process ID of a child in a sandbox that has claimed the spare trbuf at `path`.
fn pid_of_trspare(path: &Path, number: u8) -> Option<u32> {
    let SpareContents::Buffers = spare::contents(path, number).ok().flatten()? else { return None };
    let mut page = [0; PAGE];
    let length = file_handle::open(path).and_then(|file| read_up_to(&file, &mut page, 0)).ok()?;
    Owner::parse(&page[..length]).ok().map(|owner| owner.pid)
}
