//! Recovery of rings, of which the older records go to their file first.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use super::death_tests::{DeathCase, TRBUF, assert_recovered, die_again_and_again, die_at_every_step, lines, run};
use crate::testing::test_trace::TestTrace;
use crate::testing::trbuf_image::TrbufImage;
use crate::trace::buffers::complete_from::CompleteFrom;
use crate::trace::thread_completeness::of_trinfo;

const RING: u64 = 64 * 1024;
const TRINFO: &str = "trinfo.0000001";

/// Rings in every state in which a process can leave them.
fn rings() -> DeathCase {
    let trace = TestTrace::new();
    let mut image = TrbufImage::ring(RING);
    // tr.0000001.001: not made yet. A ring that has begun anew, behind it the one of its signal handlers.
    let first = image.slot(0x1001);
    let nested = lines(4..5, 0x1001);
    image.wrapped(first, 0, 1, (4096, &lines(1..4, 0x1001)[7..]), &lines(5..6, 0x1001));
    image.wrapped(first, 1, 2, (2048, &[&lines(3..4, 0x1001)[60..], &nested].concat()), "");
    let one = lines(2..4, 0x1001) + &lines(5..6, 0x1001) + &nested;
    // tr.0000001.002: the older records are on their way there.
    let second = image.slot(2);
    let (cut, older, newer) = (&lines(0..1, 2)[66..], lines(1..3, 2), lines(3..4, 2));
    image.wrapped(second, 0, 0, (8192, &[cut, &older].concat()), &newer);
    let on_its_way = 8192 + cut.len()..8192 + cut.len() + older.len();
    image.region(second, 0, &newer, 8192..newer.len(), Some((0, on_its_way.clone())));
    image.complete_from(second, 1);
    trace.file("tr.0000001.002", &older[..30]);
    // tr.0000001.003: they are there, which is not yet noted; behind them stands what another thread wrote.
    let third = image.slot(3);
    image.wrapped(third, 0, 0, (8192, &[cut, &lines(1..3, 3)].concat()), &lines(3..4, 3));
    image.region(third, 0, &lines(3..4, 3), 0..newer.len(), Some((0, on_its_way)));
    image.complete_from(third, 1);
    trace.file("tr.0000001.003", lines(1..3, 3) + &lines(7..8, 0x1003));
    // tr.0000001.004: all that was older is overwritten, and the place for the rest was taken, but not noted.
    let fourth = image.slot(4);
    let rest = lines(6..8, 4);
    image.region(fourth, 0, &rest, 0..rest.len(), None);
    image.wrap_count(fourth, 0, 9);
    trace.file("tr.0000001.004", "\0".repeat(rest.len()) + &lines(9..10, 0x1004));
    // tr.0000001.005: of the older records no whole one is left.
    let fifth = image.slot(5);
    image.wrapped(fifth, 0, 1, (4096, &lines(2..3, 5)[20..]), &lines(3..4, 5));
    let last = image.slot(6);
    image.wrapped(last, 0, 1, (4096, &lines(2..3, 6)[20..]), "");
    trace.file(TRBUF, &image.0).file(TRINFO, "format 1\npid 1\nnote cut of");
    let expected = vec![
        ("tr.0000001.001", one),
        ("tr.0000001.002", older + &newer),
        ("tr.0000001.003", lines(1..3, 3) + &lines(7..8, 0x1003) + &lines(3..4, 3)),
        ("tr.0000001.004", rest + &lines(9..10, 0x1004)),
        ("tr.0000001.005", lines(3..4, 5)),
    ];
    (trace, expected)
}

/// From when on the threads of [`rings`] are complete.
const WHOLES: [(u32, u64); 5] = [(0x1001, 4), (2, 1), (3, 1), (4, 6), (5, 3)];

fn assert_noted(trace: &TestTrace, wholes: &[(u32, u64)]) {
    let wholes: Vec<CompleteFrom> = wholes.iter().map(|&(lwp, from)| CompleteFrom { lwp, from }).collect();
    let mut noted = of_trinfo(&trace.path(TRINFO)).unwrap().wholes;
    // Of a line that was cut just before its end the end is added, and then the line once more.
    noted.dedup();
    assert_eq!(noted, wholes);
}

