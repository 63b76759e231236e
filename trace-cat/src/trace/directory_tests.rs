//! Directories as programs leave them: finished, killed, running, damaged, and made up by a random generator.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Command;
use std::time::Instant;

use crate::testing::seeded_random::{SeededRandom, fuzz_time};
use crate::testing::test_trace::{TestTrace, record};
use crate::testing::trbuf_image::TrbufImage;

const EVENT: &str = "02:04:0";

fn lines(times: std::ops::Range<u64>, lwp: u32) -> String {
    times.map(|time| record(time, lwp, EVENT, time)).collect()
}

#[test]
fn a_directory_gives_its_record_files_and_nothing_else() {
    let trace = TestTrace::new();
    trace.file("tr.0000001.001", lines(0..2, 1));
    for name in ["trinfo.0000001", "trclock", "old.5.tr.0000001.001", "tr.0000001.0011", "notes"] {
        trace.file(name, "not a record\n");
    }
    fs::create_dir(trace.path("tr.0000001.002")).unwrap();
    assert_eq!(trace.cat(&[]), (lines(0..2, 1), String::new()));
    assert_eq!(trace.cat(&["trinfo.0000001", "trclock"]), Default::default());
}

#[test]
fn a_later_format_is_told_and_read_as_far_as_it_is_understood() {
    let trace = TestTrace::new();
    trace.file("tr.0000001.001", lines(0..2, 1) + "2|something new\n").file("trinfo.0000001", "format 2\npid 1\n");
    trace.file("trinfo.0000002", "format 1\npid 2\n").file("trinfo.0000003", "");
    let (out, messages) = trace.cat(&[]);
    assert_eq!(out, lines(0..2, 1));
    assert_eq!(
        messages,
        "trace-cat: trinfo.0000001: format 2; this trace-cat knows format 1\n\
         trace-cat: tr.0000001.001:3: not a record: time1 is not valid\n"
    );
}

#[test]
fn hostile_files_are_told_and_the_good_ones_are_printed() {
    let trace = TestTrace::new();
    let mut random = SeededRandom::seeded("hostile", 12);
    let binary: Vec<u8> = (0..300_000).map(|_| random.next() as u8).collect();
    trace.file("tr.0000001.001", lines(0..50, 1)).file("tr.0000001.002", "").file("tr.0000001.003", binary);
    trace.file("tr.0000001.004", lines(0..3, 4).replace('\n', "\r\n")).file("tr.0000001.005", [0; 100_000]);
    let long = fs::File::create(trace.path("tr.0000001.006")).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&long, &[b'x'; 1 << 20], 0).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&long, lines(7..8, 6).as_bytes(), (1 << 30) + 5).unwrap();
    let (out, messages) = trace.cat(&[]);
    let expected: Vec<String> = lines(0..50, 1).lines().map(str::to_owned).collect();
    let mut found: Vec<&str> = out.lines().collect();
    found.retain(|line| !line.contains(":0000006:"));
    assert_eq!(found, expected);
    for part in [
        "tr.0000001.003:1: ",
        "tr.0000001.003: ",
        "tr.0000001.004:3: not a record: it ends with a carriage return",
        "tr.0000001.005:1: 100000 NUL bytes",
        "tr.0000001.006:1: incomplete record",
        "tr.0000001.006:1: 1072693253 NUL bytes",
    ] {
        assert!(messages.contains(part), "{part}: {messages}");
    }
    assert!(messages.lines().count() < 30, "{messages}");
    assert!(out.contains(&lines(7..8, 6)));
}

#[test]
fn what_cannot_be_read_is_told_and_the_rest_is_printed() {
    let trace = TestTrace::new();
    trace.file("tr.0000001.001", lines(0..2, 1));
    fs::create_dir(trace.path("empty")).unwrap();
    let (out, messages) = trace.cat(&["none", "tr.0000001.001", "empty", "trbuf.0000009"]);
    assert_eq!(out, lines(0..2, 1));
    assert_eq!(
        messages,
        "trace-cat: empty: no trace here (no file tr.xxxxxxx.yyy)\n\
         trace-cat: trbuf.0000009: No such file or directory\n\
         trace-cat: none: No such file or directory\n"
    );
}

