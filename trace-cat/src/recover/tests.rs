//! Recovery that dies at every step and is run again, and trbufs that it has to leave alone.

use std::fs::{self, File, OpenOptions};
use std::io::Read;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use spec::buffer::SLOTS_OFFSET;

use super::death_tests::{
    DeathCase, TRBUF, assert_recovered, die_again_and_again, die_at_every_step, lines, read, records, run,
};
use super::file_operations::RealFileOperations;
use super::{RecoveryResult, one, recover};
use crate::support::diagnostics::tests::recorded_diagnostics;
use crate::testing::seeded_random::{SeededRandom, fuzz_time};
use crate::testing::test_trace::TestTrace;
use crate::testing::trbuf_image::TrbufImage;

/// A trace in which everything that can be left is left: a write in the middle, one that is done but noted, a place that
/// was taken and another behind it, text in nested regions, a file that does not exist, one that ends within a line.
fn everything() -> DeathCase {
    let trace = TestTrace::new();
    let mut image = TrbufImage::new();
    image.slot(0);
    // tr.0000001.001: written, a hole of 0x2001's, and a write of 0x1001's that was cut.
    let (first, second) = (image.slot(0x1001), image.slot(0x2001));
    let (written, pending, unwritten) = (lines(0..2, 0x1001), lines(2..4, 0x1001), lines(4..6, 0x1001));
    let hole = lines(1..4, 0x2001);
    let text = [&pending[..], &unwritten].concat();
    let place = (written.len() + hole.len()) as u64;
    image.region(first, 0, &text, 0..text.len(), Some((place, 0..pending.len())));
    image.region(second, 0, &hole, 0..hole.len(), None);
    let nested = lines(7..8, 0x2001);
    image.region(second, 2, &nested, 0..nested.len(), None);
    trace.file("tr.0000001.001", [&written[..], &"\0".repeat(hole.len()), &pending[..40]].concat());
    let one = [&written[..], &hole, &pending, &unwritten, &nested].concat();
    // tr.0000001.002: all is written, but not yet noted; a handler has added something.
    let done = image.slot(2);
    let (old, new) = (lines(0..3, 2), lines(3..5, 2));
    image.region(done, 1, &[&old[..], &new].concat(), old.len()..old.len() + new.len(), Some((0, 0..old.len())));
    trace.file("tr.0000001.002", &old);
    // tr.0000001.003: never made. What it would have begun with was another thread's.
    let missing = image.slot(3);
    let text = lines(0..2, 3);
    image.region(missing, 0, &text, 0..text.len(), Some((700, 0..text.len() / 2)));
    // tr.0000001.004: ends within a line that no buffer has.
    let torn = image.slot(4);
    let more = lines(0..2, 4);
    image.region(torn, 3, &more, 0..more.len(), None);
    trace.file("tr.0000001.004", "1795174740:5447");
    trace.file(TRBUF, &image.0);
    let expected = vec![
        ("tr.0000001.001", one),
        ("tr.0000001.002", old + &new),
        ("tr.0000001.003", text),
        ("tr.0000001.004", format!("1795174740:5447\n{more}")),
    ];
    (trace, expected)
}

#[test]
fn each_record_goes_to_its_place_once() {
    let (trace, expected) = everything();
    let before = records(&trace);
    let (out, messages) = run(&trace);
    assert_recovered(&trace, &expected, "at once");
    assert_eq!(
        (out.as_str(), messages.as_str()),
        ("trbuf.0000001: process 1: 14 records recovered into 4 files\n", "")
    );
    assert_eq!(records(&trace), before);
    assert_eq!(fs::metadata(trace.path("tr.0000001.003")).unwrap().permissions().mode() & 0o7777, 0o600);
    assert_eq!(run(&trace), Default::default(), "the second time there is nothing to do");
    assert_recovered(&trace, &expected, "twice");
}

