//! What a process's trinfo shows for a report: its programs, their code, and what its records leave out.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use spec::info::RINGS_REUSED;
use spec::names::FileName;
use spec::{EventId, EventSet, id, info};

use super::contention::Knowledge;
use super::process_info::{ProcessInfo, add_note, command};
use crate::support::visible_text::visible_bytes;
use crate::symbols::{CodeAddress, CodeMaps};
use crate::trace::file_handle::read_info;
use crate::trace::file_names::split_name;
use crate::trace::thread_completeness::read_trinfo;

/// The events that acquire and release locks, by the kinds of locks.
const MUTEX_EVENTS: [EventId; 4] = [id::MUTEX_LOCK, id::MUTEX_TRYLOCK, id::MUTEX_UNLOCK, id::MUTEX_TIMEDLOCK];
const RMUTEX_EVENTS: [EventId; 4] = [id::RMUTEX_LOCK, id::RMUTEX_TRYLOCK, id::RMUTEX_UNLOCK, id::RMUTEX_TIMEDLOCK];
const RWLOCK_EVENTS: [EventId; 7] = [
    id::RW_RDLOCK,
    id::RW_WRLOCK,
    id::RW_UNLOCK,
    id::RW_TRYRDLOCK,
    id::RW_TRYWRLOCK,
    id::RW_TIMEDRDLOCK,
    id::RW_TIMEDWRLOCK,
];
const SPIN_EVENTS: [EventId; 3] = [id::SPIN_LOCK, id::SPIN_TRYLOCK, id::SPIN_UNLOCK];
const LOCK_EVENTS: [&[EventId]; 4] = [&MUTEX_EVENTS, &RMUTEX_EVENTS, &RWLOCK_EVENTS, &SPIN_EVENTS];

/// The events that wait for conditions.
const COND_WAITS: [EventId; 3] = [id::COND_WAIT, id::COND_TIMEDWAIT, id::COND_CLOCKWAIT];
/// The events, beside those of locks and [`COND_WAITS`], without which neither the lock order nor misuse is known: what creates and
/// joins threads, and waits for barriers.
const ORDER_EVENTS: [EventId; 8] = [
    id::THR_CREATE,
    id::THR_BEGIN,
    id::THR_EXIT,
    id::THR_JOIN,
    id::THR_TRYJOIN,
    id::THR_TIMEDJOIN,
    id::THR_DETACH,
    id::BARRIER_WAIT,
];
/// The events, beside those of locks and [`COND_WAITS`], that may be part of a deadlock.
const DEADLOCK_EVENTS: [EventId; 2] = [id::THR_JOIN, id::THR_ONCE];
/// The events that chains of waits may end in: ends of threads, waits for semaphores and barriers.
const END_EVENTS: [EventId; 3] = [id::THR_EXIT, id::SEMA_WAIT, id::BARRIER_WAIT];
/// The events by which each thread is known, and its end.
const THREAD_EVENTS: [EventId; 2] = [id::THR_BEGIN, id::THR_EXIT];
/// The events by which it is known what a forked child has of its parent's: the call, and the child's beginning.
const FORK_EVENTS: [EventId; 2] = [id::PROC_FORK, id::PROC_BEGIN];

/// A process as its trinfo describes it.
#[derive(Clone, Debug, Default)]
pub struct RecordedProcess {
    /// The programs that it executed and of which something was recorded, one after the other.
    pub programs: Vec<RecordedProgram>,
    /// Why calls may be missing.
    pub notes: Vec<String>,
    /// How much its rings have room for; `None` if it has none.
    pub ring: Option<String>,
    pub knowledge: Knowledge,
    /// The names of its own objects and events, by ID.
    pub names: HashMap<u64, String>,
    /// Its buffers are in its own memory: what is in them when it is killed is in no file.
    pub has_own_memory: bool,
    /// Another process has forked the program that was described last.
    is_forked: bool,
    /// The exit of a process makes no record.
    leaves_ends_out: bool,
    /// By how much the times of its records are ahead of those in its trinfo.
    shift: i64,
}

