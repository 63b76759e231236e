//! The state of the analysis: processes, threads, objects and sites, and what waits cost.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use super::analysis_parts::AnalysisParts;
use super::blame_limits::BlameLimits;
use super::call_sites::SiteTable;
use super::contention_shares::ContentionShares;
use super::counterparts::Counterparts;
use super::holds::{FinishedWait, Knowledge};
use super::object_state::{ObjectKind, ObjectState, WorstWait};
use super::object_table::ObjectTable;
use super::observed_holds::ObservedHolds;
use super::table_log::TableLog;
use super::tables::{Creation, LockByFork, ProgramState, ThreadState};
use super::timeline_event::TimelineEvent;
use super::wait_selection::WaitSelection;
use super::waker::Waker;
use crate::report::critical_path::{CriticalPath, ThreadActivities};
use crate::report::lock_order::{HeldLock, LockCycle, LockOrder};
use crate::report::misuse::{ErrorColumns, MisuseTable, SuspectedMisuse};
use crate::symbols::CodeMaps;

/// What the records of a trace show so far.
#[derive(Debug)]
pub struct Analysis {
    /// What each process's trinfo shows of its records.
    pub knowledge: HashMap<u32, Knowledge>,
    /// What is known of the records of those that have none.
    pub knowledge_of_others: Knowledge,
    /// The code of the programs that processes executed one after the other, where they have closed libraries.
    pub changed_code: HashMap<u32, Vec<CodeMaps>>,
    pub selection: WaitSelection,
    pub parts: AnalysisParts,
    /// The record in progress is in the selected time.
    pub is_counting: bool,
    pub processes: Vec<ProgramState>,
    pub threads: Vec<ThreadState>,
    pub objects: ObjectTable,
    pub sites: SiteTable,
    /// The times of the first and the last record.
    pub span: Option<(u64, u64)>,
    pub missing: MissingRecords,
    /// By waiter, holder and object: how many waits, and how long.
    pub pairs: HashMap<(u32, u32, u32), (u64, u64), RandomState>,
    pub blame_limits: BlameLimits,
    /// Contention by all of these at once, if that is asked for.
    pub shares: Option<ContentionShares>,
    /// The latest process of each number.
    pub process_of_pid: HashMap<u32, u32, RandomState>,
    /// By process and LWP.
    pub thread_of_lwp: HashMap<(u32, u32), u32, RandomState>,
    /// By process and pthread_t.
    pub thread_of_tid: HashMap<(u32, u64), u32, RandomState>,
    /// Names of threads that have had no record yet.
    pub names_of_new: HashMap<(u32, u64), [u8; 16], RandomState>,
    /// The living objects, by process and address.
    object_of_address: HashMap<(u32, u64), u32, RandomState>,
    /// IDs of the names that programs have given to objects, by process and address.
    pub object_names: HashMap<(u32, u64), u64, RandomState>,
    /// The objects that are one lock, which processes share, as a wait has shown, each with the number of one of them.
    pub shared_locks: HashMap<u32, u32, RandomState>,
    /// How many objects each address of a process has had.
    object_numbers: HashMap<(u32, u64), u32, RandomState>,
    /// Threads of the last records, by the low bits of the LWP: process ID, LWP, thread.
    pub recent_threads: Box<[(u32, u32, u32); 256]>,
    /// How many times mutexes were watched for waits for conditions.
    pub watches: u64,
    /// How many processes are about to execute another program.
    pub execs: u32,
    /// Creations of threads without a record so far, by process and pthread_t.
    pub creations: HashMap<(u32, u64), Creation, RandomState>,
    /// `None` if nobody asks for it.
    pub order: Option<LockOrder>,
    /// Memory for what a thread holds that takes another lock.
    pub held_outside: Vec<HeldLock>,
    /// The possible deadlocks, and how many groups of locks were too large to be searched for one.
    pub cycles: Vec<LockCycle>,
    pub cycles_left_out: u64,
    pub misuse: MisuseTable,
    /// Uses that are misuse if a thread is still waiting.
    pub suspected: Vec<SuspectedMisuse>,
    pub error_columns: ErrorColumns,
    /// How many creations of threads are in progress.
    pub creating: u32,
    /// Known in the end, and at a moment that is asked for.
    pub counterparts: Counterparts,
    /// What the critical paths are made of.
    pub activities: ThreadActivities,
    /// One for each process, once they have been found.
    pub critical_paths: Vec<CriticalPath>,
    /// Of locks of which only releases are recorded, by process and address.
    pub observed_holds: HashMap<(u32, u64), ObservedHolds, RandomState>,
    /// The object and the site of a wait for a futex, if nobody has said yet whether the site is in the code of a lock.
    pub unnamed_site: Option<(u32, u32)>,
    /// The thread and the site of a call, if nobody has said yet whether it is made by the unwinding of a cancelled thread.
    pub unwinding: Option<(u32, u32)>,
    /// Locks that were found locked by fork since somebody has said last whether their memory is private.
    pub locks_by_fork: Vec<LockByFork>,
    /// What a viewer draws of the records since this was last emptied; `None` if that is not asked for.
    pub timeline: Option<Vec<TimelineEvent>>,
    /// What else a table says of the records; `None` if that is not asked for.
    pub table: Option<TableLog>,
}

