//! Which processes belong together: a run is a program and the processes that it started.
//!
//! Processes belong to the same run if one descends from the other, or if they recorded at the same time. So a program that
//! was started twice makes two runs, and the programs of a pipeline make one, even if their shell is not recorded.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use spec::buffer::{Owner, PAGE};

use super::process_info::{ProcessInfo, processes_in_directory};
use crate::support::counted::counted;
use crate::support::local_time::DateTime;
use crate::trace::buffers::record_span::{self, RecordSpan};
use crate::trace::buffers::slots::{has_slot_in_use, is_blank, is_left_blank, read_up_to};
use crate::trace::file_handle::open_regular;
use crate::trace::file_names::{is_read_with, is_subdirectory};
use crate::trace::hosts::HostTable;

/// The processes of a run, and the times of its first and its last record according to their files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramRun {
    /// The directory of their files.
    pub directory: PathBuf,
    pub processes: Vec<ProcessInfo>,
    /// In nanoseconds since the Epoch.
    pub start: u64,
    /// In nanoseconds since the Epoch.
    pub end: u64,
}

impl ProgramRun {
    /// The inputs that have all records of the run.
    pub fn paths(&self) -> Vec<PathBuf> {
        self.processes.iter().flat_map(ProcessInfo::paths).cloned().collect()
    }
}

/// A line for each run, with the number that `--run` takes.
pub fn run_lines(runs: &[ProgramRun]) -> String {
    let line = |(index, run): (usize, &ProgramRun)| {
        let (processes, from) = (counted(run.processes.len(), "process", "processes"), DateTime(run.start));
        let renamed = if run.processes.iter().any(ProcessInfo::is_renamed) { ", renamed (old.*)" } else { "" };
        let command = run.processes.iter().min_by_key(|process| process.start).map_or("", |first| &first.command);
        let line = format!("  --run {}  from {from} on, {processes}{renamed}  {command}", index + 1);
        format!("{}\n", line.trim_end())
    };
    runs.iter().enumerate().map(line).collect()
}

/// The numbers of the runs in a directory that have any of these files.
pub fn numbers_with(directory: &Path, files: &HashSet<&PathBuf>) -> Vec<usize> {
    let runs = find_runs(&[directory.to_owned()]);
    let has_one = |run: &ProgramRun| run.paths().iter().any(|path| files.contains(path));
    runs.iter().zip(1..).filter(|(run, _)| has_one(run)).map(|(_, number)| number).collect()
}

/// The process IDs that more than one of these processes has, and how many more: records do not tell them apart.
pub fn shared_numbers<'a>(processes: impl Iterator<Item = &'a ProcessInfo>) -> BTreeMap<u32, usize> {
    let mut by_pid: BTreeMap<u32, HashSet<_>> = BTreeMap::new();
    for process in processes {
        by_pid.entry(process.pid).or_default().insert((&process.prefix, process.start, &process.system));
    }
    let more = by_pid.into_iter().map(|(pid, processes)| {
        // One whose start is unknown may be another one with files in two directories.
        let known: HashSet<_> =
            processes.iter().filter(|(_, start, _)| *start != 0).map(|(prefix, ..)| prefix).collect();
        let count = processes.iter().filter(|(prefix, start, _)| *start != 0 || !known.contains(prefix)).count();
        (pid, count - 1)
    });
    more.filter(|(_, more)| *more > 0).collect()
}

/// The inputs of processes whose files were renamed, because later ones got their names.
pub fn renamed_paths(runs: &[ProgramRun]) -> impl Iterator<Item = &PathBuf> {
    runs.iter().flat_map(|run| &run.processes).filter(|process| process.is_renamed()).flat_map(ProcessInfo::paths)
}

/// The runs in the directories among `paths`, the oldest first; those of renamed files (`old.*`) are among them.
pub fn find_runs(paths: &[PathBuf]) -> Vec<ProgramRun> {
    let directories = distinct_directories(paths);
    let is_only = directories.len() == 1;
    let hosts = HostTable::of(paths);
    let runs = directories.into_iter().flat_map(|directory| runs_in_directory(directory, &hosts, is_only));
    let mut runs: Vec<ProgramRun> = runs.collect();
    runs.sort_by_key(|run| run.start);
    runs
}

