//! `trace-cat run`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};
use spec::size::SizeLimit;
use spec::tables::CATEGORIES;
use spec::{EventId, id};

use super::event_list::event_set;
use super::fail_condition::FailCondition;
use super::output_options::OutputFormat;

/// Run a program and record it
///
/// Runs PROGRAM with libthreadt.so preloaded, with its own standard input, output and error and its own signals, and then
/// reports on standard error where the trace is. Programs that PROGRAM starts are recorded too, in the same directory.
/// Variables THR_TRACE_* that no option sets are inherited, but for THR_TRACE_DIR: the directory is that of -d.
///
/// The exit status is the program's; if a signal ended it, trace-cat ends by the same signal. 2: wrong usage. 125: nothing
/// could be recorded, and PROGRAM was not run (or PROGRAM succeeded, and its report or -o failed). 126: PROGRAM cannot be executed. 127:
/// there is no such program.
#[derive(Args, Clone, Debug)]
#[command(override_usage = "trace-cat run [OPTIONS] [--] PROGRAM [ARGUMENT]...")]
pub struct RunOptions {
    /// The program and its arguments
    #[arg(value_name = "PROGRAM", required = true, trailing_var_arg = true, value_hint = ValueHint::CommandWithArguments)]
    pub command: Vec<OsString>,

    /// The directory for the trace, made if it does not exist [default: a fresh PROGRAM.thr.N]
    ///
    /// Without this, a new directory is made below the working directory: sort.thr.1, then sort.thr.2. Files of an earlier
    /// process with the same number are renamed (old.*), never overwritten.
    #[arg(short = 'd', long, value_name = "DIR", value_hint = ValueHint::DirPath, help_heading = "Where to")]
    pub directory: Option<PathBuf>,

    /// When the program has ended, merge the trace into FILE
    ///
    /// The files stay in their directory too. Records have only addresses: a report has names if FILE is in that directory.
    /// Example: trace-cat run -o sort.txt -F text sort -n numbers
    #[arg(short = 'o', long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Where to")]
    pub output: Option<PathBuf>,

    /// How records are printed into FILE
    #[arg(short = 'F', long, value_name = "FORMAT", value_enum, default_value_t = OutputFormat::Raw, requires = "output", help_heading = "Where to")]
    pub format: OutputFormat,

    /// When the program has ended, report who waited for whom, on stderr or in FILE: see trace-cat report
    ///
    /// FILE stands behind an equals sign: --report=FILE. The trace stays in its directory, for other reports. The exit
    /// status is the program's, also if there is a deadlock, unless --fail-if is given. Example: trace-cat run --report sort --parallel=4
    /// numbers
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "-",
        value_hint = ValueHint::FilePath, help_heading = "Where to")]
    pub report: Option<PathBuf>,

    /// With --report: exit status 3 if this condition holds, whatever the program's; may be repeated
    ///
    /// See trace-cat report. Exit status 2: a figure is not known, such as of an object that does not exist. Example: --report
    /// --fail-if 'contention > 5%'
    #[arg(long, value_name = "CONDITION", value_parser = FailCondition::parse, requires = "report", help_heading = "Where to")]
    pub fail_if: Vec<FailCondition>,

    /// The library to preload [default: libthreadt.so beside trace-cat]
    ///
    /// Without this, libthreadt.so is searched for in the directory of trace-cat and in lib, lib64 and
    /// lib/x86_64-linux-gnu beside it.
    #[arg(long, value_name = "FILE", env = "THREADT_LIBRARY", hide_env_values = true, value_hint = ValueHint::FilePath)]
    pub library: Option<PathBuf>,

    /// Run the program even if nothing of it can be recorded
    ///
    /// A program cannot be recorded if it is linked statically, is set-user-ID, or is for another C library or machine.
    /// Without this option it is not run. With it, the programs that it starts may be recorded.
    #[arg(long)]
    pub force: bool,

    #[command(flatten)]
    pub recording: Recording,
}