/// A program that a process executed.
#[derive(Clone, Debug, Default)]
pub struct RecordedProgram {
    pub exe: String,
    /// Its command line; empty if that is not known.
    pub command: String,
    /// The name of its first thread.
    pub comm: String,
    pub maps: CodeMaps,
    /// Whether any event was ever recorded, if trinfo says it.
    records: Option<bool>,
}

impl RecordedProcess {
    /// What is known of a process.
    pub fn read(process: &ProcessInfo) -> RecordedProcess {
        let mut recorded = RecordedProcess::default();
        (recorded.notes, recorded.ring) = (process.notes.clone(), process.ring.clone());
        recorded.knowledge.own_pid = process.own_pid;
        let mut hasher = DefaultHasher::new();
        process.system.hash(&mut hasher);
        recorded.knowledge.system = hasher.finish();
        (recorded.shift, recorded.knowledge.realtime_ahead) = (process.shift, process.shift);
        recorded.knowledge.lacks_settings = !has_settings_of_maker(process);
        for path in process.info_paths() {
            if let Ok(text) = read_info(&path) {
                recorded.add_text(&text);
                // A recovery may have written what it knew into one of its own.
                recorded.knowledge.lacks_settings &= info::value(&text, "format").is_none();
            }
            let Ok(completeness) = read_trinfo(&path) else { continue };
            let threads = completeness.threads.iter().map(|thread| thread.from.saturating_add_signed(process.shift));
            // Nothing shows when threads whose rings were used again ended, nor when records were lost that no record counts.
            let is_unknown = completeness.reused > 0 || completeness.uncounted > 0;
            let from = threads.chain(is_unknown.then_some(u64::MAX)).max().unwrap_or(0);
            recorded.knowledge.complete_from = recorded.knowledge.complete_from.max(from);
        }
        recorded
    }

    /// A process whose trinfo is not there.
    pub fn without_info() -> RecordedProcess {
        RecordedProcess { knowledge: Knowledge { lacks_settings: true, ..Knowledge::default() }, ..Default::default() }
    }

    pub fn add_text(&mut self, text: &[u8]) {
        for (id, name) in info::interned_names(text) {
            let name: Vec<u8> = name.collect();
            self.names.insert(id, visible_bytes(&name));
        }
        for (key, value) in info::lines(text) {
            match key {
                b"format" => {
                    self.programs.push(RecordedProgram::default());
                    self.is_forked = false;
                }
                b"offset" => {
                    let offset = std::str::from_utf8(value).ok().and_then(|value| value.parse::<i64>().ok());
                    self.knowledge.monotonic_ahead = offset.and_then(|offset| offset.checked_add(self.shift));
                }
                b"buffer" => self.has_own_memory = value == b"anonymous",
                b"forked_from" => self.is_forked = true,
                b"level" => self.knowledge.only_blocked |= value == b"blocked",
                b"events" => {
                    // While the process ran, the events were changed: a generation is before the list.
                    let list = value.iter().position(|&byte| byte == b' ').map_or(value, |space| &value[space + 1..]);
                    // A list that begins with a removal starts from all events.
                    let list = if list == b"all" { b"-" } else { list };
                    let set = EventSet::parse(list, &mut |_| {});
                    self.knowledge.is_partial |= leaves_locks_out(&set);
                    // An empty list is that of a program of which nothing is there, or of one that was changed since.
                    let misses = |needed: &[EventId]| !list.is_empty() && !contains_all(&set, needed);
                    let misses_locks = LOCK_EVENTS.iter().any(|needed| misses(needed));
                    self.knowledge.misses_waits |= misses_locks || misses(&COND_WAITS) || misses(&DEADLOCK_EVENTS);
                    self.knowledge.misses_mutexes |= misses(&MUTEX_EVENTS);
                    self.knowledge.misses_rmutexes |= misses(&RMUTEX_EVENTS);
                    self.knowledge.is_forked |= self.is_forked && !list.is_empty();
                    self.knowledge.is_spawned = !self.knowledge.is_forked && !list.is_empty();
                    self.knowledge.misses_forks |= self.is_forked && misses(&FORK_EVENTS);
                    self.knowledge.misses_ends |= misses(&END_EVENTS);
                    self.knowledge.misses_threads |= misses(&THREAD_EVENTS);
                    let mut needed = LOCK_EVENTS.into_iter().chain([&COND_WAITS[..], &ORDER_EVENTS]);
                    self.knowledge.is_selective |= !needed.all(|needed| contains_all(&set, needed));
                    self.knowledge.misses_conds |= leaves_conds_out(&set);
                    self.knowledge.misses_cancels |= !set.contains(id::THR_CANCEL);
                    self.leaves_ends_out |= !set.contains(id::PROC_EXIT);
                }
                _ => {}
            }
            let Some(program) = self.programs.last_mut() else { continue };
            match key {
                b"exe" => program.exe = unescaped(value),
                b"cmdline" => program.command = command(value),
                b"comm" => program.comm = unescaped(value),
                b"map" | b"unmap" | b"maps" | b"maps_partial" => program.maps.add_line(key, value, self.shift),
                b"events" => program.records = Some(program.records == Some(true) || !value.is_empty()),
                _ => {}
            }
        }
        // Those that only showed themselves (THR_TRACE_CONTROL) are none that the records count.
        self.programs.retain(|program| program.records != Some(false));
    }