#[test]
fn a_file_named_twice_is_read_once() {
    let trace = TestTrace::new();
    trace.file("tr.0000001.001", lines(0..2, 1));
    fs::hard_link(trace.path("tr.0000001.001"), trace.path("again")).unwrap();
    symlink(trace.path("tr.0000001.001"), trace.path("link")).unwrap();
    let (out, messages) = trace.cat(&["tr.0000001.001", "tr.0000001.001", "", "again", "link", "."]);
    assert_eq!((out, messages), (lines(0..2, 1), String::new()));
}

#[test]
fn other_names_and_files_set_aside_are_read_when_named() {
    let trace = TestTrace::new();
    trace.file("old.5.tr.0000001.001", lines(0..1, 1)).file("merged.txt", lines(1..3, 1));
    let mut image = TrbufImage::new();
    let slot = image.slot(1);
    image.region(slot, 0, &lines(3..4, 1), 0..70, None);
    trace.file("old.5.trbuf.0000001", &image.0);
    assert_eq!(trace.cat(&["old.5.tr.0000001.001", "merged.txt"]), (lines(0..4, 1), String::new()));
    trace.file("old.5-2.trbuf.0000001", &image.0);
    assert_eq!(trace.cat(&["old.5-2.trbuf.0000001"]), (lines(3..4, 1), String::new()));
}

#[test]
fn a_pipe_is_read_like_a_file() {
    let trace = TestTrace::new();
    let path = trace.path("pipe");
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    let writer = std::thread::spawn(move || fs::write(path, lines(5..9, 1) + &lines(0..5, 1)).unwrap());
    assert_eq!(trace.cat(&["pipe"]), (lines(0..9, 1), String::new()));
    writer.join().unwrap();
}

#[test]
fn what_a_dead_process_left_is_printed_once_wherever_it_died() {
    let (written, pending, unwritten) = (lines(0..4, 1), lines(4..7, 1), lines(7..9, 1));
    let region = [&pending[..], &unwritten].concat();
    let whole = written.len() as u64;
    let everything = lines(0..9, 1);
    let check = |file: &str, filled, pending| {
        let trace = TestTrace::new();
        let mut image = TrbufImage::new();
        image.slot(0);
        let slot = image.slot(1);
        image.region(slot, 0, &region, filled, pending);
        trace.file("tr.0000001.001", file).file("trbuf.0000001", &image.0);
        for names in [&[][..], &["tr.0000001.001"], &["trbuf.0000001"], &["trbuf.0000001", "tr.0000001.001", ""]] {
            assert_eq!(trace.cat(names), (everything.clone(), String::new()));
        }
    };
    // Not yet begun to write, or only the place taken.
    check(&written, 0..region.len(), None);
    // In the middle of the write, at every byte; and done, but not yet noted.
    let on_its_way = Some((whole, 0..pending.len()));
    for torn in 0..=pending.len() {
        check(&(written.clone() + &pending[..torn]), 0..region.len(), on_its_way.clone());
    }
    let done = written.clone() + &pending;
    check(&done, pending.len()..region.len(), on_its_way.clone());
    // Noted.
    check(&done, pending.len()..region.len(), None);
    check(&everything, 0..0, Some((whole, 0..region.len())));
}

