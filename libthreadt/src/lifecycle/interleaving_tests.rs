//! Every order of the steps of threads that record, of a signal handler, of the final flush and of a reader, with a death
//! between any two steps: each record is in the trace exactly once.

use std::alloc::{Layout, alloc_zeroed};
use std::cell::Cell;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use std::sync::atomic::{
    AtomicU64,
    Ordering::{Relaxed, SeqCst},
};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use spec::buffer::{self, PAGE, REGIONS, SLOTS_OFFSET, SlotLayout, pack_range, region_leftover, slot_writer};
use spec::encode::UntimedRecord;
use spec::{Record, id};

use super::final_flush::{begin_alone, flush_all_slots};
use crate::first_use::process_info;
use crate::process_state::{PROCESS, WorkingProcess};
use crate::recorder::append;
use crate::storage::testing::{HEADERS, add_chunk, forget_slots, make_file_table, new_controls, set_slot_layout};
use crate::storage::{Slot, capacity, file_entry, set_write_through, slot_layout};
use crate::sys;
use crate::sys::interleaving::{Actor, Observer, explore, interrupt_at, observable_step, waiting_step};

const PID: u32 = 4321;

/// The slots and files of a process, and which records its threads have made.
#[derive(Clone)]
pub(super) struct Scene {
    pub(super) directory: PathBuf,
    pub(super) slots: Vec<Slot>,
    /// Bit n of the first: record n has begun; of the second: the call that makes it has returned.
    begun: Arc<AtomicU64>,
    made: Arc<AtomicU64>,
}

// SAFETY: the slots' words are atomics; the rest is used by one actor at a time.
unsafe impl Send for Scene {}

/// The state of the process, which one test at a time uses, and the directories of its scenes. These do not go with a scene:
/// an actor that a jump ends drops nothing, not its scene either.
pub(super) struct LockedProcess {
    _lock: MutexGuard<'static, ()>,
    directories: tempfile::TempDir,
    scenes: Cell<usize>,
}

pub(super) fn lock_process() -> LockedProcess {
    static PROCESS_STATE: Mutex<()> = Mutex::new(());
    let lock = PROCESS_STATE.lock().unwrap_or_else(PoisonError::into_inner);
    process_info::never_write_at_flush();
    LockedProcess { _lock: lock, directories: tempfile::tempdir().unwrap(), scenes: Cell::new(0) }
}

impl LockedProcess {
    fn new_directory(&self) -> PathBuf {
        let number = self.scenes.replace(self.scenes.get() + 1);
        let directory = self.directories.path().join(number.to_string());
        fs::create_dir(&directory).unwrap();
        directory
    }
}

/// Gives the slot to a thread. In its first region records begin at `position`.
fn adopt(slot: Slot, lwp: u32, directory: &Path, position: u32) {
    slot.adopt(lwp, PID, 0x7f00_0000_1000, directory.as_os_str().as_encoded_bytes(), false);
    // What came before is in the file, or was given up; in a ring, the byte before ends a line.
    slot.regions[0].write_position.store(pack_range(position..position), Relaxed);
    if let Some(before) = position.checked_sub(1) {
        // SAFETY: within the region's text, which nobody else knows yet.
        unsafe { slot.region_text(0).add(before as usize).write(b'\n') };
    }
    file_entry(slot, lwp).add_user(slot);
}

impl Scene {
    /// A process with a slot for each of `lwps`. In the first region of each, records begin at `position`.
    pub(super) fn new(process: &LockedProcess, lwps: &[u32], layout: SlotLayout, position: u32) -> Scene {
        let mapped = |size: usize| {
            // SAFETY: the size is not 0. The memory is never given back.
            unsafe { alloc_zeroed(Layout::from_size_align(size, PAGE).unwrap()) }
        };
        set_slot_layout(layout);
        PROCESS.write_through.store(0, Relaxed);
        PROCESS.final_flush_begun.store(0, Relaxed);
        PROCESS.recorded_after_final_flush.store(0, Relaxed);
        PROCESS.ending_lwp.store(0, Relaxed);
        PROCESS.first_late_wait.store(0, Relaxed);
        PROCESS.flushing.release();
        // Forgets the scene before.
        forget_slots(|_, _| ());
        HEADERS[0].store(mapped(SLOTS_OFFSET), SeqCst);
        make_file_table(0, false, WorkingProcess::current()).unwrap();
        let directory = process.new_directory();
        let first = NonNull::new(mapped(layout.slot_size() * lwps.len())).unwrap();
        // SAFETY: the memory of the slots.
        let controls = unsafe { new_controls(first, lwps.len(), layout.slot_size()) }.unwrap();
        let mut slots = Vec::new();
        for (index, &lwp) in lwps.iter().enumerate() {
            // SAFETY: within the memory.
            let slot = unsafe { Slot::at(controls.add(index)) };
            adopt(slot, lwp, &directory, position);
            slots.push(slot);
        }
        // SAFETY: made above, for good.
        unsafe { add_chunk(controls, lwps.len(), |_| ()) };
        Scene { directory, slots, begun: Arc::default(), made: Arc::default() }
    }

