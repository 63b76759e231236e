//! Recovery of rings, whose older records are written to their file first.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use super::death_tests::{DeathCase, assert_recovered, die_again_and_again, die_at_every_step, run};
use crate::testing::test_trace::{TRBUF, TestTrace, record_lines};
use crate::testing::trbuf_image::TrbufImage;
use crate::trace::buffers::complete_from::CompleteFrom;
use crate::trace::buffers::region_text::CHUNK_LEN;
use crate::trace::thread_completeness::read_trinfo;

const RING: u64 = 64 * 1024;
const TRINFO: &str = "trinfo.0000001";

/// Rings in every state that a dead process can leave.
fn rings() -> DeathCase {
    let trace = TestTrace::new();
    let mut image = TrbufImage::ring(RING);
    // tr.0000001.001: not made yet. A ring that has wrapped, and one of signal handlers.
    let first = image.add_slot(0x1001);
    let nested = record_lines(4..5, 0x1001);
    image.put_wrapped_ring(first, 0, 1, (4096, &record_lines(1..4, 0x1001)[7..]), &record_lines(5..6, 0x1001));
    image.put_wrapped_ring(first, 1, 2, (2048, &[&record_lines(3..4, 0x1001)[60..], &nested].concat()), "");
    let first_file = record_lines(2..4, 0x1001) + &record_lines(5..6, 0x1001) + &nested;
    // tr.0000001.002: the older records are being written.
    let second = image.add_slot(2);
    let (torn_record, older, newer) = (&record_lines(0..1, 2)[66..], record_lines(1..3, 2), record_lines(3..4, 2));
    image.put_wrapped_ring(second, 0, 0, (8192, &[torn_record, &older].concat()), &newer);
    let pending_write = 8192 + torn_record.len()..8192 + torn_record.len() + older.len();
    image.put_region(second, 0, &newer, 8192..newer.len(), Some((0, pending_write.clone())));
    image.set_complete_from(second, 1);
    trace.file("tr.0000001.002", &older[..30]);
    // tr.0000001.003: they are written, which is not yet noted; another thread's records follow them.
    let third = image.add_slot(3);
    image.put_wrapped_ring(
        third,
        0,
        0,
        (8192, &[torn_record, &record_lines(1..3, 3)].concat()),
        &record_lines(3..4, 3),
    );
    image.put_region(third, 0, &record_lines(3..4, 3), 0..newer.len(), Some((0, pending_write)));
    image.set_complete_from(third, 1);
    trace.file("tr.0000001.003", record_lines(1..3, 3) + &record_lines(7..8, 0x1003));
    // tr.0000001.004: all older records are overwritten, and the range for the others was taken, but not noted.
    let fourth = image.add_slot(4);
    let unwritten = record_lines(6..8, 4);
    image.put_text(fourth, 0, &unwritten);
    image.set_wrap_count(fourth, 0, 9);
    trace.file("tr.0000001.004", "\0".repeat(unwritten.len()) + &record_lines(9..10, 0x1004));
    // tr.0000001.005: no older record is complete.
    let fifth = image.add_slot(5);
    image.put_wrapped_ring(fifth, 0, 1, (4096, &record_lines(2..3, 5)[20..]), &record_lines(3..4, 5));
    let last = image.add_slot(6);
    image.put_wrapped_ring(last, 0, 1, (4096, &record_lines(2..3, 6)[20..]), "");
    trace.file(TRBUF, &image.bytes).file(TRINFO, "format 1\npid 1\nnote cut of");
    let expected = vec![
        ("tr.0000001.001", first_file),
        ("tr.0000001.002", older + &newer),
        ("tr.0000001.003", record_lines(1..3, 3) + &record_lines(7..8, 0x1003) + &record_lines(3..4, 3)),
        ("tr.0000001.004", unwritten + &record_lines(9..10, 0x1004)),
        ("tr.0000001.005", record_lines(3..4, 5)),
    ];
    (trace, expected)
}

/// From when on the threads of [`rings`] are complete.
const COMPLETE_FROM: [(u32, u64); 5] = [(0x1001, 4), (2, 1), (3, 1), (4, 6), (5, 3)];

fn assert_noted(trace: &TestTrace, threads: &[(u32, u64)]) {
    let threads: Vec<CompleteFrom> = threads.iter().map(|&(lwp, from)| CompleteFrom { lwp, from }).collect();
    let mut noted = read_trinfo(&trace.path(TRINFO)).unwrap().threads;
    // A line that was truncated just before its newline gets its newline, and is then added once more.
    noted.dedup();
    assert_eq!(noted, threads);
}

