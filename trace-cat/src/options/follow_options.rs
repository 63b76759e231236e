//! The options of `--follow`.

use clap::Args;

use super::time_point::duration;

/// These options need no conversion.
#[derive(Args, Clone, Copy, Debug)]
#[command(next_help_heading = "While programs run")]
pub struct Following {
    /// Go on printing what running processes record, as it happens
    ///
    /// First the existing records are printed (with --tail the last of them), then the records that the threads of running
    /// processes make, from their buffers. Processes and threads that start later in the named directories are included.
    /// SIGINT (Ctrl-C) or SIGTERM ends it, as do --head after N records and --until at its time. With -o, the selected records
    /// go to the standard output, and FILE is a journal of all records, which trace-cat can read. A call that --blocked,
    /// --longer or --object selects by its return record is printed when the call returns. -F perfetto and -F chrome write a
    /// timeline that viewers can open at any moment; in -F perfetto a wait or hold that goes on has begun. The processes are not slowed down. Example: --follow -F text --tail 20 -e mutex:cond trace
    #[arg(short = 'f', long, conflicts_with_all = ["Arrangement", "stat", "recover", "run_numbers", "all_runs"])]
    pub follow: bool,

    /// How long a record waits for earlier ones of other threads
    ///
    /// Records that arrive within this time of each other are printed in order, and each at the latest when it is that old. A
    /// record that arrives later is printed at once, marked as late (in -F text, csv and json), and counted. Example: --follow --window 1s
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true, value_parser = duration,
        default_value = "100ms", requires = "follow")]
    pub window: u64,

    /// End when the last process has ended
    ///
    /// In an empty directory, trace-cat waits for the first process. Example: --follow --until-exit
    #[arg(long, requires = "follow")]
    pub until_exit: bool,
}

impl Default for Following {
    fn default() -> Following {
        Following { follow: false, window: 100_000_000, until_exit: false }
    }
}
