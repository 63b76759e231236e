//! What users change while the process runs: the words in the header of its trbuf.
//!
//! The page with the words is in a static of this library, so that a hook tests a word at a fixed address. It is memory of
//! the process's own at first; once there is a trbuf, the first page of that is mapped in its place. The values only
//! choose what is recorded, whatever they are.

use core::cell::UnsafeCell;
use core::mem::offset_of;
use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::{Relaxed, Release};

use spec::buffer::{CONTROL_OFFSET, CONTROL_VERSION, ControlWords, PAGE, Settings};
use spec::tables::{EVENTS, MUTEX, RMUTEX, USER};
use spec::{Event, EventId, Level};

use crate::config::{self, CONFIG};
use crate::process_state::{self, Switch, USER_EVENTS};
use crate::sys::{self, Errno, Fd};

/// The page.
#[repr(C, align(4096))]
pub struct ControlPage {
    page: UnsafeCell<[u8; PAGE]>,
}

// SAFETY: all that is used of it is atomics.
unsafe impl Sync for ControlPage {}

pub static CONTROL: ControlPage = ControlPage { page: UnsafeCell::new([0; PAGE]) };

/// Where in the page the count of changes is, for hooks that are written in assembly.
pub const CHANGES_OFFSET: usize = CONTROL_OFFSET + offset_of!(ControlWords, changes);

/// 1 while the page is that of a trbuf.
#[unsafe(link_section = "inherited")]
static IS_MAPPED: AtomicU32 = AtomicU32::new(0);
/// What the page has while another one is put in its place.
#[unsafe(link_section = "inherited")]
static KEPT: ControlWords = ControlWords::new();

const _: () = assert!(CONTROL_OFFSET.is_multiple_of(align_of::<ControlWords>()) && size_of::<ControlPage>() == PAGE);

/// The words.
#[inline(always)]
pub fn words() -> &'static ControlWords {
    // SAFETY: within the page, aligned, and mapped for good; every pattern of bytes is valid.
    unsafe { &*CONTROL.page.get().cast::<u8>().add(CONTROL_OFFSET).cast() }
}

/// How often something was changed.
#[inline(always)]
pub fn changes() -> u32 {
    // ORDERING: Relaxed; a thread that sees a change late goes on as before.
    words().changes.load(Relaxed)
}

/// Notes what the environment asks for, as long as nothing has been changed.
pub fn begin() {
    let config = CONFIG.get();
    words().settings[0].store(&Settings {
        events: config.events,
        generation: 0,
        flushes: 0,
        stack_frames: config::stack_frames(),
        only_blocked: config.only_blocked,
        detail: config::is_detailed(),
        paused: false,
    });
}

/// Lets users change this process by the trbuf `fd`, whose header is mapped at `header`. If the program before an exec was
/// changed, this one goes on so.
///
/// # Safety
/// `header` must be the first page of `fd`, mapped for good.
pub unsafe fn attach(header: *mut u8, fd: &Fd) {
    // SAFETY: the caller's.
    let theirs: &ControlWords = unsafe { &*header.add(CONTROL_OFFSET).cast() };
    if theirs.version.load(Relaxed) != CONTROL_VERSION || theirs.changes.load(Relaxed) == 0 {
        theirs.copy_from(words());
    }
    theirs.take_over_counts(words());
    // SAFETY: the page has this library's words only, and the new one has them too.
    if unsafe { fd.map_over(0, CONTROL.page.get().cast(), PAGE) }.is_ok() {
        IS_MAPPED.store(1, Relaxed);
        // OBSERVABLE: the process follows what is written there.
        words().version.store(CONTROL_VERSION, Release);
    }
}

/// Goes on with what the words have now, whatever becomes of the trbuf: it is the parent's, or is left to another process. A child of
/// this process, which is not `is_current`, may have a trbuf of its own when it returns into this.
pub fn detach(is_current: impl Fn() -> bool) {
    if IS_MAPPED.load(Relaxed) == 0 {
        return;
    }
    KEPT.copy_from(words());
    // SAFETY: the page's contents are copied. A thread that reads zeros meanwhile records what the environment asks for.
    if unsafe { sys::replace_by_private(CONTROL.page.get().cast(), PAGE) }.is_ok() && is_current() {
        IS_MAPPED.store(0, Relaxed);
        words().copy_from(&KEPT);
    }
}

