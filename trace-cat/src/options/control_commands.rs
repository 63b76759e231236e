//! `trace-cat set` and `trace-cat status`.

use std::path::PathBuf;

use clap::{ArgGroup, Args, ValueEnum, ValueHint};
use spec::EventSet;

use super::event_list::recorded_event_set;
use super::run_command::RecordingLevel;

/// Change what is recorded of processes that run
///
/// A process can be changed if it records, or if it was started with THR_TRACE_CONTROL (see libthreadt(7)). Each thread
/// follows at its next call, and records that it does (trace_events). What no option names stays as it is. Forked children go on as
/// their parent, and so does a program that the process executes; one that it starts by vfork or posix_spawn begins as its
/// environment says. Only the process's user, or root, can change it.
///
/// Exit status: 0 if all was done, 1 if not, 2 for wrong usage. Example: trace-cat set -e mutex:cond 1234
#[derive(Args, Clone, Debug, Default)]
#[command(override_usage = "trace-cat set [OPTIONS] <PID|DIR>...")]
#[command(group = ArgGroup::new("change").multiple(true).required(true))]
pub struct SetOptions {
    /// A process, or a directory: all processes that record there
    #[arg(value_name = "PID|DIR", required = true, value_hint = ValueHint::DirPath)]
    pub targets: Vec<PathBuf>,

    /// Record these events from now on: categories and events, separated by colons or commas; '' for none
    ///
    /// As for trace-cat run: a leading - removes a name, and a list that starts with - starts from all but func.
    #[arg(short = 'e', long = "events", value_name = "LIST", allow_hyphen_values = true, group = "change")]
    #[arg(value_parser = recorded_event_set)]
    pub events: Option<EventSet>,

    /// Which calls are recorded that did not have to wait
    #[arg(long, value_name = "LEVEL", value_enum, group = "change")]
    pub level: Option<RecordingLevel>,

    /// Record call stacks of up to N frames of calls that waited or failed: 1 to 64, or 0 for none
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=64), group = "change")]
    pub stack: Option<u32>,

    /// Record return addresses and lock owners, or not
    #[arg(long, value_name = "WHETHER", value_enum, group = "change")]
    pub detail: Option<OnOff>,

    /// Record nothing until --resume
    #[arg(long, conflicts_with = "resume", group = "change")]
    pub pause: bool,

    /// Record again what was recorded before --pause
    #[arg(long, group = "change")]
    pub resume: bool,

    /// Let each thread write its buffer to its file at its next call
    ///
    /// trace-cat reads buffers, too: this is for grep and awk. Rings (THR_TRACE_RING) keep their records; for those there is --snapshot.
    #[arg(long, group = "change")]
    pub flush: bool,

    /// Copy what is recorded so far, buffers and rings included, into DIR, without stopping anything
    ///
    /// DIR is made, or empty. It is a trace directory as any other: trace-cat report DIR. Example: trace-cat set --snapshot now.thr 1234
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, group = "change")]
    pub snapshot: Option<PathBuf>,
}

/// The values of `--detail`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OnOff {
    /// They are recorded
    On,
    /// They are not
    Off,
}

/// List the processes that can be changed with trace-cat set
///
/// Each with its process ID, its name, how often it was changed (generation), whether it is paused, the level, the frames of
/// stacks, whether details are recorded, the bytes in its record files, the records lost, and the events.
#[derive(Args, Clone, Debug, Default)]
pub struct StatusOptions {
    /// Processes, or directories: all processes that record there [default: $THR_TRACE_DIR, else .]
    #[arg(value_name = "PID|DIR", value_hint = ValueHint::DirPath)]
    pub targets: Vec<PathBuf>,
}
