//! The times of the first and the last record of a text or a trbuf, found at the ends of each text alone.
//!
//! This serves questions about many processes at once, such as which of them recorded at the same time. Nothing is copied, nothing is
//! reported, and it does not matter whether the process runs: a running one may change what is read here, but each line that is a
//! record has a time at which the process recorded. Notes of releases do not count, since of a damaged one any time may be read.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::Path;

use memchr::memchr;
use spec::buffer::{self, Owner, PAGE, REGIONS};
use spec::record::RECORD_LEN_MAX;

use super::copy_buffers::only_grew;
use super::live_slot::read_layout;
use super::region_text::first_record;
use super::slots::{SlotEntry, Slots, read_up_to};
use crate::record::{columns, validation};
use crate::trace::file_handle::{open_if_present, open_regular};

/// Bytes of each end of a text in which records are searched: one is complete there wherever the lines end.
const END_LEN: usize = 2 * RECORD_LEN_MAX;
/// How often a slot is read whose thread discards or writes its oldest records meanwhile.
const ATTEMPTS_MAX: usize = 4;

/// The times of the first and the last of some records, nanoseconds since the Epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordSpan {
    pub first: u64,
    pub last: u64,
}

impl RecordSpan {
    /// The span of one record.
    fn at(time: u64) -> RecordSpan {
        RecordSpan { first: time, last: time }
    }

    /// The span of both's records.
    pub fn join(self, other: RecordSpan) -> RecordSpan {
        RecordSpan { first: self.first.min(other.first), last: self.last.max(other.last) }
    }

    /// The span of these and of more records, if there are any.
    fn join_any(these: Option<RecordSpan>, more: Option<RecordSpan>) -> Option<RecordSpan> {
        these.into_iter().chain(more).reduce(RecordSpan::join)
    }
}

/// The span of the records in the record file at `path`; `None` if it cannot be read or has none.
pub fn of_file(path: &Path) -> Option<RecordSpan> {
    let file = open_regular(path).ok()?;
    let length = file.metadata().ok()?.len();
    of_text(&file, &(0..length)).ok()?
}

/// The span of the records in `range` of `file`, which begins with a line and is taken to be in order; `None` if there is no
/// record at its ends.
fn of_text(file: &File, range: &Range<u64>) -> io::Result<Option<RecordSpan>> {
    let mut bytes = [0; END_LEN];
    let length = range.end - range.start;
    let head = read_up_to(file, &mut bytes[..length.min(END_LEN as u64) as usize], range.start)?;
    let span = of_lines(&bytes[..head]);
    if length <= END_LEN as u64 {
        return Ok(span);
    }
    let tail = read_up_to(file, &mut bytes, range.end - END_LEN as u64)?;
    // The first line is incomplete.
    let lines = memchr(b'\n', &bytes[..tail]).map_or(tail, |newline| newline + 1);
    Ok(RecordSpan::join_any(span, of_lines(&bytes[lines..tail])))
}

/// The span of the complete lines of `text` that are records.
fn of_lines(text: &[u8]) -> Option<RecordSpan> {
    let records = columns::lines(text).filter(|line| validation::validate(&line[..line.len() - 1]).is_ok());
    records.filter_map(columns::time).map(RecordSpan::at).reduce(RecordSpan::join)
}

/// The span of the records that the trbuf at `path` holds, and that may be in no file yet; `None` if it is gone, cannot be read, is
/// damaged, or has none.
///
/// Records that the process writes to its files meanwhile may be missing: whoever wants all reads the files afterwards.
pub fn of_trbuf(path: &Path) -> Option<RecordSpan> {
    let file = open_if_present(path).ok()??;
    let mut page = [0; PAGE];
    let length = read_up_to(&file, &mut page, 0).ok()?;
    let owner = Owner::parse(&page[..length]).ok()?;
    let span = of_slots(&file, &owner).ok()?;
    // If it is another process's by now, or the process has executed another program, what it held is in the files.
    let is_unchanged = read_layout(&file, &owner).ok()? == Some(owner.layout);
    span.filter(|_| is_unchanged)
}

fn of_slots(file: &File, owner: &Owner) -> io::Result<Option<RecordSpan>> {
    let mut span = None;
    let mut page = [0; PAGE];
    let mut slots = Slots::new(file, owner.layout)?;
    while let Some(entry) = slots.next(&mut page)? {
        let SlotEntry::Slot { at, .. } = entry else { continue };
        if matches!(buffer::slot_lwp(&page), Ok(Some(_))) {
            span = RecordSpan::join_any(span, of_slot(file, at, page, owner)?);
        }
    }
    Ok(span)
}

/// The span of the records of the slot at `at`, whose first page is `page`.
fn of_slot(file: &File, at: u64, mut page: [u8; PAGE], owner: &Owner) -> io::Result<Option<RecordSpan>> {
    let mut unstable = None;
    for _ in 0..ATTEMPTS_MAX {
        let mut span = None;
        for region in 0..REGIONS {
            span = RecordSpan::join_any(span, of_region(file, at, &page, owner, region)?);
        }
        let before = page;
        read_up_to(file, &mut page, at)?;
        if (0..REGIONS).all(|region| only_grew(&before, &page, region)) {
            return Ok(span);
        }
        // What was read in the place of a ring's oldest records may be its newest, and then the first time is too late.
        unstable = RecordSpan::join_any(unstable, span);
    }
    Ok(unstable)
}

