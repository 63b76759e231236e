//! The state of the process: a page of words and switches.
//!
//! The kernel wipes the page in every child made by fork or a raw `clone` (`MADV_WIPEONFORK`). A child thus finds every
//! switch at 0, is initialised anew at its first call of a hook, and leaves its parent's buffers alone. A vfork child
//! shares the page, as it shares all memory; its records are its parent's.

use core::mem::offset_of;
use core::ops::Range;
use core::sync::atomic::Ordering::{Acquire, Relaxed};
use core::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64};

use spec::EventId;
use spec::tables::EVENTS;

use crate::sys::{Errno, Hold, INHERITED, LeftWork, Once, PoolHead, parent_id, process_id, shares_memory};

/// How many places there are for switches.
pub const SWITCHES: usize = 128;
/// The place of the switch of the program's own events, which the table does not have.
pub const USER_EVENTS: usize = SWITCHES - 1;

/// In place of the LWP that ends the process: that one has recorded since, so that the others do, too, though the trbuf has gone.
pub const ENDS_LATE: u32 = u32::MAX;

/// The per-process page. What every record reads comes first, and nothing that threads write while others record shares
/// a cache line with it.
#[repr(C, align(4096))]
pub struct ProcessState {
    /// For each event of the table a [`Switch`], and at [`USER_EVENTS`] that of the others; 0 until the process is initialised.
    switches: [AtomicU8; SWITCHES],
    pub initialised: Once,
    /// The trace directory's files of this process are ready.
    pub files: Once,
    /// How often threads have left the making of them by jumps.
    pub left_files: LeftWork,
    /// The process ID; 0 until the process is initialised.
    pub pid: AtomicU32,
    /// 1 while every record must be in its file before its call returns.
    pub write_through: AtomicU32,
    /// When and why recording stops (`storage::stop_time`); 0 while it goes on.
    pub stop_time: AtomicU64,
    /// 1 once the final flush has begun.
    pub final_flush_begun: AtomicU32,
    /// 1 if the process is initialised and each record goes to its thread's slot and nowhere else.
    pub records_directly: AtomicU32,
    _unused_end_of_cache_line: [AtomicU32; 6],
    /// The right to change the flush thresholds and to write all threads' slots.
    pub flushing: Hold,
    /// 1 when a thread has recorded after the final flush had begun.
    pub recorded_after_final_flush: AtomicU32,
    /// The LWP that ends the process, once all is in the files and it removes the trbuf; or [`ENDS_LATE`]; 0 if the trbuf stays.
    pub ending_lwp: AtomicU32,
    /// 1 once the end of the process has been recorded.
    pub exit_recorded: AtomicU32,
    /// The PID of the process whose page this is, from when that begins to initialise itself (a forked child: has noted who forked
    /// it); 0 until then.
    pub owner: AtomicU32,
    /// The number of the initialisation of this process that is at work or has been done (`first_use`); 0 until it begins.
    pub initialisation: AtomicU64,
    /// When the first late record had to wait (`recorder::late_record`), a reading of `CLOCK_MONOTONIC`; 0 if none had to.
    pub first_late_wait: AtomicU64,
    /// The number before the first record that this process has kept (`storage::kept_records`); 0 until then.
    pub kept_since: AtomicU64,
    /// Records that have found no room there while the process was being initialised.
    pub lost_early: AtomicU32,
    /// A reading of the clock for the time of the first of them.
    pub lost_early_since: AtomicU64,
    /// 1 once this process has forgotten what it inherited from its parent.
    pub has_forgotten_parent: AtomicU32,
    /// The parent's PID while the record that begins a child's trace is still to be written.
    pub unrecorded_parent: AtomicU32,
    /// What a hook knows of how this process was made ([`Origin`]).
    pub origin: AtomicU32,
    /// 1 once the hook of `fork` has returned in this child, which is about to write that record.
    pub has_begun_trace: AtomicU32,
    /// A reading of the clock for the time of the first record that was lost because its thread had no slot; 0 for none.
    pub without_slot_since: AtomicU64,
    /// Records that were lost, of all threads.
    pub lost: AtomicU32,
    /// Bytes that were written to tr files; counted if THR_TRACE_MAX is set.
    pub written: AtomicU64,
    /// How many of them are in the directory's count, if that is limited.
    pub counted: AtomicU64,
    /// The right to change it.
    pub counting: Hold,
    /// Bytes that may be written before the file system is asked how much is free.
    pub unasked: AtomicU64,
    /// Slots that the trbufs have room for, by generation.
    pub slots: [AtomicU32; GENERATIONS],
    /// The generation of the process's files that threads record to ([`generation`]).
    pub generation: AtomicU32,
    /// Why the process can make no files, an errno value, so that it records in a spare trbuf or is only counted
    /// (`trace_dir::sandbox_spares`); else 0.
    pub sandboxed: AtomicU32,
    /// The ID in the process's records if it is not `pid`, else 0.
    pub recorded_id: AtomicU32,
    /// 1 once this process itself has made trbufs for children in a sandbox.
    pub has_made_spares: AtomicU32,
    /// 1 once this process itself has moved to the subdirectory of its new user, where generation 1 is.
    pub has_moved: AtomicU32,
    /// 1 while the program changes its user, from before the files of the next generation are made.
    pub changing_user: AtomicU32,
    /// 1 if some of the trbuf is in anonymous memory, because it cannot be in the file: a crash loses it.
    pub anonymous: AtomicU32,
    /// 1 once there are slots for the threads that begin when the trbuf cannot be opened any more.
    pub has_sandbox_slots: AtomicU32,
    /// The right to map several slots at once.
    pub growing: Hold,
    /// Slots that no thread has had yet.
    pub fresh_slots: PoolHead,
    /// Slots of threads that have ended or are about to.
    pub ended_slots: PoolHead,
    /// How many slots there must be before those of unnoticed dead threads are searched for.
    pub next_sweep: AtomicU32,
    /// Slots of dead threads whose text cannot be written.
    pub unwritable_slots: AtomicU32,
    /// Rings of threads that have ended.
    pub dead_rings: AtomicU32,
    /// Threads with rings that have ended.
    pub ended_threads: AtomicU64,
    /// What `trace_dir::identity` has read of the process; 0 until then.
    pub start_time: AtomicU64,
    pub pid_namespace: AtomicU64,
    /// The PID of the process that forked this one, as that process has it; 0 if nobody did since the last exec.
    pub forked_from: AtomicU32,
    /// When the process was initialised, a reading of the clock.
    pub initialised_at: AtomicU64,
    /// Memory for the routines and arguments of new threads.
    pub thread_starts: PoolHead,
    /// The handler has been initialised (`recorder::handler`).
    pub handler: Once,
    /// 1 if it gets the records instead of the trace.
    pub handler_replaces_trace: AtomicU32,
    /// 1 once it gets no records any more.
    pub handler_ended: AtomicU32,
    /// Device and inode of the trbuf that this process has made with its first files; 0 until then. Should a jump leave that work,
    /// the file is not another process's when it begins anew.
    pub unfinished_trbuf: [AtomicU64; 2],
    /// 1 from before a trbuf gets this process's name until it is noted as unfinished, or is known to have failed.
    pub is_naming_trbuf: AtomicU32,
    /// 1 once the files of earlier processes with this one's number are renamed.
    pub has_renamed_earlier: AtomicU32,
    /// 1 once it was reported that somebody has removed the trbuf.
    pub removal_reported: AtomicU32,
    /// 1 if the files have been made before the first record.
    pub made_early: AtomicU32,
    /// 1 once nothing can be recorded any more.
    pub recording_ended: AtomicU32,
    /// The last generation of settings that trinfo has.
    pub described_generation: AtomicU32,
    /// The right to write to trinfo.
    pub writing_info: Hold,
    /// When trinfo was last written to, a reading of the clock.
    pub info_written_at: AtomicU64,
    /// 1 while what is kept of the parent's mappings and command line is this process's (`first_use::KnownToParent`).
    pub parent_has_looked: AtomicU32,
    /// 1 if trinfo's lines of mappings are the parent's, and this process has not read its own mappings. The last word: what is behind it
    /// is never written.
    pub has_parents_maps: AtomicU32,
}

