//! Signal handlers that leave what they have interrupted by a jump, or call an exec that fails, at any step.

use std::arch::naked_asm;
use std::cell::Cell;
use std::fs;
use std::mem::ManuallyDrop;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;

use spec::buffer::{SlotLayout, pack_range};

use super::exec;
use super::final_flush::flush_all_slots;
use super::interleaving_tests::{LockedProcess, STEPS, Scene, lock_process, nearly_full};
use crate::process_state::PROCESS;
use crate::recorder::claim_slot;
use crate::storage::testing::{FRESH, set_slot_layout};
use crate::storage::thread_local;
use crate::storage::{RESERVE, Slot, capacity, file_entry};
use crate::sys::interleaving::{Actor, cancel_interrupt, explore, interrupt_at};

/// Runs `work`; the jump of [`leave`] ends it. Returns whether there was one.
///
/// The jump is `siglongjmp`'s: nothing is dropped. It leads into this frame once, so that no call returns twice.
fn until_left(work: Actor) -> bool {
    /// The callee-saved registers, the stack pointer and where to go on.
    #[unsafe(naked)]
    unsafe extern "C" fn run(place: *mut usize, function: extern "C" fn(*mut Actor), work: *mut Actor) -> usize {
        naked_asm!(
            "push rbx",
            "push rbp",
            "push r12",
            "push r13",
            "push r14",
            "push r15",
            "sub rsp, 8",
            "mov [rdi], rsp",
            "mov rdi, rdx",
            "call rsi",
            "xor eax, eax",
            "add rsp, 8",
            "pop r15",
            "pop r14",
            "pop r13",
            "pop r12",
            "pop rbp",
            "pop rbx",
            "ret",
        )
    }
    extern "C" fn call(work: *mut Actor) {
        // SAFETY: the caller's Actor, which is moved out of its place.
        let work = unsafe { work.read() };
        work();
    }
    let mut work = ManuallyDrop::new(work);
    let place = LEFT_TO.with(|place| place.as_ptr());
    // SAFETY: `call` has this signature. After a jump nothing is used that the work has borrowed.
    unsafe { run(place, call, &raw mut *work) != 0 }
}

thread_local! {
    static LEFT_TO: Cell<usize> = const { Cell::new(0) };
}

/// Jumps out of the work that [`until_left`] runs.
fn leave() {
    #[unsafe(naked)]
    unsafe extern "C" fn jump(stack: usize) -> ! {
        naked_asm!(
            "mov rsp, rdi",
            "mov eax, 1",
            "add rsp, 8",
            "pop r15",
            "pop r14",
            "pop r13",
            "pop r12",
            "pop rbp",
            "pop rbx",
            "ret",
        )
    }
    // SAFETY: `run` has noted its stack, and has not returned.
    unsafe { jump(LEFT_TO.get()) }
}

/// Makes records in the first slot. At the step `step` a signal handler comes, records, and leaves by a jump. Goes on after
/// it.
fn record_and_leave(scene: &Scene, step: usize) {
    record_until_left(scene, step, 0..6, 10..13);
    scene.recorder(0, 20..26)();
}

/// Makes the records `numbers` in the first slot. At the step `step` a signal handler comes, makes the records `nested`, and leaves
/// by a jump.
fn record_until_left(scene: &Scene, step: usize, numbers: Range<u64>, nested: Range<u64>) {
    let (handle, record) = (scene.recorder(0, nested), scene.recorder(0, numbers));
    until_left(Box::new(move || {
        let handler: Actor = Box::new(move || {
            handle();
            leave();
        });
        interrupt_at(step, handler);
        record();
        cancel_interrupt();
    }));
}

/// How many descriptors are open for files in this directory.
fn open_files(directory: &Path) -> usize {
    let entries = fs::read_dir("/proc/self/fd").unwrap().flatten();
    entries.filter(|entry| fs::read_link(entry.path()).is_ok_and(|target| target.starts_with(directory))).count()
}

/// Runs `work` with a new scene for each step at which a handler can come. In the first region records begin at `position`.
fn at_each_step(process: &LockedProcess, position: u32, work: impl Fn(&Scene, usize) + Copy + Send + 'static) {
    for step in 0..STEPS {
        explore(0, || {
            let scene = Scene::new(process, &[5], SlotLayout::BUFFERS, position);
            let (actor, observer) = (scene.clone(), scene.observer());
            (vec![Box::new(move || work(&actor, step))], observer)
        });
    }
}

#[test]
fn a_handler_that_leaves_by_a_jump_at_any_step_costs_its_record_alone() {
    let process = lock_process();
    for (write_through, position) in [(false, nearly_full()), (true, 0)] {
        at_each_step(&process, position, move |scene, step| {
            scene.adopt_first(position, write_through);
            record_and_leave(scene, step);
            assert_eq!(scene.slots[0].writer.load(Relaxed), 0, "the jump has left a writer");
            assert!(!scene.slots[0].has_record_in_progress(), "the jump has left a record");
            flush_all_slots();
            assert_eq!(open_files(&scene.directory), 0, "the jump has left a descriptor");
        });
    }
}

