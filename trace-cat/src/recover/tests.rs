//! Recovery that dies at every step and is run again, and trbufs that it must not change.

use std::fs;
use std::mem::offset_of;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use spec::buffer::{Header, NOTE_OWN_MEMORY, SLOTS_OFFSET};

use super::death_tests::{
    DeathCase, assert_recovered, die_again_and_again, die_at_every_step, read, run, sorted_records,
};
use super::file_operations::RealFileOperations;
use super::{RecoveryResult, recover, recover_trbuf};
use crate::support::diagnostics::tests::recorded_diagnostics;
use crate::testing::damaged_trbuf::damaged_trbuf;
use crate::testing::seeded_random::{SeededRandom, fuzz_time};
use crate::testing::test_trace::{TRBUF, TestTrace, record, record_lines};
use crate::testing::trbuf_image::TrbufImage;
use crate::trace::file_handle::DescriptorBudget;
use crate::trace::inputs;

/// A trace with every state that a dead process can leave: a write that is incomplete, one that is complete and still
/// noted, a range that was taken with another after it, text in nested regions, a file that does not exist, one that ends
/// within a line.
fn every_state() -> DeathCase {
    let trace = TestTrace::new();
    let mut image = TrbufImage::new();
    image.add_slot(0);
    // tr.0000001.001: records, a hole of thread 0x2001, and an incomplete write of thread 0x1001.
    let (first, second) = (image.add_slot(0x1001), image.add_slot(0x2001));
    let (written, intended, unwritten) =
        (record_lines(0..2, 0x1001), record_lines(2..4, 0x1001), record_lines(4..6, 0x1001));
    let hole = record_lines(1..4, 0x2001);
    let text = [&intended[..], &unwritten].concat();
    let place = (written.len() + hole.len()) as u64;
    image.put_region(first, 0, &text, 0..text.len(), Some((place, 0..intended.len())));
    image.put_text(second, 0, &hole);
    let nested = record_lines(7..8, 0x2001);
    image.put_text(second, 2, &nested);
    trace.file("tr.0000001.001", [&written[..], &"\0".repeat(hole.len()), &intended[..40]].concat());
    // tr.0000001.002: a complete write whose end is not noted; a signal handler recorded after it.
    let complete = image.add_slot(2);
    let (old, new) = (record_lines(0..3, 2), record_lines(3..5, 2));
    image.put_region(
        complete,
        1,
        &[&old[..], &new].concat(),
        old.len()..old.len() + new.len(),
        Some((0, 0..old.len())),
    );
    trace.file("tr.0000001.002", &old);
    // tr.0000001.003: never made. Another thread's records would have been at its beginning.
    let missing = image.add_slot(3);
    let text = record_lines(0..2, 3);
    image.put_region(missing, 0, &text, 0..text.len(), Some((700, 0..text.len() / 2)));
    // tr.0000001.004: ends within a line that is in no buffer.
    let torn = image.add_slot(4);
    let more = record_lines(0..2, 4);
    image.put_text(torn, 3, &more);
    // An unlock whose record is there already, and one whose record is not.
    image.set_in_flight(torn, 0x10, 1);
    image.set_in_flight(first, 0x10, 9);
    let in_flight = record(9, 0x1001, "00:04:0", 0).replace("00:04:0:0:0", "00:04:0:204:0x10");
    trace.file("tr.0000001.004", "1795174740:5447");
    trace.file(TRBUF, &image.bytes);
    let first_file = [&written[..], &hole, &intended, &unwritten, &in_flight, &nested].concat();
    let expected = vec![
        ("tr.0000001.001", first_file),
        ("tr.0000001.002", old + &new),
        ("tr.0000001.003", text),
        ("tr.0000001.004", format!("1795174740:5447\n{more}")),
    ];
    (trace, expected)
}

