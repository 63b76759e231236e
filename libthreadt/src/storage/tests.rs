use std::alloc::{Layout, alloc_zeroed};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::ptr::{NonNull, with_exposed_provenance_mut};
use std::sync::atomic::Ordering::Relaxed;

use spec::buffer::{self, PAGE, REGION_OFFSETS, RegionLeftover, SlotLayout, pack_range, unpack_range};
use spec::encode::UntimedRecord;
use spec::{Record, id};

use super::file_table::RecordFileEntry;
use super::layout::capacity;
use super::record_file;
use super::slot::{ALL_REGIONS, FOREIGN_WRITERS, Slot, WriteRight};
use super::slot_control::new_controls;
use crate::sys::Errno;
use crate::sys::interleaving::{Actor, explore, interrupt_at, observable_step};
use crate::sys::path::{self, PATH_MAX};

const PID: u32 = 4321;

/// A slot in memory of its own, for the LWP `lwp`, whose file is in `directory`.
pub(super) fn new_slot(directory: &Path, lwp: u32) -> Slot {
    let layout = Layout::from_size_align(SlotLayout::BUFFERS.slot_size(), PAGE).unwrap();
    // SAFETY: the layout has a size; the memory is never given back.
    let control = unsafe {
        let slot = NonNull::new(alloc_zeroed(layout)).unwrap();
        new_controls(slot, 1, SlotLayout::BUFFERS.slot_size()).unwrap()
    };
    // SAFETY: made above, for good.
    let slot = unsafe { Slot::at(control) };
    slot.adopt(lwp, PID, 0x7f00_0000_1000, directory.as_os_str().as_encoded_bytes(), false);
    slot
}

pub(super) fn new_entry() -> RecordFileEntry {
    RecordFileEntry::new()
}

fn append(slot: Slot, depth: usize, number: u64) {
    assert!(unpack_range(slot.regions[depth].write_position.load(Relaxed)).end <= capacity(depth));
    let line = UntimedRecord { kind: &id::SEMA_POST_0, arguments: [1, 0, number, 0, 0] };
    // SAFETY: the test is the owner, and there is room.
    unsafe { slot.append(depth, 1_000_000_000 + number, &[line]) };
}

/// The path that the slot's records go to.
fn path_of(slot: Slot) -> &'static [u8; PATH_MAX] {
    // SAFETY: the path lies in the slot, and nobody changes it.
    unsafe { &*slot.path() }
}

fn bytes(slot: Slot) -> &'static [u8] {
    // SAFETY: the slot's memory; nobody writes to it while the slice is used.
    unsafe { std::slice::from_raw_parts(slot.neighbour(0), SlotLayout::BUFFERS.slot_size()) }
}

/// The third argument of each record of a text, all of which have to decode.
fn numbers(text: &[u8]) -> Vec<u64> {
    let lines = text.split_inclusive(|&byte| byte == b'\n');
    lines.map(|line| Record::parse(line.strip_suffix(b"\n").unwrap()).unwrap().arguments[2].bits()).collect()
}

fn file_of(directory: &Path, lwp: u32) -> PathBuf {
    directory.join(format!("tr.{PID:07x}.{:03x}", lwp & 0xfff))
}

