//! The command line: what was typed ([`Arguments`]), and what it means ([`Options`]).

use std::ffi::OsString;
use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser, ValueEnum};
use spec::EventSet;

use crate::names::nearest;

/// What was typed. The comments are the help: their first paragraph is what `-h` prints, `--help` prints all.
#[derive(Debug, Parser)]
#[command(name = "trace-cat", version, max_term_width = 100, about = ABOUT, long_about = LONG_ABOUT)]
struct Arguments {
    /// Files or directories to read [default: $THR_TRACE_DIR, else .]
    ///
    /// Of a directory, the files that belong to a trace are taken; files that were set aside (old.*) are left alone
    /// unless they are named. A file that is named twice is read once. A trbuf file stands for all files of its
    /// process. - is the standard input.
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,

    /// How records are printed
    #[arg(short = 'F', long = "format", value_name = "FORMAT", value_enum, default_value_t = Format::Raw)]
    format: Format,

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

    /// Write to FILE, which must not be one of the files read
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    output: Option<PathBuf>,

    /// Put what dead processes left in their trbufs into the record files
    ///
    /// For those who go on with grep and awk: each trbuf of a process that is gone is written out, each record once, and
    /// removed. PATHs are directories, in which subdirectories ns* are seen to as well, or trbufs. Nothing is printed but a
    /// line for each trbuf. May be interrupted and run again at any time; the trbufs of living processes are left alone.
    #[arg(long, conflicts_with_all = ["format", "events", "pids", "lwps", "output"])]
    recover: bool,
}

const ABOUT: &str = "Print the records of a trace in the order of time";
const LONG_ABOUT: &str = "\
Print the records of a trace in the order of time

Reads the files tr.xxxxxxx.yyy that libthreadt.so writes and prints their records as one timeline. What processes that \
were killed left in their buffers (trbuf.xxxxxxx) is printed too, each record once.

Exit status: 0 when everything was read or recovered; 1 when something was damaged or could not be read, which a message on stderr \
tells, while the rest is printed or recovered; 2 for wrong usage.";

/// The forms of output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// The records as they are in the files
    Raw,
    /// A line for each record with names, results and durations, for people
    Text,
}

/// What is to be done.
#[derive(Debug)]
pub struct Options {
    /// Files and directories, at least one.
    pub paths: Vec<PathBuf>,
    /// How records are printed.
    pub format: Format,
    /// The events to print; `None` for all.
    pub events: Option<EventSet>,
    /// The processes to print; none for all.
    pub pids: Vec<u32>,
    /// The LWPs to print; none for all.
    pub lwps: Vec<u32>,
    /// Where to write, if not to the standard output.
    pub output: Option<PathBuf>,
    /// Write out what is in trbufs instead of printing.
    pub recover: bool,
}

impl Options {
    /// Understands a command line, whose first word is the program's name. `directory` is `$THR_TRACE_DIR`.
    ///
    /// # Errors
    /// What is to be printed instead of a trace: the help that was asked for, or what is wrong.
    pub fn parse(
        words: impl IntoIterator<Item = OsString>,
        directory: Option<OsString>,
    ) -> Result<Options, clap::Error> {
        let Arguments { mut paths, format, events, pids, lwps, output, recover } = Arguments::try_parse_from(words)?;
        if paths.is_empty() {
            let directory = directory.filter(|directory| !directory.is_empty());
            paths.push(directory.map_or_else(|| ".".into(), PathBuf::from));
        }
        let events = if events.is_empty() { None } else { Some(event_set(&events.join(":"))?) };
        Ok(Options { paths, format, events, pids, lwps, output, recover })
    }
}

/// A wrong use of the command line that the parser could not see.
pub fn usage_error(what: impl std::fmt::Display) -> clap::Error {
    Arguments::command().error(ErrorKind::ValueValidation, what)
}

fn event_set(list: &str) -> Result<EventSet, clap::Error> {
    let mut unknown = None;
    let set = EventSet::parse(list.as_bytes(), &mut |name| unknown = unknown.or(Some(name)));
    let Some(name) = unknown else { return Ok(set) };
    let name = String::from_utf8_lossy(name);
    let name = name.trim_start_matches('-');
    let tip = match nearest(name) {
        _ if name.contains(',') => "\n\n  tip: names are separated by colons".to_owned(),
        Some(right) => format!("\n\n  tip: there is '{right}'"),
        None => String::new(),
    };
    Err(usage_error(format_args!("no category or event is named '{name}'{tip}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &[&str]) -> Result<Options, clap::Error> {
        let words = ["trace-cat"].iter().chain(words).map(OsString::from);
        Options::parse(words, Some("/trace".into()))
    }

    #[test]
    fn the_table_of_options_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn paths_default_to_the_environment_and_then_here() {
        assert_eq!(parse(&[]).unwrap().paths, [PathBuf::from("/trace")]);
        assert_eq!(parse(&["a", "b"]).unwrap().paths, [PathBuf::from("a"), PathBuf::from("b")]);
        for directory in [None, Some(OsString::new())] {
            let options = Options::parse(["trace-cat".into()], directory).unwrap();
            assert_eq!(options.paths, [PathBuf::from(".")]);
        }
    }

    #[test]
    fn all_options() {
        let options =
            parse(&["-F", "text", "-e", "-thr_self", "-e-cond", "-p7", "-p", "0000008", "-l", "9", "-o", "out", "d"]);
        let options = options.unwrap();
        assert_eq!((options.format, options.pids, options.lwps), (Format::Text, vec![7, 8], vec![9]));
        assert_eq!(options.output, Some("out".into()));
        let events = options.events.unwrap();
        assert!(!events.contains(spec::id::THR_SELF) && !events.contains(spec::id::COND_WAIT));
        assert!(events.contains(spec::id::MUTEX_LOCK));
    }

    #[test]
    fn recovery_takes_paths_only() {
        let options = parse(&["--recover", "a"]).unwrap();
        assert_eq!((options.recover, options.paths), (true, vec![PathBuf::from("a")]));
        assert!(!parse(&["a"]).unwrap().recover);
    }

    #[test]
    fn wrong_usage_is_told_with_the_right_word() {
        for (words, part) in [
            (&["-e", "mutx"][..], "'mutex'"),
            (&["-e", "mutex:-cond_wiat"], "'cond_wait'"),
            (&["--formt", "text"], "'--format'"),
            (&["-F", "txt"], "'text'"),
            (&["-p", "x"], "'x'"),
            (&["-l", "-5"], "-5"),
            (&["--recover", "-F", "raw"], "--recover"),
            (&["-o", "out", "--recover"], "--recover"),
        ] {
            let error = parse(words).unwrap_err();
            assert_eq!(error.exit_code(), 2);
            assert!(error.to_string().contains(part), "{error}");
        }
    }

    #[test]
    fn help_is_short_or_long() {
        let [short, long] = ["-h", "--help"].map(|word| parse(&[word]).unwrap_err());
        assert_eq!((short.exit_code(), long.exit_code()), (0, 0));
        assert!(!short.to_string().contains("Exit status") && long.to_string().contains("Exit status"));
    }
}