/// Bytes of the page that are used.
const USED: usize = offset_of!(ProcessState, has_parents_maps) + size_of::<AtomicU32>();

// SAFETY: zero is valid for all words of the page, and the state in which the kernel leaves them in a child.
pub static PROCESS: ProcessState = unsafe { core::mem::zeroed() };

const _: () = assert!(size_of::<ProcessState>() == 4096 && EVENTS.len() <= USER_EVENTS);
// What records read, up to `final_flush_begun`, and what is written while others record are in different cache lines.
const _: () = assert!(offset_of!(ProcessState, final_flush_begun) / 64 < offset_of!(ProcessState, flushing) / 64);

/// Which calls of an event are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Switch(u8);

impl Switch {
    /// None. Not 0, which stands for a switch that is not set yet.
    pub const OFF: Switch = Switch(1);
    /// Calls of the event are recorded.
    pub const ON: Switch = Switch(2);
    /// For events of category mutex: calls of the same event of category rmutex are recorded.
    pub const ON_RECURSIVE: Switch = Switch(4);
    /// Only those calls are recorded that waited, failed or found a waiter, as the event's level says.
    pub const SELECTIVE: Switch = Switch(8);

    /// As it stands in the page.
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// From [`Switch::bits`].
    pub const fn from_bits(bits: u8) -> Switch {
        Switch(bits)
    }

