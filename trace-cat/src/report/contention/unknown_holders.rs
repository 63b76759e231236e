//! Waits at the end of which the records do not show whom they are for.

use std::collections::{HashMap, HashSet};

use spec::event_numbers::{COND_CLOCKWAIT, COND_TIMEDWAIT, COND_WAIT, FUTEX_WAIT, RW_WRLOCK, THR_JOIN};
use spec::tables::FUTEX;

use super::analysis::Analysis;
use super::holds::Knowledge;
use super::object_state::{ObjectKind, SeenOwners};
use super::running_threads::{ending_thread, has_running_thread};
use super::tables::{ImageEnd, OngoingCall};
use super::wait_nodes::Node;
use super::wait_shares::Occupant;

/// The waits of a process for locks of which nobody knows who holds them, because records are missing.
#[derive(Debug)]
pub struct UnknownHolders {
    pub process: u32,
    pub waits: Vec<(u32, OngoingCall)>,
    /// Another thread of the process may run, and release them.
    pub may_be_released: bool,
    /// Another process may have one of them.
    pub may_be_elsewhere: bool,
}

/// Of these waits, of which nobody is known to end them, those for locks that somebody holds, where records may be missing that show who.
pub fn unknown_holders(analysis: &Analysis, waits: impl Iterator<Item = (u32, OngoingCall)>) -> Vec<UnknownHolders> {
    let waits: Vec<(u32, OngoingCall)> = waits.collect();
    let waits_for_others = for_each_other(analysis, &waits);
    let mut unknown: Vec<UnknownHolders> = Vec::new();
    for (thread, call) in waits {
        let Some(object) = call.wanted() else { continue };
        let knowledge = analysis.knowledge_of(object);
        let state = &analysis.objects[object as usize];
        let is_doubtful = state.occupancy.holds.iter().any(|hold| hold.is_doubtful());
        // Waits for conditions show it, and no other call: these are recorded elsewhere, or are not.
        let is_uncalled = matches!(state.kind, ObjectKind::Mutex | ObjectKind::Rmutex) && !state.is_called;
        let has_readers = !state.occupancy.holds.is_empty() && !state.occupancy.is_exclusive();
        let is_incomplete = match has_readers && call.event == RW_WRLOCK {
            true => state.occupancy.occupant(knowledge) == Occupant::Unknown,
            false => {
                let is_known = !knowledge.leaves_calls_out() && !analysis.may_lack_releases(object);
                !is_known || knowledge.complete_from > 0 || is_doubtful || is_uncalled
            }
        };
        // No thread of the process has it, which may wait for another process's; or such a one may read beside those of the process.
        let may_be_others = state.occupancy.holds.is_empty() || has_readers && call.event == RW_WRLOCK;
        let may_be_shared = state.occupancy.holds.is_empty()
            && (analysis.may_be_for_others(object) || waits_for_others.contains(&thread));
        // Who waits for a condition, and does not show that it waits for its mutex, would have one of another process only where there is one.
        let is_idle = call.woken.is_none() && call.needed_mutex().is_some();
        let is_alone = state.owners != SeenOwners::Elsewhere && !analysis.may_be_used_elsewhere(object);
        let may_be_elsewhere = analysis.may_be_elsewhere(object) && !(is_idle && is_alone);
        let is_elsewhere = may_be_shared || may_be_others && may_be_elsewhere;
        let is_left_behind =
            call.waits && analysis.may_be_left_behind(object, &call) || is_unused_copy(analysis, object);
        let only_blocked = knowledge.only_blocked || analysis.may_lack_releases(object);
        // That nobody has had a lock of a futex since its last release shows only where a wait for it ends.
        let is_free =
            state.occupancy.is_free(Knowledge { only_blocked, ..knowledge }) && !is_futex_wait(&call) && !is_uncalled;
        if !is_elsewhere && !is_left_behind && (!is_incomplete || is_free) {
            continue;
        }
        let process = analysis.threads[thread as usize].process;
        match unknown.iter_mut().find(|known| known.process == process) {
            Some(known) => {
                known.waits.push((thread, call));
                known.may_be_elsewhere |= is_elsewhere;
            }
            None => {
                let may_be_released =
                    has_running_thread(analysis, process) || ending_thread(analysis, process).is_some();
                let waits = vec![(thread, call)];
                unknown.push(UnknownHolders { process, waits, may_be_released, may_be_elsewhere: is_elsewhere });
            }
        }
    }
    unknown
}