#[test]
fn a_handler_that_writes_behind_what_it_leaves_by_a_jump_leaves_no_hole() {
    let process = lock_process();
    // The third record writes those before it.
    let position = capacity(0) - RESERVE - 100;
    at_each_step(&process, position, move |scene, step| {
        scene.adopt_first(position, false);
        // The handler's region is full after one record.
        let slot = scene.slots[0];
        let nearly = slot.flush_thresholds[1].load(Relaxed) - 1;
        slot.regions[1].write_position.store(pack_range(nearly..nearly), Relaxed);
        record_and_leave(scene, step);
        flush_all_slots();
    });
}

/// Each record is written at once. The first jump leaves text in the handler's region, the second one the write of it, noted or not,
/// or that of the thread's own text, and the third one the next write, in which the third handler may write its region.
#[test]
fn jumps_one_after_the_other_leave_no_hole() {
    /// A step at which the thread is the writer, so that its handler only appends.
    const IN_WRITE: usize = 12;
    let process = lock_process();
    for position in [0, capacity(1) / 2 - 100] {
        for (second, third) in (0..STEPS).flat_map(|second| (0..STEPS).map(move |third| (second, third))) {
            explore(0, || {
                let scene = Scene::new(&process, &[5], SlotLayout::BUFFERS, 0);
                let (actor, observer) = (scene.clone(), scene.observer());
                let work = move || {
                    PROCESS.final_flush_begun.store(1, Relaxed);
                    actor.adopt_first(0, true);
                    actor.slots[0].regions[1].write_position.store(pack_range(position..position), Relaxed);
                    record_until_left(&actor, IN_WRITE, 0..2, 10..12);
                    record_until_left(&actor, second, 20..22, 23..24);
                    record_until_left(&actor, third, 30..32, 33..34);
                    actor.recorder(0, 40..42)();
                    flush_all_slots();
                };
                (vec![Box::new(work)], observer)
            });
        }
    }
    PROCESS.final_flush_begun.store(0, Relaxed);
}

/// Handlers that record or do not, and go on or leave by a jump, interrupt two claims of a thread's slot in turn.
#[test]
fn a_claim_that_is_interrupted_at_any_step_leaves_one_user_of_the_file() {
    const CLAIM_STEPS: usize = 16;
    let process = lock_process();
    let ways = (0..4).map(|way| (way & 1 != 0, way & 2 != 0));
    for (claims, leaves) in ways {
        for (first, second) in (0..CLAIM_STEPS).flat_map(|first| (0..CLAIM_STEPS).map(move |second| (first, second))) {
            explore(0, || {
                let scene = Scene::new(&process, &[5, 6, 7, 8, 9, 10], SlotLayout::BUFFERS, 0);
                while Slot::take_from(&FRESH).is_some() {}
                for &slot in &scene.slots {
                    let lwp = slot.lwp.load(Relaxed);
                    file_entry(slot, lwp).remove_user(slot, lwp);
                    slot.set_lwp(0);
                    slot.state.store(0, Relaxed);
                    slot.put_into(&FRESH);
                }
                let work = move || {
                    for step in [first, second] {
                        until_left(Box::new(move || {
                            let handler = move || {
                                if claims && thread_local::current().is_none() {
                                    claim_slot().expect("there are slots");
                                }
                                if leaves {
                                    leave();
                                }
                            };
                            interrupt_at(step, Box::new(handler));
                            if thread_local::current().is_none() {
                                claim_slot().expect("there are slots");
                            }
                            cancel_interrupt();
                        }));
                        cancel_interrupt();
                    }
                    let own = thread_local::current().or_else(claim_slot).expect("there are slots");
                    let lwp = own.lwp.load(Relaxed);
                    let entry = file_entry(own, lwp);
                    // As the first range that the slot takes does.
                    entry.add_user(own);
                    assert!(entry.sole_user().is_some(), "several users after jumps at steps {first} and {second}");
                    entry.remove_user(own, lwp);
                    thread_local::set_current(None);
                };
                (vec![Box::new(work)], Box::new(|| ()))
            });
        }
    }
}

#[test]
fn a_handler_whose_exec_fails_at_any_step_neither_loses_nor_doubles() {
    let process = lock_process();
    let ring = SlotLayout::ring(64 * 1024).unwrap();
    for (layout, write_through) in [(SlotLayout::BUFFERS, false), (SlotLayout::BUFFERS, true), (ring, false)] {
        for step in 0..STEPS {
            explore(0, || {
                set_slot_layout(layout);
                let position = if write_through { 0 } else { nearly_full() };
                let scene = Scene::new(&process, &[5], layout, position);
                let (actor, observer) = (scene.clone(), scene.observer());
                let work = move || {
                    actor.adopt_first(position, write_through);
                    thread_local::set_current(Some(actor.slots[0]));
                    let (before, after) = (actor.recorder(0, 10..11), actor.recorder(0, 11..12));
                    let handler: Actor = Box::new(move || {
                        before();
                        exec::run(true, || -1);
                        after();
                    });
                    interrupt_at(step, handler);
                    actor.recorder(0, 0..6)();
                    cancel_interrupt();
                    thread_local::set_current(None);
                };
                (vec![Box::new(work)], observer)
            });
        }
    }
    set_slot_layout(SlotLayout::BUFFERS);
}