    pub const fn with(self, other: Switch) -> Switch {
        Switch(self.0 | other.0)
    }

    /// Whether any calls are recorded; for mutex events, of either category.
    #[inline(always)]
    pub fn is_on(self) -> bool {
        self.0 & (Switch::ON.0 | Switch::ON_RECURSIVE.0) != 0
    }

    /// Whether calls of a mutex event are recorded for a mutex of this kind.
    #[inline(always)]
    pub fn is_on_for(self, recursive: bool) -> bool {
        self.0 & (if recursive { Switch::ON_RECURSIVE.0 } else { Switch::ON.0 }) != 0
    }

    #[inline(always)]
    pub fn is_selective(self) -> bool {
        self.0 & Switch::SELECTIVE.0 != 0
    }
}

/// The switch at this place; `None` until the process is initialised.
#[inline(always)]
pub fn loaded_switch(place: usize) -> Option<Switch> {
    // ORDERING: Relaxed; a switch only decides whether to record, and what a record needs is checked on its way.
    match PROCESS.switches[place % SWITCHES].load(Relaxed) {
        0 => None,
        switch => Some(Switch(switch)),
    }
}

/// Where in the page an event's switch is, for hooks that are written in assembly.
pub const fn switch_offset(id: EventId) -> usize {
    switch_offset_at(id.index())
}

/// The same for the switch at a place.
pub const fn switch_offset_at(place: usize) -> usize {
    offset_of!(ProcessState, switches) + place
}

/// Where in the page [`ProcessState::origin`] is.
pub const ORIGIN_OFFSET: usize = offset_of!(ProcessState, origin);

pub fn set_switch(index: usize, switch: Switch) {
    PROCESS.switches[index % SWITCHES].store(switch.0, Relaxed);
}

/// Whether this process is a forked child in which nothing is recorded, not even the library initialised.
pub fn is_unrecorded() -> bool {
    PROCESS.recording_ended.load(Relaxed) != 0 && !is_initialised()
}

/// Ends all recording in this process.
pub fn switch_all_off() {
    PROCESS.recording_ended.store(1, Relaxed);
    for (index, event) in EVENTS.iter().enumerate() {
        if event.category != 0 {
            set_switch(index, Switch::OFF);
        }
    }
    set_switch(USER_EVENTS, Switch::OFF);
}

/// How many times a process may have files: those that it makes first, and those of the user that it becomes.
pub const GENERATIONS: usize = 2;

/// What belongs to a generation of this process's files.
pub fn of_generation<T>(of_each: &[T; GENERATIONS], generation: usize) -> &T {
    &of_each[generation & (GENERATIONS - 1)]
}

/// The generation of this process's files that threads record to: 0, or 1 once it has become another user.
#[inline]
pub fn generation() -> usize {
    // ORDERING: Acquire pairs with the Release in `first_use::files`: who sees a generation sees its files.
    PROCESS.generation.load(Acquire) as usize & (GENERATIONS - 1)
}

#[inline(always)]
pub fn is_initialised() -> bool {
    PROCESS.initialised.is_done()
}