fn of_region(file: &File, at: u64, page: &[u8; PAGE], owner: &Owner, region: usize) -> io::Result<Option<RecordSpan>> {
    let Ok(leftover) = buffer::region_leftover(page, owner.layout, region) else { return Ok(None) };
    let place = |range: Range<usize>| at + range.start as u64..at + range.end as u64;
    let mut older = place(leftover.older);
    if !older.is_empty() {
        older.start = first_record(file, &older)?.unwrap_or(older.end);
    }
    let intended = leftover.write_intent.map(|(_, range)| place(range));
    let mut span = None;
    for range in intended.into_iter().chain([older, place(leftover.unwritten)]) {
        span = RecordSpan::join_any(span, of_text(file, &range)?);
    }
    Ok(span)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::damaged_trbuf::damaged_trbuf;
    use crate::testing::seeded_random::SeededRandom;
    use crate::testing::test_trace::{TRBUF, TestTrace, record, record_lines};
    use crate::testing::trbuf_image::TrbufImage;

    /// First and last time.
    fn times(span: Option<RecordSpan>) -> Option<(u64, u64)> {
        span.map(|span| (span.first, span.last))
    }

    /// The times of what a trbuf with these bytes holds.
    fn of_bytes(bytes: &[u8]) -> Option<(u64, u64)> {
        let trace = TestTrace::new();
        times(of_trbuf(&trace.file(TRBUF, bytes).path(TRBUF)))
    }

    #[test]
    fn a_text_has_the_times_of_its_ends() {
        let of = |text: &str| {
            let trace = TestTrace::new();
            times(of_file(&trace.file("tr", text).path("tr")))
        };
        // The last record crosses any border.
        for count in 1..20 {
            assert_eq!(of(&record_lines(100..100 + count, 1)), Some((100, 99 + count)), "{count} records");
        }
        assert_eq!(of(&record_lines(100..10_000, 1)), Some((100, 9_999)));
        assert_eq!((of(""), of("no record\n"), of(record(7, 1, "02:04:0", 0).trim_end())), (None, None, None));
        // Lines that only begin as records do, older and newer than these.
        let damaged = |time| format!("{}\n", &record(time, 1, "02:04:0", 0)[..40]);
        assert_eq!(of(&format!("{}{}{}", damaged(1), record_lines(5..7, 1), damaged(9))), Some((5, 6)));
    }

    #[test]
    fn a_buffer_has_what_is_in_no_file_and_what_is_being_written() {
        assert_eq!(of_bytes(&TrbufImage::with_text(5, &record_lines(10..500, 5)).bytes), Some((10, 499)));
        let mut image = TrbufImage::new();
        let text = record_lines(20..30, 5);
        let line = text.len() / 10;
        let slot = image.add_slot(5);
        // What was written before is not in the buffer any more, though its bytes are.
        image.put_region(slot, 0, &text, 4 * line..text.len(), None);
        assert_eq!(of_bytes(&image.bytes), Some((24, 29)));
        image.put_region(slot, 0, &text, 2 * line..text.len(), Some((0, 2 * line..5 * line)));
        assert_eq!(of_bytes(&image.bytes), Some((22, 29)));
        let other = image.add_slot(6);
        image.put_text(other, 1, &record(40, 6, "02:04:0", 0));
        image.put_text(other, 3, &record(3, 6, "02:04:0", 0));
        assert_eq!(of_bytes(&image.bytes), Some((3, 40)), "signal handlers, and another thread");
    }

    #[test]
    fn a_ring_has_its_oldest_complete_record() {
        let mut image = TrbufImage::ring(64 * 1024);
        let slot = image.add_slot(5);
        image.put_text(slot, 0, &record_lines(10..60, 5));
        assert_eq!(of_bytes(&image.bytes), Some((10, 59)));
        let older = record_lines(70..200, 5);
        image.put_wrapped_ring(slot, 0, 1, (4096, &older[30..]), &record_lines(200..210, 5));
        assert_eq!(of_bytes(&image.bytes), Some((71, 209)));
    }

    #[test]
    fn a_running_process_has_the_same() {
        let trace = TestTrace::new();
        trace.file(TRBUF, TrbufImage::with_text(5, &record_lines(10..90, 5)).bytes);
        let _owner = trace.open_trbuf_as_owner();
        assert_eq!(times(of_trbuf(&trace.path(TRBUF))), Some((10, 89)));
    }

    #[test]
    fn what_is_no_trbuf_has_no_times() {
        let text = record_lines(10..20, 5);
        let image = TrbufImage::with_text(5, &text);
        let mut foreign = image.clone();
        foreign.put(0, b"X");
        let mut unowned = TrbufImage::new();
        let slot = unowned.add_slot(0);
        unowned.put_text(slot, 0, &text);
        let incomplete = &image.bytes[..image.bytes.len() - 1];
        for bytes in [b"", text.as_bytes(), &[0; PAGE], &foreign.bytes, &unowned.bytes, incomplete] {
            assert_eq!(of_bytes(bytes), None);
        }
        let trace = TestTrace::new();
        assert_eq!(of_trbuf(&trace.path(TRBUF)), None);
        std::fs::create_dir(trace.path(TRBUF)).unwrap();
        assert_eq!(of_trbuf(&trace.path(TRBUF)), None);
    }

    #[test]
    fn damaged_words_make_no_other_times() {
        let mut random = SeededRandom::seeded("record_span", 1);
        let text = record_lines(1_000..1_100, 5);
        for _ in 0..1_000 {
            if let Some((first, last)) = of_bytes(&damaged_trbuf(&mut random, &text)) {
                assert!(1_000 <= first && first <= last && last < 1_100, "{first} to {last}");
            }
        }
    }
}
