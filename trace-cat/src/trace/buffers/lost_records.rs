//! Records that a process lost and died before it wrote a loss record.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use spec::buffer::{self, Owner, PAGE};

use crate::record::errno_names::errno;
use crate::support::diagnostics::Diagnostics;

/// The number of such records, and the `errno` value of the last cause.
#[derive(Debug, Default)]
pub struct LostRecords {
    pub records: u64,
    /// Some of its text was in memory of its own.
    had_own_memory: bool,
    cause: u32,
}

impl LostRecords {
    /// What the header of a trbuf says.
    pub fn of_header(file: &File) -> LostRecords {
        let mut page = [0; PAGE];
        // A file without a complete header has no slots, and was reported.
        let is_read = file.read_exact_at(&mut page, 0).is_ok();
        LostRecords { had_own_memory: is_read && Owner::has_own_memory(&page), ..LostRecords::default() }
    }

    /// Adds those of the slot that `page` begins.
    pub fn add(&mut self, page: &[u8]) {
        if let Ok(Some((records, cause))) = buffer::slot_lost(page) {
            self.records += u64::from(records);
            self.cause = cause;
        }
    }

    /// Reports how many there are, if any, and why, and whether more are missing that nobody has counted. The recorder has said so,
    /// and they are no damage of the trace.
    pub fn report(&self, path: &Path, owner: &Owner, diagnostics: &Diagnostics) {
        let LostRecords { records, had_own_memory, cause } = *self;
        if records > 0 {
            let cause = errno(cause.into()).map_or(cause.to_string(), str::to_owned);
            diagnostics.report_note(
                path.display(),
                format_args!("process {} lost {records} records before it died ({cause})", owner.pid),
            );
        }
        if had_own_memory {
            let what = format_args!(
                "process {} had buffers in its own memory: what was in them when it died is missing",
                owner.pid
            );
            diagnostics.report_note(path.display(), what);
        }
    }
}
