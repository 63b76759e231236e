//! The functions of recorded stacks.
//!
//! A thread of its own looks them up: the readers of debug information cannot be shared, and threads share the work of formats.

use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

use spec::info;
use spec::names::FileName;
use spec::record::NANOS_PER_SECOND;

use crate::record::call_stack::CallStack;
use crate::symbols::{CodeAddress, CodeMaps, Symbolizer};
use crate::trace::file_handle::{INFO_MAX, read_info};
use crate::trace::file_names::FileGroup;

/// The most stacks whose names are kept; if there are more, all are forgotten.
const STACKS_MAX: usize = 1 << 14;

/// A process, the addresses of one of its stacks, or of the beginning of a function, and since when its code has not changed.
type Request = (u32, Vec<u64>, RequestKind, u64);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum RequestKind {
    Stack,
    Function,
}

/// The names of frames.
#[derive(Debug)]
pub struct FrameNames(Mutex<Lookups>);

#[derive(Debug)]
struct Lookups {
    requests: Sender<(Request, Arc<ProcessCode>)>,
    answers: Receiver<Vec<String>>,
    known: HashMap<Request, Arc<[String]>>,
    groups: Vec<FileGroup>,
    /// The code of the programs that each process executed.
    processes: HashMap<u32, Arc<ProcessCode>>,
}

/// The code of the programs that a process executed, one after the other.
#[derive(Debug)]
struct ProcessCode {
    programs: Vec<CodeMaps>,
    /// When it changed; sorted.
    changes: Vec<u64>,
    /// The trinfo files with their sizes when they were read, and the wall clock then.
    files: Vec<(PathBuf, u64)>,
    read_at: u64,
}

impl FrameNames {
    /// The names in the programs of the processes that have files in `groups`.
    pub fn new(groups: Vec<FileGroup>) -> FrameNames {
        let (requests, pending) = channel::<(Request, Arc<ProcessCode>)>();
        let (names, answers) = channel();
        let look_up = move || {
            let symbols = Symbolizer::new(Vec::new(), &[]);
            for (request, process) in pending {
                if names.send(process.names(&request, &symbols)).is_err() {
                    break;
                }
            }
        };
        // Without the thread there are no answers, and addresses stand for names.
        _ = thread::Builder::new().name("symbols".to_owned()).spawn(look_up);
        let (known, processes) = (HashMap::new(), HashMap::new());
        FrameNames(Mutex::new(Lookups { requests, answers, known, groups, processes }))
    }

    /// What each frame of a stack is called that was recorded at a time, the innermost first; an address may be in several functions that were inlined into each
    /// other.
    pub fn of(&self, pid: u32, stack: &CallStack, time: u64) -> Arc<[String]> {
        self.look_up((pid, stack.addresses.clone(), RequestKind::Stack, time))
    }

    /// What the function is called that began at an address at a time.
    pub fn of_function(&self, pid: u32, address: u64, time: u64) -> Arc<[String]> {
        self.look_up((pid, vec![address], RequestKind::Function, time))
    }

    fn look_up(&self, mut request: Request) -> Arc<[String]> {
        let lookups = &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Lookups { groups, processes, .. } = lookups;
        let process = processes.entry(request.0).or_insert_with(|| Arc::new(ProcessCode::read(groups, request.0)));
        if process.is_outdated_at(request.3) {
            *process = Arc::new(ProcessCode::read(groups, request.0));
        }
        request.3 = process.unchanged_since(request.3);
        if let Some(known) = lookups.known.get(&request) {
            return known.clone();
        }
        let sent = lookups.requests.send((request.clone(), process.clone()));
        let names = sent.ok().and_then(|()| lookups.answers.recv().ok());
        let unknown = || request.1.iter().map(|address| format!("{address:#x}")).collect();
        let names: Arc<[String]> = names.unwrap_or_else(unknown).into();
        if lookups.known.len() >= STACKS_MAX {
            lookups.known.clear();
        }
        lookups.known.insert(request, names.clone());
        names
    }
}

impl ProcessCode {
    fn read(groups: &[FileGroup], pid: u32) -> ProcessCode {
        let (mut programs, mut files): (Vec<CodeMaps>, _) = (Vec::new(), Vec::new());
        let read_at = wall_clock();
        for group in groups {
            let Some(process) = group.process(pid) else { continue };
            let shift = group.host.as_ref().map_or(0, |host| host.shift);
            let path = process.path(FileName::Info(process.number));
            let Ok(text) = read_info(&path) else { continue };
            files.push((path, text.len() as u64));
            for (key, value) in info::lines(&text) {
                match key {
                    b"format" => programs.push(CodeMaps::default()),
                    _ => programs.last_mut().into_iter().for_each(|maps| maps.add_line(key, value, shift)),
                }
            }
        }
        let changing = programs.iter().filter(|maps| maps.has_changes());
        let mut changes: Vec<u64> = changing.flat_map(CodeMaps::change_times).collect();
        changes.sort_unstable();
        ProcessCode { programs, changes, files, read_at }
    }

    /// Whether a process that runs has described more of its code since, which a record of this time may be in.
    fn is_outdated_at(&self, time: u64) -> bool {
        // How far the clocks may be apart.
        const SLACK: u64 = 60 * NANOS_PER_SECOND;
        let has_grown = |(path, size): &(PathBuf, u64)| {
            *size < INFO_MAX && fs::metadata(path).is_ok_and(|info| info.len() != *size)
        };
        time.saturating_add(SLACK) >= self.read_at && self.files.iter().any(has_grown)
    }

    fn unchanged_since(&self, time: u64) -> u64 {
        let place = self.changes.partition_point(|change| *change <= time);
        self.changes.get(place.wrapping_sub(1)).copied().unwrap_or(0)
    }

    fn names(&self, (_, addresses, kind, time): &Request, symbols: &Symbolizer) -> Vec<String> {
        // Which program made the record shows in where its code was.
        let known = |maps: &&CodeMaps| {
            addresses.iter().filter(|address| matches!(maps.find(**address, *time), CodeAddress::InFile(..))).count()
        };
        let maps = self.programs.iter().max_by_key(known);
        let code = |address: u64| maps.map_or(CodeAddress::Unknown(address), |maps| maps.find(address, *time));
        let names = |address: &u64| match kind {
            RequestKind::Stack => symbols.frame_names(code(*address)),
            RequestKind::Function => vec![symbols.function_name(code(*address))],
        };
        addresses.iter().flat_map(names).collect()
    }
}

/// Nanoseconds since the Epoch.
fn wall_clock() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::test_trace::TestTrace;

    #[test]
    fn frames_are_named_by_the_program_that_has_them() {
        let trace = TestTrace::new();
        let [first, second] = ["/bin/one", "/bin/two"].map(|path| {
            let start = if path == "/bin/one" { 0x1000 } else { 0x5000 };
            format!("format 1\npid 1\nmap {start:#x} {:#x} 0x0 - {path}\n", start + 0x1000)
        });
        trace.file("trinfo.0000001", format!("{first}{second}"));
        let names = FrameNames::new(vec![FileGroup::from(trace.path(""))]);
        let of = |pid, addresses: &[u64]| {
            let stack = CallStack { addresses: addresses.to_vec(), is_cut_off: false };
            names.of(pid, &stack, 5).to_vec()
        };
        for _ in 0..2 {
            assert_eq!(of(1, &[0x1010, 0x1020]), ["one+0x10", "one+0x20"]);
            assert_eq!(of(1, &[0x5010, 0x9000]), ["two+0x10", "[unmapped]"]);
        }
        assert_eq!(of(2, &[0x1010]), ["0x1010"]);
    }
}
