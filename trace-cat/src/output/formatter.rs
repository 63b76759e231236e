//! What an output format does.

/// A form of output in which each record is shown for itself, so that threads share the work.
pub trait RecordFormatter: Send + Sync {
    /// Appends what stands before the first record.
    fn head(&self, _out: &mut Vec<u8>) {}

    /// Appends what is shown for one record, whose line ends with its newline, to `out`.
    fn record(&self, line: &[u8], out: &mut Vec<u8>);
}

/// A form of output that remembers what it has seen, and needs to see the records in the order of the timeline.
pub trait TimelineFormatter: Send {
    /// Appends what is shown for one record, whose line ends with its newline, to `out`.
    fn record(&mut self, line: &[u8], out: &mut Vec<u8>);

    /// Appends what was held back, because it is not known whether there will be another record.
    fn pause(&mut self, _out: &mut Vec<u8>) {}

    /// Appends what stands behind the last record.
    fn end(&mut self, out: &mut Vec<u8>) {
        self.pause(out);
    }
}

/// How records are shown.
pub enum Formatter {
    /// As they are in the files.
    Raw,
    /// Each for itself.
    PerRecord(Box<dyn RecordFormatter>),
    /// One after the other.
    Timeline(Box<dyn TimelineFormatter>),
}