/// The directories among `paths`, each by one of its paths, without those within others that are read with these.
fn distinct_directories(paths: &[PathBuf]) -> Vec<&PathBuf> {
    let real = |path: &PathBuf| fs::canonicalize(path).unwrap_or_else(|_| path.clone());
    let directories = paths.iter().filter(|path| path.is_dir()).map(|path| (real(path), path));
    // The first path that is given is the one that messages name.
    let directories: BTreeMap<PathBuf, &PathBuf> = directories.rev().collect();
    let is_within_another = |path: &PathBuf| {
        is_subdirectory(path) && directories.keys().any(|holder| holder != path && is_read_with(path, holder))
    };
    directories.iter().filter(|(real, _)| !is_within_another(real)).map(|(_, path)| *path).collect()
}

/// The runs in a directory. If it is the only directory and has only one run, no records are read: times only separate and sort
/// runs.
fn runs_in_directory(directory: &Path, hosts: &HostTable, is_only: bool) -> Vec<ProgramRun> {
    let host = hosts.view(directory);
    let mut processes = processes_in_directory(directory);
    processes.retain(|process| !has_nothing(process));
    processes.iter_mut().for_each(|process| process.show_in(hosts));
    let families = families(processes);
    let is_only = is_only && families.len() == 1;
    let mut runs: Vec<ProgramRun> = families
        .into_iter()
        .map(|processes| {
            let (start, end) = if is_only { last_change(&processes) } else { span(&processes) };
            let [start, end] = [start, end].map(|time| host.as_ref().map_or(time, |host| host.time(time)));
            ProgramRun { directory: directory.to_owned(), processes, start, end }
        })
        .collect();
    runs.sort_by_key(|run| run.start);
    let mut merged: Vec<ProgramRun> = Vec::new();
    for run in runs {
        match merged.last_mut() {
            Some(last) if run.start <= last.end => {
                last.end = last.end.max(run.end);
                last.processes.extend(run.processes);
            }
            _ => merged.push(run),
        }
    }
    merged
}

/// Whether a process has no trinfo and no record, as a child that was killed as soon as it was forked. Nobody knows whose child it is.
fn has_nothing(process: &ProcessInfo) -> bool {
    let is_unused = |path: &PathBuf| is_unused(path).unwrap_or(false);
    process.start == 0 && process.records.is_empty() && process.buffers.iter().all(is_unused)
}

/// Whether a trbuf holds nothing of its process. It may hold the text of another one that has left it to this.
fn is_unused(path: &Path) -> io::Result<bool> {
    let file = open_regular(path)?;
    let mut page = [0; PAGE];
    let length = read_up_to(&file, &mut page, 0)?;
    match Owner::parse(&page[..length]) {
        Ok(owner) => Ok(Owner::lost_records(&page) == 0 && !has_slot_in_use(&file, owner.layout)?),
        Err(_) => Ok(is_blank(&page) && is_left_blank(&file)?),
    }
}

/// Groups the processes that descend from the same one.
fn families(processes: Vec<ProcessInfo>) -> Vec<Vec<ProcessInfo>> {
    let mut by_pid: HashMap<u32, Vec<usize>> = HashMap::new();
    for (index, process) in processes.iter().enumerate() {
        by_pid.entry(process.pid).or_default().push(index);
    }
    let parents = processes.iter().map(|process| {
        // Who forked a daemon is not its parent any more, and the parent of a container's first process has no number in it.
        [(process.forked_from, false), (process.parent, true)].into_iter().find_map(|(pid, is_inside)| {
            let candidates = by_pid.get(&pid)?.iter().copied();
            let likely = candidates.filter_map(|index| Some((likeness(&processes[index], process, is_inside)?, index)));
            likely.max().map(|(_, index)| index)
        })
    });
    let roots = roots(&parents.collect::<Vec<_>>());
    let mut families: Vec<Vec<ProcessInfo>> = vec![Vec::new(); processes.len()];
    for (process, root) in processes.into_iter().zip(roots) {
        families[root].push(process);
    }
    families.retain(|family| !family.is_empty());
    families
}

