//! Puts calls together from records that are in order.

use std::collections::{HashMap, HashSet};

use foldhash::fast::RandomState;
use spec::event_numbers::TRACE_STACK;
use spec::tables::{MUTEX, RMUTEX};
use spec::{Event, FUNCTIONS, Record};

use super::call::Call;
use super::pairing::{CallKey, OPEN_CALLS_MAX, OpenCalls};
use super::wait_rules::{WaitRule, wait_rules};
use crate::record::columns;
use crate::record::event_table::EventTable;

/// The most processes for which the time of the last record is kept.
const PROCESSES_MAX: usize = 1 << 18;

/// Puts calls together.
pub struct CallAssembler {
    rules: EventTable<WaitRule>,
    /// Events that functions make: others (a lost record, the start of a process) are no calls.
    functions: HashSet<(u8, u8)>,
    open: OpenCalls<EntryRecord>,
    /// The time of each process's last record.
    last_record_times: HashMap<u32, u64, RandomState>,
}

struct EntryRecord {
    record: Record,
    shows_wait: bool,
}

impl CallAssembler {
    pub fn new() -> CallAssembler {
        CallAssembler {
            rules: wait_rules(),
            functions: events_of_functions().collect(),
            open: OpenCalls::default(),
            last_record_times: HashMap::default(),
        }
    }

    /// Takes the next record, whose line ends with its newline, and gives `visit` the calls that it completes.
    pub fn push(&mut self, line: &[u8], visit: &mut dyn FnMut(&Call)) {
        let Ok(record) = Record::parse(line.strip_suffix(b"\n").unwrap_or(line)) else { return };
        if self.last_record_times.len() < PROCESSES_MAX || self.last_record_times.contains_key(&record.pid) {
            self.last_record_times.insert(record.pid, record.time);
        }
        let Some(event) = record.event().filter(|event| (event.category, event.number) != TRACE_STACK) else { return };
        let (rule, numbers) = (self.rules.get(event.category, event.number), columns::event(line));
        let shows_wait = rule.record_shows_wait(record.which, line);
        match record.which {
            1 => {
                self.open.begin(CallKey::of(line, numbers), EntryRecord { record, shows_wait });
                if self.open.len() > OPEN_CALLS_MAX {
                    self.finish(visit);
                }
            }
            2 => {
                let entry = self.open.end(CallKey::of(line, numbers));
                let lasted = entry.as_ref().map_or(0, |entry| record.time.saturating_sub(entry.record.time));
                let entry_shows_wait = entry.as_ref().is_some_and(|entry| entry.shows_wait);
                let waited = rule.waited(entry_shows_wait, shows_wait, lasted);
                visit(&call(event, entry.map(|entry| entry.record), Some(record), record, record.time, waited));
            }
            _ if self.functions.contains(&(event.category, event.number)) => {
                visit(&call(event, Some(record), Some(record), record, record.time, false));
            }
            _ => {}
        }
    }

    /// Gives `visit` the open calls in the order in which they began.
    pub fn finish(&mut self, visit: &mut dyn FnMut(&Call)) {
        let open = std::mem::take(&mut self.open).into_open_calls();
        let mut records: Vec<Record> = open.into_iter().map(|(_, entry)| entry.record).collect();
        records.sort_by_key(|record| record.time);
        for record in records {
            let Some(event) = record.event() else { continue };
            let known_until = self.last_record_times.get(&record.pid).copied().unwrap_or(record.time);
            let waited = self.rules.get(event.category, event.number).can_wait();
            visit(&call(event, Some(record), None, record, known_until, waited));
        }
    }
}

/// The events that functions make.
pub fn events_of_functions() -> impl Iterator<Item = (u8, u8)> {
    let events = FUNCTIONS.iter().map(|function| function.event.event());
    // The functions of mutexes make other events for recursive ones, with the same numbers.
    events.flat_map(|event| {
        let recursive = (event.category == MUTEX).then_some((RMUTEX, event.number));
        [Some((event.category, event.number)), recursive].into_iter().flatten()
    })
}

fn call(
    event: &'static Event,
    entry: Option<Record>,
    returned: Option<Record>,
    any: Record,
    known_until: u64,
    waited: bool,
) -> Call {
    Call { event, pid: any.pid, lwp: any.lwpid, tid: any.tid, entry, returned, known_until, waited }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::test_trace::record;

    /// Name, LWP, duration in ns, object, result and whether it waited, of each call of these records.
    type Summary = (&'static str, u32, Option<u64>, Option<u64>, Option<u64>, bool);

    fn calls(lines: &[String]) -> Vec<Summary> {
        let (mut assembler, mut calls) = (CallAssembler::new(), Vec::new());
        let mut visit = |call: &Call| {
            let duration = call.duration().map(|duration| duration.as_nanos() as u64);
            calls.push((call.event.name, call.lwp, duration, call.object(), call.result(), call.waited()));
        };
        lines.iter().for_each(|line| assembler.push(line.as_bytes(), &mut visit));
        assembler.finish(&mut visit);
        calls
    }

    #[test]
    fn calls_on_recursive_mutexes_are_calls() {
        let events = ["06:02:1", "06:02:2", "06:03:0", "06:04:0", "06:01:0", "06:05:0"];
        let lines: Vec<String> = (1..).zip(events).map(|(time, event)| record(time, 1, event, 48)).collect();
        let names: Vec<&str> = calls(&lines).iter().map(|call| call.0).collect();
        assert_eq!(names, ["rmutex_lock", "rmutex_trylock", "rmutex_unlock", "rmutex_init", "rmutex_destroy"]);
        // The beginning of a thread is no call.
        assert_eq!(calls(&[record(1, 1, "01:30:0", 48)]), []);
    }

    #[test]
    fn entry_and_return_records_make_a_call() {
        let blocked = record(9, 1, "02:02:2", 0).replace("02:02:2:0:0", "02:02:2:0:1");
        let lines = [
            record(1, 1, "02:02:1", 16),
            record(2, 2, "02:02:1", 32),
            record(3, 1, "02:04:0", 48),
            record(4, 2, "02:02:2", 35),
            blocked,
        ];
        let expected = [
            ("mutex_unlock", 1, Some(0), Some(48), None, false),
            ("mutex_lock", 2, Some(2), Some(32), Some(35), false),
            ("mutex_lock", 1, Some(8), Some(16), Some(0), true),
        ];
        let calls = calls(&lines);
        assert_eq!(
            calls.iter().map(|call| (call.0, call.1, call.2, call.3, call.5)).collect::<Vec<_>>(),
            expected.map(|call| (call.0, call.1, call.2, call.3, call.5))
        );
        assert_eq!((calls[1].4, calls[2].4), (Some(35), Some(0)));
    }

    #[test]
    fn open_calls_last_until_the_last_record_of_their_process() {
        let lines = [
            record(5, 2, "02:02:1", 16),
            record(6, 1, "02:02:2", 0),
            record(7, 3, "02:02:1", 32),
            record(20, 1, "12:07:0", 5),
            record(30, 1, "00:01:0", 5),
        ];
        let expected = [
            ("mutex_lock", 1, None, None, Some(0), false),
            ("mutex_lock", 2, Some(25), Some(16), None, true),
            ("mutex_lock", 3, Some(23), Some(32), None, true),
        ];
        assert_eq!(calls(&lines), expected);
    }
}
