//! The functions of recorded stacks.
//!
//! A thread of its own looks them up: the readers of debug information cannot be shared, and threads share the work of formats.

use std::collections::HashMap;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use spec::info;
use spec::names::FileName;

use crate::record::call_stack::CallStack;
use crate::symbols::{CodeAddress, CodeMaps, Symbolizer};
use crate::trace::file_handle::read_info;
use crate::trace::file_names::FileGroup;

/// The most stacks whose names are kept; if there are more, all are forgotten.
const STACKS_MAX: usize = 1 << 14;

/// A process, and the addresses of one of its stacks, or of the beginning of a function.
type Request = (u32, Vec<u64>, RequestKind);

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
    requests: Sender<Request>,
    answers: Receiver<Vec<String>>,
    known: HashMap<Request, Arc<[String]>>,
}

impl FrameNames {
    /// The names in the programs of the processes that have files in `groups`.
    pub fn new(groups: Vec<FileGroup>) -> FrameNames {
        let (requests, pending) = channel::<Request>();
        let (names, answers) = channel();
        let look_up = move || {
            let mut source = NameSource { groups, programs: HashMap::new(), symbols: Symbolizer::new(Vec::new(), &[]) };
            for (pid, addresses, kind) in pending {
                if names.send(source.names(pid, &addresses, kind)).is_err() {
                    break;
                }
            }
        };
        // Without the thread there are no answers, and addresses stand for names.
        _ = thread::Builder::new().name("symbols".to_owned()).spawn(look_up);
        FrameNames(Mutex::new(Lookups { requests, answers, known: HashMap::new() }))
    }

    /// What each frame of a stack is called, the innermost first; an address may be in several functions that were inlined into each
    /// other.
    pub fn of(&self, pid: u32, stack: &CallStack) -> Arc<[String]> {
        self.look_up((pid, stack.addresses.clone(), RequestKind::Stack))
    }

    /// What the function is called that begins at an address.
    pub fn of_function(&self, pid: u32, address: u64) -> Arc<[String]> {
        self.look_up((pid, vec![address], RequestKind::Function))
    }

    fn look_up(&self, request: Request) -> Arc<[String]> {
        let mut lookups = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = lookups.known.get(&request) {
            return known.clone();
        }
        let sent = lookups.requests.send(request.clone());
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

/// What the thread has.
struct NameSource {
    groups: Vec<FileGroup>,
    /// The code of the programs that each process executed.
    programs: HashMap<u32, Vec<CodeMaps>>,
    symbols: Symbolizer,
}

impl NameSource {
    fn names(&mut self, pid: u32, addresses: &[u64], kind: RequestKind) -> Vec<String> {
        let NameSource { groups, programs, symbols } = self;
        let programs = programs.entry(pid).or_insert_with(|| programs_of(groups, pid));
        // Which program made the record shows in where its code was.
        let known = |maps: &&CodeMaps| {
            addresses.iter().filter(|address| matches!(maps.find(**address), CodeAddress::InFile(..))).count()
        };
        let maps = programs.iter().max_by_key(known);
        let code = |address: u64| maps.map_or(CodeAddress::Unknown(address), |maps| maps.find(address));
        let names = |address: &u64| match kind {
            RequestKind::Stack => symbols.frame_names(code(*address)),
            RequestKind::Function => vec![symbols.function_name(code(*address))],
        };
        addresses.iter().flat_map(names).collect()
    }
}

/// The code of the programs that a process executed, one after the other.
fn programs_of(groups: &[FileGroup], pid: u32) -> Vec<CodeMaps> {
    let mut programs = Vec::new();
    for process in groups.iter().filter_map(|group| group.process(pid)) {
        let Ok(text) = read_info(&process.path(FileName::Info(process.number))) else { continue };
        for (key, value) in info::lines(&text) {
            match key {
                b"format" => programs.push(CodeMaps::default()),
                b"map" => programs.last_mut().into_iter().for_each(|maps: &mut CodeMaps| maps.add(value)),
                _ => {}
            }
        }
    }
    programs
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
            names.of(pid, &stack).to_vec()
        };
        for _ in 0..2 {
            assert_eq!(of(1, &[0x1010, 0x1020]), ["one+0x10", "one+0x20"]);
            assert_eq!(of(1, &[0x5010, 0x9000]), ["two+0x10", "[unmapped]"]);
        }
        assert_eq!(of(2, &[0x1010]), ["0x1010"]);
    }
}
