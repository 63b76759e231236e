//! `trace-cat report`.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};
use spec::EventSet;

use super::command_error::CommandError;
use super::event_list::event_set;
use super::fail_condition::FailCondition;
use super::run_choice::RunChoice;
use super::selection::address;
use super::time_point::TimePoint;
use crate::support::visible_text::visible;

/// Report who waits for whom, for how long, and who is stuck
///
/// Reads a trace and prints a page: what was recorded and what is missing; how long threads waited for locks (contention) and for
/// work or other threads (idleness); deadlocks and stuck threads; the objects that cost most, and who held them meanwhile; and
/// the next command. It works on traces of programs that run, that ended and that were killed.
///
/// Exit status: 0 if everything was read; 1 if something was damaged or could not be read; 2 for wrong usage; 3 if there is a
/// deadlock, or if a condition of --fail-if holds.
#[derive(Args, Clone, Debug, Default)]
pub struct ReportOptions {
    /// Files or directories to read [default: $THR_TRACE_DIR, else .]
    #[arg(value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub paths: Vec<PathBuf>,

    /// Compare with the trace OLD: what became better or worse since
    ///
    /// Objects are the same if they have the same kind and name, and sites if they are in the same function and file. Whether
    /// a change is more than chance is in trace-cat-report(1). The options that select waits are for both traces, --last
    /// and --run for the newer one alone. -F json adds it to the document. Example: trace-cat report --against before after
    #[arg(long, value_name = "OLD", value_hint = ValueHint::AnyPath)]
    pub against: Option<PathBuf>,

    /// Print this table instead of the page
    #[arg(long, value_name = "TABLE", value_enum)]
    pub by: Option<ReportTable>,

    /// Print at most N rows of a table [default: 10 on the page, all with --by]
    #[arg(long, value_name = "N")]
    pub top: Option<usize>,

    /// For people or for programs
    #[arg(short = 'F', long = "format", value_name = "FORMAT", value_enum, default_value_t = ReportFormat::Text)]
    pub format: ReportFormat,

    /// Write to FILE, which must not be one of the files read
    #[arg(short = 'o', long = "output", value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,

    /// Fail, with exit status 3, if this condition holds; may be repeated
    ///
    /// CONDITION compares a figure with a limit by >, >=, < or <=: contention or idleness with a share of the threads' time (5%)
    /// or a duration (200ms); deadlocks, stuck, cycles, misuse or lost (records) with a number; regression (see --against) with a percentage (10%);
    /// waits(OBJECT) with a number; and waited,
    /// mean, p50, p90, p99, max (of the waits) and held of an OBJECT with a duration. OBJECT is a name or address as in --by object. The
    /// report is printed nevertheless, and a line on stderr for each condition that holds. A figure that is not known, such as of an
    /// object that does not exist, or a number of findings that may be larger because records are missing or calls were left out (run -e),
    /// is exit status 2.
    /// Example: --fail-if 'contention > 5%' --fail-if 'p99(queue.lock) > 2ms'
    #[arg(long, value_name = "CONDITION", value_parser = FailCondition::parse)]
    pub fail_if: Vec<FailCondition>,

    /// Print to a terminal without a pager ($PAGER, or less)
    #[arg(long)]
    pub no_pager: bool,

    /// Only waits of threads of this process, and its objects; may be repeated
    #[arg(short = 'p', long = "pid", value_name = "PID", help_heading = "Which waits")]
    pub pids: Vec<u32>,

    /// Only waits of this LWP, that is, kernel thread; may be repeated
    ///
    /// Who held the objects meanwhile is found from the records of all threads.
    #[arg(short = 'l', long = "lwp", value_name = "LWP", help_heading = "Which waits")]
    pub lwps: Vec<u32>,

    /// Only waits for this object; may be repeated
    ///
    /// OBJECT is an address, or a name as the report prints it or --alias gives it: queue_lock, 'mutex of new_queue queue.c:41 #2'.
    /// With a name the trace is read twice. If objects at several addresses have it, the command says which.
    #[arg(long = "object", value_name = "OBJECT", value_parser = ReportObject::parse, help_heading = "Which waits")]
    pub objects: Vec<ReportObject>,

