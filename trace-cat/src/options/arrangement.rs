//! In which order records are printed, and in how many files.

use clap::{Args, ValueEnum};

/// These options need no conversion.
#[derive(Args, Clone, Copy, Debug, Default)]
#[command(next_help_heading = "How they are arranged")]
pub struct Arrangement {
    /// Print in this order
    ///
    /// Within a thread, or an event, records are in the order of time. --head and --tail select the records that are first
    /// and last in time. Records that do not fit in memory are sorted in temporary files. Example: -F
    /// text --sort tid
    #[arg(long, value_name = "ORDER", value_enum, default_value_t = SortOrder::Time)]
    pub sort: SortOrder,

    /// Write a file for each process, LWP, object or category; -o names their directory
    ///
    /// The directory is made; an existing one must be empty. Its files are named pid.0019953, lwp.0019955,
    /// object.0x559469ed90a0 or category.mutex, have the order of --sort, and can be read by trace-cat, one by one or all by the directory. A return
    /// record belongs to the object of its entry record, and a wait for a condition to the condition. Records without an
    /// object are in object.none. Example: --split lwp -o threads
    #[arg(long, value_name = "WHAT", value_enum, requires = "output")]
    pub split: Option<SplitBy>,
}

/// The orders of records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum SortOrder {
    /// By thread (its pthread_t)
    Tid,
    /// By category and event
    Event,
    /// By time
    #[default]
    Time,
}

/// What each file of --split is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SplitBy {
    /// A process
    Pid,
    /// An LWP
    Lwp,
    /// A mutex, condition, semaphore and so on, or a thread that something is done to
    Object,
    /// A category of events
    Category,
}
