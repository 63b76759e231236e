//! The files that a process made for children in a sandbox: trbufs, each blank until a child has claimed it, and a page where
//! those are counted who found none.

use std::io;
use std::path::Path;

use spec::buffer::{MAGIC, Owner, PAGE, SpareLosses, spare_losses};
use spec::id;
use spec::names::{SANDBOX_SPARES, pid_of_spare};
use spec::record::NANOS_PER_SECOND;

use super::slots::read_up_to;
use crate::record::errno_names::errno;
use crate::support::diagnostics::Diagnostics;
use crate::trace::file_handle::open_if_present;

/// What such a file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpareContents {
    /// Nothing.
    Blank,
    /// The buffers of a child, and its process ID unless their head is damaged.
    Buffers(Option<u32>),
    /// How many records children have lost.
    Losses(SpareLosses),
}

/// What the spare trbuf at `path` holds; `None` if it is gone, or if it is none that was made for a child in a sandbox.
pub fn contents(path: &Path, number: u8) -> io::Result<Option<SpareContents>> {
    if !SANDBOX_SPARES.contains(&number) {
        return Ok(None);
    }
    let Some(file) = open_if_present(path)? else { return Ok(None) };
    let mut page = [0; PAGE];
    let length = read_up_to(&file, &mut page, 0)?;
    Ok(Some(if page.starts_with(&MAGIC) {
        SpareContents::Buffers(Owner::parse(&page[..length]).ok().map(|owner| owner.pid))
    } else if file.metadata()?.len() == PAGE as u64
        && let Some(losses) = spare_losses(&page)
    {
        SpareContents::Losses(losses)
    } else {
        SpareContents::Blank
    }))
}

/// The trace_lost record, with its newline, that counts the losses. Nobody knows which of the processes lost what: the record is
/// that of the page, whose `number` is [`spec::names::FileName::number_of_spare`].
pub fn loss_record(losses: &SpareLosses, number: u32) -> String {
    let SpareLosses { records, cause, since, .. } = losses;
    let event = String::from_utf8_lossy(&id::TRACE_LOST_0.event_text);
    let pid = pid_of_spare(number);
    let (seconds, nanoseconds) = (since / NANOS_PER_SECOND % 10_000_000_000, since % NANOS_PER_SECOND);
    format!("{seconds:010}:{nanoseconds:09}:{pid:07}:{pid:07}:{:#014x}:{event}{records}:{cause}:0:0:0\n", 0)
}

/// Reports the losses in the page at `path`.
pub fn report(path: &Path, losses: &SpareLosses, diagnostics: &Diagnostics) {
    let SpareLosses { records, cause, processes, .. } = *losses;
    let cause = errno(cause.into()).map_or(cause.to_string(), str::to_owned);
    let whose = match processes {
        0 => "threads of processes in a sandbox that found no buffer".to_owned(),
        1 => "a process in a sandbox that found no buffer".to_owned(),
        _ => format!("{processes} processes in a sandbox that found no buffers"),
    };
    diagnostics.report_note(path.display(), format_args!("{whose} lost {records} records ({cause})"));
}

#[cfg(test)]
mod tests {
    use super::*;
    use spec::Record;

    #[test]
    fn losses_make_a_record() {
        let losses = SpareLosses { records: 7, cause: 2, since: 1_795_174_740_044_763_329, processes: 1 };
        let line = loss_record(&losses, 0x800_0008);
        let record = Record::parse(line.trim_end().as_bytes()).unwrap();
        assert_eq!(record.event().unwrap().name, "trace_lost");
        assert_eq!(record.arguments[..2].iter().map(|value| value.bits()).collect::<Vec<_>>(), [7, 2]);
        assert!(line.starts_with("1795174740:044763329:4194313:4194313:0x000000000000:"));
    }
}
