//! Records that a process lost and died before it wrote a loss record.

use std::path::Path;

use spec::buffer::{self, Owner};

use crate::record::errno_names::errno;
use crate::support::diagnostics::Diagnostics;

/// The number of such records, and the `errno` value of the last cause.
#[derive(Debug, Default)]
pub struct LostRecords {
    pub records: u64,
    cause: u32,
}

impl LostRecords {
    /// Adds those of the slot that `page` begins.
    pub fn add(&mut self, page: &[u8]) {
        if let Ok(Some((records, cause))) = buffer::slot_lost(page) {
            self.records += u64::from(records);
            self.cause = cause;
        }
    }

    /// Reports how many there are, if any, and why. The recorder counted them, so they are no damage of the trace.
    pub fn report(&self, path: &Path, owner: &Owner, diagnostics: &Diagnostics) {
        let LostRecords { records, cause } = *self;
        if records > 0 {
            let cause = errno(cause.into()).map_or(cause.to_string(), str::to_owned);
            diagnostics.report_note(
                path.display(),
                format_args!("process {} lost {records} records before it died ({cause})", owner.pid),
            );
        }
    }
}
