//! The options that choose runs.

use clap::Args;

/// Which runs of a directory are read; all but renamed files if none is chosen.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Which records")]
pub struct RunChoice {
    /// Read only the newest run
    ///
    /// A run is a program and the processes that it started. If a directory holds several runs, a message on standard error
    /// reports that. Example: trace-cat --last -F text trace
    #[arg(long)]
    pub last: bool,

    /// Read only the runs with these numbers: 1 is the oldest
    ///
    /// Several have commas between them. The runs of a directory and their numbers are in trace-cat --stat. Files that were
    /// renamed (old.*), because a later process had the same number, are read with the run that they belong to. Example:
    /// trace-cat --run 1 -F text trace
    #[arg(long = "run", value_name = "N", value_delimiter = ',', conflicts_with = "last")]
    pub run_numbers: Vec<usize>,

    /// Read all runs, renamed files (old.*) included
    ///
    /// Without this, a directory's renamed files are left out, and a message reports how many there are. Records of different
    /// processes with one process ID, as in containers, are told apart only by --run. Example: trace-cat --all-runs trace
    #[arg(long, conflicts_with_all = ["last", "run_numbers"])]
    pub all_runs: bool,
}

impl RunChoice {
    /// The runs with these numbers; all but renamed files if there are none.
    pub fn of(run_numbers: Vec<usize>) -> RunChoice {
        RunChoice { run_numbers, ..RunChoice::default() }
    }

    /// The option that makes this choice, and a space; nothing if none is made.
    pub fn option(&self) -> String {
        let numbers: Vec<String> = self.run_numbers.iter().map(usize::to_string).collect();
        match self {
            RunChoice { last: true, .. } => "--last ".to_owned(),
            RunChoice { all_runs: true, .. } => "--all-runs ".to_owned(),
            _ if numbers.is_empty() => String::new(),
            _ => format!("--run {} ", numbers.join(",")),
        }
    }
}