/// The threads of several processes that may wait for each other's locks.
fn for_each_other(analysis: &Analysis, waits: &[(u32, OngoingCall)]) -> HashSet<u32> {
    let may_wait = |(thread, call): &&(u32, OngoingCall)| {
        call.object.is_some_and(|object| analysis.may_be_taken_elsewhere(*thread, object, call))
    };
    let threads: HashSet<u32> = waits.iter().filter(may_wait).map(|(thread, _)| *thread).collect();
    let process = |thread: &u32| analysis.processes[analysis.threads[*thread as usize].process as usize].pid;
    let processes: HashSet<u32> = threads.iter().map(process).collect();
    if processes.len() > 1 { threads } else { HashSet::new() }
}

/// The waits for conditions of threads that others wait for: each needs its mutex to return, however it ends, and one of those that
/// wait for it may have that.
pub fn awaited_cond_waits(analysis: &Analysis, nodes: &HashMap<u32, Node>) -> Vec<(u32, OngoingCall)> {
    let cond_wait = |thread: u32| {
        let state = &analysis.threads[thread as usize];
        let call = state.call_with_mutex().or_else(|| state.call_before_records())?;
        let may_need_mutex = matches!(call.event, COND_WAIT | COND_TIMEDWAIT | COND_CLOCKWAIT)
            && call.mutex.is_some()
            && call.woken.is_none();
        may_need_mutex.then_some((thread, OngoingCall { needs_mutex: true, ..*call }))
    };
    let awaited = awaited(nodes.values()).into_iter();
    awaited.filter(|thread| !nodes.contains_key(thread)).filter_map(cond_wait).collect()
}

/// The threads that others wait for, for certain or not.
fn awaited<'a>(nodes: impl Iterator<Item = &'a Node>) -> HashSet<u32> {
    nodes.flat_map(|node| node.blockers.iter().chain(&node.possible)).copied().collect()
}

/// The waits for locks that programs make of futexes: who takes a free one makes no call.
pub fn waits_for_futex_locks(analysis: &Analysis) -> Vec<(u32, OngoingCall)> {
    let wait = |thread: u32| {
        let state = &analysis.threads[thread as usize];
        let is_there = analysis.processes[state.process as usize].end != ImageEnd::Exec;
        let call = *state.certain_call().filter(|call| is_there && is_futex_wait(call))?;
        analysis.is_contention(&call).then_some((thread, call))
    };
    (0..analysis.threads.len() as u32).filter_map(wait).collect()
}

/// The waits for futexes, in no code that is known as a lock's, of threads that have what others wait for: nobody knows who ends such a
/// wait, and it may be one for a lock. Threads without work have nothing, and are joined in the end. A time limit lets them go on.
pub fn awaited_futex_waits(analysis: &Analysis, nodes: &HashMap<u32, Node>) -> Vec<(u32, OngoingCall)> {
    let futex_wait = |thread: u32| {
        let call = analysis.threads[thread as usize].certain_call()?;
        (call.event == FUTEX_WAIT && call.waits && call.time_limit == 0).then_some((thread, *call))
    };
    let in_locks = nodes.values().filter(|node| node.call.event != THR_JOIN);
    awaited(in_locks).into_iter().filter_map(futex_wait).collect()
}

/// Whether a child whose fork is not recorded has not had a lock yet, nor made it anew: what is locked since the fork has no holder.
fn is_unused_copy(analysis: &Analysis, object: u32) -> bool {
    let state = &analysis.objects[object as usize];
    let is_anew = state.number > 1 || state.is_initialised || state.has_no_attributes;
    let is_unused = state.occupancy.holds.is_empty() && state.occupancy.changed_at() == 0;
    analysis.knowledge_of(object).misses_forks && state.kind.is_copied_by_fork() && is_unused && !is_anew
}

fn is_futex_wait(call: &OngoingCall) -> bool {
    call.waits && call.event.0 == FUTEX
}

/// The calls of pthread_once that run a routine or wait for one, and nobody knows which, by process.
pub fn unknown_routines(analysis: &Analysis, threads: &HashMap<u32, Node>) -> Vec<(u32, OngoingCall)> {
    let is_unknown = |&thread: &u32| !threads.contains_key(&thread);
    let call = |thread: u32| {
        let call = analysis.threads[thread as usize].certain_call()?;
        (call.may_wait && analysis.processes[analysis.threads[thread as usize].process as usize].end != ImageEnd::Exec)
            .then_some((thread, *call))
    };
    (0..analysis.threads.len() as u32).filter(is_unknown).filter_map(call).collect()
}