#[test]
fn each_record_of_a_ring_goes_to_its_place_once() {
    let (trace, expected) = rings();
    let (printed, notes) = trace.cat(&[]);
    let (out, messages) = run(&trace);
    assert_recovered(&trace, &expected, "at once");
    assert_eq!(out, "trbuf.0000001: process 1: 11 records recovered into 5 files\n");
    assert_eq!(messages, "");
    assert_noted(&trace, &WHOLES);
    let trinfo = fs::read_to_string(trace.path(TRINFO)).unwrap();
    assert!(trinfo.starts_with("format 1\npid 1\nnote cut of\ncomplete_from 4097 "), "{trinfo}");
    let mut sorted = [printed, trace.cat(&[]).0].map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>());
    sorted.iter_mut().for_each(|lines| lines.sort());
    assert_eq!(sorted[0], sorted[1]);
    assert_eq!(trace.cat(&[]).1, notes, "the same is told afterwards");
    assert_eq!(notes.lines().count(), WHOLES.len());
}

#[test]
fn it_may_die_at_every_step_of_rings() {
    let steps = die_at_every_step(rings, |trace| assert_noted(trace, &WHOLES));
    println!("{steps} steps");
    assert!(steps > 800, "{steps}");
}

#[test]
fn it_may_die_again_and_again_with_rings() {
    die_again_and_again("recover rings again", 13, rings, |trace| assert_noted(trace, &WHOLES));
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
    // What was noted in the slots is still known.
    fs::remove_file(trace.path(TRINFO)).unwrap();
    assert_eq!(run(&trace).1, "");
    assert_recovered(&trace, &expected, "at last");
    assert_noted(&trace, &WHOLES);
    assert_eq!(fs::metadata(trace.path(TRINFO)).unwrap().permissions().mode() & 0o7777, 0o600);
}

#[test]
fn a_ring_that_is_damaged_anywhere_is_left_as_it_is() {
    for bad in [4096 + 100, 10, 4096 - 1] {
        let trace = TestTrace::new();
        let mut image = TrbufImage::ring(RING);
        let slot = image.slot(1);
        image.wrapped(slot, 0, 1, (4096, &lines(2..6, 1)), &lines(6..8, 1));
        let at = image.at(slot) + spec::buffer::REGION_OFFSETS[0] + bad;
        image.put(at, b"\x01");
        trace.file(TRBUF, &image.0);
        let (out, messages) = run(&trace);
        let is_text = bad != 4096 - 1;
        assert_eq!(messages.ends_with("slot 0: region 0 does not hold whole records\n"), is_text, "{bad}: {messages}");
        assert_eq!(out.ends_with("the trbuf is kept\n"), is_text, "{out}");
        assert_eq!(trace.path(TRINFO).exists(), !is_text);
        assert!(!is_text || fs::read(trace.path(TRBUF)).unwrap() == image.0);
    }
}

#[test]
fn a_ring_of_many_pieces_is_copied_whole() {
    let trace = TestTrace::new();
    let mut image = TrbufImage::ring(1 << 20);
    let slot = image.slot(1);
    let (newer, older) = (lines(9000..13000, 1), lines(1000..9000, 1));
    let start = (1 << 20) - older.len();
    image.wrapped(slot, 0, 1, (start, &older), &newer);
    // The first third of the older records is there.
    let first = older.find('\n').unwrap() + 1;
    image.region(slot, 0, &newer, start..newer.len(), Some((0, start + first..1 << 20)));
    let there = older.len() / 3;
    trace.file(TRBUF, &image.0).file("tr.0000001.001", &older[first..there]);
    let (out, messages) = run(&trace);
    assert!(
        older.len() > 2 * crate::trace::buffers::region_text::CHUNK_LEN
            && newer.len() > crate::trace::buffers::region_text::CHUNK_LEN
    );
    let (all, cut) = (older[first..].to_owned() + &newer, older[first..there].lines().count() as u64);
    let left = 11_999 - cut + u64::from(!older[..there].ends_with('\n'));
    assert_eq!(
        (out, messages.as_str()),
        (format!("trbuf.0000001: process 1: {left} records recovered into 1 files\n"), "")
    );
    assert!(fs::read_to_string(trace.path("tr.0000001.001")).unwrap() == all);
}