#[test]
fn threads_with_the_same_digits_share_a_file_and_leave_holes_in_it() {
    let trace = TestTrace::new();
    let mut image = TrbufImage::new();
    let [first, second] = [0x1001, 0x2001].map(|lwp| image.slot(lwp));
    let [a, b] = [lines(2..5, 0x1001), lines(1..4, 0x2001)];
    // The first died when it had taken its place in the file; the second wrote behind it, and has a nested region.
    image.region(first, 0, &a, 0..a.len(), None);
    let nested = lines(6..7, 0x2001);
    image.region(second, 1, &nested, 0..nested.len(), Some((3, 0..0)));
    let hole = "\0".repeat(a.len());
    trace.file("tr.0000001.001", lines(0..1, 0x1001) + &hole + &b).file("trbuf.0000001", &image.0);
    let (out, messages) = trace.cat(&[]);
    let mut expected: Vec<String> =
        (lines(0..1, 0x1001) + &b + &a + &nested).lines().map(|line| format!("{line}\n")).collect();
    expected.sort_by_key(|line| line[..20].to_owned());
    assert_eq!((out, messages), (expected.concat(), String::new()));
}

#[test]
fn records_for_a_file_that_was_never_made_are_printed() {
    let trace = TestTrace::new();
    let mut image = TrbufImage::new();
    let slot = image.slot(0x5abc);
    let text = lines(0..3, 0x5abc);
    image.region(slot, 0, &text, 0..text.len(), None);
    trace.file("trbuf.0000001", &image.0);
    for names in [&[][..], &["tr.0000001.abc"], &["trbuf.0000001"]] {
        assert_eq!(trace.cat(names), (text.clone(), String::new()));
    }
    assert_eq!(trace.cat(&["tr.0000001.abd"]).1, "trace-cat: tr.0000001.abd: No such file or directory\n");
}

#[test]
fn a_running_process_may_be_in_the_middle_of_a_line() {
    let trace = TestTrace::new();
    let text = lines(0..2, 1) + "\0\0\0" + &lines(2..3, 1) + &lines(3..4, 1)[..30];
    trace.file("tr.0000001.001", &text);
    let mut image = TrbufImage::new();
    let slot = image.slot(1);
    let unwritten = lines(4..6, 1);
    image.region(slot, 0, &unwritten, 0..unwritten.len(), None);
    image.end(1, text.len());
    trace.file("trbuf.0000001", &image.0);
    // Whoever has the trbuf open for writing is its owner.
    let owner = fs::OpenOptions::new().append(true).open(trace.path("trbuf.0000001")).unwrap();
    assert_eq!(trace.cat(&[]), (lines(0..3, 1) + &unwritten, String::new()));
    drop(owner);
    let (out, messages) = trace.cat(&[]);
    assert_eq!(out.lines().count(), 5);
    assert_eq!(messages, "trace-cat: tr.0000001.001:4: incomplete record\n");
}

#[test]
fn damage_without_a_trbuf_is_told() {
    let trace = TestTrace::new();
    let text = lines(0..2, 1);
    trace.file("tr.0000001.001", text.clone() + "\0\0\0" + &text[..30]);
    let (out, messages) = trace.cat(&[]);
    assert_eq!(out, text);
    assert_eq!(messages, "trace-cat: tr.0000001.001:3: 3 NUL bytes\ntrace-cat: tr.0000001.001:3: incomplete record\n");
}