    /// Makes the record with this number, less than 64.
    fn record(&self, slot: usize, number: u64) {
        self.begun.fetch_or(1 << number, SeqCst);
        let line = UntimedRecord { kind: &id::SEMA_POST_0, arguments: [1, 0, number, 0, 0] };
        append(self.slots[slot], 1_000_000_000 + number, &[line]);
        self.made.fetch_or(1 << number, SeqCst);
    }

    /// Makes the calling thread the owner of the first slot.
    pub(super) fn adopt_first(&self, position: u32, write_through: bool) {
        // The thread's file may be the same: the slot must not count as a second user of it.
        let lwp = self.slots[0].lwp.load(Relaxed);
        file_entry(self.slots[0], lwp).remove_user(self.slots[0], lwp);
        adopt(self.slots[0], sys::thread_id(), &self.directory, position);
        set_write_through(write_through);
    }

    pub(super) fn recorder(&self, slot: usize, numbers: std::ops::Range<u64>) -> Actor {
        let scene = self.clone();
        Box::new(move || numbers.for_each(|number| scene.record(slot, number)))
    }

    /// As `recorder`, interrupted at its step `step` by a handler that makes the records `nested`.
    fn interrupted(&self, step: usize, numbers: std::ops::Range<u64>, nested: std::ops::Range<u64>) -> Actor {
        let (record, handle) = (self.recorder(0, numbers), self.recorder(0, nested));
        Box::new(move || {
            interrupt_at(step, handle);
            record();
        })
    }

    /// The numbers of the records of a file that holds `text`, completed by what the slots have for it.
    fn records_of(&self, file: &Path, slots: &[Vec<u8>], mut text: Vec<u8>) -> Vec<u64> {
        let name = |lwp: u32| format!("tr.{PID:07x}.{:03x}", lwp & 0xfff);
        let is_of_file = |slot: &&Vec<u8>| file.ends_with(name(buffer::slot_lwp(slot).unwrap().unwrap()));
        let mut unwritten = Vec::new();
        for slot in slots.iter().filter(is_of_file) {
            for region in 0..REGIONS {
                let leftover = region_leftover(slot, slot_layout(), region).unwrap();
                if let Some((at, range)) = leftover.write_intent {
                    let end = at as usize + range.len();
                    text.resize(text.len().max(end), 0);
                    text[at as usize..end].copy_from_slice(&slot[range]);
                }
                let older = &slot[leftover.older];
                let complete = older.iter().position(|&byte| byte == b'\n').map_or(older.len(), |newline| newline + 1);
                unwritten.extend_from_slice(&older[complete..]);
                unwritten.extend_from_slice(&slot[leftover.unwritten]);
            }
        }
        text.extend(unwritten);
        // Of a file with several users a range that was taken may never be written.
        if slots.iter().filter(is_of_file).count() > 1 {
            text.retain(|&byte| byte != 0);
        }
        assert!(!text.contains(&0), "a range that nobody writes: {:?}", String::from_utf8_lossy(&text));
        let lines = text.split_inclusive(|&byte| byte == b'\n');
        lines.map(|line| Record::parse(line.strip_suffix(b"\n").unwrap()).unwrap().arguments[2].bits()).collect()
    }

    fn slot_bytes(&self) -> Vec<Vec<u8>> {
        // SAFETY: the slots' memory; only one actor runs at a time, and it is here.
        let bytes =
            |slot: &Slot| unsafe { std::slice::from_raw_parts(slot.base.as_ptr(), slot_layout().slot_size()).to_vec() };
        self.slots.iter().map(bytes).collect()
    }

    /// The numbers of all records that a reader finds if the process dies now.
    fn found(&self) -> Vec<u64> {
        let slots = self.slot_bytes();
        let files: BTreeSet<PathBuf> = self.slots.iter().map(|slot| self.record_file(slot)).collect();
        files.iter().flat_map(|file| self.records_of(file, &slots, fs::read(file).unwrap_or_default())).collect()
    }

    /// Asserts that each record of the bits `made` is found once, and nothing else but records in progress.
    fn check(&self, made: u64, found: &[u64]) {
        let mut bits = 0u64;
        for &number in found {
            assert_eq!(bits >> number & 1, 0, "record {number} is there twice: {found:?}");
            bits |= 1 << number;
        }
        assert_eq!(made & !bits, 0, "made, but missing: {found:?}");
        assert_eq!(bits & !self.begun.load(SeqCst), 0, "not made: {found:?}");
        assert!(self.slots.iter().all(|slot| slot.lost.load(Relaxed) == 0), "counted as lost");
    }

    /// Lets the process die at every step.
    pub(super) fn observer(&self) -> Observer {
        let scene = self.clone();
        Box::new(move || scene.check(scene.made.load(SeqCst), &scene.found()))
    }

