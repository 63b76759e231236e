//! Directories as programs leave them: ended, killed, running, damaged, and random.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Command;
use std::time::{Duration, Instant, SystemTime};

use spec::buffer::{SLOTS_OFFSET, SlotLayout};

use crate::testing::damaged_trbuf::damaged_trbuf;
use crate::testing::seeded_random::{SeededRandom, fuzz_time};
use crate::testing::test_trace::{TRBUF, TestTrace, record_lines};
use crate::testing::trbuf_image::TrbufImage;

#[test]
fn a_directory_gives_its_record_files_and_nothing_else() {
    let trace = TestTrace::new();
    trace.file("tr.0000001.001", record_lines(0..2, 1));
    for name in ["trinfo.0000001", "trclock", "old.5.tr.0000001.001", "tr.0000001.0011", "notes"] {
        trace.file(name, "not a record\n");
    }
    assert_eq!(trace.cat(&[]), (record_lines(0..2, 1), String::new()));
}

/// They have names of record files.
#[test]
fn what_is_no_regular_file_is_reported_once() {
    let trace = TestTrace::new();
    trace.file("tr.0000001.001", record_lines(0..2, 1));
    fs::create_dir(trace.path("tr.0000001.002")).unwrap();
    let (out, messages) = trace.cat(&[]);
    assert_eq!(out, record_lines(0..2, 1));
    assert_eq!(messages, "trace-cat: tr.0000001.002: not a regular file; it is not read\n");
    for number in 3..6 {
        fs::create_dir(trace.path(&format!("tr.0000001.00{number}"))).unwrap();
    }
    // The directory of a process with a trbuf is read twice.
    trace.file(TRBUF, TrbufImage::new().bytes);
    let expected = "trace-cat: tr.0000001.002: not a regular file; it is not read, nor are 3 more\n";
    assert_eq!(trace.cat(&[]).1, expected);
}

/// Its process was killed, and something has overwritten the page.
#[test]
fn buffers_without_their_first_page_are_reported() {
    let trace = TestTrace::new();
    let mut image = TrbufImage::with_text(2, &record_lines(5..7, 2)).bytes;
    image[..4096].fill(0);
    trace.file("tr.0000001.002", record_lines(0..2, 2)).file(TRBUF, &image);
    let (out, messages) = trace.cat(&[]);
    assert_eq!(out, record_lines(0..2, 2));
    assert_eq!(messages, "trace-cat: trbuf.0000001: its first page is blank; what its process left is not read\n");
    // A child that was killed when it had left its trbuf to the next one: all that stands there still is in its files.
    image[SLOTS_OFFSET..SLOTS_OFFSET + 4096].fill(0);
    assert!(image.iter().any(|&byte| byte != 0));
    let left = image.clone();
    trace.file(TRBUF, &left);
    assert_eq!(trace.cat(&[]), (record_lines(0..2, 2), String::new()));
    // So may one with a ring, which has text where with buffers the second slot begins.
    let mut ring = vec![0; SlotLayout::ring(1 << 20).unwrap().slot_offset(1) as usize];
    ring[SlotLayout::BUFFERS.slot_offset(1) as usize] = b'1';
    trace.file(TRBUF, &ring);
    assert_eq!(trace.cat(&[]), (record_lines(0..2, 2), String::new()));
    // A process that was killed before its first record leaves such a trbuf.
    image.fill(0);
    trace.file(TRBUF, &image);
    assert_eq!(trace.cat(&[]), (record_lines(0..2, 2), String::new()));
    // One that has recorded has a trinfo, too: its host crashed, or the file was not copied.
    let gone = "trace-cat: trbuf.0000001: it is blank; what its process left in it is gone\n";
    trace.file("trinfo.0000001", "format 1\npid 1\n");
    for bytes in [&image[..], b""] {
        trace.file(TRBUF, bytes);
        assert_eq!(trace.cat(&[]), (record_lines(0..2, 2), gone.to_owned()));
    }
    trace.file(TRBUF, &left);
    assert_eq!(trace.cat(&[]), (record_lines(0..2, 2), String::new()));
    // Another process that had its number before has ended.
    trace.file("trinfo.0000001", "format 1\npid 1\nlost 0\n").file(TRBUF, b"");
    assert_eq!(trace.cat(&[]), (record_lines(0..2, 2), String::new()));
    // It was killed while it made them.
    trace.file("trinfo.0000001", "");
    assert_eq!(trace.cat(&[]), (record_lines(0..2, 2), String::new()));
    // There was no room for it.
    trace.file("trinfo.0000001", "format 1\npid 1\nbuffer anonymous\n").file(TRBUF, b"");
    assert!(!trace.cat(&[]).1.contains("blank"), "{}", trace.cat(&[]).1);
}