#[test]
fn what_is_appended_arrives_in_the_file() {
    let directory = tempfile::tempdir().unwrap();
    let (slot, entry) = (new_slot(directory.path(), 5), new_entry());
    for round in 0..3 {
        (0..100).for_each(|number| append(slot, 0, 100 * round + number));
        append(slot, 2, 1000 + round);
        assert!(!slot.is_empty());
        slot.write_all(&entry).unwrap();
        assert!(slot.is_empty());
    }
    let file = file_of(directory.path(), 5);
    let mut found = numbers(&fs::read(&file).unwrap());
    found.sort_unstable();
    assert_eq!(found, (0..300).chain(1000..1003).collect::<Vec<_>>());
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn a_reader_of_the_trbuf_finds_complete_records_only() {
    let directory = tempfile::tempdir().unwrap();
    let slot = new_slot(directory.path(), 5);
    for number in 0..50 {
        append(slot, 0, number);
        let RegionLeftover { write_intent, unwritten, .. } =
            buffer::region_leftover(bytes(slot), SlotLayout::BUFFERS, 0).unwrap();
        assert_eq!(write_intent, None);
        assert_eq!(numbers(&bytes(slot)[unwritten]), (0..=number).collect::<Vec<_>>());
    }
    assert_eq!(buffer::slot_lwp(bytes(slot)), Ok(Some(5)));
}

#[test]
fn a_write_that_was_interrupted_is_completed() {
    let directory = tempfile::tempdir().unwrap();
    let file = file_of(directory.path(), 5);
    let (slot, entry) = (new_slot(directory.path(), 5), new_entry());
    append(slot, 0, 0);
    slot.write_all(&entry).unwrap();
    let before = fs::read(&file).unwrap();
    (1..4).for_each(|number| append(slot, 0, number));
    let text = bytes(slot)[REGION_OFFSETS[0]..]
        [..unpack_range(slot.regions[0].write_position.load(Relaxed)).end as usize]
        .to_vec();
    // The thread has taken its range and noted it, and so many bytes have arrived.
    for arrived in 0..=text.len() {
        fs::write(&file, [&before[..], &text[..arrived]].concat()).unwrap();
        entry.at_least((before.len() + text.len()) as u64);
        let region = &slot.regions[0];
        region.write_position.store(pack_range(0..text.len() as u32), Relaxed);
        region.write_intent.store(pack_range(0..text.len() as u32), Relaxed);
        region.write_intent_offset.store(before.len() as u64, Relaxed);
        let RegionLeftover { write_intent, unwritten, .. } =
            buffer::region_leftover(bytes(slot), SlotLayout::BUFFERS, 0).unwrap();
        assert_eq!(
            (write_intent, unwritten.len()),
            (Some((before.len() as u64, REGION_OFFSETS[0]..REGION_OFFSETS[0] + text.len())), 0)
        );
        slot.write_all(&entry).unwrap();
        assert_eq!(numbers(&fs::read(&file).unwrap()), [0, 1, 2, 3], "{arrived} bytes had arrived");
    }
}

#[test]
fn a_ring_that_has_begun_anew_is_written_oldest_first() {
    let directory = tempfile::tempdir().unwrap();
    let file = file_of(directory.path(), 5);
    // Written at once; after a jump out of the write with the older records noted, and with those removed already.
    for left in 0..3 {
        let (slot, entry) = (new_slot(directory.path(), 5), new_entry());
        let ends: Vec<u32> = (0..60)
            .map(|number| {
                append(slot, 0, number);
                unpack_range(slot.regions[0].write_position.load(Relaxed)).end
            })
            .collect();
        // The first two stand for newer ones, which have overwritten some of the third.
        let region = &slot.regions[0];
        region.wrap_position.store(ends[59], Relaxed);
        region.wrap_count.store(1, Relaxed);
        region.write_position.store(pack_range(ends[1] + 7..ends[1]), Relaxed);
        if left > 0 {
            region.write_intent.store(pack_range(ends[2]..ends[59]), Relaxed);
            entry.at_least(u64::from(ends[59] - ends[2]));
            fs::write(&file, b"").unwrap();
            record_file::open(path::in_buffer(path_of(slot)), &entry, false, crate::sys::thread_id()).unwrap();
        }
        if left == 2 {
            region.write_position.store(pack_range(0..ends[1]), Relaxed);
        }
        slot.write_all(&entry).unwrap();
        assert!(slot.is_empty());
        assert_eq!(numbers(&fs::read(&file).unwrap()), (3..60).chain(0..2).collect::<Vec<_>>(), "left {left}");
        if left == 0 {
            assert_eq!(slot.published().complete_from.load(Relaxed), 1_000_000_003);
        }
        fs::remove_file(&file).unwrap();
    }
}

#[test]
fn threads_that_share_a_file_do_not_overwrite_each_other() {
    let directory = tempfile::tempdir().unwrap();
    let entry = new_entry();
    std::thread::scope(|scope| {
        for thread in 0..2u64 {
            let (entry, directory) = (&entry, directory.path());
            scope.spawn(move || {
                let slot = new_slot(directory, 0x1_0007 + 0x1000 * thread as u32);
                for number in 0..500 {
                    append(slot, 0, 1000 * thread + number);
                    if number % 7 == 0 {
                        slot.write_all(entry).unwrap();
                    }
                }
                slot.write_all(entry).unwrap();
            });
        }
    });
    let mut found = numbers(&fs::read(file_of(directory.path(), 7)).unwrap());
    found.sort_unstable();
    assert_eq!(found, (0..500).chain(1000..1500).collect::<Vec<_>>());
    assert_eq!(entry.sole_user(), None, "who takes a range is a user");
}

#[test]
fn a_file_that_was_truncated_goes_on_where_it_ends() {
    let directory = tempfile::tempdir().unwrap();
    let file = file_of(directory.path(), 5);
    let (slot, entry) = (new_slot(directory.path(), 5), new_entry());
    append(slot, 0, 1);
    slot.write_all(&entry).unwrap();
    fs::write(&file, "").unwrap();
    append(slot, 0, 2);
    slot.write_all(&entry).unwrap();
    fs::remove_file(&file).unwrap();
    append(slot, 0, 3);
    slot.write_all(&entry).unwrap();
    assert_eq!(numbers(&fs::read(&file).unwrap()), [3]);
}

#[test]
fn another_file_of_that_name_is_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let file = file_of(directory.path(), 5);
    fs::write(&file, "not ours").unwrap();
    let (slot, entry) = (new_slot(directory.path(), 5), new_entry());
    append(slot, 0, 1);
    slot.write_all(&entry).unwrap();
    let old = directory.path().join(format!("old.0.{}", file.file_name().unwrap().to_str().unwrap()));
    assert_eq!(fs::read(old).unwrap(), b"not ours");
    // Now that ours is there, one that takes its place is not written to.
    fs::rename(&file, directory.path().join("moved")).unwrap();
    fs::write(&file, "not ours").unwrap();
    append(slot, 0, 2);
    assert_eq!(slot.write_all(&entry), Err(Errno(libc::ESTALE)));
    assert_eq!(fs::read(&file).unwrap(), b"not ours");
}

