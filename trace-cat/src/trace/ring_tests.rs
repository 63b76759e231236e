//! Rings of processes that were killed, that run, and that ended.

use std::fs::{self, File, OpenOptions};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use spec::buffer::{FileEntry, PAGE, REGION_OFFSETS, pack_range, region_word_offsets};

use crate::testing::test_trace::{TestTrace, record};
use crate::testing::trbuf_image::TrbufImage;

const EVENT: &str = "02:04:0";
const TRBUF: &str = "trbuf.0000001";
const RING: u64 = 64 * 1024;

fn lines(times: Range<u64>, lwp: u32) -> String {
    times.map(|time| record(time, lwp, EVENT, time)).collect()
}

/// Fills a region that has not begun anew.
fn put(image: &mut TrbufImage, (slot, region): (usize, usize), text: &str) {
    image.region(slot, region, text, 0..text.len(), None);
}

/// What is said of a thread of the first process that is complete from `time` on. Only the moment itself: how the wall
/// clock showed it depends on where we are.
fn told(messages: &str) -> Vec<(u32, u64)> {
    let whole = |line: &str| {
        let (_, rest) = line.split_once("LWP ")?;
        let (lwp, rest) = rest.split_once(" is complete from ")?;
        let (_, rest) = rest.split_once('(')?;
        let (moment, rest) = rest.split_once(')')?;
        assert_eq!(rest, " on; what came before was overwritten");
        Some((lwp.parse().ok()?, moment.replace('.', "").parse().ok()?))
    };
    messages.lines().map(|line| whole(line).unwrap_or_else(|| panic!("{line}"))).collect()
}

#[test]
fn the_older_records_come_before_the_newer_ones() {
    let trace = TestTrace::new();
    let mut image = TrbufImage::ring(RING);
    let slot = image.slot(1);
    // All at the same time, so that only their order in the ring tells.
    let same = |numbers: Range<u64>| numbers.map(|number| record(9, 1, EVENT, number)).collect::<String>();
    let older = same(4..9);
    image.wrapped(slot, 0, 1, (4096, &older[20..]), &same(9..12));
    // A ring that has not begun anew, and one whose older records are all overwritten.
    let second = image.slot(2);
    put(&mut image, (second, 0), &lines(20..24, 2));
    let third = image.slot(3);
    put(&mut image, (third, 0), &lines(30..32, 3));
    image.wrap_count(third, 0, 7);
    trace.file(TRBUF, &image.0);
    let (out, messages) = trace.cat(&[]);
    assert_eq!(out, same(5..12) + &lines(20..24, 2) + &lines(30..32, 3));
    assert_eq!(told(&messages), [(3, 30), (1, 9)]);
    assert_eq!(told(&trace.cat(&["tr.0000001.003"]).1), [(3, 30)]);
    assert_eq!(trace.cat(&["tr.0000001.002"]).1, "");
}

#[test]
fn a_thread_is_complete_when_all_its_rings_are() {
    let trace = TestTrace::new();
    let mut image = TrbufImage::ring(RING);
    let slot = image.slot(1);
    image.wrapped(slot, 0, 1, (4096, &lines(2..5, 1)), &lines(9..10, 1));
    // A signal handler's records fill the smaller ring sooner.
    image.wrapped(slot, 1, 1, (2048, &lines(5..8, 1)), &lines(8..9, 1));
    let written = image.slot(2);
    // The oldest went to the file before the process died, and the slot says when they were made.
    put(&mut image, (written, 0), &lines(4..6, 2));
    image.complete_from(written, 3);
    // A ring that was written out before an exec that failed, and has begun anew since.
    let again = image.slot(3);
    image.wrapped(again, 0, 1, (4096, &lines(5..7, 3)), &lines(7..8, 3));
    image.complete_from(again, 2);
    trace.file(TRBUF, &image.0).file("tr.0000001.002", lines(3..4, 2));
    let (out, messages) = trace.cat(&[]);
    assert_eq!(out.lines().count(), 3 + 3 + 3 + 2);
    assert_eq!(told(&messages), [(1, 6), (3, 6), (2, 3)]);
}

#[test]
fn rings_that_were_being_written_are_printed_once_wherever_their_process_died() {
    let (older, newer) = (lines(3..6, 1), lines(6..8, 1));
    let cut = &lines(2..3, 1)[50..];
    let first = 4096 + cut.len();
    let check = |file: &str, filled: Range<usize>, pending: Option<(u64, Range<usize>)>| {
        let trace = TestTrace::new();
        let mut image = TrbufImage::ring(RING);
        let slot = image.slot(1);
        image.wrapped(slot, 0, 0, (4096, &[cut, &older].concat()), &newer);
        image.region(slot, 0, &newer, filled, pending);
        image.complete_from(slot, 3);
        trace.file(TRBUF, &image.0).file("tr.0000001.001", file);
        let (out, messages) = trace.cat(&[]);
        assert_eq!(out, lines(3..8, 1), "{file:?}");
        assert_eq!(told(&messages), [(1, 3)]);
    };
    check("", 4096..newer.len(), None);
    let on_its_way = first..first + older.len();
    for torn in 0..=older.len() {
        check(&older[..torn], 4096..newer.len(), Some((0, on_its_way.clone())));
    }
    check(&older, 0..newer.len(), Some((0, on_its_way)));
    check(&older, 0..newer.len(), None);
    for torn in 0..=newer.len() {
        let file = older.clone() + &newer[..torn];
        check(&file, 0..newer.len(), Some((older.len() as u64, 0..newer.len())));
    }
    check(&[&older[..], &newer].concat(), newer.len()..newer.len(), None);
}

