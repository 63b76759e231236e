//! Rings of processes that were killed, that run, and that ended.

use std::fs::{self, File};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use spec::buffer::{FileEntry, PAGE, REGION_OFFSETS, pack_range, region_word_offsets};

use crate::testing::ring_recorder::{EMPTY_RING, RoomMade, make_room};
use crate::testing::test_trace::{TRBUF, TestTrace, record, record_lines};
use crate::testing::trbuf_image::TrbufImage;
use crate::trace::buffers::ring_snapshot::RingSnapshot;

const EVENT: &str = "02:04:0";
const RING: u64 = 64 * 1024;

/// The thread and the time of a message that threads are complete from a time on, and how many others it counts. The local
/// time in a message is ignored.
fn reported_threads(messages: &str) -> Vec<(u32, u64)> {
    let (threads, others) = reported(messages);
    assert_eq!(others, "");
    threads
}

fn reported(messages: &str) -> (Vec<(u32, u64)>, String) {
    let mut others = String::new();
    let mut thread = |line: &str| {
        let (_, line) = line.split_once("LWP ")?;
        let (lwp, line) = line.split_once(" is complete from ")?;
        let (_, line) = line.split_once('(')?;
        let (time, line) = line.split_once(')')?;
        others += line.strip_prefix(" on")?.strip_suffix("; earlier records were overwritten")?;
        Some((lwp.parse().ok()?, time.replace('.', "").parse().ok()?))
    };
    let threads = messages.lines().map(|line| thread(line).unwrap_or_else(|| panic!("{line}"))).collect();
    (threads, others)
}

#[test]
fn the_older_records_come_before_the_newer_ones() {
    let trace = TestTrace::new();
    let mut image = TrbufImage::ring(RING);
    let slot = image.add_slot(1);
    // All records have the same time, so that only their order in the ring decides.
    let numbered = |numbers: Range<u64>| numbers.map(|number| record(9, 1, EVENT, number)).collect::<String>();
    let older = numbered(4..9);
    image.put_wrapped_ring(slot, 0, 1, (4096, &older[20..]), &numbered(9..12));
    // A ring that has not wrapped, and one whose older records are all overwritten.
    let second = image.add_slot(2);
    image.put_text(second, 0, &record_lines(20..24, 2));
    let third = image.add_slot(3);
    image.put_text(third, 0, &record_lines(30..32, 3));
    image.set_wrap_count(third, 0, 7);
    trace.file(TRBUF, &image.bytes);
    let (out, messages) = trace.cat(&[]);
    assert_eq!(out, numbered(5..12) + &record_lines(20..24, 2) + &record_lines(30..32, 3));
    assert_eq!(reported(&messages), (vec![(3, 30)], ", 1 other before".to_owned()));
    assert_eq!(reported_threads(&trace.cat(&["tr.0000001.001"]).1), [(1, 9)]);
    assert_eq!(reported_threads(&trace.cat(&["tr.0000001.003"]).1), [(3, 30)]);
    assert_eq!(trace.cat(&["tr.0000001.002"]).1, "");
}

#[test]
fn a_thread_is_complete_when_all_its_rings_are() {
    let trace = TestTrace::new();
    let mut image = TrbufImage::ring(RING);
    let slot = image.add_slot(1);
    image.put_wrapped_ring(slot, 0, 1, (4096, &record_lines(2..5, 1)), &record_lines(9..10, 1));
    // A signal handler's records fill the smaller ring sooner.
    image.put_wrapped_ring(slot, 1, 1, (2048, &record_lines(5..8, 1)), &record_lines(8..9, 1));
    let written = image.add_slot(2);
    // The oldest records were written to the file before the process died; the slot has their time.
    image.put_text(written, 0, &record_lines(4..6, 2));
    image.set_complete_from(written, 3);
    // A ring that was written before an exec that failed, and has wrapped since.
    let again = image.add_slot(3);
    image.put_wrapped_ring(again, 0, 1, (4096, &record_lines(5..7, 3)), &record_lines(7..8, 3));
    image.set_complete_from(again, 2);
    trace.file(TRBUF, &image.bytes).file("tr.0000001.002", record_lines(3..4, 2));
    let (out, messages) = trace.cat(&[]);
    assert_eq!(out.lines().count(), 3 + 3 + 3 + 2);
    assert_eq!(reported(&messages), (vec![(1, 6)], ", 2 others before".to_owned()));
    let of_file = |lwp| reported_threads(&trace.cat(&[&format!("tr.0000001.00{lwp}")]).1);
    assert_eq!([of_file(2), of_file(3)], [vec![(2, 3)], vec![(3, 6)]]);
}

