//! What a process's trinfo shows for a report: its programs, their code, and what its records leave out.

use std::collections::HashMap;

use spec::{EventSet, id, info};

use super::contention::Knowledge;
use super::process_info::ProcessInfo;
use crate::trace::file_handle::read_info;
use crate::trace::thread_completeness::read_trinfo;

/// The categories of locks, and the numbers of the events that acquire and release them.
const LOCK_EVENTS: [(u8, &[u8]); 4] =
    [(2, &[2, 3, 4, 30]), (5, &[2, 3, 4, 5, 6, 30, 31]), (6, &[2, 3, 4, 30]), (9, &[2, 3, 4])];

/// A process as its trinfo describes it.
#[derive(Clone, Debug, Default)]
pub struct RecordedProcess {
    /// The programs that it executed, one after the other.
    pub programs: Vec<RecordedProgram>,
    /// Why calls may be missing.
    pub notes: Vec<String>,
    pub knowledge: Knowledge,
    /// The exit of a process makes no record.
    leaves_ends_out: bool,
}

/// A program that a process executed.
#[derive(Clone, Debug, Default)]
pub struct RecordedProgram {
    pub exe: String,
    maps: Vec<CodeMap>,
}

/// Code of a file in the memory of a process.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CodeMap {
    pub start: u64,
    pub end: u64,
    /// Where in the file the code at `start` is.
    pub offset: u64,
    /// In hexadecimal; `-` if the file has none.
    pub build_id: String,
    pub path: String,
}

impl RecordedProcess {
    /// What is known of a process.
    pub fn read(process: &ProcessInfo) -> RecordedProcess {
        let mut recorded = RecordedProcess { notes: process.notes.clone(), ..RecordedProcess::default() };
        for path in process.info_paths() {
            if let Ok(text) = read_info(&path) {
                recorded.add_text(&text);
            }
            let Ok(completeness) = read_trinfo(&path) else { continue };
            let threads = completeness.threads.iter().map(|thread| thread.from);
            // Nothing shows when threads whose rings were used again ended.
            let reused = (completeness.reused > 0).then_some(u64::MAX);
            let from = threads.chain(reused).max().unwrap_or(0);
            recorded.knowledge.complete_from = recorded.knowledge.complete_from.max(from);
        }
        recorded
    }

    pub fn add_text(&mut self, text: &[u8]) {
        for (key, value) in info::lines(text) {
            match key {
                b"format" => self.programs.push(RecordedProgram::default()),
                b"level" => self.knowledge.only_blocked |= value == b"blocked",
                b"events" => {
                    // A list that begins with a removal starts from all events.
                    let list = if value == b"all" { b"-" } else { value };
                    let set = EventSet::parse(list, &mut |_| {});
                    self.knowledge.is_partial |= leaves_locks_out(&set);
                    self.leaves_ends_out |= !set.contains(id::PROC_EXIT);
                }
                _ => {}
            }
            let Some(program) = self.programs.last_mut() else { continue };
            match key {
                b"exe" => program.exe = String::from_utf8_lossy(value).escape_debug().to_string(),
                b"map" => program.maps.extend(CodeMap::parse(value)),
                _ => {}
            }
        }
    }

    /// Notes that records of the process are complete only from a time on.
    pub fn add_incompleteness(&mut self, complete_from: u64) {
        self.knowledge.complete_from = self.knowledge.complete_from.max(complete_from);
    }

    /// Whether a process that ends by itself makes a record of that.
    pub fn has_ends(&self) -> bool {
        !self.leaves_ends_out
    }

    /// The code at an address in one of the programs.
    pub fn code_map(&self, image: u32, address: u64) -> Option<&CodeMap> {
        let program = self.programs.get(image as usize).or(self.programs.last())?;
        // Files that were mapped later may have replaced others.
        program.maps.iter().rfind(|map| (map.start..map.end).contains(&address))
    }

    /// The first code of the file that one of the programs is of.
    pub fn program_map(&self, image: u32) -> Option<&CodeMap> {
        let program = self.programs.get(image as usize).or(self.programs.last())?;
        program.maps.iter().find(|map| map.path == program.exe)
    }

    /// The file and the offset of an address in it, in the code of one of the programs: `/usr/bin/sort+0x1234`. Outside the files,
    /// it is the address itself.
    pub fn place(&self, image: u32, address: u64) -> String {
        match self.code_map(image, address) {
            Some(map) => format!("{}+{:#x}", map.path, address - map.start + map.offset),
            None => format!("{address:#x}"),
        }
    }
}

/// Whether a set of recorded events leaves out acquisitions or releases of locks.
fn leaves_locks_out(set: &EventSet) -> bool {
    let is_partial = |(category, numbers): &(u8, &[u8])| {
        let recorded = numbers.iter().filter(|number| set.contains_numbers(*category, **number)).count();
        recorded > 0 && recorded < numbers.len()
    };
    LOCK_EVENTS.iter().any(is_partial)
}

impl CodeMap {
    /// Parses the value of a line `map START END OFFSET BUILD-ID PATH`.
    fn parse(value: &[u8]) -> Option<CodeMap> {
        let text = String::from_utf8_lossy(value);
        let mut words = text.splitn(5, ' ');
        let mut number = || u64::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok();
        let (start, end, offset) = (number()?, number()?, number()?);
        let build_id = words.next()?.to_owned();
        let path = words.next()?.escape_debug().to_string();
        Some(CodeMap { start, end, offset, build_id, path })
    }
}

/// What is known of processes, by their numbers.
pub fn recorded_processes(processes: &HashMap<u32, ProcessInfo>) -> HashMap<u32, RecordedProcess> {
    processes.iter().map(|(pid, process)| (*pid, RecordedProcess::read(process))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trinfo_shows_programs_and_what_is_left_out() {
        let mut process = RecordedProcess::default();
        process.add_text(b"format 1\nexe /bin/sh\nmap 0x1000 0x2000 0x500 abc /bin/sh\nevents mutex:cond\nlevel all\n");
        assert!(!process.knowledge.only_blocked && !process.knowledge.is_partial);
        process.add_text(b"format 1\nexe /bin/a b\nmap 0x1000 0x3000 0x0 - /bin/a b\nlevel blocked\n");
        let exes: Vec<&str> = process.programs.iter().map(|program| program.exe.as_str()).collect();
        assert_eq!(exes, ["/bin/sh", "/bin/a b"]);
        assert_eq!(
            [(0, 0x1010), (1, 0x1010), (7, 0x2fff), (1, 0x3000)].map(|(image, address)| process.place(image, address)),
            ["/bin/sh+0x510", "/bin/a b+0x10", "/bin/a b+0x1fff", "0x3000"]
        );
        assert!(process.knowledge.only_blocked && !process.knowledge.is_partial);
        for (list, expected) in [("mutex_lock", true), ("-mutex_unlock", true), ("cond", false), ("-thr_self", false)] {
            assert_eq!(leaves_locks_out(&EventSet::parse(list.as_bytes(), &mut |_| {})), expected, "{list}");
        }
    }
}