#[test]
fn each_record_goes_to_its_place_once() {
    let (trace, expected) = every_state();
    let before = sorted_records(&trace);
    let (out, messages) = run(&trace);
    assert_recovered(&trace, &expected, "at once");
    assert_eq!(
        (out.as_str(), messages.as_str()),
        ("trbuf.0000001: process 1: 15 records recovered into 4 files\n", "")
    );
    assert_eq!(sorted_records(&trace), before);
    assert_eq!(fs::metadata(trace.path("tr.0000001.003")).unwrap().permissions().mode() & 0o7777, 0o600);
    assert_eq!(run(&trace), Default::default(), "the second time nothing is recovered");
    assert_recovered(&trace, &expected, "twice");
}

#[test]
fn recovery_may_die_at_every_step() {
    let steps = die_at_every_step(every_state, |_| ());
    assert!(steps > 900, "{steps}");
}

#[test]
fn recovery_may_die_again_and_again() {
    die_again_and_again("recover again", 11, every_state, |_| ());
}

#[test]
fn a_living_process_keeps_its_trbuf() {
    let (trace, _) = every_state();
    let before = fs::read(trace.path(TRBUF)).unwrap();
    let owner = trace.open_trbuf_as_owner();
    assert_eq!(run(&trace), Default::default());
    assert_eq!(fs::read(trace.path(TRBUF)).unwrap(), before);
    // A trbuf that its process is making.
    owner.set_len(0).unwrap();
    assert_eq!(run(&trace), Default::default());
    drop(owner);
}

#[test]
fn damaged_slots_are_left_as_they_are_and_good_ones_recovered() {
    let trace = TestTrace::new();
    let mut image = TrbufImage::new();
    let [good, text, bounds] = [1, 2, 3].map(|lwp| image.add_slot(lwp));
    let record = record_lines(0..1, 1);
    image.put_text(good, 0, &record);
    image.put_text(text, 0, &record);
    image.put_region(text, 1, "rubbish\n", 0..8, None);
    image.put_region(bounds, 0, &record, 0..record.len(), Some((0, 5..20)));
    image.bytes.extend([1; 100]);
    trace.file(TRBUF, &image.bytes);
    let messages = "trace-cat: trbuf.0000001: slot 1: region 1 does not consist of complete records\n\
                    trace-cat: trbuf.0000001: slot 2: region 0 has impossible bounds\n\
                    trace-cat: trbuf.0000001: slot 3: truncated\n";
    let out = |records, files| {
        format!("trbuf.0000001: process 1: {records} records recovered into {files} files; the trbuf is kept\n")
    };
    assert_eq!(run(&trace), (out(1, 1), messages.to_owned()));
    assert_eq!(read(&trace, "tr.0000001.001"), record);
    assert!(!trace.path("tr.0000001.002").exists());
    let after = fs::read(trace.path(TRBUF)).unwrap();
    let damaged = image.slot_offset(1)..;
    assert_eq!(after[damaged.clone()], image.bytes[damaged]);
    assert_eq!(run(&trace), (out(0, 0), messages.to_owned()));
    assert_eq!(fs::read(trace.path(TRBUF)).unwrap(), after);
}