/// How well a process with the parent's number fits as the parent: of several, it is the one that began last before the child;
/// `None` if it does not fit. `is_inside`: it has the number in the child's PID namespace.
fn likeness(parent: &ProcessInfo, child: &ProcessInfo, is_inside: bool) -> Option<(u64, bool)> {
    let differ = |index: usize| {
        let [parent, child] = [&parent.system[index], &child.system[index]];
        !parent.is_empty() && !child.is_empty() && parent != child
    };
    let is_later = child.start != 0 && parent.start > child.start;
    let fits = !(is_later || differ(0) || is_inside && differ(1));
    fits.then_some((parent.start, parent.prefix == child.prefix))
}

/// The outermost ancestor of each process, by indexes. A damaged trinfo can make a circle, whose ancestor is one of it.
fn roots(parents: &[Option<usize>]) -> Vec<usize> {
    let mut roots: Vec<Option<usize>> = vec![None; parents.len()];
    let mut path = Vec::new();
    for start in 0..parents.len() {
        let mut at = start;
        while roots[at].is_none() {
            // Each process is its own ancestor until an outer one is known.
            roots[at] = Some(at);
            path.push(at);
            at = parents[at].unwrap_or(at);
        }
        let root = roots[at];
        path.drain(..).for_each(|passed| roots[passed] = root);
    }
    roots.into_iter().flatten().collect()
}

/// The times of the first and the last record in the trbufs and the record files, whose texts are taken to be in order. If there is
/// no record, both are the time of the last change: trinfo says when a process began, but by another clock and its ticks.
fn span(processes: &[ProcessInfo]) -> (u64, u64) {
    // The newest records of a process that was killed, or runs, are in its trbuf alone. What a running one moves to its files meanwhile
    // is read there.
    let buffers = processes.iter().flat_map(|process| &process.buffers);
    let buffered = buffers.filter_map(|path| record_span::of_trbuf(path));
    let files = processes.iter().flat_map(|process| &process.records);
    let written = files.filter_map(|path| record_span::of_file(path));
    let span = buffered.chain(written).reduce(RecordSpan::join);
    span.map_or_else(|| last_change(processes), |span| (span.first, span.last))
}