    /// Notes that records of the process are complete only from a time on.
    pub fn add_incompleteness(&mut self, complete_from: u64) {
        self.knowledge.complete_from = self.knowledge.complete_from.max(complete_from);
    }

    /// Notes how many threads' rings were reused, as its trinfo will have it when it ends.
    pub fn add_reused_rings(&mut self, threads: u64) {
        if threads > 0 {
            add_note(&mut self.notes, RINGS_REUSED.join(&threads.to_string()));
            // Nothing shows when they ended.
            self.add_incompleteness(u64::MAX);
        }
    }

    /// The code of its programs.
    pub fn code_of_programs(&self) -> Vec<&CodeMaps> {
        self.programs.iter().map(|program| &program.maps).collect()
    }

    /// Why calls are missing or may be. Rings that have overwritten nothing are no reason.
    pub fn reasons(&self) -> impl Iterator<Item = &String> {
        self.notes.iter().chain(self.ring.as_ref().filter(|_| self.knowledge.complete_from > 0))
    }

    /// Whether a process that ends by itself makes a record of that.
    pub fn has_ends(&self) -> bool {
        !self.leaves_ends_out
    }

    /// One of the programs.
    pub fn program(&self, image: u32) -> Option<&RecordedProgram> {
        self.programs.get(image as usize).or(self.programs.last())
    }

    /// The place of the last program that the process is known to have executed.
    pub fn last_image(&self) -> u32 {
        self.programs.len().saturating_sub(1) as u32
    }

    /// The command line of one of the programs, unless what is `shown` for the process is more than that of the last one, as where several
    /// hosts have such processes.
    pub fn command<'a>(&'a self, image: u32, shown: &'a str) -> &'a str {
        let is_last = self.programs.last().is_some_and(|last| last.command == shown);
        let program = self.program(image).filter(|program| is_last && !program.command.is_empty());
        program.map_or(shown, |program| &program.command)
    }

    /// Where an address in the code of one of the programs was at a time.
    pub fn code(&self, image: u32, address: u64, time: u64) -> CodeAddress<'_> {
        self.program(image).map_or(CodeAddress::Unknown(address), |program| program.maps.find(address, time))
    }
}

/// A value of a trinfo that may hold any character, as people may see it.
fn unescaped(value: &[u8]) -> String {
    visible_bytes(&info::unescape(value).collect::<Vec<u8>>())
}

/// Whether a process has recorded in a spare trbuf of an ancestor, with the settings of that one: it has no trinfo.
fn has_settings_of_maker(process: &ProcessInfo) -> bool {
    process.paths().any(|path| match split_name(path).1 {
        Some(FileName::Records { process, .. }) => matches!(FileName::buffers(process), FileName::Spare { .. }),
        name => matches!(name, Some(FileName::Spare { .. })),
    })
}

