//! Who waits for whom in the end: deadlocks, and threads whose chain of waits reaches no running thread.
//!
//! A thread waits for who holds the lock that it wants, or for the thread that it joins. A wait with a time limit ends by itself.
//! A wait for a condition ends when it has its mutex back: a thread that was woken waits for that, and no signal, time limit or
//! cancellation helps one whose mutex a thread has that waits for it.
//! Holders count only where the records leave no doubt: see `blockers`. So do waits: a thread that has made records since may have
//! left its wait by a jump out of a signal handler.

use std::collections::{HashMap, HashSet};

use spec::event_numbers::{RW_WRLOCK, THR_ONCE};

use super::analysis::Analysis;
use super::chain_ends::{ChainEnd, Chains};
use super::tables::{ImageEnd, OngoingCall};
use super::unknown_holders::{
    UnknownHolders, awaited_cond_waits, awaited_futex_waits, unknown_holders, unknown_routines, waits_for_futex_locks,
};
use super::wait_nodes::{Node, node, shortest_cycle};

/// A thread in a call that does not return.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockedThread {
    pub thread: u32,
    pub call: OngoingCall,
    /// The objects that it holds.
    pub holds: Vec<u32>,
    /// The owner that it waits for, if nobody knows whether that is the one that will release the object: it is the one that it saw when
    /// it began to wait, or other threads have unlocked the mutex before.
    pub doubtful_owner: Option<u32>,
}

impl BlockedThread {
    /// Whether the thread may have left its call by a jump.
    pub fn may_have_left(&self, analysis: &Analysis) -> bool {
        analysis.threads[self.thread as usize].may_have_left(&self.call)
    }
}

/// A thread that waits, directly or through others, for one that does not run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StuckThread {
    pub thread: u32,
    pub call: OngoingCall,
    /// The thread that it waits for.
    pub held_by: u32,
    /// What is at the end of the chain.
    pub end: ChainEnd,
}

/// The deadlocks and the stuck threads.
#[derive(Debug, Default)]
pub struct WaitGraph {
    /// The moment that it shows, if that is not the end.
    pub moment: Option<u64>,
    pub deadlocks: Vec<Vec<BlockedThread>>,
    pub stuck: Vec<StuckThread>,
    /// The threads that are stuck if a thread that is ending has ended, one that was cancelled or may have left its wait is in it,
    /// nobody else unlocks what one has taken, or who runs does not wake what one joins.
    pub perhaps_stuck: Vec<StuckThread>,
    /// The threads that wait for a lock, behind one that waits for a condition or semaphore while others run, of which one may wake it.
    /// So do threads that join what waits for work, which is no reason to suspect anything.
    pub stuck_unless_woken: Vec<StuckThread>,
    /// The waits for locks whose holders are missing in the records, by process.
    pub unknown_holders: Vec<UnknownHolders>,
    /// The threads that run a routine of pthread_once or wait for one.
    pub unknown_routines: Vec<(u32, OngoingCall)>,
    /// What would be deadlocks if no thread of them had left its wait by a jump, as some may have, and the owners that threads saw
    /// had not released what they had, as some may have.
    pub undecided: Vec<Vec<BlockedThread>>,
}