#[test]
fn a_later_format_is_reported_and_read_as_far_as_it_is_known() {
    let trace = TestTrace::new();
    trace
        .file("tr.0000001.001", record_lines(0..2, 1) + "2|something new\n")
        .file("trinfo.0000001", "format 2\npid 1\n");
    trace.file("trinfo.0000002", "format 1\npid 2\n").file("trinfo.0000003", "");
    let (out, messages) = trace.cat(&[]);
    assert_eq!(out, record_lines(0..2, 1));
    assert_eq!(
        messages,
        "trace-cat: trinfo.0000001: format 2; this trace-cat knows format 1\n\
         trace-cat: tr.0000001.001:3: not a record: time1 is not valid\n"
    );
}

#[test]
fn hostile_files_are_reported_and_the_good_ones_are_printed() {
    let trace = TestTrace::new();
    let mut random = SeededRandom::seeded("hostile", 12);
    let binary: Vec<u8> = (0..300_000).map(|_| random.next() as u8).collect();
    trace.file("tr.0000001.001", record_lines(0..50, 1)).file("tr.0000001.002", "").file("tr.0000001.003", binary);
    trace.file("tr.0000001.004", record_lines(0..3, 4).replace('\n', "\r\n")).file("tr.0000001.005", [0; 100_000]);
    let long = fs::File::create(trace.path("tr.0000001.006")).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&long, &[b'x'; 1 << 20], 0).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&long, record_lines(7..8, 6).as_bytes(), (1 << 30) + 5).unwrap();
    let (out, messages) = trace.cat(&[]);
    let expected: Vec<String> = record_lines(0..50, 1).lines().map(str::to_owned).collect();
    let mut printed: Vec<&str> = out.lines().collect();
    printed.retain(|line| !line.contains(":0000006:"));
    assert_eq!(printed, expected);
    for message in [
        "tr.0000001.003:1: ",
        "; the file has no record\ntrace-cat: tr.0000001.004:1: not a record: it ends with a carriage return; the file has no record",
        "tr.0000001.005:1: 100000 NUL bytes",
        "tr.0000001.006:1: incomplete record",
        "tr.0000001.006:1: 1072693253 NUL bytes",
    ] {
        assert!(messages.contains(message), "{message}: {messages}");
    }
    assert!(messages.lines().count() < 30, "{messages}");
    assert!(out.contains(&record_lines(7..8, 6)));
}

#[test]
fn what_cannot_be_read_is_reported_and_the_other_files_are_printed() {
    let trace = TestTrace::new();
    trace.file("tr.0000001.001", record_lines(0..2, 1));
    fs::create_dir(trace.path("empty")).unwrap();
    let (out, messages) = trace.cat(&["none", "tr.0000001.001", "empty", "trbuf.0000009"]);
    assert_eq!(out, record_lines(0..2, 1));
    assert_eq!(
        messages,
        "trace-cat: empty: no trace here (no file tr.xxxxxxx.yyy)\n\
         trace-cat: trbuf.0000009: No such file or directory\n\
         trace-cat: none: No such file or directory\n"
    );
}

#[test]
fn a_file_beside_the_records_is_passed_over_unless_it_is_all_that_is_named() {
    let trace = TestTrace::new();
    trace.file("tr.0000001.001", record_lines(0..2, 1));
    trace.file("trclock", Vec::new());
    assert_eq!(trace.cat(&["trclock", "tr.0000001.001"]), (record_lines(0..2, 1), String::new()));
    let message = "trace-cat: trclock: holds no records: name the directory, or files tr.xxxxxxx.yyy\n";
    assert_eq!(trace.cat(&["trclock"]), (String::new(), message.to_owned()));
}