#[test]
fn each_record_of_a_ring_goes_to_its_place_once() {
    let (trace, expected) = rings();
    let (printed, notes) = trace.cat(&[]);
    let (out, messages) = run(&trace);
    assert_recovered(&trace, &expected, "at once");
    assert_eq!(out, "trbuf.0000001: process 1: 11 records recovered into 5 files\n");
    assert_eq!(messages, "");
    assert_noted(&trace, &COMPLETE_FROM);
    let trinfo = fs::read_to_string(trace.path(TRINFO)).unwrap();
    assert!(trinfo.starts_with("format 1\npid 1\nnote cut of\ncomplete_from 4097 "), "{trinfo}");
    let mut sorted = [printed, trace.cat(&[]).0].map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>());
    sorted.iter_mut().for_each(|lines| lines.sort());
    assert_eq!(sorted[0], sorted[1]);
    assert_eq!(trace.cat(&[]).1, notes, "the same notes are printed afterwards");
    let others = format!(" on, {} others before; earlier records were overwritten\n", COMPLETE_FROM.len() - 1);
    assert!(notes.ends_with(&others) && notes.lines().count() == 1, "{notes}");
}

#[test]
fn recovery_of_rings_may_die_at_every_step() {
    let steps = die_at_every_step(rings, |trace| assert_noted(trace, &COMPLETE_FROM));
    println!("{steps} steps");
    assert!(steps > 800, "{steps}");
}

#[test]
fn recovery_of_rings_may_die_again_and_again() {
    die_again_and_again("recover rings again", 13, rings, |trace| assert_noted(trace, &COMPLETE_FROM));
}

#[test]
fn a_trinfo_that_cannot_be_written_keeps_the_trbuf() {
    let (trace, expected) = rings();
    trace.file("other", "");
    fs::remove_file(trace.path(TRINFO)).unwrap();
    symlink(trace.path("other"), trace.path(TRINFO)).unwrap();
    let (out, messages) = run(&trace);
    assert!(out.ends_with("11 records recovered into 5 files; the trbuf is kept\n"), "{out}");
    assert!(
        messages.starts_with("trace-cat: trinfo.0000001: cannot note what threads have overwritten: "),
        "{messages}"
    );
    assert_eq!(fs::read_to_string(trace.path("other")).unwrap(), "");
    // The times that were noted in the slots are still known.
    fs::remove_file(trace.path(TRINFO)).unwrap();
    assert_eq!(run(&trace).1, "");
    assert_recovered(&trace, &expected, "at last");
    assert_noted(&trace, &COMPLETE_FROM);
    assert_eq!(fs::metadata(trace.path(TRINFO)).unwrap().permissions().mode() & 0o7777, 0o600);
}

#[test]
fn a_ring_that_is_damaged_anywhere_is_left_as_it_is() {
    for bad in [4096 + 100, 10, 4096 - 1] {
        let trace = TestTrace::new();
        let mut image = TrbufImage::ring(RING);
        let slot = image.add_slot(1);
        image.put_wrapped_ring(slot, 0, 1, (4096, &record_lines(2..6, 1)), &record_lines(6..8, 1));
        let at = image.slot_offset(slot) + spec::buffer::REGION_OFFSETS[0] + bad;
        image.put(at, b"\x01");
        trace.file(TRBUF, &image.bytes);
        let (out, messages) = run(&trace);
        let is_text = bad != 4096 - 1;
        assert_eq!(
            messages.ends_with("slot 0: region 0 does not consist of complete records\n"),
            is_text,
            "{bad}: {messages}"
        );
        assert_eq!(out.ends_with("the trbuf is kept\n"), is_text, "{out}");
        assert_eq!(trace.path(TRINFO).exists(), !is_text);
        assert!(!is_text || fs::read(trace.path(TRBUF)).unwrap() == image.bytes);
    }
}

#[test]
fn a_ring_of_many_chunks_is_written_completely() {
    let trace = TestTrace::new();
    let mut image = TrbufImage::ring(1 << 20);
    let slot = image.add_slot(1);
    let (newer, older) = (record_lines(9000..13000, 1), record_lines(1000..9000, 1));
    let start = (1 << 20) - older.len();
    image.put_wrapped_ring(slot, 0, 1, (start, &older), &newer);
    // The first third of the older records is in the file.
    let first = older.find('\n').unwrap() + 1;
    image.put_region(slot, 0, &newer, start..newer.len(), Some((0, start + first..1 << 20)));
    let there = older.len() / 3;
    trace.file(TRBUF, &image.bytes).file("tr.0000001.001", &older[first..there]);
    let (out, messages) = run(&trace);
    assert!(older.len() > 2 * CHUNK_LEN && newer.len() > CHUNK_LEN);
    let (all, written) = (older[first..].to_owned() + &newer, older[first..there].lines().count() as u64);
    let missing = 11_999 - written + u64::from(!older[..there].ends_with('\n'));
    assert_eq!(
        (out, messages.as_str()),
        (format!("trbuf.0000001: process 1: {missing} records recovered into 1 files\n"), "")
    );
    assert!(fs::read_to_string(trace.path("tr.0000001.001")).unwrap() == all);
}