    /// Only objects that these calls are on: categories and events, separated by colons or commas
    ///
    /// The list is written as for trace-cat -e. thread stands for pthread_once and for waits for the ends of threads. Example: -e
    /// mutex,rwlock
    #[arg(short = 'e', long = "events", value_name = "LIST", allow_hyphen_values = true, help_heading = "Which waits")]
    pub event_lists: Vec<String>,

    /// What the lists select; `None` for all events.
    #[arg(skip)]
    pub events: Option<EventSet>,

    /// Only what happened at this time and later, written as for trace-cat: +1.5s, 12:00:05.25
    ///
    /// Calls are counted if they began in the time that is selected. Of waits and holds the part in it counts, also of those that
    /// began before or ended later. Earlier records are read too, since they show who held what. Deadlocks and stuck threads are
    /// those in the end of the trace.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = TimePoint::parse, help_heading = "Which waits")]
    pub since: Option<TimePoint>,

    /// Only what happened before this time, written as for --since
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = TimePoint::parse, help_heading = "Which waits")]
    pub until: Option<TimePoint>,

    /// Only waits for locks: no idleness, and no objects that are not locks
    #[arg(long, help_heading = "Which waits")]
    pub only_contention: bool,

    /// Look for separate debug files here before /usr/lib/debug; may be repeated
    ///
    /// They are found by build ID (DIR/.build-id/12/3456.debug) or by the name that the program has for them.
    #[arg(long = "debug-dir", value_name = "DIR", value_hint = ValueHint::DirPath, help_heading = "Names")]
    pub debug_dirs: Vec<PathBuf>,

    /// Functions that do not name a site: patterns such as 'my_lock*'; may be repeated
    ///
    /// When such a function is inlined, the one that calls it names the site. Those of the C++ and Rust libraries are skipped
    /// always.
    #[arg(long, value_name = "PATTERN", help_heading = "Names")]
    pub skip: Vec<String>,

    /// Names of your own: lines `ADDRESS NAME` for objects and `SITE NAME` for sites
    ///
    /// A site is FILE:LINE, a function or MODULE+0xOFFSET; objects that were initialised there have its name, too. A tab before the
    /// name lets the site have spaces. Lines that begin with # are comments.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Names")]
    pub alias: Option<PathBuf>,

    /// Report deadlocks and stuck threads at this moment instead of the end
    ///
    /// The other parts of the report, also possible deadlocks, are those of all records. TIME is as for trace-cat --since:
    /// +1.5s (from the start), 12:00:05.25, "2026-11-21 12:00:05", or seconds since the Epoch. Example: trace-cat report --at +90s trace
    #[arg(long, value_name = "TIME", value_parser = TimePoint::parse, allow_hyphen_values = true, help_heading = "Which waits")]
    pub at: Option<TimePoint>,

    #[command(flatten)]
    pub runs: RunChoice,
}

impl ReportOptions {
    /// Makes [`events`](ReportOptions::events) of the lists.
    ///
    /// # Errors
    /// An unknown name.
    pub fn resolve(&mut self) -> Result<(), String> {
        let lists = Some(&self.event_lists).filter(|lists| !lists.is_empty());
        self.events = lists.map(|lists| event_set(&lists.join(":"))).transpose()?;
        Ok(())
    }
}

/// An object that a report is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReportObject {
    Address(u64),
    Name(String),
}

impl ReportObject {
    /// Parses an address as records have it; all else is a name.
    ///
    /// # Errors
    /// What begins as an address and is none.
    pub fn parse(text: &str) -> Result<ReportObject, String> {
        // The label of an object without a name begins with its process.
        let is_address = text.starts_with("0x");
        if is_address {
            address(text).map(ReportObject::Address)
        } else {
            Ok(ReportObject::Name(visible(text).into_owned()))
        }
    }
}