#[inline]
pub fn id() -> u32 {
    PROCESS.pid.load(Relaxed)
}

/// The process ID in this process's records: what the kernel shows it, unless that is its ID in a PID namespace of which
/// nobody outside knows.
pub fn recorded_id() -> u32 {
    match PROCESS.recorded_id.load(Relaxed) {
        0 => id(),
        recorded => recorded,
    }
}

/// Why this process can make no files, if it is in a sandbox.
pub fn sandboxed() -> Option<Errno> {
    let cause = PROCESS.sandboxed.load(Relaxed);
    (cause != 0).then_some(Errno(cause as i32))
}

/// Whether the memory with the page is this process's own, and not that of a process whose vfork child this is. Such a child must not
/// write its PID where its parent will read its own, also if a signal handler has made it while that is being initialised.
pub fn owns_memory() -> bool {
    match PROCESS.owner.load(Relaxed) {
        // The page of the process that was initialised last has an owner, so that its children's is their own.
        0 if parent_id() == INHERITED.last_pid.load(Relaxed) => true,
        // Another owner's PID may be what a forked child has stored when it returned into its parent's work.
        owner => owner != 0 && is_this_process(owner) || !shares_memory(),
    }
}

/// Whether the caller is a vfork child, which shares this process's memory but is another process; or a forked child
/// whose page is not wiped yet.
pub fn is_vfork_child() -> bool {
    match PROCESS.owner.load(Relaxed) {
        0 => !owns_memory(),
        // 0 where a filter forbids the question: then this process itself has installed it.
        owner => process_id() != 0 && !is_this_process(owner),
    }
}

/// Children of this process, or of one that it was forked from, may be in another PID namespace.
static MAY_RENUMBER: AtomicBool = AtomicBool::new(false);

/// Notes that children of this process may be in another PID namespace from now on, where they may have the same IDs as processes here.
pub fn note_renumbering() {
    MAY_RENUMBER.store(true, Relaxed);
}

pub fn may_renumber() -> bool {
    MAY_RENUMBER.load(Relaxed)
}

/// Whether the caller is the process with the ID `owner`, by its own: not a vfork child in a namespace where that has the same.
fn is_this_process(owner: u32) -> bool {
    owner == process_id() && !(may_renumber() && shares_memory())
}

pub fn writes_through() -> bool {
    PROCESS.write_through.load(Acquire) != 0
}

/// Wipes the page in a forked child where the kernel has not done so.
pub fn wipe_after_fork() {
    if PROCESS.owner.load(Relaxed) != 0 && is_vfork_child() {
        wipe(&[], || true);
    }
}

/// Wipes in a forked child that is being initialised what it has stored while it returned into its parent's work. A child of its own,
/// which is not `is_current`, has stored what is its own when it returns into this.
pub fn wipe_left_by_parent(is_current: impl Fn() -> bool) {
    let range_of = |start: usize, size: usize| start..start + size;
    // What is kept is never a parent's.
    let kept = [
        range_of(offset_of!(ProcessState, initialised), size_of::<Once>()),
        range_of(offset_of!(ProcessState, initialisation), size_of::<AtomicU64>()),
        range_of(ORIGIN_OFFSET, size_of::<AtomicU32>()),
        range_of(offset_of!(ProcessState, kept_since), size_of::<AtomicU64>()),
        range_of(offset_of!(ProcessState, lost_early), size_of::<AtomicU32>()),
        range_of(offset_of!(ProcessState, lost_early_since), size_of::<AtomicU64>()),
    ];
    wipe(&kept, is_current);
}

/// Wipes the page but for some bytes, as long as that `is_current`.
fn wipe(but_for: &[Range<usize>], is_current: impl Fn() -> bool) {
    let words = (&raw const PROCESS).cast::<AtomicU32>();
    let is_kept = |at: usize| but_for.iter().any(|range| range.contains(&at));
    for at in (0..USED).step_by(size_of::<AtomicU32>()) {
        // SAFETY: all of the page are atomics, and the child has no other thread.
        let word = unsafe { &*words.byte_add(at) };
        let value = word.load(Relaxed);
        // The kernel has mostly wiped it.
        if value != 0 && !is_kept(at) && is_current() {
            let _ = word.compare_exchange(value, 0, Relaxed, Relaxed);
        }
    }
}