#[test]
fn rings_that_were_being_written_are_printed_once_wherever_their_process_died() {
    let (older, newer) = (record_lines(3..6, 1), record_lines(6..8, 1));
    let torn_record = &record_lines(2..3, 1)[50..];
    let first = 4096 + torn_record.len();
    let check = |file: &str, unwritten: Range<usize>, write_intent: Option<(u64, Range<usize>)>| {
        let trace = TestTrace::new();
        let mut image = TrbufImage::ring(RING);
        let slot = image.add_slot(1);
        image.put_wrapped_ring(slot, 0, 0, (4096, &[torn_record, &older].concat()), &newer);
        image.put_region(slot, 0, &newer, unwritten, write_intent);
        image.set_complete_from(slot, 3);
        trace.file(TRBUF, &image.bytes).file("tr.0000001.001", file);
        let (out, messages) = trace.cat(&[]);
        assert_eq!(out, record_lines(3..8, 1), "{file:?}");
        assert_eq!(reported_threads(&messages), [(1, 3)]);
    };
    check("", 4096..newer.len(), None);
    let pending_write = first..first + older.len();
    for torn in 0..=older.len() {
        check(&older[..torn], 4096..newer.len(), Some((0, pending_write.clone())));
    }
    check(&older, 0..newer.len(), Some((0, pending_write)));
    check(&older, 0..newer.len(), None);
    for torn in 0..=newer.len() {
        let file = older.clone() + &newer[..torn];
        check(&file, 0..newer.len(), Some((older.len() as u64, 0..newer.len())));
    }
    check(&[&older[..], &newer].concat(), newer.len()..newer.len(), None);
}

#[test]
fn a_process_that_ended_has_its_threads_times_in_its_trinfo() {
    let trace = TestTrace::new();
    trace.file("tr.0000001.001", record_lines(7..9, 1)).file("tr.0000001.002", record_lines(8..9, 2));
    trace.file(
        "trinfo.0000001",
        "format 1\ncomplete_from 1 0000000000.000000007\ncomplete_from 3 0000000000.000000001\n",
    );
    let (out, messages) = trace.cat(&[]);
    assert_eq!(out.lines().count(), 3);
    assert_eq!(reported_threads(&messages), [(1, 7)], "the third thread has no file");
    // The line is written once more after an exec, and an earlier process has one.
    let repeated = "complete_from 1 0000000000.000000007\ncomplete_from 1 0000000000.000000008\ncomplete_from 2 000";
    trace.file("trinfo.0000001", repeated);
    trace.file("old.5.tr.0000001.001", record_lines(1..2, 1));
    trace.file("old.5.trinfo.0000001", "complete_from 1 0000000000.000000001\n");
    assert_eq!(reported_threads(&trace.cat(&[]).1), [(1, 8)]);
    assert_eq!(reported_threads(&trace.cat(&["old.5.tr.0000001.001"]).1), [(1, 1)]);
    fs::remove_file(trace.path("trinfo.0000001")).unwrap();
    fs::create_dir(trace.path("trinfo.0000001")).unwrap();
    assert_eq!(trace.cat(&[]).1, "trace-cat: trinfo.0000001: not a regular file\n");
}