#[test]
fn it_may_die_at_every_step() {
    let steps = die_at_every_step(everything, |_| ());
    assert!(steps > 900, "{steps}");
}

#[test]
fn it_may_die_again_and_again() {
    die_again_and_again("recover again", 11, everything, |_| ());
}

#[test]
fn a_living_process_keeps_its_trbuf() {
    let (trace, _) = everything();
    let before = fs::read(trace.path(TRBUF)).unwrap();
    let owner = OpenOptions::new().append(true).open(trace.path(TRBUF)).unwrap();
    assert_eq!(run(&trace), Default::default());
    assert_eq!(fs::read(trace.path(TRBUF)).unwrap(), before);
    // One that is about to be made.
    trace.file(TRBUF, "");
    assert_eq!(run(&trace), Default::default());
    drop(owner);
}

#[test]
fn damaged_slots_are_left_as_they_are_and_good_ones_recovered() {
    let trace = TestTrace::new();
    let mut image = TrbufImage::new();
    let [good, text, bounds] = [1, 2, 3].map(|lwp| image.slot(lwp));
    let record = lines(0..1, 1);
    image.region(good, 0, &record, 0..record.len(), None);
    image.region(text, 0, &record, 0..record.len(), None);
    image.region(text, 1, "rubbish\n", 0..8, None);
    image.region(bounds, 0, &record, 0..record.len(), Some((0, 5..20)));
    image.0.extend([1; 100]);
    trace.file(TRBUF, &image.0);
    let messages = "trace-cat: trbuf.0000001: slot 1: region 1 does not hold whole records\n\
                    trace-cat: trbuf.0000001: slot 2: region 0 has impossible bounds\n\
                    trace-cat: trbuf.0000001: slot 3: cut short\n";
    let out = |records, files| {
        format!("trbuf.0000001: process 1: {records} records recovered into {files} files; the trbuf is kept\n")
    };
    assert_eq!(run(&trace), (out(1, 1), messages.to_owned()));
    assert_eq!(read(&trace, "tr.0000001.001"), record);
    assert!(!trace.path("tr.0000001.002").exists());
    let after = fs::read(trace.path(TRBUF)).unwrap();
    let damaged = image.at(1)..;
    assert_eq!(after[damaged.clone()], image.0[damaged]);
    assert_eq!(run(&trace), (out(0, 0), messages.to_owned()));
    assert_eq!(fs::read(trace.path(TRBUF)).unwrap(), after);
}

#[test]
fn what_is_no_trbuf_is_told_and_left() {
    let trace = TestTrace::new();
    let mut short = TrbufImage::new().0;
    short.truncate(SLOTS_OFFSET - 1);
    for (bytes, message) in [
        (&b"threadt trbuf\n\0\0\x09\0\0\0"[..], "layout version 9, expected 2"),
        (b"something else altogether", "not a finished trbuf"),
        (b"", "shorter than its header"),
        (&[0; 5000], "not a finished trbuf"),
        (&short, "cut short"),
    ] {
        trace.file(TRBUF, bytes);
        assert_eq!(run(&trace), (String::new(), format!("trace-cat: trbuf.0000001: {message}\n")));
        assert_eq!(fs::read(trace.path(TRBUF)).unwrap(), bytes);
    }
    fs::remove_file(trace.path(TRBUF)).unwrap();
    symlink("/dev/zero", trace.path(TRBUF)).unwrap();
    assert!(run(&trace).1.starts_with("trace-cat: trbuf.0000001: "));
}

#[test]
fn a_note_that_does_not_fit_the_file_overwrites_nothing() {
    let trace = TestTrace::new();
    let mut image = TrbufImage::new();
    let slot = image.slot(1);
    let text = lines(0..2, 1);
    image.region(slot, 0, &text, 0..text.len(), Some((70, 0..text.len())));
    let others = lines(5..9, 1);
    trace.file(TRBUF, &image.0).file("tr.0000001.001", &others);
    let (out, messages) = run(&trace);
    assert_eq!(messages, "trace-cat: tr.0000001.001: byte 70: not what trbuf.0000001 has for this place\n");
    assert!(out.ends_with("0 records recovered into 0 files; the trbuf is kept\n"), "{out}");
    assert_eq!(read(&trace, "tr.0000001.001"), others);
    assert_eq!(fs::read(trace.path(TRBUF)).unwrap(), image.0);
}