/// A signal handler has forked a child, which returns into its parent's record before that became the writer.
#[test]
fn a_child_leaves_its_parents_file_alone() {
    let directory = tempfile::tempdir().unwrap();
    let file = file_of(directory.path(), 5);
    let (slot, entry) = (new_slot(directory.path(), 5), new_entry());
    append(slot, 0, 1);
    slot.write_all(&entry).unwrap();
    append(slot, 0, 2);
    slot.process.fetch_add(1, Relaxed);
    slot.write_all(&new_entry()).unwrap();
    assert_eq!(numbers(&fs::read(&file).unwrap()), [1]);
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
}

#[test]
fn the_newest_records_stay_when_nothing_can_be_written() {
    let directory = tempfile::tempdir().unwrap();
    let slot = new_slot(&directory.path().join("missing"), 5);
    let entry = new_entry();
    let mut next = 0;
    for _ in 0..5 {
        while unpack_range(slot.regions[1].write_position.load(Relaxed)).end <= capacity(1) {
            append(slot, 1, next);
            next += 1;
        }
        assert_eq!(slot.write(1, None, &entry), Err(Errno(libc::ENOENT)));
        slot.drop_older_half(1, Errno(libc::ENOENT));
    }
    let RegionLeftover { unwritten, .. } = buffer::region_leftover(bytes(slot), SlotLayout::BUFFERS, 1).unwrap();
    let kept = numbers(&bytes(slot)[unwritten]);
    let lost = u64::from(slot.lost.load(Relaxed));
    assert!(lost > 0 && kept.len() > 10);
    assert_eq!(kept, (lost..next).collect::<Vec<_>>());
    // The losses are reported once.
    slot.append_loss_record(1, 1_000_000_000);
    slot.append_loss_record(1, 1_000_000_000);
    let RegionLeftover { unwritten, .. } = buffer::region_leftover(bytes(slot), SlotLayout::BUFFERS, 1).unwrap();
    let text = &bytes(slot)[unwritten];
    let reported: Vec<_> =
        text.split(|&byte| byte == b'\n').filter(|line| line.get(52..57) == Some(b"00:01")).collect();
    assert_eq!(reported.len(), 1);
    let record = Record::parse(reported[0]).unwrap();
    assert_eq!(record.arguments[0].bits(), lost);
    assert_eq!(record.arguments[1].bits(), libc::ENOENT as u64);
}