/// The variables THR_TRACE_* without the directory. What is not given is inherited.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "What is recorded")]
pub struct Recording {
    /// What the trace is for: sets the options below; one that is given takes precedence
    #[arg(long = "for", value_name = "PURPOSE", value_enum)]
    pub purpose: Option<Purpose>,

    /// Record only these events: categories and events, separated by colons or commas (THR_TRACE_EVENTS)
    ///
    /// A leading - removes a name, and a list that starts with - starts from all but func: -e mutex:cond_wait, -e -thr_self.
    /// May be repeated.
    #[arg(short = 'e', long = "events", value_name = "LIST", allow_hyphen_values = true)]
    pub events: Vec<String>,

    /// Record only programs of this name; may be repeated (THR_TRACE_ONLY)
    ///
    /// The name is that of the program's file, of the link by which it was started, or of the script. Without this, all
    /// programs that PROGRAM starts are recorded. Example: --only cc1 --only ld
    #[arg(long, value_name = "NAME")]
    pub only: Vec<OsString>,

    /// Which calls are recorded that did not have to wait (THR_TRACE_LEVEL)
    #[arg(long, value_name = "LEVEL", value_enum)]
    pub level: Option<RecordingLevel>,

    /// Keep only the newest records, this many bytes a thread: 64K to 1G (THR_TRACE_RING)
    ///
    /// The records are written when the program ends; after a crash, trace-cat reads them from the buffers.
    #[arg(long, value_name = "SIZE", value_parser = ring_size, conflicts_with = "unbuffered")]
    pub ring: Option<u64>,

    /// Stop recording when a process has written this many bytes: 500M, or all processes together: 2G/dir (THR_TRACE_MAX)
    ///
    /// The limit is compared when a buffer is written, so that each thread may write up to 144 KiB more; with --unbuffered it is
    /// exact. The file trctl in the directory counts what processes write there under a limit of the second kind. It counts on in the
    /// next runs into that directory, until it is removed.
    #[arg(long, value_name = "SIZE[/dir]", value_parser = size_limit)]
    pub max: Option<SizeLimit>,

    /// Write each record to its file at once (THR_TRACE_BUF)
    ///
    /// This costs many times as much and saves no record: those in buffers survive a kill as well. Use it to watch the files grow.
    #[arg(long)]
    pub unbuffered: bool,

    /// Give each record to a shared object, which decides whether it is also written (THR_TRACE_HANDLER)
    ///
    /// The text behind a colon is for the shared object. libthreadt(7) describes what it has to be. Example:
    /// --handler ./count_objects.so
    #[arg(long, value_name = "FILE.so[:PARAMETERS]", value_hint = ValueHint::FilePath)]
    pub handler: Option<OsString>,

    /// Also record call stacks of calls that waited or failed, of up to N frames: 1 to 64, else 32 (THR_TRACE_STACK)
    ///
    /// N stands behind an equals sign: --stack=16. Reports then name the function that called into a wrapper, not the wrapper, and
    /// trace-cat -F text --stack prints the stacks. Example: trace-cat run --stack --report server
    #[arg(long, value_name = "N", num_args = 0..=1, require_equals = true, default_missing_value = "32",
        value_parser = clap::value_parser!(u8).range(1..=STACK_MAX))]
    pub stack: Option<u8>,

    /// Also record return addresses and lock owners: the default (THR_TRACE_DETAIL)
    #[arg(long, overrides_with = "no_detail")]
    pub detail: bool,

    /// Record neither return addresses nor lock owners, which costs less
    ///
    /// Reports of the trace then name no place in the program, and records are up to 13 bytes shorter each.
    #[arg(long, overrides_with = "detail")]
    pub no_detail: bool,
}

/// The values of `--for`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Purpose {
    /// Who waits for a slow lock, and who holds it: --level blocked --detail --stack
    Contention,
    /// Who did what when: everything but calls that only ask, or that concern the calling thread alone: thr_self, thr_getspecific and kin
    Timeline,
    /// Every call, as libthreadT records it: all events but func, --level all
    Everything,
    /// The newest records of a program that runs for days: --ring 1M
    Flight,
}