/// How many records are missing, as other records show.
#[derive(Clone, Copy, Debug, Default)]
pub struct MissingRecords {
    /// Holds that ended without a recorded release.
    pub releases: u64,
    /// Releases without a recorded acquisition.
    pub acquisitions: u64,
    /// Return records without an entry record.
    pub entries: u64,
    /// Entry records whose return record was lost, or whose call was left by a jump.
    pub returns: u64,
}

/// A wait as it is accounted.
#[derive(Clone, Copy, Debug, Default)]
pub struct WaitPlace {
    pub thread: u32,
    pub site: u32,
    pub entry: u64,
    pub is_open: bool,
    /// It is the rest of a wait for a condition, which is counted there.
    pub is_rest: bool,
    pub has_timed_out: bool,
    /// Who ended it is counted when the round of its barrier is over.
    pub waker_shows_later: bool,
}

impl WaitPlace {
    /// The place of a wait that has ended before any time limit.
    pub fn new(thread: u32, site: u32, entry: u64) -> WaitPlace {
        WaitPlace { thread, site, entry, ..WaitPlace::default() }
    }
}

impl Analysis {
    /// An analysis without records. `knowledge` has what is known of each process before its first record.
    pub fn new(knowledge: HashMap<u32, Knowledge>, selection: WaitSelection) -> Analysis {
        Analysis {
            knowledge,
            knowledge_of_others: Knowledge::default(),
            changed_code: HashMap::new(),
            selection,
            parts: AnalysisParts::ALL,
            is_counting: true,
            processes: Vec::new(),
            threads: Vec::new(),
            objects: ObjectTable::default(),
            sites: SiteTable::new(),
            span: None,
            missing: MissingRecords::default(),
            pairs: HashMap::default(),
            blame_limits: BlameLimits::default(),
            shares: None,
            process_of_pid: HashMap::default(),
            thread_of_lwp: HashMap::default(),
            thread_of_tid: HashMap::default(),
            names_of_new: HashMap::default(),
            object_of_address: HashMap::default(),
            object_names: HashMap::default(),
            object_numbers: HashMap::default(),
            shared_locks: HashMap::default(),
            recent_threads: Box::new([(0, 0, u32::MAX); 256]),
            watches: 0,
            execs: 0,
            creations: HashMap::default(),
            order: Some(LockOrder::default()),
            held_outside: Vec::new(),
            cycles: Vec::new(),
            cycles_left_out: 0,
            misuse: MisuseTable::default(),
            suspected: Vec::new(),
            error_columns: ErrorColumns::new(),
            creating: 0,
            counterparts: Counterparts::default(),
            activities: ThreadActivities::default(),
            critical_paths: Vec::new(),
            observed_holds: HashMap::default(),
            unnamed_site: None,
            unwinding: None,
            locks_by_fork: Vec::new(),
            timeline: None,
            table: None,
        }
    }

    /// The object at an address, which begins to exist if it did not, or was of another kind.
    pub fn object(&mut self, process: u32, address: u64, kind: ObjectKind, site: u32) -> u32 {
        if let Some(&known) = self.object_of_address.get(&(process, address)) {
            if self.objects[known as usize].kind == kind {
                return known;
            }
            self.end_object(process, address);
        }
        let inherited = (kind == ObjectKind::Sema).then(|| self.shared_semaphore(process, address)).flatten();
        let index = inherited.unwrap_or_else(|| {
            let pid = self.processes[process as usize].pid;
            let number = self.object_numbers.entry((pid, address)).or_default();
            *number += 1;
            let mut state = ObjectState::new(process, address, *number, kind, site);
            state.name = self.object_name(process, address);
            state.may_be_robust = kind.can_be_robust() && self.processes[process as usize].knowledge.complete_from > 0;
            self.inherit_sharing(&mut state);
            if self.selection.has_times() {
                let times = &self.selection.times;
                state.occupancy.log.divided_times = Some(Box::new(times.clone()));
            }
            self.objects.push(state)
        });
        self.object_of_address.insert((process, address), index);
        index
    }

    /// The living object at an address.
    pub fn object_at(&self, process: u32, address: u64) -> Option<u32> {
        self.object_of_address.get(&(process, address)).copied()
    }

    /// The kind of the living object at an address.
    pub fn kind_at(&self, process: u32, address: u64) -> Option<ObjectKind> {
        Some(self.objects[self.object_at(process, address)? as usize].kind)
    }

    /// Ends the life of the object at an address. Its holds end without a release.
    pub fn end_object(&mut self, process: u32, address: u64) {
        self.processes[process as usize].handed_on.remove(&address);
        let Some(object) = self.object_of_address.remove(&(process, address)) else { return };
        self.object_names.remove(&(process, address));
        if self.objects[object as usize].process == process {
            let lost = self.objects[object as usize].occupancy.lose_holds();
            self.lose_holds(object, &lost);
            // What is left of its log cannot be asked for any more.
            let state = &mut self.objects[object as usize];
            state.forget_releases();
            let is_selected = self.selection.wants_object(state.address, state.kind);
            if self.timeline.is_none() {
                self.objects.end(object, is_selected);
            }
        }
    }