/// Counts records that the process has lost.
pub fn count_lost(records: u32) {
    words().lost.fetch_add(records.into(), Relaxed);
}

/// Takes records back that [`count_lost`] has counted and that are counted anew.
pub fn uncount_lost(records: u32) {
    let less = |lost: u64| Some(lost.saturating_sub(records.into()));
    let _ = words().lost.fetch_update(Relaxed, Relaxed, less);
}

/// Counts records of threads that have no slot, where they are found after the process's death.
pub fn count_lost_without_slot(records: u32, cause: Errno) {
    words().without_slot_cause.store(cause.0 as u32, Relaxed);
    words().lost_without_slot.fetch_add(records.into(), Relaxed);
}

/// Takes back what [`count_lost_without_slot`] has counted: how many records, and the last cause. They are counted anew.
pub fn take_lost_without_slot() -> (u32, Errno) {
    let records = words().lost_without_slot.swap(0, Relaxed);
    (u32::try_from(records).unwrap_or(u32::MAX), Errno(words().without_slot_cause.load(Relaxed) as i32))
}

/// Counts a thread that had ended and whose ring another one reuses. `trbuf` is the words of the trbuf where the process records, which
/// may be others: a child in a sandbox cannot map them.
pub fn count_reused_ring(trbuf: Option<&ControlWords>) {
    words().reused_rings.fetch_add(1, Relaxed);
    if let Some(trbuf) = trbuf.filter(|_| IS_MAPPED.load(Relaxed) == 0) {
        // OBSERVABLE: readers know that records are missing.
        trbuf.reused_rings.fetch_add(1, Relaxed);
    }
}

/// How many such threads there were.
pub fn reused_rings() -> u64 {
    words().reused_rings.load(Relaxed)
}

/// Forgets what was lost, in a forked child: its parent counts that. The words must be the child's own.
pub fn forget_losses() {
    if IS_MAPPED.load(Relaxed) == 0 {
        words().lost.store(0, Relaxed);
        words().reused_rings.store(0, Relaxed);
        let _ = take_lost_without_slot();
    }
}

/// Which calls of an event are recorded when these are the settings.
pub fn event_switch(settings: &Settings, event: &Event) -> Switch {
    let level = event.kinds.first().map_or(Level::Always, |kind| kind.level);
    let selective = match level {
        _ if settings.paused => return Switch::OFF,
        Level::Never if settings.only_blocked => return Switch::OFF,
        Level::Blocked | Level::Failed | Level::Waiters if settings.only_blocked => Switch::SELECTIVE,
        _ => Switch::OFF,
    };
    let on = |category, switch| match settings.events.contains_numbers(category, event.number) {
        true => switch,
        false => Switch::OFF,
    };
    let recursive = if event.category == MUTEX { on(RMUTEX, Switch::ON_RECURSIVE) } else { Switch::OFF };
    Switch::OFF.with(selective).with(on(event.category, Switch::ON)).with(recursive)
}

/// The same by the place of the switch.
pub fn switch_at(settings: &Settings, place: usize) -> Switch {
    match EVENTS.get(place) {
        Some(event) => event_switch(settings, event),
        None if place == USER_EVENTS && !settings.paused && settings.events.contains_numbers(USER, 0) => {
            Switch::OFF.with(Switch::ON)
        }
        None => Switch::OFF,
    }
}

/// Whether calls of this event are recorded in a process that is initialised, by whichever thread.
pub fn records_now(id: EventId) -> bool {
    let configured = || process_state::loaded_switch(id.index()).is_some_and(Switch::is_on);
    let current = if changes() == 0 { None } else { words().current() };
    current.map_or_else(configured, |(_, settings)| event_switch(&settings, id.event()).is_on())
}