#[test]
fn a_process_that_ended_tells_in_its_trinfo() {
    let trace = TestTrace::new();
    trace.file("tr.0000001.001", lines(7..9, 1)).file("tr.0000001.002", lines(8..9, 2));
    trace.file(
        "trinfo.0000001",
        "format 1\ncomplete_from 1 0000000000.000000007\ncomplete_from 3 0000000000.000000001\n",
    );
    let (out, messages) = trace.cat(&[]);
    assert_eq!(out.lines().count(), 3);
    assert_eq!(told(&messages), [(1, 7)], "the third thread's file is not there");
    // Written once more after an exec, and by an earlier process.
    let repeated = "complete_from 1 0000000000.000000007\ncomplete_from 1 0000000000.000000008\ncomplete_from 2 000";
    trace.file("trinfo.0000001", repeated);
    trace.file("old.5.tr.0000001.001", lines(1..2, 1));
    trace.file("old.5.trinfo.0000001", "complete_from 1 0000000000.000000001\n");
    assert_eq!(told(&trace.cat(&[]).1), [(1, 8)]);
    assert_eq!(told(&trace.cat(&["old.5.tr.0000001.001"]).1), [(1, 1)]);
    fs::remove_file(trace.path("trinfo.0000001")).unwrap();
    fs::create_dir(trace.path("trinfo.0000001")).unwrap();
    assert_eq!(trace.cat(&[]).1, "trace-cat: trinfo.0000001: not a regular file\n");
}

#[test]
fn a_ring_without_a_newline_where_one_must_be_is_told() {
    let trace = TestTrace::new();
    let mut image = TrbufImage::ring(RING);
    let slot = image.slot(1);
    image.wrapped(slot, 0, 1, (4096, &"x".repeat(300)), &lines(4..6, 1));
    trace.file(TRBUF, &image.0);
    let (out, messages) = trace.cat(&[]);
    assert_eq!(out, lines(4..6, 1));
    let (damage, rest) = messages.split_once('\n').unwrap();
    assert_eq!(damage, "trace-cat: trbuf.0000001: slot 0: region 0 does not hold whole records");
    assert_eq!(told(rest), [(1, 4)]);
    // A size that no ring has.
    image.put(std::mem::offset_of!(spec::buffer::Header, ring_size), &70_000u64.to_le_bytes());
    trace.file(TRBUF, &image.0);
    assert_eq!(trace.cat(&[]), (String::new(), "trace-cat: trbuf.0000001: rings of 70000 bytes\n".into()));
}

#[test]
fn a_ring_of_a_gigabyte_is_not_held_in_memory() {
    let trace = TestTrace::new();
    trace.file(TRBUF, &TrbufImage::ring(1 << 30).0);
    let file = OpenOptions::new().write(true).open(trace.path(TRBUF)).unwrap();
    let shape = TrbufImage::ring(1 << 30).1;
    // Slots that are holes but for their first page and some text at either end of the ring.
    file.set_len(shape.slot_offset(40)).unwrap();
    let mut small = TrbufImage::ring(RING);
    let slot = small.slot(1);
    let newer = lines(6..8, 1);
    let older = lines(3..6, 1);
    let start = (1 << 30) - 8192;
    small.region(slot, 0, "", start..newer.len(), None);
    small.wrap_count(slot, 0, 1);
    let wrap_position = (start + older.len()) as u32;
    small.put(small.at(slot) + region_word_offsets(0).wrap_position, &wrap_position.to_le_bytes());
    let at = shape.slot_offset(39);
    file.write_all_at(&small.0[small.at(slot)..][..PAGE], at).unwrap();
    file.write_all_at(newer.as_bytes(), at + REGION_OFFSETS[0] as u64).unwrap();
    file.write_all_at(older.as_bytes(), at + (REGION_OFFSETS[0] + start) as u64).unwrap();
    drop(file);
    let (out, messages) = trace.cat(&[]);
    assert_eq!(out, lines(4..8, 1));
    assert_eq!(told(&messages), [(1, 4)]);
}

/// Whoever has the trbuf open for writing is its owner.
fn running(trace: &TestTrace) -> File {
    OpenOptions::new().read(true).write(true).open(trace.path(TRBUF)).unwrap()
}

const RUNS: &str = "trace-cat: trbuf.0000001: process 1 runs; its rings are read as they stand\n";