impl WaitGraph {
    /// The graph after the records so far, as far as it is selected.
    pub fn of(analysis: &Analysis) -> WaitGraph {
        let all = (0..analysis.threads.len() as u32).filter_map(|thread| Some((thread, node(analysis, thread)?)));
        let (mut nodes, doubtful): (HashMap<u32, Node>, HashMap<u32, Node>) =
            all.partition(|(thread, node)| !analysis.threads[*thread as usize].may_have_left(&node.call));
        let mut threads: Vec<u32> = nodes.keys().copied().collect();
        threads.sort_unstable();
        let (mut graph, mut in_cycle) = (WaitGraph::default(), HashMap::new());
        for &thread in &threads {
            let Some(cycle) = shortest_cycle(&nodes, thread) else { continue };
            // One cycle for all that have a thread in common. The other threads of these cycles are stuck because of it.
            let reported = cycle.iter().find_map(|thread| in_cycle.get(thread).copied());
            if reported.is_none() {
                graph.deadlocks.push(blocked_threads(analysis, &nodes, &cycle));
            }
            for thread in cycle {
                in_cycle.entry(thread).or_insert(reported.unwrap_or(thread));
            }
        }
        let idle: Vec<(u32, Node)> =
            nodes.extract_if(|thread, node| node.is_idle && !in_cycle.contains_key(thread)).collect();
        threads.retain(|thread| nodes.contains_key(thread));
        let mut chains = Chains::new(analysis, &nodes, &in_cycle);
        for &thread in threads.iter().filter(|thread| in_cycle.get(thread) != Some(thread)) {
            let Node { call, left_behind, .. } = nodes[&thread];
            let blockers = nodes[&thread].awaited(analysis);
            let is_in_cycle = |blocker: &&u32| in_cycle.contains_key(&thread) && in_cycle.contains_key(*blocker);
            let held_by = blockers.iter().find(is_in_cycle).or(blockers.first()).copied().or(left_behind);
            if let (Some(end), Some(held_by)) = (chains.end(thread), held_by) {
                let list = match end {
                    ChainEnd::MayBeWoken { is_behind_lock: true, .. } => &mut graph.stuck_unless_woken,
                    end if end.is_certain() => &mut graph.stuck,
                    _ => &mut graph.perhaps_stuck,
                };
                list.push(StuckThread { thread, call, held_by, end });
            }
        }
        let is_alone = |thread: &&u32| nodes[*thread].blockers.is_empty() && nodes[*thread].left_behind.is_none();
        let alone = threads.iter().filter(is_alone).map(|thread| (*thread, nodes[thread].call));
        let mut needed = awaited_cond_waits(analysis, &nodes);
        needed.extend(waits_for_futex_locks(analysis));
        needed.extend(awaited_futex_waits(analysis, &nodes));
        // Beside the readers that are known there may be others, for one of which a writer waits in a circle.
        let is_stuck = |thread: u32| graph.stuck.iter().any(|stuck| stuck.thread == thread);
        let waits_for_readers = |thread: &&u32| {
            let node = &nodes[*thread];
            let is_writer = node.call.event == RW_WRLOCK && !node.blockers.is_empty();
            is_writer && !in_cycle.contains_key(*thread) && !is_stuck(**thread)
        };
        needed.extend(threads.iter().filter(waits_for_readers).map(|thread| (*thread, nodes[thread].call)));
        needed.sort_unstable_by_key(|(thread, _)| *thread);
        needed.dedup_by_key(|(thread, _)| *thread);
        let alone: Vec<(u32, OngoingCall)> = alone.collect();
        graph.unknown_routines = unknown_routines(analysis, &nodes);
        nodes.extend(idle);
        graph.undecided = undecided(analysis, nodes, doubtful);
        let is_undecided = |thread: u32| graph.undecided.iter().flatten().any(|blocked| blocked.thread == thread);
        needed.retain(|(thread, _)| !is_undecided(*thread));
        graph.unknown_holders = unknown_holders(analysis, alone.into_iter().chain(needed));
        graph.select(analysis);
        graph
    }

    /// The objects that it names.
    pub fn objects(&self) -> impl Iterator<Item = u32> {
        let blocked = self.deadlocks.iter().chain(&self.undecided).flatten();
        let wanted = |call: &OngoingCall| call.object.into_iter().chain(call.needed_mutex());
        let in_deadlocks = blocked.flat_map(move |blocked| blocked.holds.iter().copied().chain(wanted(&blocked.call)));
        let last_call = |stuck: &StuckThread| match stuck.end {
            ChainEnd::Idle(_, call) | ChainEnd::Left(_, call) | ChainEnd::MayBeWoken { call, .. } => call.object,
            _ => None,
        };
        let of_stuck = self
            .stuck
            .iter()
            .chain(&self.perhaps_stuck)
            .chain(&self.stuck_unless_woken)
            .flat_map(move |stuck| wanted(&stuck.call).chain(last_call(stuck)));
        in_deadlocks.chain(of_stuck)
    }

