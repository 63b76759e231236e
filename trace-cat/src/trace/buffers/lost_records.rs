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
    read_info(&trinfo).is_ok_and(|text| is_lost_with_its_process(&text))
}

/// Whether a trinfo says so. A program that was executed later has its own lines behind those of the one before.
fn is_lost_with_its_process(trinfo: &[u8]) -> bool {
    info::lines(trinfo).fold(false, |is_lost, (key, value)| match key {
        b"buffer" => value == b"anonymous",
        b"note" if value == info::WRITTEN_AT_ONCE.as_bytes() => false,
        b"note" if value == info::RINGS_IN_MEMORY.as_bytes() => true,
        _ => is_lost,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_lost_with_its_process_is_told_by_the_last_program() {
        let (at_once, rings) = (info::WRITTEN_AT_ONCE, info::RINGS_IN_MEMORY);
        for (trinfo, expected) in [
            ("", false),
            ("buffer anonymous\n", true),
            ("buffer anonymous\nbuffer shared\n", false),
            (&format!("buffer anonymous\nnote {at_once}\n"), false),
            ("buffer ring\nring 65536\n", false),
            (&format!("buffer ring\nring 65536\nnote {rings}\nnote another\n"), true),
            (&format!("buffer anonymous\nnote {at_once}\nbuffer anonymous\n"), true),
        ] {
            assert_eq!(is_lost_with_its_process(trinfo.as_bytes()), expected, "{trinfo}");
        }
    }
}
