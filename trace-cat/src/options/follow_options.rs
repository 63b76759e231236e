//! Going on with what is recorded while it is printed.

use clap::Args;

use super::time_point::duration;

/// What was typed is what it means.
#[derive(Args, Clone, Copy, Debug)]
#[command(next_help_heading = "While programs run")]
pub struct Following {
    /// Go on printing what running processes record, as it happens
    ///
    /// First what there is is printed, of which --tail chooses the last records; then what the threads of running processes
    /// record, from their buffers, also of processes and threads that start later in the directories that are named. It ends by
    /// SIGINT (Ctrl-C) or SIGTERM, after --head records, or when --until has passed. With -o, the standard output has what the
    /// filters choose, and FILE keeps everything as a journal, which trace-cat can read. Calls that --blocked, --longer and
    /// --object choose by their second record are printed with both records when that comes. The processes are not slowed
    /// down. Example: --follow -F text --tail 20 -e mutex:cond trace
    #[arg(short = 'f', long, conflicts_with_all = ["Arrangement", "stat", "recover"])]
    pub follow: bool,

    /// How long a record waits for earlier ones of other threads
    ///
    /// Records that come within this time of each other are printed in order, and each at the latest when it is so old. What
    /// comes later than that is printed at once, marked as late (in -F text, csv and json), and counted. Example: --follow --window 1s
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "100ms", requires = "follow")]
    pub window: u64,

    /// End when the last process has ended
    ///
    /// In a directory in which there is nothing yet, the first process is waited for. Example: --follow --until-exit
    #[arg(long, requires = "follow")]
    pub until_exit: bool,
}

impl Default for Following {
    fn default() -> Following {
        Following { follow: false, window: 100_000_000, until_exit: false }
    }
}