/// Somebody who has traced several programs, or hosts, names the directory that has their traces.
#[test]
fn a_directory_of_directories_with_traces_is_told_from_an_empty_one() {
    let trace = TestTrace::new();
    for directory in ["runs", "runs/a", "runs/b", "runs/c"] {
        fs::create_dir(trace.path(directory)).unwrap();
    }
    let message =
        |hint: &str| (String::new(), format!("trace-cat: runs: no trace here (no file tr.xxxxxxx.yyy){hint}\n"));
    trace.file("runs/c/trclock", Vec::new());
    assert_eq!(trace.cat(&["runs"]), message(""));
    trace.file("runs/a/tr.0000001.001", record_lines(0..2, 1));
    assert_eq!(trace.cat(&["runs"]), message("; there is one in runs/a"));
    trace.file("runs/b/tr.0000001.001", record_lines(0..2, 1));
    fs::File::open(trace.path("runs/a")).unwrap().set_modified(SystemTime::now() + Duration::from_secs(9)).unwrap();
    assert_eq!(trace.cat(&["runs"]), message("; there are 2 below it, the newest in runs/a"));
}

#[test]
fn a_file_named_twice_is_read_once() {
    let trace = TestTrace::new();
    trace.file("tr.0000001.001", record_lines(0..2, 1));
    fs::hard_link(trace.path("tr.0000001.001"), trace.path("again")).unwrap();
    symlink(trace.path("tr.0000001.001"), trace.path("link")).unwrap();
    let (out, messages) = trace.cat(&["tr.0000001.001", "tr.0000001.001", "", "again", "link", "."]);
    assert_eq!((out, messages), (record_lines(0..2, 1), String::new()));
}

#[test]
fn files_with_other_names_or_prefixes_are_read_when_named() {
    let trace = TestTrace::new();
    trace.file("old.5.tr.0000001.001", record_lines(0..1, 1)).file("merged.txt", record_lines(1..3, 1));
    let image = TrbufImage::with_text(1, &record_lines(3..4, 1));
    trace.file("old.5.trbuf.0000001", &image.bytes);
    assert_eq!(trace.cat(&["old.5.tr.0000001.001", "merged.txt"]), (record_lines(0..4, 1), String::new()));
    trace.file("old.5-2.trbuf.0000001", &image.bytes);
    assert_eq!(trace.cat(&["old.5-2.trbuf.0000001"]), (record_lines(3..4, 1), String::new()));
}

#[test]
fn a_pipe_is_read_like_a_file() {
    let trace = TestTrace::new();
    let path = trace.path("pipe");
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    let writer = std::thread::spawn(move || fs::write(path, record_lines(5..9, 1) + &record_lines(0..5, 1)).unwrap());
    assert_eq!(trace.cat(&["pipe"]), (record_lines(0..9, 1), String::new()));
    writer.join().unwrap();
}

#[test]
fn what_a_dead_process_left_is_printed_once_wherever_it_died() {
    let (written, intended, unwritten) = (record_lines(0..4, 1), record_lines(4..7, 1), record_lines(7..9, 1));
    let region = [&intended[..], &unwritten].concat();
    let written_length = written.len() as u64;
    let everything = record_lines(0..9, 1);
    let check = |file: &str, unwritten, write_intent| {
        let trace = TestTrace::new();
        let mut image = TrbufImage::new();
        image.add_slot(0);
        let slot = image.add_slot(1);
        image.put_region(slot, 0, &region, unwritten, write_intent);
        trace.file("tr.0000001.001", file).file(TRBUF, &image.bytes);
        for names in [&[][..], &["tr.0000001.001"], &["trbuf.0000001"], &["trbuf.0000001", "tr.0000001.001", ""]] {
            assert_eq!(trace.cat(names), (everything.clone(), String::new()));
        }
    };
    // The process died before the write, or when it had only taken the range of the file.
    check(&written, 0..region.len(), None);
    // It died in the middle of the write, at every byte, or after the write and before the end of it was noted.
    let write_intent = Some((written_length, 0..intended.len()));
    for torn in 0..=intended.len() {
        check(&(written.clone() + &intended[..torn]), 0..region.len(), write_intent.clone());
    }
    let done = written.clone() + &intended;
    check(&done, intended.len()..region.len(), write_intent.clone());
    // The end of the write is noted.
    check(&done, intended.len()..region.len(), None);
    check(&everything, 0..0, Some((written_length, 0..region.len())));
}

