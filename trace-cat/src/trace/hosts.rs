//! The hosts whose traces are read together.
//!
//! Directories with different boot IDs or host names in their trinfos are of different hosts. Then their records get corrected
//! times, and processes with equal numbers get different ones (`host_view`). What has no boot ID is taken for the first host's.
//! Hosts with one boot ID are containers of one kernel: they have one clock. So are directories of one host name in whose trinfos the PID
//! namespaces differ, or one number is that of several processes (`host_groups`), and the processes of a directory that have the numbers
//! of living ones of another PID namespace: these have recorded in subdirectories (`ns*`), each of which counts as a directory.
//!
//! The processes' numbers are given at the first question about some directories, and stay for the life of the program, because
//! texts and names are made by parts of the program that know nothing of each other, and files may come meanwhile.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::host_clock::{ClockState, HostClock};
use super::host_directories::{DirectoryFacts, LAST_NUMBER, directories_of, namespace_of, outer_directory, read_facts};
use super::host_groups::grouped;
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
    /// The numbers by which processes are known, by their PID namespaces and their own numbers.
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
        let (mut used, mut identities) = (BTreeSet::new(), HashMap::new());
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
                let mut new = || if used.insert(pid) { pid } else { free.next().unwrap_or(pid) };
                match identity {
                    // One that has recorded in two directories is one.
                    Some(identity) => *identities.entry((boot, pid, *identity)).or_insert_with(new),
                    None => new(),
                }
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
                let with_info = facts.identities.iter().map(|(pid, (namespace, _))| ((*namespace, *pid), known(pid)));
                of_namespaces.extend(facts.processes.iter().filter_map(of_namespace).chain(with_info));
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

    /// The number by which the process is known that the process `known` calls `pid`, in its own PID namespace.
    pub fn shown_beside(&self, known: u32, pid: u32) -> u32 {
        let shown = || self.shown_in_namespace(known, pid).or_else(|| Some(self.place(known)?.1.shown(pid)));
        shown().unwrap_or(pid)
    }

    /// The number by which the process is known that has forked the process `known`, and whose own number is `pid`. The first process of
    /// a PID namespace was forked in another one.
    pub fn shown_parent(&self, known: u32, pid: u32) -> u32 {
        let Some((directory, view)) = self.place(known) else { return pid };
        let namespace = self.namespaces.get(&known);
        let is_first = namespace.is_some() && view.own(known) == Some(1);
        let inside = if is_first { None } else { self.shown_in_namespace(known, pid) };
        let of_directory = |directory| self.views.get(directory)?.shown_own(pid);
        let is_outside = |shown: &u32| !is_first || self.namespaces.get(shown) != namespace;
        let outside = || directory.ancestors().filter_map(of_directory).find(is_outside);
        inside.or_else(outside).unwrap_or_else(|| view.shown(pid))
    }

    /// The number by which the process `pid` of the PID namespace is known that has the process `known`. Where a namespace has got the
    /// number of an earlier one, it is that of the same directory.
    fn shown_in_namespace(&self, known: u32, pid: u32) -> Option<u32> {
        let namespace = self.namespaces.get(&known)?;
        let beside = self.place(known)?.1.shown_own(pid).filter(|shown| self.namespaces.get(shown) == Some(namespace));
        beside.or_else(|| self.of_namespaces.get(&(*namespace, pid)).copied())
    }

    /// The first directory that has the process `known`.
    fn place(&self, known: u32) -> Option<(&Path, &HostView)> {
        let places = self.views.iter().filter(|(_, view)| view.own(known).is_some());
        let first = places.min_by_key(|(directory, view)| (view.index, *directory));
        first.map(|(directory, view)| (&**directory, &**view))
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
            let shift = corrected.and_then(|correction| correction.checked_sub(directory.offset));
            (directories[*number].clone(), shift.unwrap_or(0))
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
    for index in 1..hosts.len() {
        let (earlier, later) = hosts.split_at_mut(index);
        let host = &mut later[0];
        let same = names[..index].iter().filter(|name| **name == host.name).count();
        if same > 0 {
            let subdirectory = host.directories.iter().find(|(directory, _)| namespace_of(directory).is_some());
            let subdirectory = subdirectory.and_then(|(directory, _)| directory.file_name());
            let name = subdirectory.map(|name| format!("{}/{}", host.name, name.to_string_lossy()));
            let is_free = |name: &String| earlier.iter().all(|host| host.name != *name);
            host.name = name.filter(is_free).unwrap_or_else(|| format!("{}#{}", host.name, same + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// Writes the trinfo of a process of host `h`: its own number, its PID namespace, and when it began.
    fn write_info(directory: &Path, (pid, namespace, start): (u32, u64, u64)) {
        fs::create_dir_all(directory).unwrap();
        let info = format!("boot_id 1f\nhost h\npid {pid}\nstart {start}\npidns {namespace}\noffset 7\n");
        fs::write(directory.join(format!("trinfo.{pid:07x}")), info).unwrap();
    }

    /// The directories of a trace with such processes.
    fn trace(processes: &[(&str, (u32, u64, u64))]) -> (tempfile::TempDir, Vec<PathBuf>) {
        let trace = tempfile::tempdir().unwrap();
        let mut directories = Vec::new();
        for (directory, process) in processes {
            let directory = trace.path().join(directory);
            write_info(&directory, *process);
            if namespace_of(&directory).is_none() && !directories.contains(&directory) {
                directories.push(directory);
            }
        }
        (trace, directories)
    }

    fn names(table: &HostTable) -> Vec<&str> {
        table.hosts.iter().map(|host| &*host.name).collect()
    }

    /// In one directory are process 1 of PID namespace 7, and process 5 of namespace 8; process 1 of that has recorded in a subdirectory.
    #[test]
    fn processes_of_another_pid_namespace_are_known_beside_each_other() {
        let (_trace, directories) = trace(&[("a", (1, 7, 17)), ("a", (5, 8, 58)), ("a/ns8", (1, 8, 18))]);
        let table = HostTable::of(&directories);
        assert_eq!(names(&table), ["h", "h/ns8"]);
        let view = table.view(&directories[0].join("ns8/u65534")).unwrap();
        assert_eq!((view.shown(1), view.own(LAST_NUMBER), view.shift), (LAST_NUMBER, Some(1), 0));
        let beside = |known| table.shown_beside(known, 1);
        assert_eq!([beside(1), beside(5), beside(LAST_NUMBER)], [1, LAST_NUMBER, LAST_NUMBER]);
    }

    /// Two containers have a directory each. In the second one, process 6 has made a container, whose process 1 has recorded in a
    /// subdirectory and has forked 6 there.
    #[test]
    fn who_forked_a_process_is_of_its_own_directory() {
        let second = [("b", (1, 8, 40)), ("b", (6, 8, 50)), ("b/ns9", (1, 9, 60)), ("b/ns9", (6, 9, 70))];
        let (_trace, directories) = trace(&[&[("a", (1, 7, 20)), ("a", (6, 7, 30))][..], &second].concat());
        let table = HostTable::of(&directories);
        assert_eq!(names(&table), ["h", "h#2", "h/ns9"]);
        let shown = |directory: PathBuf| [1, 6].map(|pid| table.view(&directory).unwrap().shown(pid));
        let [a, b, inner] = [directories[0].clone(), directories[1].clone(), directories[1].join("ns9")].map(shown);
        assert_eq!((a, b, inner), ([1, 6], [9_999_999, 9_999_998], [9_999_997, 9_999_996]));
        let parents = |known: [u32; 2]| [table.shown_parent(known[0], 6), table.shown_parent(known[1], 1)];
        assert_eq!([parents(a), parents(b), parents(inner)], [[6, 1], [b[1], b[0]], [b[1], inner[0]]]);
        let children = [a, b, inner].map(|known| table.shown_beside(known[0], 6));
        assert_eq!(children, [a[1], b[1], inner[1]]);
    }

    /// The number of an earlier PID namespace is used again: its process 1 is another one, and has forked another 5.
    #[test]
    fn a_namespace_that_has_the_number_of_an_earlier_one_is_another_host() {
        let first = [("a", (1, 7, 20)), ("a", (5, 7, 30))];
        let (_trace, directories) = trace(&[&first[..], &[("b", (1, 7, 40)), ("b", (5, 7, 50))]].concat());
        let table = HostTable::of(&directories);
        assert_eq!(names(&table), ["h", "h#2"]);
        let second = [1, 5].map(|pid| table.view(&directories[1]).unwrap().shown(pid));
        assert_eq!(
            (second, table.shown_beside(second[0], 5), table.shown_beside(1, 5)),
            ([9_999_999, 9_999_998], 9_999_998, 5)
        );
        assert_eq!(table.shown_parent(second[1], 1), second[0]);
    }

    /// A process executes a program that records in another directory.
    #[test]
    fn a_process_with_files_in_two_directories_is_known_by_one_number() {
        let processes =
            [("a", (1, 7, 20)), ("b", (1, 8, 40)), ("b", (2, 8, 41)), ("c", (1, 7, 30)), ("c/ns8", (1, 8, 40))];
        let (_trace, directories) = trace(&processes);
        let table = HostTable::of(&directories);
        assert_eq!(names(&table), ["h", "h#2", "h#3", "h/ns8"]);
        let shown = |directory: PathBuf| table.view(&directory).unwrap().shown(1);
        let [b, c] = [&directories[1], &directories[2]];
        assert_eq!([b.clone(), c.clone(), c.join("ns8")].map(shown), [9_999_999, 9_999_998, 9_999_999]);
    }

    /// Two traces have a container in which numbers were taken, and the kernel has given both namespaces one number.
    #[test]
    fn hosts_of_subdirectories_of_one_name_have_different_ones() {
        let first = [("a", (9, 7, 20)), ("a/ns8", (1, 8, 40))];
        let (_trace, directories) = trace(&[&first[..], &[("b", (10, 7, 50)), ("b/ns8", (1, 8, 60))]].concat());
        assert_eq!(names(&HostTable::of(&directories)), ["h", "h/ns8", "h#3"]);
    }
}