/// What [`Purpose::Timeline`] leaves out: calls that neither wait, wake, make nor end anything that another thread can notice.
const UNNOTICED: [EventId; 10] = [
    id::THR_SELF,
    id::THR_GETSPECIFIC,
    id::THR_SETSPECIFIC,
    id::THR_SIGSETMASK,
    id::THR_GETCONCURRENCY,
    id::THR_GETSCHEDULER,
    id::THR_GET_RR_INTERVAL,
    id::THR_SETCANCELSTATE,
    id::THR_SETCANCELTYPE,
    id::THR_TESTCANCEL,
];
/// The frames of stacks for [`Purpose::Contention`], and where no number is given.
const STACK_DEFAULT: u8 = 32;
/// The most frames.
const STACK_MAX: i64 = 64;
/// The ring of [`Purpose::Flight`], in bytes a thread.
pub const FLIGHT_RING: u64 = 1 << 20;

/// Whether [`Purpose::Timeline`] leaves out the event with these numbers.
pub fn is_unnoticed(category: u8, number: u8) -> bool {
    UNNOTICED.iter().any(|id| (id.event().category, id.event().number) == (category, number))
}

/// The values of `--level`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RecordingLevel {
    /// Every call
    All,
    /// Locks and semaphore waits that blocked, tries that failed, wake-ups with waiters, and the life of objects and threads
    Blocked,
}

impl RunOptions {
    /// Checks that the lists of events have no unknown name.
    pub fn check(&self) -> Result<(), String> {
        if self.recording.purpose == Some(Purpose::Flight) && self.recording.unbuffered {
            return Err("--for flight cannot be used with --unbuffered".to_owned());
        }
        self.recording.event_list().map_or(Ok(()), |list| event_set(&list).map(drop))
    }
}

impl Recording {
    /// Whether `--stack` may have been given without a value.
    pub fn has_default_stack(&self) -> bool {
        self.stack == Some(STACK_DEFAULT)
    }

    /// Sets what the purpose asks for and no other option has set.
    pub fn for_purpose(mut self) -> Recording {
        match self.purpose {
            Some(Purpose::Contention) => {
                self.level.get_or_insert(RecordingLevel::Blocked);
                self.detail = !self.no_detail;
                self.stack.get_or_insert(STACK_DEFAULT);
            }
            Some(Purpose::Timeline) => self.events.extend(UNNOTICED.map(|id| format!("-{}", id.event().name))),
            Some(Purpose::Everything) => {
                self.level.get_or_insert(RecordingLevel::All);
                if self.events.is_empty() {
                    // Category 0 has no name here, and func is recorded only on demand.
                    let is_named = |name: &&str| !["trace", "func"].contains(name);
                    self.events.push(CATEGORIES.into_iter().filter(is_named).collect::<Vec<_>>().join(":"));
                }
            }
            Some(Purpose::Flight) => drop(self.ring.get_or_insert(FLIGHT_RING)),
            None => {}
        }
        self
    }

    /// The value of THR_TRACE_EVENTS.
    pub fn event_list(&self) -> Option<String> {
        (!self.events.is_empty()).then(|| self.events.join(":"))
    }
}

fn size(text: &str) -> Result<u64, String> {
    spec::size::parse(text.as_bytes()).ok_or_else(|| "a size is a number of bytes, or 64K, 10M, 1G".to_owned())
}

fn size_limit(text: &str) -> Result<SizeLimit, String> {
    let limit = SizeLimit::parse(text.as_bytes());
    limit
        .ok_or_else(|| "a limit is a number of bytes, or 500M, or 2G/dir for all processes of the directory".to_owned())
}

fn ring_size(text: &str) -> Result<u64, String> {
    let bytes = size(text)?;
    if (64 << 10..=1 << 30).contains(&bytes) { Ok(bytes) } else { Err("it must be between 64K and 1G".to_owned()) }
}
