//! Records that a process lost and died before it wrote a loss record.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use spec::buffer::{self, NOTE_OWN_MEMORY, Owner, PAGE};

use crate::record::errno_names::errno;
use crate::support::diagnostics::Diagnostics;

/// The number of such records, and the `errno` value of the last cause.
#[derive(Debug, Default)]
pub struct LostRecords {
    pub records: u64,
    /// Records that the process lost, with those that loss records count.
    pub in_all: u64,
    /// Threads that had ended and whose records are gone, because others reused their rings.
    pub reused_rings: u64,
    /// What the header notes of the process.
    pub notes: u32,
    /// The threads whose newest records are among those that no loss record counts.
    pub threads: Vec<u32>,
    cause: u32,
}

impl LostRecords {
    /// What the header of a trbuf says.
    pub fn of_header(file: &File) -> LostRecords {
        let mut page = [0; PAGE];
        // A file without a complete header has no slots, and was reported.
        match file.read_exact_at(&mut page, 0) {
            Ok(()) => {
                let (records, cause) = Owner::lost_without_slot(&page);
                let (in_all, notes) = (Owner::lost_records(&page), Owner::notes(&page));
                let (reused_rings, threads) = (Owner::reused_rings(&page), Vec::new());
                LostRecords { records, in_all, reused_rings, notes, threads, cause }
            }
            Err(_) => LostRecords::default(),
        }
    }

    /// Adds those of the slot that `page` begins.
    pub fn add(&mut self, page: &[u8]) {
        if let Ok(Some((records, cause))) = buffer::slot_lost(page) {
            self.records += u64::from(records);
            self.cause = cause;
            self.threads.extend(buffer::slot_lwp(page).ok().flatten());
        }
    }

    /// With what the header says, of those of slots that were read before: while a process runs, the sum has to have them.
    pub fn complete(self, file: &File) -> LostRecords {
        let header = LostRecords::of_header(file);
        LostRecords { records: self.records + header.records, threads: self.threads, ..header }
    }

    /// Whether the process may have had records in memory of its own.
    pub fn has_own_memory(&self) -> bool {
        self.notes & NOTE_OWN_MEMORY != 0
    }

    /// Reports how many there are, if any, and why, and whether more are missing that nobody has counted. The recorder has said so,
    /// and they are no damage of the trace.
    pub fn report(&self, path: &Path, owner: &Owner, diagnostics: &Diagnostics) {
        let LostRecords { records, cause, .. } = *self;
        if records > 0 {
            let cause = errno(cause.into()).map_or(cause.to_string(), str::to_owned);
            diagnostics.report_note(
                path.display(),
                format_args!("process {} lost {records} records before it died ({cause})", owner.pid),
            );
        }
        if self.has_own_memory() {
            let what = format_args!(
                "process {} had buffers in its own memory: what was in them when it died is missing",
                owner.pid
            );
            diagnostics.report_note(path.display(), what);
        }
    }
}
