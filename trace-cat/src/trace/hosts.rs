//! The hosts whose traces are read together.
//!
//! Directories with different boot IDs or host names in their trinfos are of different hosts. Then their records get corrected
//! times, and processes with equal numbers get different ones (`host_view`). What has no boot ID is taken for the first host's.
//! Hosts with one boot ID are containers of one kernel: they have one clock. So are the processes of a directory that have the numbers
//! of living ones of another PID namespace: these have recorded in subdirectories (`ns*`), each of which counts as a directory.
//!
//! The processes' numbers are given at the first question about some directories, and stay for the life of the program, because
//! texts and names are made by parts of the program that know nothing of each other, and files may come meanwhile.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::host_clock::{ClockState, HostClock};
use super::host_directories::{DirectoryFacts, LAST_NUMBER, directories_of, namespace_of, outer_directory, read_facts};
use super::host_view::HostView;
use crate::support::diagnostics::Diagnostics;
use crate::support::duration::duration_text;

/// The tables of the lists of directories about which was asked.
static KNOWN: Mutex<Vec<(Vec<PathBuf>, Arc<HostTable>)>> = Mutex::new(Vec::new());

/// The hosts of some directories.
#[derive(Debug, Default)]
pub struct HostTable {
    /// In the order in which the directories are named.
    pub hosts: Vec<Host>,
    /// By the directories, without their subdirectories `u*`; empty if there is only one host.
    views: HashMap<PathBuf, Arc<HostView>>,
    /// The numbers by which processes are known that have recorded in a subdirectory for their PID namespace, by that and their own numbers.
    of_namespaces: HashMap<(u64, u32), u32>,
    /// The PID namespaces of all processes, by the numbers by which they are known.
    namespaces: HashMap<u32, u64>,
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
        let facts = read_facts(directories);
        let groups = grouped(&facts);
        let clocks = Clocks::of(&facts);
        let (mut used, mut identities) = (BTreeSet::new(), HashSet::new());
        let all: BTreeSet<u32> = facts.iter().flat_map(|facts| facts.processes.iter().copied()).collect();
        let mut free = (0..=LAST_NUMBER).rev().filter(|number| !all.contains(number));
        let (mut hosts, mut views) = (Vec::new(), Vec::new());
        let (mut of_namespaces, mut namespaces) = (HashMap::new(), HashMap::new());
        for (index, group) in groups.iter().enumerate() {
            let processes: BTreeSet<u32> =
                group.iter().flat_map(|number| facts[*number].processes.iter().copied()).collect();
            let mut shown = |pid: u32| {
                let identity = group.iter().find_map(|number| facts[*number].identities.get(&pid));
                let boot = &facts[group[0]].boot_ids;
                // One that has recorded in two directories is one.
                let is_known = identity.is_some_and(|identity| !identities.insert((boot, pid, *identity)));
                if used.insert(pid) || is_known { pid } else { free.next().unwrap_or(pid) }
            };
            let shown: BTreeMap<u32, u32> = processes.iter().map(|&pid| (pid, shown(pid))).collect();
            let host = clocks.host(group, &facts, directories, &shown);
            for (directory, shift) in &host.directories {
                let own = shown.iter().map(|(own, shown)| (*shown, *own)).collect();
                let (name, renumbered) = (host.name.clone(), host.renumbered.clone());
                let view = HostView { index, name, shift: *shift, renumbered, own, bounds: Vec::new() };
                views.push((directory.clone(), view));
            }
            for facts in group.iter().map(|number| &facts[*number]) {
                let known = |pid: &u32| shown.get(pid).copied().unwrap_or(*pid);
                let of_namespace = |pid: &u32| Some(((facts.namespace?, *pid), known(pid)));
                of_namespaces.extend(facts.processes.iter().filter_map(of_namespace));
                namespaces.extend(facts.identities.iter().map(|(pid, (namespace, _))| (known(pid), *namespace)));
            }
            hosts.push(host);
        }
        let mut table = HostTable { hosts, views: HashMap::new(), of_namespaces, namespaces };
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
        let of_namespace = self.namespaces.get(&known).and_then(|namespace| self.of_namespaces.get(&(*namespace, pid)));
        let of_host = || self.views.values().find(|view| view.own(known).is_some()).map(|view| view.shown(pid));
        of_namespace.copied().or_else(of_host).unwrap_or(pid)
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

/// The numbers of the directories that are of one host: with the same boot and host name, and for the same PID namespace. Several boots
/// in one directory are of one host at several times.
fn grouped(facts: &[DirectoryFacts]) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    let mut unknown = Vec::new();
    for (number, directory) in facts.iter().enumerate() {
        let is_same = |group: &&mut Vec<usize>| {
            let other = &facts[group[0]];
            let key = |facts: &DirectoryFacts| (facts.boot_ids.clone(), facts.name.clone(), facts.namespace);
            key(other) == key(directory)
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
            let subdirectory = host.directories.iter().find(|(directory, _)| namespace_of(directory).is_some());
            host.name += &match subdirectory.and_then(|(directory, _)| directory.file_name()) {
                Some(name) => format!("/{}", name.to_string_lossy()),
                None => format!("#{}", same + 1),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// In one directory are process 1 of PID namespace 7, and process 5 of namespace 8; process 1 of that has recorded in a subdirectory.
    #[test]
    fn processes_of_another_pid_namespace_are_known_beside_each_other() {
        let trace = tempfile::tempdir().unwrap();
        let inner = trace.path().join("ns8");
        fs::create_dir(&inner).unwrap();
        for (directory, pid, namespace) in [(trace.path(), 1, 7), (trace.path(), 5, 8), (&inner, 1, 8)] {
            let info = format!("boot_id 1f\nhost h\npid {pid}\nstart {pid}{namespace}\npidns {namespace}\noffset 7\n");
            fs::write(directory.join(format!("trinfo.{pid:07x}")), info).unwrap();
        }
        let table = HostTable::of(&[trace.path().to_owned()]);
        let names: Vec<&str> = table.hosts.iter().map(|host| &*host.name).collect();
        assert_eq!(names, ["h", "h/ns8"]);
        let view = table.view(&inner.join("u65534")).unwrap();
        assert_eq!((view.shown(1), view.own(LAST_NUMBER), view.shift), (LAST_NUMBER, Some(1), 0));
        let beside = |known| table.shown_beside(known, 1);
        assert_eq!([beside(1), beside(5), beside(LAST_NUMBER)], [1, LAST_NUMBER, LAST_NUMBER]);
    }
}
