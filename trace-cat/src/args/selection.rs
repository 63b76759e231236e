//! Which records are wanted.

use clap::Args;
use spec::EventSet;

use super::events::event_set;
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
}

impl Typed {
    /// # Errors
    /// A name that means nothing.
    pub fn understand(self) -> Result<Selection, clap::Error> {
        let Typed { events, pids, lwps } = self;
        let set = (!events.is_empty()).then(|| event_set(&events.join(":")));
        let events = set.transpose().map_err(|what| usage_error(&[], what))?;
        Ok(Selection { events, pids, lwps })
    }
}
