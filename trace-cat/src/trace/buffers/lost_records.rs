//! Records that a process lost without a record of the loss.

use std::path::Path;

use spec::buffer::{self, Owner};

use crate::record::errno_names::errno;
use crate::support::diagnostics::Diagnostics;

/// Records that a process dropped and died before it could say so in its trace.
#[derive(Debug, Default)]
pub struct LostRecords {
    records: u64,
    cause: u32,
}

impl LostRecords {
    /// Adds those of a slot, whose header `slot` begins with.
    pub fn add(&mut self, slot: &[u8]) {
        if let Ok(Some((records, cause))) = buffer::slot_lost(slot) {
            self.records += u64::from(records);
            self.cause = cause;
        }
    }

    /// Says how many there were, if there were any, and why. A loss that the program counted is no damage.
    pub fn tell(&self, path: &Path, owner: &Owner, diagnostics: &Diagnostics) {
        let LostRecords { records, cause } = *self;
        if records > 0 {
            let why = errno(cause.into()).map_or(cause.to_string(), str::to_owned);
            diagnostics.report_note(
                path.display(),
                format_args!("process {} lost {records} records before it died ({why})", owner.pid),
            );
        }
    }
}
