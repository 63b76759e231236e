//! Which records are wanted.

use clap::Args;
use spec::EventSet;

use super::events::event_set;
use super::moment::Moment;
use super::usage_error;

/// What was typed.
#[derive(Args, Debug)]
#[command(next_help_heading = "Which records")]
pub struct Typed {
    /// Print only these events: categories and events, separated by colons
    ///
    /// The list is written as for THR_TRACE_EVENTS. A leading - takes a name away, and a list that starts with one
    /// starts from all: -e mutex:cond_wait, -e -thr_self. Records of lost records (trace_lost) are always printed.
    #[arg(short = 'e', long = "events", value_name = "LIST", allow_hyphen_values = true)]
    events: Vec<String>,

    /// Print only records of this process; may be repeated
    #[arg(short = 'p', long = "pid", value_name = "PID")]
    pids: Vec<u32>,

    /// Print only records of this LWP, that is, kernel thread; may be repeated
    #[arg(short = 'l', long = "lwp", value_name = "LWP")]
    lwps: Vec<u32>,

    /// Print only records of this time and later: 12:00:05.25, or +1.5s from the start
    ///
    /// TIME is local time (12:00:05.25 of the day on which the trace begins, "2026-11-21 12:00:05"), seconds since the Epoch as in
    /// a record (1795174740:544763329), or what has passed since the first record of all: +1.5s, +200ms, +7us, +9ns, +2m,
    /// +1h. What lies before is not merged.
    #[arg(long, value_name = "TIME", value_parser = Moment::parse)]
    since: Option<Moment>,

    /// Print only records before this time, written as for --since
    ///
    /// Example: --since +1.5s --until +1.6s
    #[arg(long, value_name = "TIME", value_parser = Moment::parse)]
    until: Option<Moment>,

    /// Print only the first N of what is wanted
    #[arg(long, value_name = "N")]
    head: Option<u64>,

    /// Print only the last N of what is wanted; with --head, of those
    ///
    /// They are found from the end of the trace, not by printing all of it.
    #[arg(long, value_name = "N")]
    tail: Option<u64>,
}

/// What it means. A record is wanted if every filter wants it.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// The events; `None` for all.
    pub events: Option<EventSet>,
    /// The processes; none for all.
    pub pids: Vec<u32>,
    /// The LWPs; none for all.
    pub lwps: Vec<u32>,
    /// From when on.
    pub since: Option<Moment>,
    /// Up to when.
    pub until: Option<Moment>,
    /// How many, from the first on.
    pub head: Option<u64>,
    /// How many of those, to the last.
    pub tail: Option<u64>,
}

impl Typed {
    /// # Errors
    /// A name that means nothing.
    pub fn understand(self) -> Result<Selection, clap::Error> {
        let Typed { events, pids, lwps, since, until, head, tail } = self;
        let set = (!events.is_empty()).then(|| event_set(&events.join(":")));
        let events = set.transpose().map_err(|what| usage_error(&[], what))?;
        Ok(Selection { events, pids, lwps, since, until, head, tail })
    }
}
