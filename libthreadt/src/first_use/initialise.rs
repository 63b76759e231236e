//! Initialises the library in a process: in the program at the first hook, in a forked child at the child's first hook.

use core::sync::atomic::Ordering::Relaxed;

use super::files::{patience, prepare_files};
use super::origin::Origin;
use super::own_variables::are_variables_shared;
use crate::clock;
use crate::config::{self, CONFIG};
use crate::control;
use crate::glibc::{self, next_functions};
use crate::process_state::{self, PROCESS, ProcessState, SWITCHES, Switch, is_initialised};
use crate::storage::{self, thread_local};
use crate::sys::{
    self, INHERITED, Once, Reentry, SetOnce, diagnostics, memory_group, noted_forks, seccomp, thread_word,
};
use crate::trace_dir::{directory, info_file};
use crate::unwind;

/// The library has read its environment, in this process or in one that it was forked from.
static CONFIGURED: Once = Once::new();

/// The switches of a process in which recording begins.
static CONFIGURED_SWITCHES: SetOnce<[Switch; SWITCHES]> = SetOnce::new([Switch::OFF; SWITCHES]);

/// The switch at a place of [`ProcessState`], by what the environment asks for. Initialises the library if it is not.
#[inline(always)]
pub fn configured_switch_at(place: usize) -> Switch {
    match process_state::loaded_switch(place) {
        Some(switch) => switch,
        None => initialise_and_load(place),
    }
}

#[cold]
#[inline(never)]
fn initialise_and_load(place: usize) -> Switch {
    initialise();
    process_state::loaded_switch(place).unwrap_or_else(|| switch_meanwhile(place))
}

/// The switch in a forked child that is being initialised: by this thread, which a signal handler has interrupted, or by another
/// one that sleeps. What is recorded then is kept.
fn switch_meanwhile(place: usize) -> Switch {
    if !is_being_initialised() {
        return Switch::OFF;
    }
    // Nothing may be noted or recorded in the parent's.
    thread_word::set_shared(false);
    thread_local::set_aside();
    CONFIGURED_SWITCHES.get()[place % SWITCHES]
}

/// Whether this process is a forked child in which the library is just being initialised.
pub fn is_being_initialised() -> bool {
    CONFIGURED.is_done() && PROCESS.initialised.is_busy() && process_state::owns_memory()
}

/// Whether anything is recorded at all.
pub fn is_recording() -> bool {
    initialise() && CONFIG.get().may_record()
}

/// Whether it is known that nothing will ever be recorded: a forked child then has nothing to do, and no page of its own for that.
#[inline]
pub fn records_nothing() -> bool {
    CONFIGURED.is_done() && !CONFIG.get().may_record()
}

/// Initialises the library in this process; `false` if this thread is doing that already, or if this process only uses
/// the memory of another one, which is not initialised.
pub fn initialise() -> bool {
    if is_initialised() {
        return true;
    }
    // A resolver of another library may call hooks while this one is not relocated: it gets the next functions only.
    if !glibc::is_relocated() || CONFIGURED.is_done() && (is_unrecordable() || !process_state::owns_memory()) {
        return false;
    }
    // Only to configure the library other functions are called.
    let reentry = if CONFIGURED.is_done() { Reentry::BySignals } else { Reentry::ByCalls };
    let work = || {
        // First: a signal handler may fork from here on, and its child be initialised before it returns into this.
        let Some(number) = begin_numbered() else { return false };
        let is_child = CONFIGURED.is_done() && PROCESS.has_forgotten_parent.load(Relaxed) == 0;
        if is_child {
            // The kernel is asked for nothing before.
            sys::user_dispatch::forget();
        }
        let pid = sys::process_id();
        let has_number = || PROCESS.initialisation.load(Relaxed) == number;
        // The number last: the kernel's answer may be the parent's, since signals come when it answers.
        let is_current = || sys::process_id() == pid && has_number();
        // A jump may have left this work in this process before: then nothing is a parent's.
        if is_child && has_number() {
            note_parent(pid, has_number);
            forget_parent(Origin::of_this_process(), is_current);
        }
        if !is_current() {
            return false;
        }
        PROCESS.owner.store(owner_of(pid), Relaxed);
        PROCESS.has_forgotten_parent.store(1, Relaxed);
        CONFIGURED.run_calling_others(|| {
            configure();
            true
        });
        let now = clock::now_fenced();
        if !is_current() {
            return false;
        }
        PROCESS.initialised_at.store(now, Relaxed);
        PROCESS.pid.store(pid, Relaxed);
        INHERITED.last_pid.store(pid, Relaxed);
        PROCESS.write_through.store(u32::from(CONFIG.get().unbuffered), Relaxed);
        for (index, switch) in CONFIGURED_SWITCHES.get().iter().enumerate() {
            process_state::set_switch(index, *switch);
        }
        PROCESS.records_directly.store(u32::from(!CONFIG.get().has_handler), Relaxed);
        true
    };
    // The number tells another thread, which was at this before, that it is so no more.
    let initialised = PROCESS.initialised.run_unless_asleep(reentry, patience(), || true, |_| (), work);
    if initialised && CONFIG.get().may_record() && (CONFIG.get().shows_itself || control::changes() != 0) {
        prepare_files();
    }
    initialised
}