#[test]
fn a_running_process_has_its_rings_read() {
    let trace = TestTrace::new();
    let mut image = TrbufImage::ring(RING);
    let slot = image.slot(0x1001);
    image.wrapped(slot, 0, 1, (4096, &lines(2..6, 0x1001)[9..]), &lines(6..9, 0x1001));
    put(&mut image, (slot, 3), &lines(9..10, 0x1001));
    let second = image.slot(2);
    put(&mut image, (second, 0), &lines(20..24, 2));
    // What an image before an exec recorded is in the file; what is behind it came after the rings were copied.
    let before = lines(0..2, 0x1001);
    let entry = PAGE + size_of::<FileEntry>() + std::mem::offset_of!(FileEntry, end);
    image.put(entry, &(before.len() as u64).to_le_bytes());
    trace.file(TRBUF, &image.0).file("tr.0000001.001", before.clone() + &lines(3..5, 0x1001));
    let owner = running(&trace);
    let (out, messages) = trace.cat(&[]);
    assert_eq!(out, before + &lines(3..10, 0x1001) + &lines(20..24, 2));
    assert_eq!(told(messages.strip_prefix(RUNS).unwrap()), [(0x1001, 3)]);
    assert_eq!(fs::read(trace.path(TRBUF)).unwrap(), image.0, "it is not touched");
    drop(owner);
}

#[test]
fn rings_that_a_running_process_is_writing_out_are_left_to_it() {
    let trace = TestTrace::new();
    let mut image = TrbufImage::ring(RING);
    let slot = image.slot(1);
    image.region(slot, 0, &lines(2..6, 1), 0..4 * 70, Some((0, 0..4 * 70)));
    trace.file(TRBUF, &image.0).file("tr.0000001.001", &lines(2..6, 1)[..100]);
    let owner = running(&trace);
    let left_out = "trace-cat: trbuf.0000001: process 1 is writing its rings to its files; they are left out\n";
    assert_eq!(trace.cat(&[]), (lines(2..3, 1), left_out.to_owned()));
    drop(owner);
    assert_eq!(trace.cat(&[]), (lines(2..6, 1), String::new()));
}

/// Records into region `region` of the first slot as fast as it can, by the recorder's rules.
fn fill(trbuf: &File, image: &TrbufImage, region: usize, stop: &AtomicBool) {
    let (slot, words) = (image.at(0) as u64, region_word_offsets(region));
    let (size, step) = (image.1.region_size(region) as u32, image.1.ring_step(region) as u32);
    let put = |bytes: &[u8], at: usize| trbuf.write_all_at(bytes, slot + at as u64).unwrap();
    let filled = |start: u32, end: u32| put(&pack_range(start..end).to_le_bytes(), words.write_position);
    let (mut start, mut end, mut wrap_position, mut wrap_count) = (0, 0, 0, 0u32);
    for serial in 1.. {
        if stop.load(Relaxed) {
            break;
        }
        let line = record(serial, 1, EVENT, serial);
        let needed = line.len() as u32;
        if start <= end && end + needed > size {
            (wrap_position, wrap_count) = (end, wrap_count + 1);
            put(&wrap_position.to_le_bytes(), words.wrap_position);
            (start, end) = (step, 0);
            filled(start, end);
            put(&wrap_count.to_le_bytes(), words.wrap_count);
        } else if start > end && end + needed > start {
            start = (end + needed).next_multiple_of(step);
            if start >= wrap_position {
                start = 0;
            }
            filled(start, end);
        }
        put(line.as_bytes(), REGION_OFFSETS[region] + end as usize);
        end += needed;
        filled(start, end);
    }
}

/// Stops the filling thread when the test ends, however it ends.
struct ProcessGuard<'a>(&'a AtomicBool);

impl Drop for ProcessGuard<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

#[test]
fn a_ring_that_is_being_filled_gives_its_newest_records_without_a_gap() {
    for region in [0, 2] {
        let trace = TestTrace::new();
        let mut image = TrbufImage::ring(RING);
        image.slot(1);
        trace.file(TRBUF, &image.0);
        let owner = running(&trace);
        let stop = AtomicBool::new(false);
        let (mut seen, mut last) = (0, 0);
        std::thread::scope(|scope| {
            scope.spawn(|| fill(&owner, &image, region, &stop));
            let _stop = ProcessGuard(&stop);
            for _ in 0..200 {
                let (out, messages) = trace.cat(&[]);
                let serials: Vec<u64> =
                    out.lines().map(|line| spec::Record::parse(line.as_bytes()).unwrap().arguments[0].bits()).collect();
                let gap = serials.windows(2).find(|pair| pair[0] + 1 != pair[1]);
                assert!(gap.is_none() && !messages.contains("not a record"), "region {region}: {gap:?} {messages}");
                if let (Some(&first), Some(&newest)) = (serials.first(), serials.last()) {
                    let told = told(messages.strip_prefix(RUNS).unwrap());
                    assert!(told == [(1, first)] || (told.is_empty() && first == 1), "{told:?} {first}");
                    assert!(newest >= last, "{newest} after {last}");
                    (seen, last) = (seen + serials.len(), newest);
                }
            }
        });
        println!("region {region}: {seen} records seen of {last}");
        assert!(seen > 1000, "{seen}");
    }
}
