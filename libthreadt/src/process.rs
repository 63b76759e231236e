//! What is per process: which events are on, and how far the process has come.
//!
//! All of it lies in one page that the kernel wipes in every child made by fork or a raw `clone`
//! (`MADV_WIPEONFORK`). A child thus finds every switch at "unknown", wakes anew at its first call of a hook, and leaves
//! its parent's buffers alone. A vfork child shares the page, as it shares everything; its records are its parent's.

use core::mem::offset_of;
use core::sync::atomic::{
    AtomicU8, AtomicU32,
    Ordering::{Acquire, Relaxed, Release},
};

use spec::tables::{EVENTS, MUTEX, RMUTEX};
use spec::{Event, EventId, Level};

use crate::config::{self, CONFIG};
use crate::pool::Pool;
use crate::slot::Slot;
use crate::stage::Stage;
use crate::{buffers, clock, directory, limits, measure, real, ring, say, start, sys, thread, trinfo};

/// The per-process page. What every record looks at comes first, and nothing that threads write while others record
/// shares a cache line with it.
#[repr(C, align(4096))]
pub struct Process {
    /// For each event of the table: [`KNOWN`], [`ON`], [`ON_RECURSIVE`], [`SELECTIVE`].
    switches: [AtomicU8; 128],
    awake: Stage,
    /// The trace directory's files of this process are ready.
    pub files: Stage,
    pid: AtomicU32,
    /// Not 0 from the moment on when every record has to be in its file before its call returns.
    pub write_through: AtomicU32,
    /// The errno that stands for why recording has stopped; 0 while it goes on.
    pub stopped: AtomicU32,
    /// Not 0 when the final write of the buffers has begun.
    pub ending: AtomicU32,
    /// The LWP that is writing all threads' slots; 0 for none.
    pub writing_all: Apart<AtomicU32>,
    /// Not 0 when a thread has recorded after the final write had begun.
    pub late: AtomicU32,
    /// Not 0 once the end of the process has been recorded.
    pub exit_told: AtomicU32,
    /// The parent's PID while the record that begins a child's trace is still to be written.
    pub born_of: AtomicU32,
    /// Records that were lost because their thread had no slot yet.
    pub homeless: AtomicU32,
    /// The errno of the last one's cause.
    pub homeless_cause: AtomicU32,
    /// Records that were lost, of all threads.
    pub lost: AtomicU32,
    /// Slots that the trbuf has room for.
    pub slots: AtomicU32,
    /// Not 0 while a thread maps further slots.
    pub growing: AtomicU32,
    /// Slots that no thread has had yet.
    pub fresh: Pool<Slot>,
    /// Slots of threads that have ended or are about to.
    pub ended: Pool<Slot>,
    /// Places for what new threads are to do.
    pub starts: Pool<start::Start>,
}

/// Something that begins a cache line.
#[repr(C, align(64))]
pub struct Apart<T>(T);

impl<T> core::ops::Deref for Apart<T> {
    type Target = T;
    #[inline(always)]
    fn deref(&self) -> &T {
        &self.0
    }
}

/// This process's page.
pub static PROCESS: Process = Process {
    switches: [const { AtomicU8::new(0) }; 128],
    awake: Stage::new(),
    files: Stage::new(),
    pid: AtomicU32::new(0),
    write_through: AtomicU32::new(0),
    stopped: AtomicU32::new(0),
    ending: AtomicU32::new(0),
    writing_all: Apart(AtomicU32::new(0)),
    late: AtomicU32::new(0),
    exit_told: AtomicU32::new(0),
    born_of: AtomicU32::new(0),
    homeless: AtomicU32::new(0),
    homeless_cause: AtomicU32::new(0),
    lost: AtomicU32::new(0),
    slots: AtomicU32::new(0),
    growing: AtomicU32::new(0),
    fresh: Pool::new(),
    ended: Pool::new(),
    starts: Pool::new(),
};

const _: () = assert!(size_of::<Process>() == 4096 && EVENTS.len() <= 128);
// What records look at, up to `ending`, and what is written while others record are in different cache lines.
const _: () = assert!(offset_of!(Process, ending) / 64 < offset_of!(Process, writing_all) / 64);

/// A switch that has been set in this process; all others are to be set first.
const KNOWN: u8 = 1;
/// The event is recorded.
const ON: u8 = 2;
/// For events of category mutex: the same event of category rmutex is recorded.
const ON_RECURSIVE: u8 = 4;

/// Only those calls are recorded that waited, failed or found a waiter, as the event's level says.
const SELECTIVE: u8 = 8;

/// The PID under which the library woke last, in this process or in the one it was forked from.
static LAST_PID: AtomicU32 = AtomicU32::new(0);
/// The library has read its environment, in this process or in one that it was forked from.
static CONFIGURED: Stage = Stage::new();

/// What is to be recorded of an event's calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Switch(u8);

impl Switch {
    /// Whether any are; for mutex events, of either category.
    #[inline(always)]
    pub fn is_on(self) -> bool {
        self.0 & (ON | ON_RECURSIVE) != 0
    }

    /// Whether calls of a mutex event are for a mutex of this kind.
    #[inline(always)]
    pub fn is_on_for(self, recursive: bool) -> bool {
        self.0 & (if recursive { ON_RECURSIVE } else { ON }) != 0
    }

    /// Whether only those are that waited, failed or found a waiter.
    #[inline(always)]
    pub fn selects(self) -> bool {
        self.0 & SELECTIVE != 0
    }
}

