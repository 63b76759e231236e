//! `trace-cat run`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};

use super::event_list::event_set;
use super::output_options::{OutputFormat, Printing};

/// Run a program and record it
///
/// Runs PROGRAM with libthreadt.so preloaded, with its own standard input, output and error and its own signals, and then
/// reports on standard error where the trace is. Programs that PROGRAM starts are recorded too, in the same directory.
/// Variables THR_TRACE_* that no option sets are inherited.
///
/// The exit status is the program's; if a signal ended it, trace-cat ends by the same signal. 2: wrong usage. 125: nothing
/// could be recorded, and PROGRAM was not run (or PROGRAM succeeded and -o failed). 126: PROGRAM cannot be executed. 127:
/// there is no such program.
#[derive(Args, Debug)]
#[command(override_usage = "trace-cat run [OPTIONS] [--] PROGRAM [ARGUMENT]...")]
pub struct RunArguments {
    /// The program and its arguments
    #[arg(value_name = "PROGRAM", required = true, trailing_var_arg = true, value_hint = ValueHint::CommandWithArguments)]
    command: Vec<OsString>,

    /// The directory for the trace, made if it does not exist [default: a fresh PROGRAM.thr.N]
    ///
    /// Without this, a new directory is made below the working directory: sort.thr.1, then sort.thr.2. Files of an earlier
    /// process with the same number are set aside, never overwritten.
    #[arg(short = 'd', long, value_name = "DIR", value_hint = ValueHint::DirPath, help_heading = "Where to")]
    directory: Option<PathBuf>,

    /// When the program has ended, merge the trace into FILE
    ///
    /// The files stay in their directory too. Example: trace-cat run -o sort.txt -F text sort -n numbers
    #[arg(short = 'o', long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Where to")]
    output: Option<PathBuf>,

    /// How records are printed into FILE
    #[arg(short = 'F', long, value_name = "FORMAT", value_enum, default_value_t = OutputFormat::Raw, requires = "output", help_heading = "Where to")]
    format: OutputFormat,

    /// The library to preload [default: libthreadt.so beside trace-cat]
    ///
    /// Without this, libthreadt.so is looked for in the directory of trace-cat and in lib, lib64 and
    /// lib/x86_64-linux-gnu beside it.
    #[arg(long, value_name = "FILE", env = "THREADT_LIBRARY", hide_env_values = true, value_hint = ValueHint::FilePath)]
    library: Option<PathBuf>,

    /// Run the program even if nothing of it can be recorded
    ///
    /// A program cannot be recorded if it is linked statically, is set-user-ID, or is for another C library or machine.
    /// Without this option it is not run. With it, the programs that it starts may be recorded.
    #[arg(long)]
    force: bool,

    #[command(flatten)]
    recording: RecordingArguments,
}

#[derive(Args, Debug)]
#[command(next_help_heading = "What is recorded")]
struct RecordingArguments {
    /// Record only these events: categories and events, separated by colons (THR_TRACE_EVENTS)
    ///
    /// A leading - removes a name, and a list that starts with - starts from all: -e mutex:cond_wait, -e -thr_self. May be
    /// repeated.
    #[arg(short = 'e', long = "events", value_name = "LIST", allow_hyphen_values = true)]
    events: Vec<String>,

    /// Record only programs of this name; may be repeated (THR_TRACE_ONLY)
    ///
    /// The name is the last part of the program's path; of a script, that of its interpreter. Without this, all programs
    /// that PROGRAM starts are recorded. Example: --only cc1 --only ld
    #[arg(long, value_name = "NAME")]
    only: Vec<OsString>,

    /// Which calls are recorded that did not have to wait (THR_TRACE_LEVEL)
    #[arg(long, value_name = "LEVEL", value_enum)]
    level: Option<RecordingLevel>,

    /// Keep only the newest records, so many bytes a thread: 64K to 1G (THR_TRACE_RING)
    ///
    /// The records are written when the program ends; after a crash, trace-cat reads them from the buffers.
    #[arg(long, value_name = "SIZE", value_parser = ring_size, conflicts_with = "unbuffered")]
    ring: Option<u64>,

    /// Stop recording when a process has written so much: 500M (THR_TRACE_MAX)
    #[arg(long, value_name = "SIZE", value_parser = size)]
    max: Option<u64>,

    /// Write each record to its file at once (THR_TRACE_BUF)
    ///
    /// This costs many times as much, and buffers lose no more records. Use it to watch the files grow.
    #[arg(long)]
    unbuffered: bool,

    /// Also record return addresses and lock owners (THR_TRACE_DETAIL)
    #[arg(long)]
    detail: bool,
}

/// The values of `--level`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RecordingLevel {
    /// Every call
    All,
    /// Locks and semaphore waits that blocked, tries that failed, wake-ups with waiters, and the life of objects and threads
    Blocked,
}

/// What is recorded: the variables THR_TRACE_* without the directory. `None` and empty are inherited.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    /// THR_TRACE_EVENTS, a valid list.
    pub events: Option<String>,
    /// THR_TRACE_ONLY.
    pub only: Vec<OsString>,
    /// THR_TRACE_LEVEL.
    pub level: Option<RecordingLevel>,
    /// THR_TRACE_RING, bytes a thread.
    pub ring: Option<u64>,
    /// THR_TRACE_MAX, bytes a process.
    pub max: Option<u64>,
    /// THR_TRACE_BUF.
    pub unbuffered: bool,
    /// THR_TRACE_DETAIL.
    pub detail: bool,
}

/// A program to run.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// What is recorded of it.
    pub recording: Recording,
    /// Where its trace goes; `None` for a fresh directory.
    pub directory: Option<PathBuf>,
    /// The format and the file of the merged trace, if there is an output.
    pub printing: Printing,
    /// The library, if not the one that is installed with trace-cat.
    pub library: Option<PathBuf>,
    /// Run it even if nothing can be recorded.
    pub force: bool,
    /// The program and its arguments, at least one word.
    pub command: Vec<OsString>,
}

impl RunArguments {
    /// Converts the arguments to options.
    pub fn resolve(self) -> Result<RunOptions, String> {
        let RunArguments { recording, directory, output, format, library, force, command } = self;
        let RecordingArguments { events, only, level, ring, max, unbuffered, detail } = recording;
        let events = (!events.is_empty()).then(|| events.join(":"));
        if let Some(list) = &events {
            event_set(list)?;
        }
        let recording = Recording { events, only, level, ring, max, unbuffered, detail };
        let printing = Printing { format, output, ..Printing::default() };
        Ok(RunOptions { recording, directory, printing, library, force, command })
    }
}

fn size(text: &str) -> Result<u64, String> {
    spec::size::parse(text.as_bytes()).ok_or_else(|| "a size is a number of bytes, or 64K, 10M, 1G".to_owned())
}

fn ring_size(text: &str) -> Result<u64, String> {
    let bytes = size(text)?;
    if (64 << 10..=1 << 30).contains(&bytes) { Ok(bytes) } else { Err("it must be between 64K and 1G".to_owned()) }
}