#[test]
#[expect(clippy::reversed_empty_ranges, reason = "such words are what is tested")]
fn a_damaged_trbuf_is_told_and_the_good_regions_are_used() {
    let trace = TestTrace::new();
    let text = lines(0..2, 1);
    trace.file("tr.0000001.001", &text);
    let mut image = TrbufImage::new();
    let slot = image.slot(1);
    image.region(slot, 0, &text, 9..5, None);
    // Laid over the file, this would destroy a good line.
    image.region(slot, 1, "rubbish\n", 0..0, Some((0, 0..8)));
    image.region(slot, 2, &lines(2..3, 1), 0..70, None);
    image.region(slot, 3, "rubbish\n", 0..8, None);
    image.0.truncate(image.0.len() - 1);
    image.0.resize(image.0.len() + 1 + 5000, 1);
    trace.file("trbuf.0000001", &image.0);
    let (out, messages) = trace.cat(&[]);
    assert_eq!(out, lines(0..3, 1));
    assert_eq!(
        messages,
        "trace-cat: trbuf.0000001: slot 0: region 0 has impossible bounds\n\
         trace-cat: trbuf.0000001: slot 0: region 1 does not hold whole records\n\
         trace-cat: trbuf.0000001: slot 1: cut short\n\
         trace-cat: trbuf.0000001: byte 282624: not a record: the line ends in time1\n"
    );
    for (bytes, message) in [
        (&b"threadt trbuf\n\0\0\x09\0\0\0"[..], "trace-cat: trbuf.0000001: layout version 9, expected 2\n"),
        (b"something else altogether", "trace-cat: trbuf.0000001: not a finished trbuf\n"),
        (b"some", "trace-cat: trbuf.0000001: shorter than its header\n"),
        (b"", ""),
        (&[0; 5000], ""),
    ] {
        trace.file("trbuf.0000001", bytes);
        assert_eq!(trace.cat(&[]), (text.clone(), message.to_owned()));
    }
}

#[test]
fn a_sparse_trbuf_of_any_size_takes_no_time() {
    let trace = TestTrace::new();
    let mut image = TrbufImage::new();
    let slot = image.slot(1);
    image.region(slot, 0, &lines(0..1, 1), 0..70, None);
    trace.file("trbuf.0000001", &image.0);
    let file = fs::OpenOptions::new().write(true).open(trace.path("trbuf.0000001")).unwrap();
    file.set_len(1 << 42).unwrap();
    drop(file);
    let (out, messages) = trace.cat(&[]);
    assert_eq!(out, lines(0..1, 1));
    assert!(messages.is_empty() || messages.ends_with("cut short\n"), "{messages}");
}

#[test]
fn links_and_unreadable_trbufs_are_not_followed() {
    let trace = TestTrace::new();
    trace.file("tr.0000001.001", lines(0..1, 1));
    symlink("/dev/zero", trace.path("trbuf.0000001")).unwrap();
    let (out, messages) = trace.cat(&[]);
    assert_eq!(out, lines(0..1, 1));
    assert!(messages.starts_with("trace-cat: trbuf.0000001: "), "{messages}");
    fs::remove_file(trace.path("trbuf.0000001")).unwrap();
    trace.file("trbuf.0000001", "");
    fs::set_permissions(trace.path("trbuf.0000001"), fs::Permissions::from_mode(0o000)).unwrap();
    // Root reads it all the same.
    assert_eq!(trace.cat(&[]).0, lines(0..1, 1));
}

#[test]
fn mutated_trbufs_never_panic() {
    let mut random = SeededRandom::seeded("trbuf", 5);
    let until = fuzz_time();
    let mut round = 0;
    let text = lines(2..9, 1);
    let mut seen = 0;
    while round < 60 || until.is_some_and(|end| Instant::now() < end) {
        round += 1;
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
        // A running process's rings are copied.
        let runs = random.below(3) == 0;
        for _ in 0..random.below(40) {
            // Where the words are: the header, and the slots' first pages.
            let slot = image.at(random.below(3));
            let at = if random.below(20) == 0 { random.below(128) } else { slot + random.below(1100) };
            let byte = if random.below(2) == 0 { 0 } else { random.next() as u8 };
            if let Some(place) = image.0.get_mut(at) {
                *place = byte;
            }
        }
        if random.below(10) == 0 {
            image.0.truncate(random.below(image.0.len()));
        }
        trace.file("trbuf.0000001", &image.0).file("tr.0000001.001", lines(0..3, 1));
        let owner = runs.then(|| fs::OpenOptions::new().append(true).open(trace.path("trbuf.0000001")).unwrap());
        let (out, _) = trace.cat(&[]);
        drop(owner);
        for line in out.lines() {
            assert!(spec::Record::parse(line.as_bytes()).is_ok());
        }
        seen += out.lines().count();
    }
    assert!(seen > 10 * round, "{seen} records in {round} rounds");
}