    /// Removes what has ended since, after the last record. A deadlock is for ever: where a thread of it has returned, records were
    /// missing that would have shown another owner, unless `was_ended` is true of it. `is_present`: stuck threads that go on are removed,
    /// too.
    pub fn confirm(&mut self, analysis: &Analysis, is_present: bool, was_ended: impl Fn(&[BlockedThread]) -> bool) {
        let is_there = |thread: u32, call: &OngoingCall| {
            let state = &analysis.threads[thread as usize];
            let is_same = |open: &OngoingCall| (open.event, open.entry) == (call.event, call.entry);
            // What a program's threads were in when it ended by an exec is not kept.
            let is_over = analysis.processes[state.process as usize].end == ImageEnd::Exec;
            if is_over { !is_present } else { state.open.iter().any(is_same) }
        };
        let lasts =
            |threads: &Vec<BlockedThread>| threads.iter().all(|blocked| is_there(blocked.thread, &blocked.call));
        let (lasting, refuted): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.deadlocks).into_iter().partition(|threads| lasts(threads) || was_ended(threads));
        let is_certain = |threads: &Vec<BlockedThread>| {
            was_ended(threads) || threads.iter().all(|blocked| !blocked.may_have_left(analysis))
        };
        let (deadlocks, undecided): (Vec<_>, Vec<_>) = lasting.into_iter().partition(is_certain);
        // Who was not stuck for ever went on since.
        let went_on = |stuck: &mut StuckThread| {
            !is_present && matches!(stuck.end, ChainEnd::Idle(..)) && !is_there(stuck.thread, &stuck.call)
        };
        for stuck in self.stuck.extract_if(.., went_on) {
            let ChainEnd::Idle(thread, call) = stuck.end else { continue };
            let is_behind_lock = stuck.call.wanted().is_some();
            let end = ChainEnd::MayBeWoken { thread, call, is_behind_lock };
            let list = if is_behind_lock { &mut self.stuck_unless_woken } else { &mut self.perhaps_stuck };
            list.push(StuckThread { end, ..stuck });
        }
        self.stuck.retain(|stuck| {
            let lasts = !is_present || is_there(stuck.thread, &stuck.call);
            let mut doubtful = refuted.iter().chain(&undecided).flatten();
            lasts
                && match stuck.end {
                    ChainEnd::Deadlock(thread) => doubtful.all(|blocked| blocked.thread != thread),
                    ChainEnd::Idle(thread, call) => !is_present || is_there(thread, &call),
                    _ => true,
                }
        });
        for doubtful in [&mut self.perhaps_stuck, &mut self.stuck_unless_woken] {
            doubtful.retain(|stuck| !is_present || is_there(stuck.thread, &stuck.call));
        }
        for unknown in &mut self.unknown_holders {
            unknown.waits.retain(|(thread, call)| !is_present || is_there(*thread, call));
        }
        self.unknown_routines.retain(|(thread, call)| !is_present || is_there(*thread, call));
        self.deadlocks = deadlocks;
        self.undecided.retain(lasts);
        self.undecided.extend(undecided);
    }

    fn select(&mut self, analysis: &Analysis) {
        let is_wanted = |thread: u32, call: &OngoingCall| {
            let state = &analysis.threads[thread as usize];
            let object = call.object.map(|object| analysis.objects[object as usize].identity());
            analysis.selection.wants(analysis.processes[state.process as usize].pid, state.lwp, object)
        };
        for circles in [&mut self.deadlocks, &mut self.undecided] {
            circles.retain(|threads| threads.iter().any(|blocked| is_wanted(blocked.thread, &blocked.call)));
        }
        for stuck in [&mut self.stuck, &mut self.perhaps_stuck, &mut self.stuck_unless_woken] {
            stuck.retain(|stuck| is_wanted(stuck.thread, &stuck.call));
        }
        for unknown in &mut self.unknown_holders {
            unknown.waits.retain(|(thread, call)| is_wanted(*thread, call));
        }
        self.unknown_routines.retain(|(thread, call)| is_wanted(*thread, call));
    }
}

/// The threads of a cycle with what they wait for and hold.
fn blocked_threads(analysis: &Analysis, nodes: &HashMap<u32, Node>, cycle: &[u32]) -> Vec<BlockedThread> {
    let next = cycle.iter().cycle().skip(1);
    let blocked = |(&thread, next): (&u32, &u32)| {
        let holds = holds(analysis, nodes, thread);
        let Node { call, ref blockers, ref possible, .. } = nodes[&thread];
        let is_doubtful = possible.contains(next) && blockers.contains(next);
        BlockedThread { thread, call, holds, doubtful_owner: is_doubtful.then_some(*next) }
    };
    cycle.iter().zip(next).map(blocked).collect()
}

/// The cycles through threads that may have left their waits, or wait for owners that may have released what they had: each such
/// thread in one of them.
fn undecided(
    analysis: &Analysis,
    certain: HashMap<u32, Node>,
    doubtful: HashMap<u32, Node>,
) -> Vec<Vec<BlockedThread>> {
    let mut threads: Vec<u32> = doubtful.keys().copied().collect();
    let mut nodes = certain;
    threads.extend(nodes.iter().filter(|(_, node)| !node.possible.is_empty()).map(|(thread, _)| *thread));
    threads.sort_unstable();
    nodes.extend(doubtful);
    nodes.values_mut().for_each(|node| node.blockers.extend_from_slice(&node.possible));
    let (mut circles, mut reported) = (Vec::new(), HashSet::new());
    for thread in threads {
        let Some(cycle) = shortest_cycle(&nodes, thread).filter(|_| !reported.contains(&thread)) else { continue };
        reported.extend(cycle.iter().copied());
        circles.push(blocked_threads(analysis, &nodes, &cycle));
    }
    circles
}

/// The objects that a thread holds for certain. Where only calls that blocked are recorded, these are those for which others wait.
fn holds(analysis: &Analysis, nodes: &HashMap<u32, Node>, thread: u32) -> Vec<u32> {
    let state = &analysis.threads[thread as usize];
    let is_only_blocked = analysis.processes[state.process as usize].knowledge.only_blocked;
    let is_held = |object: &u32| {
        let mut holds = analysis.objects[*object as usize].occupancy.holds.iter();
        holds.any(|hold| hold.holder.thread == thread && !hold.is_doubtful())
    };
    // Who was taken for the one that runs a routine may be the one that waits for it.
    let waits_in = |object: &u32| {
        nodes.get(&thread).is_some_and(|node| node.call.event == THR_ONCE && node.call.object == Some(*object))
    };
    let waits_for_it =
        |object: u32| nodes.values().any(|node| node.call.wanted() == Some(object) && node.blockers.contains(&thread));
    let held = state.holds.iter().copied().filter(|object| is_held(object) && !waits_in(object));
    held.filter(|object| !is_only_blocked || waits_for_it(*object)).collect()
}