/// Whether a set of recorded events has all of these.
fn contains_all(set: &EventSet, needed: &[EventId]) -> bool {
    needed.iter().all(|event| set.contains(*event))
}

/// Whether a set of recorded events leaves out acquisitions or releases of locks of which it has others.
fn leaves_locks_out(set: &EventSet) -> bool {
    let is_partial = |events: &&[EventId]| {
        let recorded = events.iter().filter(|event| set.contains(**event)).count();
        recorded > 0 && recorded < events.len()
    };
    LOCK_EVENTS.iter().any(is_partial)
}

/// Whether a set of recorded events has mutexes and leaves out waits for conditions, which release them.
fn leaves_conds_out(set: &EventSet) -> bool {
    let has_mutexes = set.contains(id::MUTEX_LOCK) || set.contains(id::RMUTEX_LOCK);
    has_mutexes && !contains_all(set, &COND_WAITS)
}

/// What is known of processes, by their numbers.
pub fn recorded_processes(processes: &HashMap<u32, ProcessInfo>) -> HashMap<u32, RecordedProcess> {
    processes.iter().map(|(pid, process)| (*pid, RecordedProcess::read(process))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_program_that_a_process_has_executed_has_its_command_line() {
        let mut recorded = RecordedProcess::default();
        recorded.add_text(b"format 1\ncmdline nice make\nevents 0002:all\nformat 1\ncmdline make\nevents 0002:all\ncmdline make: idle\n");
        let commands = |shown| [0, 1].map(|image| recorded.command(image, shown));
        assert_eq!(commands("make '-j'"), ["make '-j'"; 2], "not the last one's");
        assert_eq!(commands("make make: idle"), ["make make: idle"; 2]);
        assert_eq!(commands("make: idle"), ["nice make", "make: idle"]);
    }

    #[test]
    fn a_ring_is_a_reason_if_it_has_overwritten_something() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        std::fs::write(path("tr.0000001.001"), "").unwrap();
        let reasons = |text: &str| {
            std::fs::write(path("trinfo.0000001"), format!("format 1\npid 1\nring 65536\n{text}")).unwrap();
            let [process] = &crate::report::process_info::processes_in_directory(directory.path())[..] else {
                panic!()
            };
            let recorded = RecordedProcess::read(process);
            recorded.reasons().cloned().collect::<Vec<String>>()
        };
        assert_eq!(reasons(""), [""; 0]);
        let ring = "each thread's ring has room for 65536 bytes of records (THR_TRACE_RING)";
        let overwritten = "1 of its threads' rings overwrote older records";
        assert_eq!(reasons("complete_from 1 0000000005.000000009\n"), [overwritten, ring]);
    }

    #[test]
    fn a_process_is_never_complete_of_whose_lost_records_nobody_knows_when_they_were_made() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("tr.0000001.001"), "").unwrap();
        let complete_from = |text: &str| {
            std::fs::write(directory.path().join("trinfo.0000001"), format!("format 1\npid 1\n{text}")).unwrap();
            let processes = crate::report::process_info::processes_in_directory(directory.path());
            RecordedProcess::read(&processes[0]).knowledge.complete_from
        };
        assert_eq!(complete_from("lost 9\n"), 0, "loss records say when");
        assert_eq!(complete_from("lost 9\nuncounted 2\n"), u64::MAX);
    }

    #[test]
    fn a_trinfo_shows_programs_and_what_is_left_out() {
        let mut process = RecordedProcess::default();
        process.add_text(b"format 1\nexe /bin/sh\ncomm a\\x20sh\nmap 0x1000 0x2000 0x500 abc /bin/sh\nevents mutex:cond\nlevel all\n");
        assert!(!process.knowledge.only_blocked && !process.knowledge.is_partial);
        process.add_text(b"format 1\nexe /bin/a\\x20b\nmap 0x1000 0x3000 0x0 - /bin/a\\x20b\nlevel blocked\n");
        process.add_text(b"format 1\nexe /bin/silent\nmap 0x1000 0x2000 0x0 - /bin/silent\nevents \n");
        process.add_text(
            b"format 1\nexe /bin/late\nmap 0x1000 0x3000 0x0 - /bin/late\nevents \nevents 1 mutex\nevents 2 \n",
        );
        let exes: Vec<&str> = process.programs.iter().map(|program| program.exe.as_str()).collect();
        assert_eq!(exes, ["/bin/sh", "/bin/a b", "/bin/late"]);
        assert_eq!(process.program(0).unwrap().comm, "a sh");
        assert_eq!(
            [(0, 0x1010), (1, 0x1010), (7, 0x2fff), (1, 0x3000)]
                .map(|(image, address)| process.code(image, address, 5).place()),
            ["sh+0x510", "a b+0x10", "late+0x1fff", "[unmapped]"]
        );
        assert!(process.knowledge.only_blocked && !process.knowledge.is_partial);
        for (list, expected) in
            [("mutex", true), ("mutex:cond", false), ("cond", false), ("-cond_wait", true), ("-thr_self", false)]
        {
            assert_eq!(leaves_conds_out(&EventSet::parse(list.as_bytes(), &mut |_| {})), expected, "{list}");
        }
        for (list, expected) in [("mutex_lock", true), ("-mutex_unlock", true), ("cond", false), ("-thr_self", false)] {
            assert_eq!(leaves_locks_out(&EventSet::parse(list.as_bytes(), &mut |_| {})), expected, "{list}");
        }
    }

    #[test]
    fn waits_that_may_be_part_of_a_deadlock_are_known_by_the_events() {
        for (events, waits, ends, threads) in [
            ("all", false, false, false),
            ("-thr_self:thr_getspecific:user:process", false, false, false),
            ("thread:mutex:rmutex:rwlock:spin:cond", false, true, false),
            ("mutex:rmutex:rwlock:spin", true, true, true),
            ("mutex", true, true, true),
            ("-thr_join", true, false, false),
            ("-cond_timedwait", true, false, false),
            ("-mutex_lock", true, false, false),
            ("-spin", true, false, false),
            ("-barrier:sema", false, true, false),
            ("-thr_begin", false, false, true),
            ("", false, false, false),
            ("\nevents 3 thread", true, true, false),
        ] {
            let mut process = RecordedProcess::default();
            process.add_text(format!("format 1\nevents {events}\n").as_bytes());
            let Knowledge { misses_waits, misses_ends, misses_threads, .. } = process.knowledge;
            assert_eq!([misses_waits, misses_ends, misses_threads], [waits, ends, threads], "{events}");
        }
    }

    #[test]
    fn forks_are_missing_of_a_child_where_the_events_leave_them_out() {
        let misses = |text: &str| {
            let mut process = RecordedProcess::default();
            process.add_text(text.as_bytes());
            let Knowledge { is_forked, is_spawned, .. } = process.knowledge;
            assert_eq!((is_forked, is_spawned), (!is_spawned, !text.starts_with("format 1\nforked_from")), "{text}");
            process.knowledge.misses_forks
        };
        for (events, expected) in
            [("all", false), ("-proc_fork", true), ("-proc_begin", true), ("-proc_exec", false), ("mutex", true)]
        {
            assert_eq!(misses(&format!("format 1\nforked_from 7\nevents {events}\n")), expected, "{events}");
            assert!(!misses(&format!("format 1\nevents {events}\n")), "{events}: it was not forked");
        }
        assert!(
            !misses("format 1\nexe /bin/sh\nforked_from 7\nevents \nformat 1\nevents mutex\n"),
            "an exec begins another program"
        );
    }

    #[test]
    fn cancellations_are_missing_where_the_events_leave_them_out() {
        for (events, expected) in [("all", false), ("-thr_cancel", true), ("thread", false), ("mutex:cond", true)] {
            let mut process = RecordedProcess::default();
            process.add_text(format!("format 1\nevents {events}\n").as_bytes());
            assert_eq!(process.knowledge.misses_cancels, expected, "{events}");
        }
    }
}