/// Whether calls of this event are to be recorded; for mutex events, of either category.
#[inline(always)]
pub fn records(id: EventId) -> bool {
    switch(id).is_on()
}

/// What is to be recorded of this event's calls.
#[inline(always)]
pub fn switch(id: EventId) -> Switch {
    // ORDERING: Relaxed; a switch only says whether to go on, and whoever goes on passes the stages.
    match PROCESS.switches[id.index() & 127].load(Relaxed) {
        0 => wake_and_ask(id),
        switch => Switch(switch),
    }
}

#[cold]
#[inline(never)]
fn wake_and_ask(id: EventId) -> Switch {
    wake();
    Switch(PROCESS.switches[id.index() & 127].load(Relaxed))
}

/// Whether this process has woken since it began.
#[inline(always)]
pub fn is_awake() -> bool {
    PROCESS.awake.is_done()
}

/// Whether anything is recorded at all.
pub fn is_recording() -> bool {
    wake() && !CONFIG.get().events.is_none()
}

/// The process ID; 0 before the library is awake.
#[inline]
pub fn id() -> u32 {
    PROCESS.pid.load(Relaxed)
}

/// Makes the library ready in this process; `false` if this very thread is at that already.
pub fn wake() -> bool {
    if is_awake() {
        return true;
    }
    PROCESS.awake.run(|| {
        if CONFIGURED.is_done() {
            be_born();
        }
        CONFIGURED.run(|| {
            configure();
            true
        });
        let pid = sys::process_id();
        PROCESS.pid.store(pid, Relaxed);
        LAST_PID.store(pid, Relaxed);
        PROCESS.write_through.store(u32::from(CONFIG.get().unbuffered), Relaxed);
        for (index, event) in EVENTS.iter().enumerate() {
            PROCESS.switches[index & 127].store(wanted(event), Relaxed);
        }
        true
    })
}

/// The switch of an event as the environment wants it.
fn wanted(event: &Event) -> u8 {
    let config = CONFIG.get();
    let level = event.kinds.first().map_or(Level::Always, |form| form.level);
    let selective = match level {
        _ if !config.only_blocked => 0,
        Level::Always => 0,
        Level::Blocked | Level::Failed | Level::Waiters => SELECTIVE,
        Level::Never => return KNOWN,
    };
    let on = |category, bit| if config.events.contains_numbers(category, event.number) { bit } else { 0 };
    KNOWN | selective | on(event.category, ON) | if event.category == MUTEX { on(RMUTEX, ON_RECURSIVE) } else { 0 }
}

/// First awakening of the program.
fn configure() {
    say::remember_stderr();
    clock::find();
    real::look_up_all();
    measure::calibrate();
    directory::want(config::directory());
    let config = config::read();
    // SAFETY: within the stage CONFIGURED, and read only by those who have passed it.
    unsafe { CONFIG.settle(config) };
    ring::note_filter();
    // SAFETY: the page is private, zero-initialised memory of this library, and a child is meant to lose it.
    // Where the kernel refuses, only children made by fork() and _Fork() are told apart.
    let _ = unsafe { sys::wipe_on_fork((&raw const PROCESS).cast(), size_of::<Process>()) };
    let _ = sys::register_barrier();
}

/// First awakening of a forked child: what it inherited is its parent's.
fn be_born() {
    buffers::forget(thread::forget_slot());
    directory::forget();
    trinfo::forget();
    limits::forget();
    let _ = sys::register_barrier();
    PROCESS.born_of.store(LAST_PID.load(Relaxed), Relaxed);
}

/// Tells the child that it is one, right after a fork; harmless where the kernel has wiped the page already.
pub fn after_fork_in_child() {
    let pid = sys::process_id();
    if id() != 0 && id() != pid {
        for switch in &PROCESS.switches {
            switch.store(0, Relaxed);
        }
        PROCESS.pid.store(0, Relaxed);
        for word in [
            &PROCESS.stopped,
            &*PROCESS.writing_all,
            &PROCESS.growing,
            &PROCESS.ending,
            &PROCESS.late,
            &PROCESS.exit_told,
            &PROCESS.homeless,
            &PROCESS.lost,
            &PROCESS.slots,
        ] {
            word.store(0, Relaxed);
        }
        PROCESS.fresh.clear();
        PROCESS.ended.clear();
        PROCESS.starts.clear();
        PROCESS.files.reset();
        PROCESS.awake.reset();
    }
    wake();
}

/// Whether the caller is a vfork child, which shares this process's memory but is another process.
pub fn is_borrowed() -> bool {
    id() != sys::process_id()
}

/// Ends all recording in this process.
pub fn stop() {
    for (index, event) in EVENTS.iter().enumerate() {
        if event.category != 0 {
            PROCESS.switches[index & 127].store(KNOWN, Relaxed);
        }
    }
}

/// Makes every record go to its file at once, in every slot, from now on.
pub fn set_write_through(on: bool) {
    // ORDERING: Release, so that a slot that is claimed after its owner saw this gets the limit that goes with it.
    PROCESS.write_through.store(u32::from(on || CONFIG.get().unbuffered || limits::stopped().is_some()), Release);
    let on = writes_through();
    buffers::for_each_slot(|slot| slot.set_limits(on));
}

/// Whether every record goes to its file at once.
pub fn writes_through() -> bool {
    PROCESS.write_through.load(Acquire) != 0
}