#[test]
fn threads_with_the_same_digits_share_a_file_and_leave_holes_in_it() {
    let trace = TestTrace::new();
    let mut image = TrbufImage::new();
    let [first, second] = [0x1001, 0x2001].map(|lwp| image.add_slot(lwp));
    let [a, b] = [record_lines(2..5, 0x1001), record_lines(1..4, 0x2001)];
    // The first thread died when it had taken its range of the file; the second wrote after that, and has a nested region.
    image.put_text(first, 0, &a);
    let nested = record_lines(6..7, 0x2001);
    image.put_region(second, 1, &nested, 0..nested.len(), Some((3, 0..0)));
    let hole = "\0".repeat(a.len());
    trace.file("tr.0000001.001", record_lines(0..1, 0x1001) + &hole + &b).file(TRBUF, &image.bytes);
    let (out, messages) = trace.cat(&[]);
    let mut expected: Vec<String> =
        (record_lines(0..1, 0x1001) + &b + &a + &nested).lines().map(|line| format!("{line}\n")).collect();
    expected.sort_by_key(|line| line[..20].to_owned());
    assert_eq!((out, messages), (expected.concat(), String::new()));
}

#[test]
fn records_for_a_file_that_was_never_made_are_printed() {
    let trace = TestTrace::new();
    let text = record_lines(0..3, 0x5abc);
    let image = TrbufImage::with_text(0x5abc, &text);
    trace.file(TRBUF, &image.bytes);
    for names in [&[][..], &["tr.0000001.abc"], &["trbuf.0000001"]] {
        assert_eq!(trace.cat(names), (text.clone(), String::new()));
    }
    assert_eq!(trace.cat(&["tr.0000001.abd"]).1, "trace-cat: tr.0000001.abd: No such file or directory\n");
}

#[test]
fn a_running_process_may_be_in_the_middle_of_a_line() {
    let trace = TestTrace::new();
    let text = record_lines(0..2, 1) + "\0\0\0" + &record_lines(2..3, 1) + &record_lines(3..4, 1)[..30];
    trace.file("tr.0000001.001", &text);
    let mut image = TrbufImage::new();
    let slot = image.add_slot(1);
    let unwritten = record_lines(4..6, 1);
    image.put_text(slot, 0, &unwritten);
    image.set_file_end(1, text.len());
    trace.file(TRBUF, &image.bytes);
    let owner = trace.open_trbuf_as_owner();
    assert_eq!(trace.cat(&[]), (record_lines(0..3, 1) + &unwritten, String::new()));
    trace.end_owner(owner);
    let (out, messages) = trace.cat(&[]);
    assert_eq!(out.lines().count(), 5);
    assert_eq!(messages, "trace-cat: tr.0000001.001:4: incomplete record\n");
}

#[test]
fn damage_without_a_trbuf_is_reported() {
    let trace = TestTrace::new();
    let text = record_lines(0..2, 1);
    trace.file("tr.0000001.001", text.clone() + "\0\0\0" + &text[..30]);
    let (out, messages) = trace.cat(&[]);
    assert_eq!(out, text);
    assert_eq!(messages, "trace-cat: tr.0000001.001:3: 3 NUL bytes\ntrace-cat: tr.0000001.001:3: incomplete record\n");
}

