//! How records are printed, and where to.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};

/// These options need no conversion.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "How they are printed")]
pub struct Printing {
    /// What was chosen, or else is printed there.
    #[arg(skip)]
    pub format: OutputFormat,

    /// How records are printed [default: text on a terminal, else raw]
    ///
    /// Example: trace-cat -F text trace >calls
    #[arg(short = 'F', long = "format", value_name = "FORMAT", value_enum)]
    pub chosen_format: Option<OutputFormat>,

    /// With -F json: an object for each call instead of each record
    ///
    /// It has the time, the duration, the object, the arguments of both records, and whether the call waited. A call is printed
    /// when it returns; calls that do not return are printed in the end. Example: -F json --calls --longer 1ms
    #[arg(long)]
    pub calls: bool,

    /// With -F text: the functions of recorded stacks under their calls
    ///
    /// The innermost function is first, inlined ones included. With -F json --calls, these names stand for the addresses. Stacks are
    /// recorded by trace-cat run --stack. Example: -F text --stack --blocked
    #[arg(long)]
    pub stack: bool,

    /// Which times -F text prints
    ///
    /// Example: -F text --time delta
    #[arg(long, value_name = "TIME", value_enum, default_value_t = TimeStyle::Rel)]
    pub time: TimeStyle,

    /// When -F text is coloured
    ///
    /// Auto is for terminals, unless NO_COLOR is set or TERM is dumb. Example: trace-cat -F text --color always trace |
    /// less -R
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = ColorChoice::Auto)]
    pub color: ColorChoice,

    /// Print to a terminal without a pager
    ///
    /// What goes to a terminal is shown by $PAGER, or by less; not if PAGER is empty or cat, or TERM is dumb, nor with --follow.
    #[arg(long)]
    pub no_pager: bool,

    /// Write to FILE, which must not be one of the files read
    ///
    /// An existing file is overwritten. -F ctf and --split make a directory of this name; an existing one must be empty. With
    /// --partition, it is a directory to which files are added. Example: trace-cat -o merged trace
    #[arg(short = 'o', long = "output", value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,

    /// With -F parquet: write to DIR/host=HOST/hour=HOUR of -o DIR
    ///
    /// Each host has a directory with one for each hour (UTC) of the records, which engines take for columns, so that a question for
    /// an hour reads no other. Tables of other hosts and other traces can be in DIR: the file's name is the time of the trace's first
    /// record, and a table that is there already is not replaced. Example: -F parquet --partition -o fleet trace
    #[arg(long)]
    pub partition: bool,

    /// With -F parquet: the name of the host on which the trace was recorded
    ///
    /// Without it, the name of each host as --hosts shows it. Example: -F parquet --host db1 -o db1.parquet trace
    #[arg(long, value_name = "HOST")]
    pub host: Option<String>,
}

impl Printing {
    /// Resolves the default of --format.
    pub fn resolve(&mut self, is_on_terminal: bool) {
        let default = if is_on_terminal { OutputFormat::Text } else { OutputFormat::Raw };
        self.format = self.chosen_format.unwrap_or(default);
    }

    /// Checks that options for `-F text` are given with that format only.
    ///
    /// # Errors
    /// The option that another format does not have.
    pub fn check(&self) -> Result<(), &'static str> {
        match self {
            Printing { partition: true, format, .. } if *format != OutputFormat::Parquet => {
                Err("--partition is for -F parquet")
            }
            Printing { partition: true, output: None, .. } => Err("--partition makes directories: name one with -o"),
            Printing { host: Some(_), format, .. } if *format != OutputFormat::Parquet => {
                Err("--host is for -F parquet")
            }
            Printing { host: Some(host), .. } if host.is_empty() => Err("--host needs a name"),
            Printing { calls: true, format, .. } if *format != OutputFormat::Json => Err("--calls is for -F json"),
            Printing { stack: true, calls: false, format, .. } if *format != OutputFormat::Text => {
                Err("--stack is for -F text and -F json --calls")
            }
            Printing { format: OutputFormat::Text, .. } => Ok(()),
            Printing { time: TimeStyle::Rel, color: ColorChoice::Auto | ColorChoice::Never, .. } => Ok(()),
            Printing { time: TimeStyle::Rel, .. } => Err("--color is for -F text"),
            _ => Err("--time is for -F text"),
        }
    }
}

/// The output formats.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum OutputFormat {
    #[default]
    /// The records as they are in the files, for grep, awk and trace-cat
    Raw,
    /// A line for each call with names, results and durations, for people
    Text,
    /// A line of values for each record, under a line of names, for spreadsheets and databases
    Csv,
    /// An object for each record, one a line, for jq; hex and numbers over 2^53 as strings
    Json,
    /// A timeline of waits, holds and who let whom go on, for the Perfetto UI (https://ui.perfetto.dev)
    Perfetto,
    /// A directory in the Common Trace Format, for babeltrace2 and Trace Compass; -o names it
    Ctf,
    /// The timeline as JSON, for speedscope, the Firefox Profiler and chrome://tracing
    Chrome,
    /// Waits and holds of each thread in the format of Paje, for ViTE and pj_dump
    Paje,
    /// A table of the records and what they cost, for DuckDB, Spark, Polars and pandas; --partition makes a directory
    Parquet,
    /// List all formats with what opens them, those of the report too
    Help,
}

impl OutputFormat {
    /// Whether it shows waits and holds, as the analysis of the report accounts them.
    pub fn is_timeline(self) -> bool {
        self.timeline_file().is_some()
    }

    /// The name of such a format, and one for its file.
    pub fn timeline_file(self) -> Option<(&'static str, &'static str)> {
        match self {
            OutputFormat::Perfetto => Some(("perfetto", "trace.pftrace")),
            OutputFormat::Chrome => Some(("chrome", "trace.json")),
            OutputFormat::Paje => Some(("paje", "trace.paje")),
            OutputFormat::Parquet => Some(("parquet", "trace.parquet")),
            OutputFormat::Raw
            | OutputFormat::Text
            | OutputFormat::Csv
            | OutputFormat::Json
            | OutputFormat::Ctf
            | OutputFormat::Help => None,
        }
    }
}

/// The first column of -F text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum TimeStyle {
    /// Since the first record of the trace, as --since +TIME counts, in seconds; the first line has that record's time
    #[default]
    Rel,
    /// The local time, the date in a line of its own
    Abs,
    /// Since the line before, in seconds
    Delta,
}

/// When output is coloured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ColorChoice {
    /// On a terminal
    #[default]
    Auto,
    /// Also in files and pipes
    Always,
    /// Not at all
    Never,
}