#[test]
fn a_ring_without_a_newline_where_one_must_be_is_reported() {
    let trace = TestTrace::new();
    let mut image = TrbufImage::ring(RING);
    let slot = image.add_slot(1);
    image.put_wrapped_ring(slot, 0, 1, (4096, &"x".repeat(300)), &record_lines(4..6, 1));
    trace.file(TRBUF, &image.bytes);
    let (out, messages) = trace.cat(&[]);
    assert_eq!(out, record_lines(4..6, 1));
    let (damage, note) = messages.split_once('\n').unwrap();
    assert_eq!(damage, "trace-cat: trbuf.0000001: slot 0: region 0 does not consist of complete records");
    assert_eq!(reported_threads(note), [(1, 4)]);
    // A size that no ring has.
    image.put(std::mem::offset_of!(spec::buffer::Header, ring_size), &70_000u64.to_le_bytes());
    trace.file(TRBUF, &image.bytes);
    assert_eq!(trace.cat(&[]), (String::new(), "trace-cat: trbuf.0000001: rings of 70000 bytes\n".into()));
}

#[test]
fn a_ring_of_a_gigabyte_is_not_held_in_memory() {
    let trace = TestTrace::new();
    trace.file(TRBUF, &TrbufImage::ring(1 << 30).bytes);
    let file = trace.open_trbuf_as_owner();
    let layout = TrbufImage::ring(1 << 30).layout;
    // The slots are holes, except the last, which has a first page and text at both ends of the ring.
    file.set_len(layout.slot_offset(40)).unwrap();
    let mut small = TrbufImage::ring(RING);
    let slot = small.add_slot(1);
    let newer = record_lines(6..8, 1);
    let older = record_lines(3..6, 1);
    let start = (1 << 30) - 8192;
    small.put_region(slot, 0, "", start..newer.len(), None);
    small.set_wrap_count(slot, 0, 1);
    let wrap_position = (start + older.len()) as u32;
    small.put(small.slot_offset(slot) + region_word_offsets(0).wrap_position, &wrap_position.to_le_bytes());
    let at = layout.slot_offset(39);
    file.write_all_at(&small.bytes[small.slot_offset(slot)..][..PAGE], at).unwrap();
    file.write_all_at(newer.as_bytes(), at + REGION_OFFSETS[0] as u64).unwrap();
    file.write_all_at(older.as_bytes(), at + (REGION_OFFSETS[0] + start) as u64).unwrap();
    drop(file);
    let (out, messages) = trace.cat(&[]);
    assert_eq!(out, record_lines(4..8, 1));
    assert_eq!(reported_threads(&messages), [(1, 4)]);
}

const RUNS: &str = "trace-cat: trbuf.0000001: process 1 runs; its rings are read as they stand\n";

#[test]
fn a_running_process_has_its_rings_read() {
    let trace = TestTrace::new();
    let mut image = TrbufImage::ring(RING);
    let slot = image.add_slot(0x1001);
    image.put_wrapped_ring(slot, 0, 1, (4096, &record_lines(2..6, 0x1001)[9..]), &record_lines(6..9, 0x1001));
    image.put_text(slot, 3, &record_lines(9..10, 0x1001));
    let second = image.add_slot(2);
    image.put_text(second, 0, &record_lines(20..24, 2));
    // The records of a program before an exec are in the file; what follows them was written after the rings were copied.
    let before = record_lines(0..2, 0x1001);
    let entry = PAGE + size_of::<FileEntry>() + std::mem::offset_of!(FileEntry, end);
    image.put(entry, &(before.len() as u64).to_le_bytes());
    trace.file(TRBUF, &image.bytes).file("tr.0000001.001", before.clone() + &record_lines(3..5, 0x1001));
    let owner = trace.open_trbuf_as_owner();
    let (out, messages) = trace.cat(&[]);
    assert_eq!(out, before + &record_lines(3..10, 0x1001) + &record_lines(20..24, 2));
    assert_eq!(reported_threads(messages.strip_prefix(RUNS).unwrap()), [(0x1001, 3)]);
    assert_eq!(fs::read(trace.path(TRBUF)).unwrap(), image.bytes, "it does not change");
    drop(owner);
}