/// The tables of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ReportTable {
    /// Mutexes, conditions and so on, with who held them
    Object,
    /// How long each thread waited, and how long others waited for it
    Thread,
    /// Where calls are, as far as that was recorded (not with run --no-detail)
    Site,
    /// Who waited for whom
    Pair,
}

impl ReportFormat {
    /// Whether it has contention by waiter, site, object and holder at once.
    pub fn has_stacks(self) -> bool {
        matches!(self, ReportFormat::Folded | ReportFormat::Pprof)
    }
}

impl ReportOptions {
    /// Refuses options that the format has no use for, and to write what is not for people to a terminal.
    ///
    /// # Errors
    /// A message that says what to do instead.
    pub fn check_format(&self, is_terminal: bool) -> Result<(), CommandError> {
        let has_comparison = matches!(self.format, ReportFormat::Text | ReportFormat::Json);
        if self.against.is_some() && !has_comparison {
            return Err(CommandError::Usage("--against prints text, or -F json".to_owned()));
        }
        if self.against.is_some() && matches!(self.by, Some(ReportTable::Thread | ReportTable::Pair)) {
            return Err(CommandError::Usage(
                "--against compares objects and sites: --by object or --by site".to_owned(),
            ));
        }
        let (name, file) = match self.format {
            ReportFormat::Folded => ("folded", None),
            ReportFormat::Pprof => ("pprof", Some("report.pb.gz")),
            ReportFormat::Html => ("html", Some("report.html")),
            ReportFormat::Text | ReportFormat::Json | ReportFormat::Csv => return Ok(()),
        };
        let problem = match file {
            _ if self.by.is_some() => format!("-F {name} has no table: leave --by out"),
            _ if self.top.is_some() && self.format.has_stacks() => format!("-F {name} has no table: leave --top out"),
            Some(file) if is_terminal && self.output.is_none() => {
                format!("-F {name} is not for terminals: write it to a file with -o {file}")
            }
            _ => return Ok(()),
        };
        Err(CommandError::Usage(problem))
    }
}

/// The formats of a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ReportFormat {
    #[default]
    /// For people, 100 columns wide
    Text,
    /// One document with all lists
    Json,
    /// The table of --by, else that of objects, with a line of names; durations in ns, empty if not known
    Csv,
    /// Contention as lines of frames with nanoseconds, for flamegraph.pl, inferno and speedscope
    Folded,
    /// Contention as a compressed profile, for Go's pprof and speedscope
    Pprof,
    /// A page for browsers, in one file
    Html,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_refuse_what_is_not_for_them() {
        use ReportFormat::{Folded, Html, Json, Pprof, Text};
        let refused = |options: ReportOptions, is_terminal| {
            let formats = [Text, Json, Folded, Pprof, Html];
            formats.map(|format| ReportOptions { format, ..options.clone() }.check_format(is_terminal).is_err())
        };
        let options = ReportOptions::default();
        assert_eq!(refused(options.clone(), false), [false; 5]);
        assert_eq!(refused(options.clone(), true), [false, false, false, true, true]);
        let with_file = ReportOptions { output: Some("file".into()), ..options.clone() };
        assert_eq!(refused(with_file, true), [false; 5]);
        let with_table = ReportOptions { by: Some(ReportTable::Site), ..options.clone() };
        assert_eq!(refused(with_table, false), [false, false, true, true, true]);
        let against = ReportOptions { against: Some("old".into()), ..options.clone() };
        assert_eq!(refused(against.clone(), false), [false, false, true, true, true]);
        assert_eq!(refused(ReportOptions { by: Some(ReportTable::Site), ..against.clone() }, false)[..2], [false; 2]);
        assert_eq!(refused(ReportOptions { by: Some(ReportTable::Pair), ..against }, false), [true; 5]);
        assert_eq!(refused(ReportOptions { top: Some(3), ..options }, false), [false, false, true, true, false]);
    }
}
