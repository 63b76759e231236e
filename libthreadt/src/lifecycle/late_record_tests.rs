//! Threads that hand a lock to each other while the process gives up its trbuf, and ends at any step.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use spec::buffer::SlotLayout;
use spec::encode::UntimedRecord;
use spec::id;

use super::final_flush::{begin_alone, begin_without_trbuf, flush_all_slots};
use super::interleaving_tests::{LockedProcess, Scene, lock_process};
use crate::process_state::{ENDS_LATE, PROCESS};
use crate::recorder::{append, note_release, release_is_recorded};
use crate::storage::{Slot, thread_local};
use crate::sys::interleaving::{Actor, Observer, explore, observable_step, waiting_step};

const MUTEX: u64 = 0x1000;
/// Readings of the clock.
const RELEASED_AT: u64 = 1_000_000_000;
const ACQUIRED_AT: u64 = RELEASED_AT + 1;

/// A mutex that the first thread releases and the second one acquires, and the trbuf.
#[derive(Clone)]
struct Handover {
    scene: Scene,
    is_released: Arc<AtomicBool>,
    is_trbuf_gone: Arc<AtomicBool>,
    /// The ending thread runs code of the program's before the process has ended.
    ends_later: bool,
}

impl Handover {
    fn new(process: &LockedProcess, ends_later: bool) -> Handover {
        let scene = Scene::new(process, &[5, 6], SlotLayout::BUFFERS, 0);
        Handover { scene, is_released: Arc::default(), is_trbuf_gone: Arc::default(), ends_later }
    }

    fn slot(&self, thread: usize) -> Slot {
        self.scene.slots[thread]
    }

    fn releaser(&self) -> Actor {
        let handover = self.clone();
        Box::new(move || {
            let slot = handover.slot(0);
            thread_local::set_current(Some(slot));
            // Here the others go on in any case, without a preemption; so below. More such places take too long with three actors.
            if handover.ends_later {
                waiting_step();
            }
            let noted = note_release(id::MUTEX_UNLOCK, MUTEX, RELEASED_AT);
            observable_step();
            handover.is_released.store(true, SeqCst);
            waiting_step();
            let line = UntimedRecord { kind: &id::MUTEX_UNLOCK_0, arguments: [MUTEX, 0, 0, 0, 0] };
            append(slot, RELEASED_AT, &[line]);
            release_is_recorded(noted);
            thread_local::set_current(None);
        })
    }

    fn acquirer(&self) -> Actor {
        let handover = self.clone();
        Box::new(move || {
            while !handover.is_released.load(SeqCst) {
                waiting_step();
            }
            let line = UntimedRecord { kind: &id::MUTEX_LOCK_1, arguments: [MUTEX, 0, 0, 0, 0] };
            append(handover.slot(1), ACQUIRED_AT, &[line]);
        })
    }

    fn ending_thread(&self) -> Actor {
        let handover = self.clone();
        Box::new(move || {
            PROCESS.final_flush_begun.store(1, SeqCst);
            assert!(begin_alone());
            let complete = flush_all_slots();
            waiting_step();
            if complete && begin_without_trbuf() {
                handover.is_trbuf_gone.store(true, SeqCst);
                observable_step();
            }
        })
    }

    /// As `ending_thread`. Then a function of the program's acquires the mutex, before the process has ended.
    fn ending_thread_that_acquires(&self) -> Actor {
        let (end, acquire) = (self.ending_thread(), self.acquirer());
        Box::new(move || {
            end();
            acquire();
        })
    }

    /// Lets the process end at every step: if the trbuf is gone, the files alone say who has the mutex.
    fn observer(&self, is_cut_off: &Arc<AtomicBool>) -> Observer {
        let (handover, is_cut_off) = (self.clone(), is_cut_off.clone());
        // A process that has not ended while its threads waited for that, is no more tested.
        let mut has_lasted = false;
        Box::new(move || {
            has_lasted |= handover.is_trbuf_gone.load(SeqCst) && PROCESS.ending_lwp.load(SeqCst) == ENDS_LATE;
            if !handover.is_trbuf_gone.load(SeqCst) || has_lasted && !handover.ends_later {
                return;
            }
            let has_record = |thread: usize| {
                let file = handover.scene.record_file(&handover.slot(thread));
                fs::metadata(file).is_ok_and(|metadata| metadata.len() > 0)
            };
            let (released, acquired) = (has_record(0), has_record(1));
            assert!(released || !acquired, "acquired, but never released");
            is_cut_off.fetch_or(handover.is_released.load(SeqCst) && !released, SeqCst);
        })
    }
}

/// Tries all orders of the steps of `actors`.
fn explore_ends(ends_later: bool, actors: impl Fn(&Handover) -> Vec<Actor>) {
    let process = lock_process();
    let is_cut_off = Arc::default();
    let orders = explore(1, || {
        let handover = Handover::new(&process, ends_later);
        (actors(&handover), handover.observer(&is_cut_off))
    });
    println!("{orders} orders");
    assert!(is_cut_off.load(SeqCst), "no release was cut off");
}

#[test]
fn a_lock_is_not_handed_over_without_its_release_when_the_trbuf_is_gone() {
    explore_ends(false, |handover| vec![handover.releaser(), handover.acquirer(), handover.ending_thread()]);
}

#[test]
fn nor_is_it_handed_over_to_the_thread_that_ends_the_process() {
    explore_ends(true, |handover| vec![handover.releaser(), handover.ending_thread_that_acquires()]);
}