#[test]
fn rings_that_a_running_process_is_writing_out_are_left_to_it() {
    let trace = TestTrace::new();
    let mut image = TrbufImage::ring(RING);
    let slot = image.add_slot(1);
    image.put_region(slot, 0, &record_lines(2..6, 1), 0..4 * 70, Some((0, 0..4 * 70)));
    trace.file(TRBUF, &image.bytes).file("tr.0000001.001", &record_lines(2..6, 1)[..100]);
    let owner = trace.open_trbuf_as_owner();
    let left_out = "trace-cat: trbuf.0000001: process 1 is writing its rings to its files; they are left out\n";
    assert_eq!(trace.cat(&[]), (record_lines(2..3, 1), left_out.to_owned()));
    trace.end_owner(owner);
    assert_eq!(trace.cat(&[]), (record_lines(2..6, 1), String::new()));
}

/// Records into region `region` of the first slot at full speed, by the recorder's protocol.
fn fill(trbuf: &File, image: &TrbufImage, region: usize, stop: &AtomicBool) {
    let (slot, words) = (image.slot_offset(0) as u64, region_word_offsets(region));
    let (size, step) = (image.layout.region_size(region) as u32, image.layout.ring_step(region) as u32);
    let put = |bytes: &[u8], at: usize| trbuf.write_all_at(bytes, slot + at as u64).unwrap();
    let store_position = |ring: &RingSnapshot| {
        put(&pack_range(ring.start..ring.end).to_le_bytes(), words.write_position);
    };
    let mut ring = EMPTY_RING;
    for serial in 1.. {
        if stop.load(Relaxed) {
            break;
        }
        let line = record(serial, 1, EVENT, serial);
        match make_room(&mut ring, line.len() as u32, size, step) {
            RoomMade::Wrapped => {
                put(&ring.wrap_position.to_le_bytes(), words.wrap_position);
                store_position(&ring);
                put(&ring.wrap_count.to_le_bytes(), words.wrap_count);
            }
            RoomMade::Discarded => store_position(&ring),
            RoomMade::None => {}
        }
        put(line.as_bytes(), REGION_OFFSETS[region] + ring.end as usize);
        ring.end += line.len() as u32;
        store_position(&ring);
    }
}

/// Stops the filling thread when the test ends, also by a panic.
struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

#[test]
fn of_a_ring_that_is_being_filled_the_newest_records_are_printed_without_a_gap() {
    for region in [0, 2] {
        let trace = TestTrace::new();
        let mut image = TrbufImage::ring(RING);
        image.add_slot(1);
        trace.file(TRBUF, &image.bytes);
        let owner = trace.open_trbuf_as_owner();
        let stop = AtomicBool::new(false);
        let (mut count, mut last) = (0, 0);
        std::thread::scope(|scope| {
            scope.spawn(|| fill(&owner, &image, region, &stop));
            let _stop = StopOnDrop(&stop);
            for reading in 0.. {
                // A machine with other work lets some of them find nothing.
                if reading >= 200 && count > 1000 || reading == 20_000 {
                    break;
                }
                let (out, messages) = trace.cat(&[]);
                let serials: Vec<u64> =
                    out.lines().map(|line| spec::Record::parse(line.as_bytes()).unwrap().arguments[0].bits()).collect();
                let gap = serials.windows(2).find(|pair| pair[0] + 1 != pair[1]);
                assert!(gap.is_none() && !messages.contains("not a record"), "region {region}: {gap:?} {messages}");
                if let (Some(&first), Some(&newest)) = (serials.first(), serials.last()) {
                    let threads = reported_threads(messages.strip_prefix(RUNS).unwrap());
                    assert!(threads == [(1, first)] || (threads.is_empty() && first == 1), "{threads:?} {first}");
                    assert!(newest >= last, "{newest} after {last}");
                    (count, last) = (count + serials.len(), newest);
                }
            }
        });
        println!("region {region}: {count} records printed of {last}");
        assert!(count > 1000, "{count}");
    }
}