/// Whether this process is a forked child that is not to be initialised. One that has begun with that is.
fn is_unrecordable() -> bool {
    let has_begun = PROCESS.initialised.is_busy() || PROCESS.has_forgotten_parent.load(Relaxed) != 0;
    !has_begun && CONFIG.get().may_record() && are_variables_shared()
}

/// Gives this initialisation a number, by which it knows that it is still this process's; `None` in a child that returns here, whose own
/// has got one.
fn begin_numbered() -> Option<u64> {
    let before = PROCESS.initialisation.load(Relaxed);
    let number = 1 + INHERITED.last_initialisation.fetch_add(1, Relaxed);
    PROCESS.initialisation.compare_exchange(before, number, Relaxed, Relaxed).is_ok().then_some(number)
}

/// As [`initialise`], in the thread that ends the process or calls exec, and also if that has left the initialisation of a forked
/// child by a jump, or interrupted it. Should it return to it, because exec fails, no further step is taken there.
pub fn initialise_at_end() -> bool {
    if CONFIGURED.is_done() {
        PROCESS.initialised.give_up(sys::thread_id());
    }
    initialise()
}

/// What the page has as its owner. 0 is the ID where a filter forbids to ask for it; then the page has an owner, too.
fn owner_of(pid: u32) -> u32 {
    pid.max(1)
}

/// Configures the library, once in a program.
fn configure() {
    diagnostics::remember_stderr();
    clock::find();
    next_functions::look_up_all();
    glibc::calibrate();
    directory::note_wanted(config::directory());
    seccomp::note_filter();
    // SAFETY: within CONFIGURED, which all readers have passed.
    unsafe {
        *CONFIG.get_mut() = config::read();
        if CONFIG.get().may_record() {
            unwind::note_modules();
        }
    }
    control::begin();
    if let Some((_, settings)) = control::words().current() {
        // SAFETY: as above.
        unsafe { *CONFIGURED_SWITCHES.get_mut() = core::array::from_fn(|place| control::switch_at(&settings, place)) };
    }
    if !CONFIG.get().may_record() {
        // Children inherit switches that are all off.
        return;
    }
    // SAFETY: within CONFIGURED.
    unsafe { memory_group::note() };
    // SAFETY: the page is private, zero-initialised memory of this library, and a child is meant to lose it.
    // Where the kernel refuses, only children made by fork() and _Fork() are recognised.
    let _ = unsafe { sys::wipe_on_fork((&raw const PROCESS).cast(), size_of::<ProcessState>()) };
    let _ = sys::register_barrier();
}

/// Notes who the parent of the child `pid` is, once: this child is who forks from here on. Its own child, which is not `is_current`,
/// notes nothing when it returns here.
fn note_parent(pid: u32, is_current: impl Fn() -> bool) {
    if PROCESS.owner.load(Relaxed) != owner_of(pid) {
        let parent = INHERITED.last_pid.load(Relaxed);
        let has_begun = PROCESS.has_begun_trace.load(Relaxed);
        process_state::wipe_left_by_parent(&is_current);
        if !is_current() {
            return;
        }
        PROCESS.has_begun_trace.store(has_begun, Relaxed);
        PROCESS.unrecorded_parent.store(parent, Relaxed);
        PROCESS.forked_from.store(parent, Relaxed);
        process_state::change_place();
        // Before the next: who finds that the process initialised last is its parent takes a page without an owner for its own.
        PROCESS.owner.store(owner_of(pid), Relaxed);
        INHERITED.last_pid.store(pid, Relaxed);
    }
}

/// Forgets what a forked child has inherited from its parent. Its own child, which is not `is_current`, may have forgotten more, and
/// have slots and files of its own: it returns here and forgets nothing of that.
fn forget_parent(origin: Origin, is_current: impl Fn() -> bool) {
    let slot = thread_local::current().or_else(thread_local::that_was_set_aside);
    let lwp = slot.map_or(0, |slot| slot.lwp.load(Relaxed));
    let is_interrupted = |slot: &storage::Slot| {
        !origin.begins_anew() && (slot.has_record_in_progress() || slot.writer.load(Relaxed) != 0)
    };
    let here = if origin.begins_anew() { None } else { Some(sys::stack::stack_pointer()) };
    let steps: [&dyn Fn(); 6] = [
        &|| control::detach(&is_current),
        &control::forget_losses,
        &|| {
            thread_word::set_shared(false);
            if origin.begins_anew() {
                // A signal handler may have made it from within the handler of records.
                thread_word::set_handling(false);
            }
            thread_local::set_current(None);
        },
        &|| storage::forget(slot.filter(is_interrupted)),
        &|| {
            sys::file_size::end_all_changes();
            sys::host_numbers::forget();
            unwind::CLOSINGS.forget();
            sys::end_borrowed_user();
            sys::close_inherited(lwp, sys::thread_id(), here, origin.has_parents_table());
            noted_forks::forget();
            thread_local::forget_set_aside();
        },
        &info_file::forget,
    ];
    for step in steps {
        if !is_current() {
            return;
        }
        step();
    }
    // The child may be in another time namespace.
    clock::check();
    let _ = sys::register_barrier();
}

/// Initialises the library in a child, right after a fork.
pub fn after_fork_in_child(origin: Origin) {
    if CONFIG.get().may_record() {
        process_state::wipe_after_fork();
        origin.note();
        initialise();
    }
}
