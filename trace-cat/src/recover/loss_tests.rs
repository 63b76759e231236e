//! Losses that no loss record counts, after recovery.

use std::fs;
use std::mem::offset_of;

use spec::buffer::{REGION_OFFSETS, SlotHeader, SlotLayout, pack_range, region_word_offsets};

use super::death_tests::{DeathCase, assert_recovered, die_again_and_again, die_at_every_step, read, run};
use super::file_operations::FileOperations;
use super::{RealFileOperations, recover_trbuf};
use crate::support::diagnostics::tests::recorded_diagnostics;
use crate::testing::test_trace::{TRBUF, TestTrace, record, record_lines};
use crate::testing::trbuf_image::TrbufImage;
use crate::trace::thread_completeness::read_trinfo;

const EDQUOT: u32 = libc::EDQUOT as u32;

/// The record that counts losses of LWP `lwp`.
fn loss(time: u64, lwp: u32, records: u64) -> String {
    record(time, lwp, "00:01:0", records).replace(":0:0:0:0\n", &format!(":{EDQUOT}:0:0:0\n"))
}

/// A trace with losses of threads whose region is full, of threads that share a file, of one whose records are in its file and of which
/// another one has later records, of one without a record, and of threads without a slot. An earlier program has lost records, too.
fn every_loss() -> DeathCase {
    let trace = TestTrace::new();
    let mut image = TrbufImage::new();
    let [full, first, second, written, none] = [1, 0x1002, 0x2002, 3, 4].map(|lwp| image.add_slot(lwp));
    let capacity = SlotLayout::BUFFERS.region_size(0);
    let line = record(5, 1, "02:04:0", 0);
    let text = line.repeat(capacity / line.len());
    let text = text[line.len()..].to_owned() + &longer(&line, capacity - text.len());
    assert_eq!(text.len(), capacity);
    image.put_text(full, 0, &text);
    // The last record in the file is one of a handler, in a deeper region.
    let nested = record_lines(3..4, 1);
    image.put_text(full, 2, &nested);
    let (of_first, of_second) = (record_lines(0..2, 0x1002), record_lines(7..9, 0x2002));
    image.put_text(first, 0, &of_first);
    image.put_text(second, 0, &of_second);
    let in_file = [record_lines(0..3, 3), record_lines(20..21, 0x1003)].concat();
    trace.file("tr.0000001.003", &in_file);
    for (slot, records) in [(full, 10), (first, 20), (second, 300), (written, 40), (none, 50)] {
        image.set_lost(slot, records, EDQUOT);
    }
    image.set_all_lost(5 + 420, 6);
    trace.file(TRBUF, &image.bytes).file("trinfo.0000001", "format 1\npid 1\nlost 5\nformat 1\npid 1\n");
    let shared = [of_first, of_second, loss(1, 0x1002, 20), loss(8, 0x2002, 300)].concat();
    let expected = vec![
        ("tr.0000001.001", [text, nested, loss(5, 1, 10)].concat()),
        ("tr.0000001.002", shared),
        ("tr.0000001.003", in_file + &loss(2, 3, 40)),
    ];
    (trace, expected)
}

/// The record of a line with so many more digits in its arguments.
fn longer(line: &str, mut more: usize) -> String {
    let mut columns: Vec<String> = line.trim_end().split(':').map(str::to_owned).collect();
    for argument in &mut columns[8..] {
        let digits = more.min(18);
        *argument = "1".repeat(1 + digits);
        more -= digits;
    }
    columns.join(":") + "\n"
}

#[track_caller]
fn assert_counted(trace: &TestTrace) {
    let known = read_trinfo(&trace.path("trinfo.0000001")).unwrap();
    // 50 of the thread without a record, and 6 of threads without a slot.
    assert_eq!((known.losses.in_all(), known.uncounted), (431, 56), "{}", read(trace, "trinfo.0000001"));
}

#[test]
fn losses_become_the_last_records_of_their_threads() {
    let (trace, expected) = every_loss();
    let (_, messages) = run(&trace);
    assert_eq!(messages, "trace-cat: trbuf.0000001: process 1 lost 426 records before it died (EDQUOT)\n");
    assert_recovered(&trace, &expected, "at once");
    assert!(!trace.path("tr.0000001.004").exists());
    let info = read(&trace, "trinfo.0000001");
    assert_eq!(info, "format 1\npid 1\nlost 5\nformat 1\npid 1\nlost 426\nuncounted 56\n");
    assert_counted(&trace);
    assert_eq!(run(&trace), Default::default());
    assert_recovered(&trace, &expected, "twice");
    assert_eq!(read(&trace, "trinfo.0000001"), info);
}

#[test]
fn recovery_of_losses_may_die_at_every_step() {
    let small = || {
        let (trace, mut expected) = every_loss();
        // The full region alone has ten thousand steps.
        let mut image = TrbufImage { bytes: fs::read(trace.path(TRBUF)).unwrap(), layout: SlotLayout::BUFFERS };
        let text = record_lines(0..1, 1);
        image.put_text(0, 0, &text);
        trace.file(TRBUF, &image.bytes);
        expected[0].1 = [text, record_lines(3..4, 1), loss(3, 1, 10)].concat();
        (trace, expected)
    };
    let steps = die_at_every_step(small, assert_counted);
    assert!(steps > 700, "{steps}");
    die_again_and_again("recover losses again", 17, small, assert_counted);
}

/// Dies when it has put a loss record into a slot, whose count it does not clear.
struct DyingBeforeClearing;

impl FileOperations for DyingBeforeClearing {
    fn write(&mut self, file: &fs::File, bytes: &[u8], at: u64) -> std::io::Result<()> {
        if at == SlotLayout::BUFFERS.slot_offset(0) + offset_of!(SlotHeader, lost) as u64 {
            return Err(std::io::Error::other("killed"));
        }
        RealFileOperations.write(file, bytes, at)
    }

    fn create(&mut self, path: &std::path::Path) -> std::io::Result<fs::File> {
        RealFileOperations.create(path)
    }

    fn change_owner(&mut self, file: &fs::File, user: u32, group: u32) -> std::io::Result<()> {
        RealFileOperations.change_owner(file, user, group)
    }

    fn remove(&mut self, path: &std::path::Path) -> std::io::Result<()> {
        RealFileOperations.remove(path)
    }
}

#[test]
fn a_loss_record_that_is_in_its_slot_is_not_made_again() {
    let trace = TestTrace::new();
    let mut image = TrbufImage::with_text(1, &record_lines(0..2, 1));
    image.set_lost(0, 7, EDQUOT);
    trace.file(TRBUF, &image.bytes);
    let (diagnostics, messages) = recorded_diagnostics();
    recover_trbuf(&trace.path(TRBUF), &mut DyingBeforeClearing, &diagnostics).unwrap();
    assert!(messages.text().contains("cannot note what its threads have lost: killed"), "{}", messages.text());
    let bytes = fs::read(trace.path(TRBUF)).unwrap();
    let position = image.slot_offset(0) + region_word_offsets(0).write_position;
    let line = loss(1, 1, 7);
    assert_eq!(bytes[position..position + 8], pack_range(0..line.len() as u32).to_le_bytes());
    let at = image.slot_offset(0) + REGION_OFFSETS[0];
    assert_eq!(&bytes[at..at + line.len()], line.as_bytes());
    run(&trace);
    assert_recovered(&trace, &[("tr.0000001.001", record_lines(0..2, 1) + &line)], "again");
}