    /// Whether waits of a thread for an object are accounted.
    pub fn is_selected(&self, thread: u32, object: Option<u32>) -> bool {
        let thread = &self.threads[thread as usize];
        let object = object.map(|object| &self.objects[object as usize]).map(|object| (object.address, object.kind));
        self.selection.wants(self.processes[thread.process as usize].pid, thread.lwp, object)
    }

    /// Accounts a wait for a lock.
    pub fn account_contention(&mut self, object: u32, mut wait: FinishedWait, place: WaitPlace, waker: Option<Waker>) {
        if !self.is_selected(place.thread, Some(object)) || !self.selection.overlaps(place.entry, wait.end) {
            return;
        }
        let has_timed_out = place.has_timed_out && wait.end < self.selection.times.end;
        let place = WaitPlace { has_timed_out, ..place };
        self.note_hidden_owner(object, place.site);
        if self.may_hide_holders(object) {
            wait.shares.forget_handoff();
        }
        let waited = wait.shares.total();
        let figures = &mut self.objects[object as usize].figures;
        figures.contention += waited;
        figures.handoff += wait.shares.handoff;
        figures.unknown += wait.shares.unknown;
        figures.max_waiters = figures.max_waiters.max(wait.rank);
        // In a convoy each wait has many holders: they are put in order only where that shows.
        let is_shown = self.timeline.is_some() || figures.is_among_worst(waited);
        let shows_order = is_shown || self.shares.is_some() || self.parts.pairs;
        if shows_order || !self.blame_limits.has_room(wait.shares.blamed.len()) {
            wait.shares.put_in_order();
        }
        let holder = wait.shares.longest_holder().filter(|_| is_shown).map(|holder| holder.thread);
        if let Some(sums) = &mut self.shares {
            sums.add((place.thread, place.site, object), &wait.shares);
        }
        self.blame(object, place.thread, &wait.shares.blamed);
        self.account(Some(object), (waited, wait.end), place, holder, waker);
        self.draw_wait(Some(object), (waited, 0, wait.end), place, (true, holder), waker);
        self.log_shares(wait.shares);
        self.threads[place.thread as usize].contention += waited;
        self.sites.sites[place.site as usize].contention += waited;
    }

    /// Accounts a wait until `end` that is idleness but for `contended` nanoseconds, for an object or the end of a thread.
    pub fn account_idleness(
        &mut self,
        object: Option<u32>,
        end: u64,
        contended: u64,
        place: WaitPlace,
        waker: Option<Waker>,
    ) {
        let futex_lock = object.and_then(|object| Some((object, self.futex_lock_at(object, place.site)?)));
        if let Some(futex_lock) = futex_lock {
            return self.account_futex_lock(futex_lock, end, place, waker);
        }
        let WaitSelection { only_contention, .. } = self.selection;
        if !only_contention && self.is_selected(place.thread, object) && self.selection.overlaps(place.entry, end) {
            let waited = self.selection.clip(place.entry, end).saturating_sub(contended);
            let has_timed_out = place.has_timed_out && end < self.selection.times.end;
            let place = WaitPlace { has_timed_out, ..place };
            if let Some(object) = object {
                self.objects[object as usize].figures.idleness += waited;
            }
            self.account(object, (waited, end), place, None, waker);
            self.draw_wait(object, (waited, contended, end), place, (false, None), waker);
            self.threads[place.thread as usize].idleness += waited;
            self.sites.sites[place.site as usize].idleness += waited;
        }
    }

    fn account(
        &mut self,
        object: Option<u32>,
        (waited, end): (u64, u64),
        place: WaitPlace,
        holder: Option<u32>,
        waker: Option<Waker>,
    ) {
        self.threads[place.thread as usize].waits += u64::from(!place.is_rest);
        let site = &mut self.sites.sites[place.site as usize];
        site.waits += u64::from(!place.is_rest);
        let end = end.min(self.selection.times.end);
        match (self.parts.wait_blocks, place.is_rest) {
            (true, false) => site.wait_blocks.add(end, waited),
            (true, true) => site.wait_blocks.add_rest(end, waited),
            (false, _) => {}
        }
        let Some(object) = object else { return };
        let figures = &mut self.objects[object as usize].figures;
        figures.wait.add(waited);
        if self.parts.wait_blocks {
            figures.wait_blocks.get_or_insert_default().add(end, waited);
        }
        figures.open_waits += u64::from(place.is_open);
        figures.timeouts += u64::from(place.has_timed_out);
        let WaitPlace { thread, site, entry, .. } = place;
        figures.add_worst(WorstWait { time: entry, thread, waited, holder, site });
        if place.waker_shows_later {
            self.objects[object as usize].wakeups.rounds.count_wait(thread);
        } else if let Some(Waker { thread, site, .. }) = waker.filter(|_| self.parts.callers) {
            self.count_waker(object, thread, site, 1);
        }
    }
}
