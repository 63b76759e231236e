//! What an output format does.

use crate::filter::OpenCallTable;

/// A format that shows each record independently, so that threads share the work.
pub trait RecordFormatter: Send + Sync {
    /// Appends the text before the first record.
    fn head(&self, _out: &mut Vec<u8>) {}

    /// Appends the text for one record. `line` ends with its newline.
    fn record(&self, line: &[u8], out: &mut Vec<u8>);
}

/// A format that remembers earlier records, and takes the records in the order of the timeline.
pub trait TimelineFormatter: Send {
    /// Takes the time of the trace's first record, selected or not, before the first record.
    fn begin(&mut self, _start: u64) {}

    /// Takes what is known of calls that do not return, before their entry records.
    fn set_open_calls(&mut self, _calls: OpenCallTable) {}

    /// Takes a record that names a thread, whether it is selected or not. The name holds for records after its time.
    fn add_name(&mut self, _line: &[u8]) {}

    /// Takes the entry record of a call that began before the first record that is shown, and may return later.
    fn begin_call(&mut self, _line: &[u8]) {}

    /// Appends the text for one record. `line` ends with its newline.
    fn record(&mut self, line: &[u8], out: &mut Vec<u8>);

    /// Appends the text that was held back for the next record, which may not come soon.
    fn pause(&mut self, _out: &mut Vec<u8>) {}

    /// Appends the text after the last record.
    fn end(&mut self, out: &mut Vec<u8>) {
        self.pause(out);
    }

    /// How many of the lines so far are headings, which come before the lines of a record.
    fn headings(&self) -> u64 {
        0
    }

    /// Takes back the lines of the last record or pause: they will not be shown, nor will their headings.
    fn take_back(&mut self) {}

    /// Whether no further record would be shown.
    fn is_complete(&self) -> bool {
        false
    }
}

/// The output format.
pub enum Formatter {
    /// Records as they are in the files.
    Raw,
    /// Each record independently.
    PerRecord(Box<dyn RecordFormatter>),
    /// The records in order.
    Timeline(Box<dyn TimelineFormatter>),
}