#[test]
fn what_is_no_trbuf_is_reported_and_kept() {
    let trace = TestTrace::new();
    let mut short = TrbufImage::new().bytes;
    short.truncate(SLOTS_OFFSET - 1);
    for (bytes, message) in [
        (&b"threadt trbuf\n\0\0\x09\0\0\0"[..], "layout version 9, expected 4"),
        (b"something else altogether", "not a finished trbuf"),
        (b"", "shorter than its header"),
        (&[0; 5000], "not a finished trbuf"),
        (&short, "truncated"),
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
    let slot = image.add_slot(1);
    let text = record_lines(0..2, 1);
    image.put_region(slot, 0, &text, 0..text.len(), Some((70, 0..text.len())));
    let others = record_lines(5..9, 1);
    trace.file(TRBUF, &image.bytes).file("tr.0000001.001", &others);
    let (out, messages) = run(&trace);
    assert_eq!(messages, "trace-cat: tr.0000001.001: byte 70: not what trbuf.0000001 has for this place\n");
    assert!(out.ends_with("0 records recovered into 0 files; the trbuf is kept\n"), "{out}");
    assert_eq!(read(&trace, "tr.0000001.001"), others);
    assert_eq!(fs::read(trace.path(TRBUF)).unwrap(), image.bytes);
}

#[test]
fn an_impossible_place_makes_no_huge_file() {
    for place in [1 << 40, u64::MAX, u64::MAX - 10] {
        let trace = TestTrace::new();
        let mut image = TrbufImage::new();
        let slot = image.add_slot(1);
        let text = record_lines(0..2, 1);
        image.put_region(slot, 0, &text, 0..text.len(), Some((place, 0..text.len())));
        trace.file(TRBUF, &image.bytes).file("tr.0000001.001", record_lines(7..8, 1));
        assert_eq!(run(&trace).1, "");
        assert_eq!(read(&trace, "tr.0000001.001"), record_lines(7..8, 1) + &text);
    }
}

#[test]
fn record_files_that_are_links_or_directories_are_not_written() {
    let make = || {
        let trace = TestTrace::new();
        let text = record_lines(0..1, 1);
        let image = TrbufImage::with_text(1, &text);
        trace.file(TRBUF, &image.bytes);
        trace
    };
    let trace = make();
    trace.file("other", "");
    symlink(trace.path("other"), trace.path("tr.0000001.001")).unwrap();
    let (_, messages) = run(&trace);
    assert!(messages.starts_with("trace-cat: tr.0000001.001: cannot be completed: "), "{messages}");
    assert_eq!(read(&trace, "other"), "");
    let trace = make();
    trace.file("other", "");
    fs::hard_link(trace.path("other"), trace.path("tr.0000001.001")).unwrap();
    assert!(run(&trace).1.ends_with("cannot be completed: has another name, too\n"));
    assert_eq!(read(&trace, "other"), "");
    let trace = make();
    fs::create_dir(trace.path("tr.0000001.001")).unwrap();
    assert!(run(&trace).1.starts_with("trace-cat: tr.0000001.001: cannot be completed: "));
    assert!(trace.path(TRBUF).exists());
}

#[test]
fn losses_without_a_loss_record_are_reported() {
    let trace = TestTrace::new();
    let mut image = TrbufImage::new();
    for lwp in [0, 5] {
        let slot = image.add_slot(lwp);
        image.set_lost(slot, 4, libc::ENOSPC as u32);
    }
    trace.file(TRBUF, &image.bytes).file("tr.0000001.005", record_lines(0..1, 5));
    let message = "trace-cat: trbuf.0000001: process 1 lost 8 records before it died (ENOSPC)\n";
    assert_eq!(trace.cat(&[]), (record_lines(0..1, 5), message.to_owned()));
    let (diagnostics, _) = recorded_diagnostics();
    let inputs = inputs::collect(&[trace.path("")], &DescriptorBudget::new(10), &diagnostics);
    assert_eq!(inputs.unreported_losses(), [(1, 8)]);
    assert_eq!(inputs.missing_newest(), [(1, Some(vec![5]))]);
    let result = recover_trbuf(&trace.path(TRBUF), &mut RealFileOperations, &diagnostics).unwrap();
    assert_eq!(result, Some(RecoveryResult { pid: 1, records: 1, files: 1, removed: true }));
    assert!(!diagnostics.has_damage());
}

#[test]
fn buffers_that_were_not_in_the_trbuf_are_reported() {
    let message =
        "trace-cat: trbuf.0000001: process 1 had buffers in its own memory: what was in them when it died is missing\n";
    for (word, expected) in [(NOTE_OWN_MEMORY, message), (0, "")] {
        let trace = TestTrace::new();
        let mut image = TrbufImage::new();
        image.put(offset_of!(Header, notes), &word.to_le_bytes());
        trace.file(TRBUF, &image.bytes).file("tr.0000001.005", record_lines(0..1, 5));
        assert_eq!(trace.cat(&[]), (record_lines(0..1, 5), expected.to_owned()), "{word}");
        let inputs = inputs::collect(&[trace.path("")], &DescriptorBudget::new(10), &recorded_diagnostics().0);
        let missing = if expected.is_empty() { vec![] } else { vec![(1, None)] };
        assert_eq!(inputs.missing_newest(), missing, "{word}");
        let (_, messages) = run(&trace);
        assert_eq!(messages.contains(message), !expected.is_empty(), "{word}: {messages}");
    }
}

#[test]
fn directories_of_other_namespaces_are_recovered_and_links_are_not() {
    let trace = TestTrace::new();
    let elsewhere = TestTrace::new();
    let text = record_lines(0..1, 1);
    let image = TrbufImage::with_text(1, &text);
    for name in ["ns4026531836", "nsx", "other", "u65534/ns8"] {
        fs::create_dir_all(trace.path(name)).unwrap();
        image.write(&trace.path(name).join(TRBUF));
    }
    elsewhere.file(TRBUF, &image.bytes);
    symlink(elsewhere.path(""), trace.path("ns7")).unwrap();
    trace.file("old.5.trbuf.0000001", &image.bytes);
    // A renamed trbuf is recovered into renamed files.
    let recovered = ["old.5.trbuf.0000001", "ns4026531836/trbuf.0000001", "u65534/ns8/trbuf.0000001"]
        .map(|name| format!("{name}: process 1: 1 records recovered into 1 files\n"));
    assert_eq!(run(&trace), (recovered.concat(), String::new()));
    assert_eq!(read(&trace, "old.5.tr.0000001.001"), text);
    assert_eq!(read(&trace, "ns4026531836/tr.0000001.001"), text);
    assert_eq!(read(&trace, "u65534/ns8/tr.0000001.001"), text);
    assert!(elsewhere.path(TRBUF).exists() && trace.path("other").join(TRBUF).exists());
    trace.file("old.6.trbuf.0000001", &image.bytes);
    let (diagnostics, messages) = recorded_diagnostics();
    let mut out = Vec::new();
    recover(&[trace.path("old.6.trbuf.0000001"), trace.path("none"), trace.path("other/none")], &mut out, &diagnostics)
        .unwrap();
    assert_eq!(read(&trace, "old.6.tr.0000001.001"), text);
    assert_eq!(messages.text().lines().count(), 2);
}

#[test]
fn a_created_file_belongs_to_the_owner_of_the_trbuf() {
    let trace = TestTrace::new();
    let text = record_lines(0..1, 1);
    let image = TrbufImage::with_text(1, &text);
    trace.file(TRBUF, &image.bytes);
    if std::os::unix::fs::chown(trace.path(TRBUF), Some(65534), Some(65534)).is_err() {
        println!("only root can make another user's trbuf");
        return;
    }
    assert_eq!(run(&trace).1, "");
    let metadata = fs::metadata(trace.path("tr.0000001.001")).unwrap();
    assert_eq!((metadata.uid(), metadata.gid()), (65534, 65534));
    // A file of this user is not lengthened by records of another user's process.
    trace.file(TRBUF, &image.bytes).file("tr.0000001.001", "");
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
    let text = record_lines(2..9, 1);
    let mut recovered = 0;
    while rounds < 60 || until.is_some_and(|end| std::time::Instant::now() < end) {
        rounds += 1;
        let trace = TestTrace::new();
        let good = record_lines(0..3, 1);
        trace.file(TRBUF, damaged_trbuf(&mut random, &text)).file("tr.0000001.001", &good);
        run(&trace);
        let recovered_text = read(&trace, "tr.0000001.001");
        assert!(recovered_text.starts_with(&good), "{recovered_text}");
        assert!(recovered_text.lines().all(|line| spec::Record::parse(line.as_bytes()).is_ok()), "{recovered_text}");
        recovered += recovered_text.lines().count() - 3;
        let again = run(&trace);
        assert_eq!(read(&trace, "tr.0000001.001"), recovered_text, "{again:?}");
    }
    assert!(recovered > rounds, "{recovered} records in {rounds} rounds");
}
