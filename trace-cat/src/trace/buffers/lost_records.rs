//! Records that a process lost and died before it wrote a loss record.

use std::path::Path;

use spec::buffer::{self, Owner};
use spec::info;
use spec::names::FileName;

use crate::record::errno_names::errno;
use crate::support::diagnostics::Diagnostics;
use crate::trace::file_handle::read_info;
use crate::trace::file_names::{ProcessFiles, split_name};

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

    /// Reports how many there are, if any, and why, and whether more are missing that nobody has counted. The recorder has said so,
    /// and they are no damage of the trace.
    pub fn report(&self, path: &Path, owner: &Owner, diagnostics: &Diagnostics) {
        let LostRecords { records, cause } = *self;
        if records > 0 {
            let cause = errno(cause.into()).map_or(cause.to_string(), str::to_owned);
            diagnostics.report_note(
                path.display(),
                format_args!("process {} lost {records} records before it died ({cause})", owner.pid),
            );
        }
        if had_buffers_in_memory(path) {
            let what = format_args!(
                "process {} had its buffers in its own memory: what was in them when it died is missing",
                owner.pid
            );
            diagnostics.report_note(path.display(), what);
        }
    }
}

/// Whether the process of the trbuf at `path` says in its trinfo that its buffers are not in the trbuf.
fn had_buffers_in_memory(path: &Path) -> bool {
    let (_, Some(FileName::Buffers(number))) = split_name(path) else { return false };
    let trinfo = ProcessFiles::of_file(path, number).path(FileName::Info(number));
    let is_in_memory = |text: Vec<u8>| {
        let (_, place) = info::lines(&text).filter(|(key, _)| *key == b"buffer").last()?;
        Some(place == b"anonymous")
    };
    read_info(&trinfo).ok().and_then(is_in_memory) == Some(true)
}