#[test]
fn a_wild_place_makes_no_huge_file() {
    for place in [1 << 40, u64::MAX, u64::MAX - 10] {
        let trace = TestTrace::new();
        let mut image = TrbufImage::new();
        let slot = image.slot(1);
        let text = lines(0..2, 1);
        image.region(slot, 0, &text, 0..text.len(), Some((place, 0..text.len())));
        trace.file(TRBUF, &image.0).file("tr.0000001.001", lines(7..8, 1));
        assert_eq!(run(&trace).1, "");
        assert_eq!(read(&trace, "tr.0000001.001"), lines(7..8, 1) + &text);
    }
}

#[test]
fn record_files_that_are_links_or_directories_are_not_written() {
    let make = || {
        let trace = TestTrace::new();
        let mut image = TrbufImage::new();
        let slot = image.slot(1);
        let text = lines(0..1, 1);
        image.region(slot, 0, &text, 0..text.len(), None);
        trace.file(TRBUF, &image.0);
        trace
    };
    let trace = make();
    trace.file("other", "");
    symlink(trace.path("other"), trace.path("tr.0000001.001")).unwrap();
    let (_, messages) = run(&trace);
    assert!(messages.starts_with("trace-cat: tr.0000001.001: cannot be completed: "), "{messages}");
    assert_eq!(read(&trace, "other"), "");
    let trace = make();
    fs::create_dir(trace.path("tr.0000001.001")).unwrap();
    assert!(run(&trace).1.starts_with("trace-cat: tr.0000001.001: cannot be completed: "));
    assert!(trace.path(TRBUF).exists());
}

#[test]
fn losses_that_the_trace_does_not_tell_are_told() {
    let trace = TestTrace::new();
    let mut image = TrbufImage::new();
    for lwp in [0, 5] {
        let slot = image.slot(lwp);
        image.lost(slot, 4, libc::ENOSPC as u32);
    }
    trace.file(TRBUF, &image.0).file("tr.0000001.005", lines(0..1, 5));
    let message = "trace-cat: trbuf.0000001: process 1 lost 8 records before it died (ENOSPC)\n";
    assert_eq!(trace.cat(&[]), (lines(0..1, 5), message.to_owned()));
    let (diagnostics, _) = recorded_diagnostics();
    let outcome = one(&trace.path(TRBUF), &mut RealFileOperations, &diagnostics).unwrap();
    assert_eq!(outcome, Some(RecoveryResult { pid: 1, records: 0, files: 0, removed: true }));
    assert!(!diagnostics.has_damage());
}

#[test]
fn other_namespaces_directories_are_seen_to_and_links_are_not() {
    let trace = TestTrace::new();
    let elsewhere = TestTrace::new();
    let mut image = TrbufImage::new();
    let slot = image.slot(1);
    let text = lines(0..1, 1);
    image.region(slot, 0, &text, 0..text.len(), None);
    for name in ["ns4026531836", "nsx", "other"] {
        fs::create_dir(trace.path(name)).unwrap();
        fs::write(trace.path(name).join(TRBUF), &image.0).unwrap();
    }
    elsewhere.file(TRBUF, &image.0);
    symlink(elsewhere.path(""), trace.path("ns7")).unwrap();
    trace.file("old.5.trbuf.0000001", &image.0);
    assert_eq!(
        run(&trace),
        ("ns4026531836/trbuf.0000001: process 1: 1 records recovered into 1 files\n".to_owned(), String::new())
    );
    assert_eq!(read(&trace, "ns4026531836/tr.0000001.001"), text);
    assert!(elsewhere.path(TRBUF).exists() && trace.path("other").join(TRBUF).exists());
    // What was set aside is recovered when it is named, and stays aside.
    let (diagnostics, messages) = recorded_diagnostics();
    let mut out = Vec::new();
    recover(&[trace.path("old.5.trbuf.0000001"), trace.path("none"), trace.path("other/none")], &mut out, &diagnostics)
        .unwrap();
    assert_eq!(read(&trace, "old.5.tr.0000001.001"), text);
    assert_eq!(messages.text().lines().count(), 2);
}