/// The time of the last change of any of the files, twice.
fn last_change(processes: &[ProcessInfo]) -> (u64, u64) {
    let times = processes
        .iter()
        .flat_map(ProcessInfo::paths)
        .filter_map(|path| path.metadata().ok()?.modified().ok()?.duration_since(UNIX_EPOCH).ok());
    let time = times.max().map_or(0, |time| time.as_nanos() as u64);
    (time, time)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::test_trace::{TRBUF, record};
    use crate::testing::trbuf_image::TrbufImage;
    use spec::buffer::{SLOTS_OFFSET, SlotLayout};
    use std::fs;

    /// A directory with processes, each of which is given as pid, ppid, and the times of its records in seconds.
    fn trace(processes: &[(u32, u32, &[u64])]) -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        for &(pid, parent, times) in processes {
            let path = |name: String| directory.path().join(name);
            fs::write(path(format!("trinfo.{pid:07x}")), format!("pid {pid}\nppid {parent}\n")).unwrap();
            let text: String = times.iter().map(|time| record(time * 1_000_000_000, pid, "02:04:0", 0)).collect();
            fs::write(path(format!("tr.{pid:07x}.{pid:03x}")), text).unwrap();
        }
        directory
    }

    fn runs(processes: &[(u32, u32, &[u64])]) -> Vec<Vec<u32>> {
        let directory = trace(processes);
        let pids = |run: &ProgramRun| run.processes.iter().map(|process| process.pid).collect();
        find_runs(&[directory.path().to_owned()]).iter().map(pids).collect()
    }

    #[test]
    fn a_run_is_a_program_and_the_processes_that_it_started() {
        assert_eq!(runs(&[(1, 100, &[1, 9]), (2, 1, &[20]), (3, 2, &[5])]), [vec![1, 2, 3]]);
        assert_eq!(runs(&[(1, 100, &[10, 11]), (2, 100, &[1, 2])]), [vec![2], vec![1]], "the oldest first");
        assert_eq!(runs(&[(1, 100, &[1, 3]), (2, 101, &[2, 4]), (3, 102, &[5])]), [vec![1, 2], vec![3]]);
        // The child outlives its parent, and another program was run meanwhile.
        assert_eq!(runs(&[(1, 100, &[1]), (2, 1, &[2, 9]), (3, 102, &[5])]), [vec![1, 2, 3]]);
        assert_eq!(runs(&[(1, 2, &[1]), (2, 1, &[2])]).concat().len(), 2, "a circle of parents");
        assert_eq!(runs(&[]), [[0u32; 0]; 0]);
    }

    #[test]
    fn a_process_is_a_child_of_the_one_that_had_the_number_then() {
        let directory = tempfile::tempdir().unwrap();
        let write = |prefix: &str, pid: u32, text: &str, time: u64| {
            let path = |name: String| directory.path().join(format!("{prefix}{name}"));
            fs::write(path(format!("trinfo.{pid:07x}")), format!("pid {pid}\n{text}")).unwrap();
            fs::write(path(format!("tr.{pid:07x}.001")), record(time, pid, "02:04:0", 0)).unwrap();
        };
        write("old.10.", 1, "start 10\npidns 7\n", 100);
        write("", 5, "ppid 1\nstart 11\npidns 7\n", 300);
        write("old.20.", 1, "start 20\npidns 8\n", 400);
        write("", 6, "ppid 1\nstart 21\npidns 8\n", 500);
        write("", 1, "start 30\npidns 9\n", 600);
        write("", 8, "ppid 1\nstart 31\npidns 10\n", 700);
        let runs = find_runs(&[directory.path().to_owned()]);
        let pids: Vec<Vec<u32>> =
            runs.iter().map(|run| run.processes.iter().map(|process| process.pid).collect()).collect();
        assert_eq!(pids, [vec![5, 1], vec![6, 1], vec![1], vec![8]]);
        let renamed = ["old.10.tr.0000001.001", "old.20.tr.0000001.001"].map(|name| directory.path().join(name));
        assert_eq!(renamed_paths(&runs).cloned().collect::<Vec<_>>(), renamed);
    }

    #[test]
    fn who_forked_a_process_need_not_be_its_parent() {
        let directory = tempfile::tempdir().unwrap();
        let write = |pid: u32, text: &str, time: u64| {
            let path = |name: String| directory.path().join(name);
            fs::write(path(format!("trinfo.{pid:07x}")), format!("pid {pid}\n{text}")).unwrap();
            fs::write(path(format!("tr.{pid:07x}.001")), record(time, pid, "02:04:0", 0)).unwrap();
        };
        // A daemon, and a container's first process.
        write(5, "ppid 4\nstart 10\npidns 7\n", 100);
        write(6, "ppid 1\nforked_from 5\nstart 11\npidns 7\n", 300);
        write(1, "ppid 0\nforked_from 6\nstart 12\npidns 8\n", 500);
        // Another process has begun later.
        write(3, "ppid 1\nforked_from 9\nstart 12\npidns 7\n", 600);
        write(9, "ppid 4\nstart 13\npidns 7\n", 700);
        let runs = find_runs(&[directory.path().to_owned()]);
        let count = |run: &ProgramRun| run.processes.len();
        assert_eq!(runs.iter().map(count).collect::<Vec<_>>(), [3, 1, 1]);
    }

    #[test]
    fn a_long_chain_of_processes_is_one_run() {
        let processes = (1..=100_000).map(|pid| ProcessInfo { pid, parent: pid + 1, ..ProcessInfo::default() });
        assert_eq!(families(processes.collect()).len(), 1);
    }

    #[test]
    fn the_last_record_of_a_long_file_is_found() {
        let many: Vec<u64> = (10..1000).collect();
        assert_eq!(runs(&[(1, 100, &many), (2, 100, &[999]), (3, 100, &[1000])]), [vec![1, 2], vec![3]]);
    }

    #[test]
    fn records_in_buffers_belong_to_the_run() {
        // The first and the last records of one that was killed, or runs, are in its trbuf.
        let directory = trace(&[(1, 100, &[5]), (2, 100, &[4]), (3, 100, &[6]), (4, 100, &[8])]);
        let [first, last] = [3, 7].map(|seconds| record(seconds * 1_000_000_000, 1, "02:04:0", 0));
        let write = |image: TrbufImage| image.write(&directory.path().join(TRBUF));
        let runs = || {
            let runs = find_runs(&[directory.path().to_owned()]);
            runs.iter().map(|run| (run.processes.len(), run.start / 1_000_000_000)).collect::<Vec<_>>()
        };
        assert_eq!(runs(), [(1, 4), (1, 5), (1, 6), (1, 8)]);
        write(TrbufImage::with_text(1, &format!("{first}{last}")));
        assert_eq!(runs(), [(3, 3), (1, 8)]);
        write(TrbufImage::with_text(1, &format!("{}\n{last}{}", &first[..50], &last[..50])));
        assert_eq!(runs(), [(1, 4), (2, 5), (1, 8)], "incomplete lines are no records");
    }

    #[test]
    fn a_child_that_has_recorded_nothing_is_no_run() {
        let directory = trace(&[(1, 100, &[1])]);
        let buffers = |name: &str, content: &[u8]| {
            fs::write(directory.path().join(name), content).unwrap();
            find_runs(&[directory.path().to_owned()]).len()
        };
        assert_eq!(buffers("trbuf.0000002", b""), 1);
        let mut blank = vec![0; SlotLayout::BUFFERS.first_size() as usize];
        assert_eq!(buffers("trbuf.0000002", &blank), 1);
        // The text of a child that has left it the trbuf; then also the trbuf's new header.
        blank[SLOTS_OFFSET + PAGE..][..9].copy_from_slice(b"12345:678");
        assert_eq!(buffers("trbuf.0000002", &blank), 1);
        let mut begun = TrbufImage::new();
        begun.bytes.resize(blank.len(), 0);
        begun.bytes[SLOTS_OFFSET..].copy_from_slice(&blank[SLOTS_OFFSET..]);
        assert_eq!(buffers("trbuf.0000002", &begun.bytes), 1);
        let mut with_slot = TrbufImage::new();
        with_slot.add_slot(2);
        assert_eq!(buffers("trbuf.0000002", &with_slot.bytes), 2);
        blank[SLOTS_OFFSET] = 1;
        assert_eq!(buffers("trbuf.0000002", &blank), 2, "damaged");
    }

    #[test]
    fn a_directory_that_is_named_twice_has_its_runs_once() {
        let directory = trace(&[(1, 100, &[1])]);
        let (path, root) = (directory.path().to_owned(), tempfile::tempdir().unwrap());
        let link = root.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        let within = path.join("u1000");
        fs::create_dir(&within).unwrap();
        fs::write(within.join("tr.0000002.002"), record(9_000_000_000, 2, "02:04:0", 0)).unwrap();
        let count = |paths: &[&PathBuf]| find_runs(&paths.iter().map(|path| (*path).clone()).collect::<Vec<_>>()).len();
        assert_eq!((count(&[&path]), count(&[&within])), (2, 1));
        assert_eq!([count(&[&path, &link]), count(&[&path, &within]), count(&[&within, &link, &path])], [2; 3]);
        let other = trace(&[(1, 100, &[1])]);
        assert_eq!(count(&[&path, &other.path().to_owned()]), 3);
        assert!(find_runs(&[link.clone(), path]).iter().all(|run| run.directory == link), "as it was named first");
    }

    #[test]
    fn a_run_knows_its_files() {
        let directory = trace(&[(1, 100, &[1]), (2, 100, &[5])]);
        fs::write(directory.path().join("trbuf.0000002"), "").unwrap();
        let runs = find_runs(&[directory.path().to_owned(), directory.path().join("tr.0000001.001")]);
        assert_eq!(runs[1].paths(), ["tr.0000002.002", "trbuf.0000002"].map(|name| directory.path().join(name)));
        assert_eq!((runs[0].start, runs[0].end), (1_000_000_000, 1_000_000_000));
    }
}
