//! Whether a call is recorded: what hooks ask first.
//!
//! As long as nobody has changed anything, that is what the environment asks for. From then on each thread follows
//! a table of its own, in its slot. At the first call after a change the thread makes that table anew and records that it
//! has; so every call between two such records of a thread was decided by one table. Where a handler has the records instead of the
//! trace, threads have no slots: they follow the settings at each call, and a table shows which ones a thread has followed last.

use core::sync::atomic::Ordering::Relaxed;

use spec::buffer::Settings;
use spec::{EventId, id};

use super::append::write_out;
use super::followed_settings::{begin_following, note_followed};
use super::handler;
use super::record::put;
use super::thread_slot::slot_or_claim;
use crate::config::CONFIG;
use crate::first_use::{configured_switch_at, process_info};
use crate::process_state::{self, PROCESS, SWITCHES, Switch};
use crate::storage::{Slot, thread_local};
use crate::sys::thread_word;
use crate::{clock, config, control};

/// Whether calls of this event are recorded; for mutex events, of either category.
#[inline(always)]
pub fn records(id: EventId) -> bool {
    switch(id).is_on()
}

/// Which calls of this event are recorded. Initialises the library if it is not.
#[inline(always)]
pub fn switch(id: EventId) -> Switch {
    switch_at(id.index())
}

/// The switch at a place of [`crate::process_state::ProcessState`]. Initialises the library if it is not.
#[inline(always)]
pub fn switch_at(place: usize) -> Switch {
    let configured = configured_switch_at(place);
    if control::changes() == 0 { configured } else { changed_switch_at(place, configured) }
}

/// The same in a process in which something was changed.
#[inline(never)]
fn changed_switch_at(place: usize, configured: Switch) -> Switch {
    // The slot of a child that is not initialised is its parent's.
    match thread_local::current().filter(|_| process_state::is_initialised()) {
        Some(slot) if slot.changes_seen.load(Relaxed) == control::changes() => own_switch(slot, place),
        current => notice_change(current, place, configured),
    }
}

/// The switch in the thread's own table.
#[inline(always)]
fn own_switch(slot: Slot, place: usize) -> Switch {
    Switch::from_bits(slot.switches[place % SWITCHES].load(Relaxed))
}

/// Lets this thread follow the settings. It gets a slot for that if it has none, and if it is to record this call.
#[cold]
#[inline(never)]
fn notice_change(current: Option<Slot>, place: usize, configured: Switch) -> Switch {
    let current = current.or_else(thread_local::own).filter(|_| process_state::is_initialised());
    if let Some(slot) = current.filter(|slot| slot.changes_seen.load(Relaxed) == control::changes()) {
        return own_switch(slot, place);
    }
    if PROCESS.recording_ended.load(Relaxed) != 0 {
        return Switch::OFF;
    }
    let mut current_settings = control::words().current();
    let Some(slot) = current.or_else(|| {
        let (_, settings) = current_settings.as_ref()?;
        let wanted = control::switch_at(settings, place).is_on() && !thread_word::is_muted();
        if wanted { slot_or_claim(0, clock::now_fenced(), &[]) } else { None }
    }) else {
        let Some((_, settings)) = current_settings else { return configured };
        follow_without_slot(&settings);
        return control::switch_at(&settings, place);
    };
    while let Some((changes, settings)) = current_settings {
        let seen = slot.changes_seen.load(Relaxed);
        for (place, own) in slot.switches.iter().enumerate() {
            own.store(control::switch_at(&settings, place).bits(), Relaxed);
        }
        // A signal handler may have come in between, and have noticed a later change.
        if slot.changes_seen.compare_exchange(seen, changes, Relaxed, Relaxed).is_ok() {
            follow(slot, &settings);
            break;
        }
        current_settings = control::words().current();
    }
    // Where the settings could not be read, all is as before.
    if slot.changes_seen.load(Relaxed) == 0 { configured } else { own_switch(slot, place) }
}

/// Records that this thread follows these settings.
fn follow(slot: Slot, settings: &Settings) {
    config::change(settings.detail, settings.stack_frames);
    if slot.generation_seen.swap(settings.generation, Relaxed) != settings.generation {
        record_settings(settings);
    }
    if slot.flushes_seen.swap(settings.flushes, Relaxed) != settings.flushes {
        write_out(slot);
    }
}

fn record_settings(settings: &Settings) {
    if PROCESS.described_generation.load(Relaxed) != settings.generation {
        process_info::write_changes();
    }
    let columns = [settings.generation.into(), settings.only_blocked.into(), settings.paused.into(), 0, 0];
    put(&id::TRACE_EVENTS_0, clock::now_fenced(), columns);
}

/// Gives the handler a record, if this thread has not seen these settings and the handler has its records for itself.
fn follow_without_slot(settings: &Settings) {
    // The handler's own calls are not recorded.
    if thread_word::is_handling() || !handler::is_instead_of_trace() {
        return;
    }
    config::change(settings.detail, settings.stack_frames);
    if note_followed(settings.generation) && settings.generation != 0 {
        record_settings(settings);
    }
}

/// A thread begins, before its first call.
pub fn begin_thread() {
    if control::changes() != 0 && CONFIG.get().has_handler {
        begin_following();
    }
}