#[test]
fn what_is_made_for_somebody_else_is_theirs() {
    let trace = TestTrace::new();
    let mut image = TrbufImage::new();
    let slot = image.slot(1);
    let text = lines(0..1, 1);
    image.region(slot, 0, &text, 0..text.len(), None);
    trace.file(TRBUF, &image.0);
    if std::os::unix::fs::chown(trace.path(TRBUF), Some(65534), Some(65534)).is_err() {
        println!("only root can make another user's trbuf");
        return;
    }
    assert_eq!(run(&trace).1, "");
    let metadata = fs::metadata(trace.path("tr.0000001.001")).unwrap();
    assert_eq!((metadata.uid(), metadata.gid()), (65534, 65534));
    // A file of ours is not theirs to lengthen.
    trace.file(TRBUF, &image.0).file("tr.0000001.001", "");
    std::os::unix::fs::chown(trace.path(TRBUF), Some(65534), Some(65534)).unwrap();
    fs::remove_file(trace.path("tr.0000001.001")).unwrap();
    trace.file("tr.0000001.001", &text);
    let (_, messages) = run(&trace);
    assert!(messages.ends_with("belongs to another user than the trbuf\n"), "{messages}");
    assert_eq!(read(&trace, "tr.0000001.001"), text);
}

#[test]
fn mutated_trbufs_never_panic_and_good_lines_stay() {
    let mut random = SeededRandom::seeded("recover trbuf", 12);
    let until = fuzz_time();
    let mut rounds = 0;
    let text = lines(2..9, 1);
    let mut recovered = 0;
    while rounds < 60 || until.is_some_and(|end| std::time::Instant::now() < end) {
        rounds += 1;
        let trace = TestTrace::new();
        let mut image = if random.below(2) == 0 { TrbufImage::new() } else { TrbufImage::ring(64 * 1024) };
        for lwp in [1, 0x1001, 0x2002] {
            let slot = image.slot(lwp);
            image.region(slot, 0, &text, 0..text.len(), Some((140, 0..140)));
            image.region(slot, 1, &text, 70..text.len(), None);
            if image.1.is_ring() {
                image.wrapped(slot, 2, 1, (1024, &text[30..]), &text);
                image.wrapped(slot, 3, 9, (2048, &text), "");
            }
        }
        for _ in 0..random.below(40) {
            let slot = image.at(random.below(3));
            let at = if random.below(20) == 0 { random.below(128) } else { slot + random.below(1100) };
            image.0[at] = if random.below(2) == 0 { 0 } else { random.next() as u8 };
        }
        if random.below(10) == 0 {
            image.0.truncate(random.below(image.0.len()));
        }
        let good = lines(0..3, 1);
        trace.file(TRBUF, &image.0).file("tr.0000001.001", &good);
        run(&trace);
        let mut there = String::new();
        File::open(trace.path("tr.0000001.001")).unwrap().read_to_string(&mut there).unwrap();
        assert!(there.starts_with(&good), "{there}");
        assert!(there.lines().all(|line| spec::Record::parse(line.as_bytes()).is_ok()), "{there}");
        recovered += there.lines().count() - 3;
        let again = run(&trace);
        assert_eq!(read(&trace, "tr.0000001.001"), there, "{again:?}");
    }
    assert!(recovered > rounds, "{recovered} records in {rounds} rounds");
}
