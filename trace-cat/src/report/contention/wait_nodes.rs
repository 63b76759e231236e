//! Whom a blocked thread waits for, and circles of such waits.

use std::collections::{HashMap, VecDeque};

use spec::event_numbers::{
    COND_CLOCKWAIT, COND_TIMEDWAIT, COND_WAIT, MUTEX_LOCK, RMUTEX_LOCK, RW_RDLOCK, RW_WRLOCK, SPIN_LOCK, THR_JOIN,
    THR_ONCE,
};

use super::analysis::Analysis;
use super::tables::{ImageEnd, OngoingCall};

/// A blocked thread's call, and the threads that it waits for for certain.
pub struct Node {
    pub call: OngoingCall,
    pub blockers: Vec<u32>,
    /// The threads that it waits for if these have not released the object since they were seen with it, or if only they release it.
    pub possible: Vec<u32>,
    /// The thread of an ancestor that had the lock when it forked.
    pub left_behind: Option<u32>,
    /// It waits for a condition, of which any thread may wake it: only in a circle it is certain that this is of no use.
    pub is_idle: bool,
}

impl Node {
    /// The threads that its chain goes on with: those that it waits for, or else who has taken a lock that others unlock, too.
    pub fn awaited(&self, analysis: &Analysis) -> &[u32] {
        let is_handed_on = |object: u32| {
            analysis.objects[object as usize].is_released_by_others() && !analysis.knowledge_of(object).only_blocked
        };
        match self.blockers.is_empty() && self.call.wanted().is_some_and(is_handed_on) {
            true => &self.possible,
            false => &self.blockers,
        }
    }
}

/// The node of a thread; `None` if it is not in a call that waits for other threads.
pub fn node(analysis: &Analysis, thread: u32) -> Option<Node> {
    let state = &analysis.threads[thread as usize];
    let process = &analysis.processes[state.process as usize];
    let last_call = state.call_with_mutex().or_else(|| state.call_before_records());
    let mut call = *last_call.filter(|_| process.end != ImageEnd::Exec)?;
    let is_cancelled = call.mutex.is_none() && state.may_be_cancelled_in(&call);
    if is_cancelled || analysis.has_returned_unseen(thread, &call) || analysis.has_acquired_in(thread, &call) {
        return None;
    }
    let (mut possible, mut is_idle) = (Vec::new(), false);
    let is_once = call.event == THR_ONCE;
    let runner = call.object.filter(|_| is_once).and_then(|object| analysis.runner(object));
    let blockers = match call.event {
        // Who made calls since runs the routine, also if another one entered before.
        THR_ONCE if runner.is_some_and(|runner| runner != thread) => runner.into_iter().collect(),
        THR_JOIN => {
            call.joined = analysis.joined_thread(state.process, &call);
            let is_alive = |joined: &u32| !analysis.threads[*joined as usize].has_ended();
            call.joined.filter(is_alive).into_iter().collect()
        }
        THR_ONCE | MUTEX_LOCK | RMUTEX_LOCK | RW_RDLOCK | RW_WRLOCK | SPIN_LOCK if call.waits => {
            possible = analysis.possible_holders(thread, &call);
            let mut holders = analysis.certain_holders(thread, call);
            if holders.is_empty() {
                let owner = analysis.owner_elsewhere(thread, &call).filter(|_| call.owner.is_none());
                holders.extend(match owner {
                    Some((owner, is_certain)) => {
                        if !is_certain && possible.is_empty() {
                            possible.push(owner);
                        }
                        Some(owner).filter(|_| is_certain)
                    }
                    None => analysis.holder_elsewhere(thread, &call),
                });
            }
            holders
        }
        // It has waited for its mutex since it was woken, also if the call has a time limit.
        COND_WAIT | COND_TIMEDWAIT | COND_CLOCKWAIT => {
            let (mutex, _) = call.mutex?;
            // It has it again, and has not returned: another thread saw that. Or it has a recursive one several times.
            if analysis.objects[mutex as usize].occupancy.depth(thread) > 0 {
                return None;
            }
            let entry = call.woken.unwrap_or(call.entry);
            let needed = OngoingCall { object: Some(mutex), entry, ..call };
            let mut holders = analysis.certain_holders(thread, needed);
            possible = analysis.possible_holders(thread, &needed);
            let is_unknown = holders.is_empty() && possible.is_empty();
            possible.extend(analysis.last_holder_since(mutex, call.entry).filter(|_| is_unknown));
            if call.woken.is_none() {
                let has_taken_it = |holder: &u32| analysis.has_acquired_since(mutex, *holder, call.entry);
                holders.retain(has_taken_it);
                possible.retain(has_taken_it);
                let is_at_limit = analysis.is_at_limit(thread, &call);
                if holders.is_empty() && possible.is_empty() && !is_at_limit {
                    return None;
                }
                let may_be_woken = call.event == COND_WAIT && state.cancelled.is_none();
                (call.needs_mutex, is_idle) = (true, may_be_woken || holders.is_empty() && !is_at_limit);
            }
            holders
        }
        _ => return None,
    };
    let is_of_ancestor = |owner: &u32| analysis.threads[*owner as usize].process != state.process;
    let left_behind = call.owner.filter(|owner| blockers.is_empty() && is_of_ancestor(owner));
    Some(Node { call, blockers, possible, left_behind, is_idle })
}

/// The shortest cycle through a thread, from that on.
pub fn shortest_cycle(nodes: &HashMap<u32, Node>, start: u32) -> Option<Vec<u32>> {
    let mut previous: HashMap<u32, u32> = HashMap::new();
    let mut queue = VecDeque::from([start]);
    while let Some(thread) = queue.pop_front() {
        for &blocker in nodes.get(&thread).map_or(&[][..], |node| &node.blockers) {
            if blocker == start {
                let mut cycle = vec![thread];
                while let Some(&before) =
                    cycle.last().filter(|last| **last != start).and_then(|last| previous.get(last))
                {
                    cycle.push(before);
                }
                cycle.reverse();
                return Some(cycle);
            }
            if let std::collections::hash_map::Entry::Vacant(new) = previous.entry(blocker) {
                new.insert(thread);
                queue.push_back(blocker);
            }
        }
    }
    None
}