/// As of a thread whose noted write, which it has left by a jump, failed: the program was another user.
#[test]
fn losses_are_reported_where_a_full_region_had_no_room_for_that() {
    let directory = tempfile::tempdir().unwrap();
    let file = file_of(directory.path(), 5);
    let (slot, entry) = (new_slot(directory.path(), 5), new_entry());
    let mut made = 0;
    while slot.has_room(0) {
        append(slot, 0, made);
        made += 1;
    }
    slot.lose(7, Errno(libc::EACCES), 1_000_000_000);
    slot.write_all_with_losses(&entry, || slot.append_loss_record(0, 2_000_000_000)).unwrap();
    let text = fs::read_to_string(&file).unwrap();
    let records: Vec<Record> = text.lines().map(|line| Record::parse(line.as_bytes()).unwrap()).collect();
    assert_eq!(records.len() as u64, made + 1);
    let [lost, cause, ..] = records.last().unwrap().arguments;
    assert_eq!((lost.bits(), cause.bits()), (7, libc::EACCES as u64));
}

#[test]
fn there_is_one_writer() {
    let directory = tempfile::tempdir().unwrap();
    let slot = new_slot(directory.path(), 5);
    assert_eq!(slot.become_writer(5, 0), WriteRight::Taken);
    slot.release_writer();
    let control = slot.control().as_ptr().expose_provenance();
    // SAFETY: the slot's control.
    let slot_of_actor = move || unsafe { Slot::at(NonNull::new(with_exposed_provenance_mut(control)).unwrap()) };
    let handle = move || {
        assert_eq!(slot_of_actor().become_writer(5, 1), WriteRight::Nested);
        assert_eq!(slot_of_actor().become_writer(5, 0), WriteRight::Interrupted);
        assert_eq!(slot_of_actor().become_writer(5, ALL_REGIONS), WriteRight::Interrupted);
    };
    explore(0, || {
        let actor: Actor = Box::new(move || {
            // The first step is the one before the slot has a writer.
            interrupt_at(1, Box::new(handle));
            assert_eq!(slot_of_actor().become_writer(5, 0), WriteRight::Taken);
            observable_step();
            // Without a signal frame in between, that write has been left by a jump.
            assert_eq!(slot_of_actor().become_writer(5, 0), WriteRight::Taken);
        });
        (vec![actor], Box::new(|| ()))
    });
    assert_eq!(slot.become_writer(6, 0), WriteRight::Refused);
    slot.release_writer();
    let has_foreign_writer = || slot.has_foreign_writer.load(Relaxed) != 0;
    assert!(!has_foreign_writer());
    assert_eq!(slot.become_writer(6, 0), WriteRight::Taken);
    assert!(has_foreign_writer() && FOREIGN_WRITERS.load(Relaxed) != 0);
    slot.release_writer();
    assert!(!has_foreign_writer());
    assert!(slot.end() && !slot.end());
}

#[test]
fn a_new_owner_has_left_no_write() {
    let directory = tempfile::tempdir().unwrap();
    let slot = new_slot(directory.path(), 5);
    let begun =
        |from: u64| (from..from + 9).filter(|second| slot.left_writes.begins(5, second * 1_000_000_000)).count();
    let attempts: usize = (0..60).map(|_| begun(1)).sum();
    assert!(attempts > 30 && begun(1) == 0);
    slot.adopt(6, PID, 0x7f00_0000_1000, directory.path().as_os_str().as_encoded_bytes(), false);
    assert_eq!(begun(1), 9);
}
