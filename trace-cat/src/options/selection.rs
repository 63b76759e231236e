//! The options that select records.

use clap::Args;
use spec::EventSet;

use super::event_list::event_set;
use super::time_point::{TimePoint, duration};

/// Which records are selected: those that pass every filter. An empty list is no filter.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Which records")]
pub struct Selection {
    /// What the lists select; `None` for all events.
    #[arg(skip)]
    pub events: Option<EventSet>,

    /// Print only these events: categories and events, separated by colons or commas
    ///
    /// The list is written as for THR_TRACE_EVENTS. A leading - removes a name, and a list that starts with - starts from
    /// all: -e mutex:cond_wait, -e -thr_self. Records of lost records (trace_lost) are always printed.
    #[arg(short = 'e', long = "events", value_name = "LIST", allow_hyphen_values = true)]
    pub event_lists: Vec<String>,

    /// Print only records of this process; may be repeated
    ///
    /// Example: -p 19953 -p 19960
    #[arg(short = 'p', long = "pid", value_name = "PID")]
    pub pids: Vec<u32>,

    /// Print only records of this LWP, that is, kernel thread; may be repeated
    ///
    /// ps -L shows LWPs in its column LWP. Example: -l 19955
    #[arg(short = 'l', long = "lwp", value_name = "LWP")]
    pub lwps: Vec<u32>,

    /// Print only records that this thread made, by its pthread_t; may be repeated
    ///
    /// TID is written as in the records and in gdb. --object selects what other threads do to it (a join, for example). Example: --tid 0x7fc5de3f86c0
    #[arg(long = "tid", value_name = "TID", value_parser = thread)]
    pub tids: Vec<u64>,

    /// Print only records of calls on this object; may be repeated
    ///
    /// An object is a mutex, condition, semaphore, rwlock, barrier, spin lock, once control or futex word, by its
    /// address, or a thread that is created, joined, killed and so on, by its pthread_t. A wait for a condition is a
    /// call on the condition and on its mutex. Both records of a call are printed, although most return records do not
    /// name the object: the trace is read twice to find them. Example: --object 0x559469ed90a0
    #[arg(long = "object", value_name = "ADDRESS", value_parser = address)]
    pub objects: Vec<u64>,

    /// Print only calls that waited, both records
    ///
    /// A lock waited if block? is 1; a semaphore wait if s_count was 0; a wait at a barrier unless it was the last; a wait
    /// for a condition always; a futex wait unless the result is EAGAIN; a join and thr_once if the return record is later
    /// than the entry record. Such a call without a return record still waits, unless that was lost, and is printed: in the trace
    /// of a program that hangs, --blocked --tail 20 shows where, and -F text for how long. Tries never wait. For a return record without an entry record, its own
    /// columns decide. Example: -F text --blocked -e mutex:rmutex
    #[arg(long)]
    pub blocked: bool,

    /// Print only calls that lasted at least this long, both records: 1ms, 2.5us, 800ns, 1s
    ///
    /// The duration is the time between the two records of a call. A call that can wait (see --blocked) and has no return
    /// record is open: it lasted until its process ended, and lasts still if that runs. If the process was killed, nobody knows
    /// when, so such a call is always printed. If records of its thread were lost, it lasted at least until then; when that is not
    /// long enough, it is only counted, on standard error. As with --object and --blocked, the trace is read
    /// twice, including records outside --since and --until: calls may begin before and end after. Example:
    /// --longer 1ms --since +2s
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true, value_parser = duration)]
    pub longer: Option<u64>,

    /// Print only records of this time and later: 12:00:05.25, or +1.5s from the start
    ///
    /// TIME is local time (12:00:05.25 of the day on which the trace begins, "2026-11-21 12:00:05"), seconds since the
    /// Epoch as in a record (1795174740:544763329), or the time since the first record of all: +1.5s, +200ms, +7us,
    /// +9ns, +2m, +1h. Earlier records are not merged. With --follow, now begins behind the existing records, which are not
    /// read, also where there is much of them. Example: --since +1.5s
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = TimePoint::parse)]
    pub since: Option<TimePoint>,

    /// Print only records before this time, written as for --since
    ///
    /// Example: --since +1.5s --until +1.6s
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = TimePoint::parse)]
    pub until: Option<TimePoint>,

    /// Print only the first N of the selected records, or of the calls of -F text
    ///
    /// Example: -F text -e thread --head 50
    #[arg(long, value_name = "N")]
    pub head: Option<u64>,

    /// Print only the last N of the selected records, or of the calls of -F text; with --head, of the first ones
    ///
    /// They are found from the end of the trace, not by printing all of it. Example: -l 19955 --tail 20
    #[arg(long, value_name = "N")]
    pub tail: Option<u64>,
}

impl Selection {
    /// Makes [`events`](Selection::events) of the lists.
    pub fn resolve(&mut self) -> Result<(), String> {
        let lists = Some(&self.event_lists).filter(|lists| !lists.is_empty());
        self.events = lists.map(|lists| event_set(&lists.join(":"))).transpose()?;
        Ok(())
    }
}

/// Parses an address as the records have it.
pub fn address(text: &str) -> Result<u64, String> {
    let digits = text.strip_prefix("0x").filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
    let address = digits.and_then(|digits| u64::from_str_radix(digits, 16).ok());
    address.ok_or_else(|| "an address is written as in the records: 0x559469ed90a0".to_owned())
}

fn thread(text: &str) -> Result<u64, String> {
    address(text).map_err(|_| {
        let tip = if text.parse::<u32>().is_ok() { "\n\n  tip: an LWP is selected by '--lwp'" } else { "" };
        format!("a pthread_t is written as in the records: 0x7fc5de3f86c0{tip}")
    })
}