#[test]
#[expect(clippy::reversed_empty_ranges, reason = "such words are what is tested")]
fn a_damaged_trbuf_is_reported_and_the_good_regions_are_used() {
    let trace = TestTrace::new();
    let text = record_lines(0..2, 1);
    trace.file("tr.0000001.001", &text);
    let mut image = TrbufImage::new();
    let slot = image.add_slot(1);
    image.put_region(slot, 0, &text, 9..5, None);
    // This text would replace a good line of the file.
    image.put_region(slot, 1, "rubbish\n", 0..0, Some((0, 0..8)));
    image.put_text(slot, 2, &record_lines(2..3, 1));
    image.put_region(slot, 3, "rubbish\n", 0..8, None);
    image.bytes.truncate(image.bytes.len() - 1);
    image.bytes.resize(image.bytes.len() + 1 + 5000, 1);
    trace.file(TRBUF, &image.bytes);
    let (out, messages) = trace.cat(&[]);
    assert_eq!(out, record_lines(0..3, 1));
    assert_eq!(
        messages,
        "trace-cat: trbuf.0000001: slot 0: region 0 has impossible bounds\n\
         trace-cat: trbuf.0000001: slot 0: region 1 does not consist of complete records\n\
         trace-cat: trbuf.0000001: slot 1: truncated\n\
         trace-cat: trbuf.0000001: byte 282624: not a record: the line ends in time1\n"
    );
    for (bytes, message) in [
        (&b"threadt trbuf\n\0\0\x09\0\0\0"[..], "trace-cat: trbuf.0000001: layout version 9, expected 4\n"),
        (b"something else altogether", "trace-cat: trbuf.0000001: not a finished trbuf\n"),
        (b"some", "trace-cat: trbuf.0000001: shorter than its header\n"),
        (b"", ""),
        (&[0; 5000], ""),
    ] {
        trace.file(TRBUF, bytes);
        assert_eq!(trace.cat(&[]), (text.clone(), message.to_owned()));
    }
}

#[test]
fn a_sparse_trbuf_of_any_size_takes_no_time() {
    let trace = TestTrace::new();
    let image = TrbufImage::with_text(1, &record_lines(0..1, 1));
    trace.file(TRBUF, &image.bytes);
    let file = fs::OpenOptions::new().write(true).open(trace.path(TRBUF)).unwrap();
    file.set_len(1 << 42).unwrap();
    drop(file);
    let (out, messages) = trace.cat(&[]);
    assert_eq!(out, record_lines(0..1, 1));
    assert!(messages.is_empty() || messages.ends_with("truncated\n"), "{messages}");
}

#[test]
fn links_and_unreadable_trbufs_are_not_followed() {
    let trace = TestTrace::new();
    trace.file("tr.0000001.001", record_lines(0..1, 1));
    symlink("/dev/zero", trace.path(TRBUF)).unwrap();
    let (out, messages) = trace.cat(&[]);
    assert_eq!(out, record_lines(0..1, 1));
    assert!(messages.starts_with("trace-cat: trbuf.0000001: "), "{messages}");
    fs::remove_file(trace.path(TRBUF)).unwrap();
    trace.file(TRBUF, "");
    fs::set_permissions(trace.path(TRBUF), fs::Permissions::from_mode(0o000)).unwrap();
    // Root can read it all the same.
    assert_eq!(trace.cat(&[]).0, record_lines(0..1, 1));
}

#[test]
fn mutated_trbufs_never_panic() {
    let mut random = SeededRandom::seeded("trbuf", 5);
    let until = fuzz_time();
    let mut round = 0;
    let text = record_lines(2..9, 1);
    let mut printed = 0;
    while round < 60 || until.is_some_and(|end| Instant::now() < end) {
        round += 1;
        let trace = TestTrace::new();
        trace.file(TRBUF, damaged_trbuf(&mut random, &text)).file("tr.0000001.001", record_lines(0..3, 1));
        // The buffers of a running process are copied.
        let owner = (random.below(3) == 0).then(|| trace.open_trbuf_as_owner());
        let (out, _) = trace.cat(&[]);
        drop(owner);
        for line in out.lines() {
            assert!(spec::Record::parse(line.as_bytes()).is_ok());
        }
        printed += out.lines().count();
    }
    assert!(printed > 10 * round, "{printed} records in {round} rounds");
}