    /// An actor that copies the buffers of the running process and reads the file, by the rules of [`spec::buffer`]: a copy
    /// counts if nobody was writing when it began, and the end of the file and all but the ends of the regions are the same
    /// afterwards.
    fn reader(&self) -> Actor {
        let scene = self.clone();
        Box::new(move || {
            for _ in 0..20 {
                let made = scene.made.load(SeqCst);
                observable_step();
                if let Some(found) = scene.copy_of_running() {
                    return scene.check(made, &found);
                }
                waiting_step();
            }
            panic!("no copy counts");
        })
    }

    fn copy_of_running(&self) -> Option<Vec<u64>> {
        let slot = &self.slots[0];
        let entry = file_entry(*slot, slot.lwp.load(Relaxed));
        let end = entry.end();
        observable_step();
        let mut copy = self.slot_bytes().swap_remove(0);
        if slot_writer(&copy) != Ok(0) {
            return None;
        }
        observable_step();
        copy[PAGE..].copy_from_slice(&self.slot_bytes()[0][PAGE..]);
        observable_step();
        let after = &self.slot_bytes()[0];
        let only_grew = (0..REGIONS).all(|region| {
            let words = |slot: &[u8]| {
                let leftover = region_leftover(slot, slot_layout(), region).unwrap();
                (leftover.write_intent, leftover.unwritten.start)
            };
            words(&copy) == words(after)
        });
        observable_step();
        if !only_grew || entry.end() != end {
            return None;
        }
        observable_step();
        let file = self.record_file(slot);
        let mut text = fs::read(&file).unwrap_or_default();
        text.truncate(end as usize);
        Some(self.records_of(&file, &[copy], text))
    }

    pub(super) fn record_file(&self, slot: &Slot) -> PathBuf {
        self.directory.join(format!("tr.{PID:07x}.{:03x}", slot.lwp.load(Relaxed) & 0xfff))
    }

    /// An actor that writes out all slots, as at the process's end.
    fn final_flush(&self) -> Actor {
        Box::new(|| {
            assert!(begin_alone());
            flush_all_slots();
        })
    }
}

/// So near the end of the first region that a few records fill it.
pub(super) fn nearly_full() -> u32 {
    capacity(0) - 400
}

/// How often an actor is stopped that could go on: more find more, and take the square of the time. `make soak` has two.
fn preemptions() -> usize {
    1 + usize::from(std::env::var_os("THREADT_SOAK").is_some_and(|soak| soak == "long"))
}

/// More steps than a recorder of a few records has: beyond its last step the signal does not come.
pub(super) const STEPS: usize = 60;

#[test]
fn a_full_buffer_is_written_once_whenever_the_process_dies() {
    let process = lock_process();
    let orders = explore(0, || {
        let scene = Scene::new(&process, &[5], SlotLayout::BUFFERS, nearly_full());
        (vec![scene.recorder(0, 0..8)], scene.observer())
    });
    assert_eq!(orders, 1);
}

#[test]
fn a_handler_that_records_at_any_step_neither_loses_nor_doubles() {
    let process = lock_process();
    for (write_through, position) in [(false, nearly_full()), (true, 0)] {
        for step in 0..STEPS {
            explore(0, || {
                let scene = Scene::new(&process, &[5], SlotLayout::BUFFERS, position);
                set_write_through(write_through);
                (vec![scene.interrupted(step, 0..6, 10..13)], scene.observer())
            });
        }
    }
}

#[test]
fn the_final_flush_meets_records_at_any_step() {
    let process = lock_process();
    explore(preemptions(), || {
        let scene = Scene::new(&process, &[5], SlotLayout::BUFFERS, nearly_full());
        (vec![scene.recorder(0, 0..3), scene.final_flush()], scene.observer())
    });
}

#[test]
fn the_final_flush_meets_a_handler_at_any_step() {
    let process = lock_process();
    for step in 0..STEPS {
        explore(preemptions() - 1, || {
            let scene = Scene::new(&process, &[5], SlotLayout::BUFFERS, nearly_full());
            (vec![scene.interrupted(step, 0..3, 10..12), scene.final_flush()], scene.observer())
        });
    }
}

#[test]
fn the_final_flush_meets_a_ring_at_any_step() {
    let process = lock_process();
    let layout = SlotLayout::ring(64 * 1024).unwrap();
    explore(preemptions(), || {
        set_slot_layout(layout);
        let scene = Scene::new(&process, &[5], layout, capacity(0) - 400);
        (vec![scene.recorder(0, 0..5), scene.final_flush()], scene.observer())
    });
    set_slot_layout(SlotLayout::BUFFERS);
}

#[test]
fn two_threads_share_a_file() {
    let process = lock_process();
    explore(preemptions(), || {
        let scene = Scene::new(&process, &[0x1_0005, 0x2_0005], SlotLayout::BUFFERS, nearly_full());
        (vec![scene.recorder(0, 0..6), scene.recorder(1, 10..16)], scene.observer())
    });
}

#[test]
fn a_reader_copies_a_running_process_at_any_step() {
    let process = lock_process();
    explore(preemptions(), || {
        let scene = Scene::new(&process, &[5], SlotLayout::BUFFERS, nearly_full());
        (vec![scene.recorder(0, 0..6), scene.reader()], scene.observer())
    });
}
