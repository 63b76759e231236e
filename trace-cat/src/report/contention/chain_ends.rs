//! What the chain of those that a thread waits for ends in.

use std::collections::HashMap;

use spec::event_numbers::BARRIER_WAIT;

use super::analysis::Analysis;
use super::running_threads::{ending_thread, is_idle, may_be_woken};
use super::tables::{ImageEnd, OngoingCall};
use super::wait_nodes::Node;

/// What a chain of waits ends in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChainEnd {
    /// A thread that has ended.
    Ended(u32),
    /// A thread that is ending, or has ended: after the record of that its own destructors may run.
    Ending(u32),
    /// A thread that has ended with a mutex that may be robust: then the next one gets it.
    Robust(u32),
    /// A thread of another process, which has no recorded end, and may have been killed.
    Killed(u32),
    /// A thread that was cancelled in this call, which it leaves if it lets itself be cancelled.
    Cancelled(u32, OngoingCall),
    /// A thread that waited for a condition, semaphore or barrier, in this call, and may have left it by a jump.
    Left(u32, OngoingCall),
    /// A thread that waits for a condition, semaphore or barrier, in this call.
    Idle(u32, OngoingCall),
    /// The same, while another thread runs, or another process may, that may end the wait.
    MayBeWoken { thread: u32, call: OngoingCall, is_behind_lock: bool },
    /// A deadlock.
    Deadlock(u32),
    /// A thread that had a lock when another one forked the process, which does not have it.
    LeftBehind(u32),
    /// A thread that has taken a lock which others unlock, too, and does not run.
    HandedOn(u32),
}

impl ChainEnd {
    /// Whether whom a chain leads to stays there for certain.
    pub fn is_certain(&self) -> bool {
        use ChainEnd::{Cancelled, Ending, HandedOn, Killed, Left, MayBeWoken, Robust};
        !matches!(self, Ending(_) | Robust(_) | Killed(_) | Cancelled(..) | Left(..) | MayBeWoken { .. } | HandedOn(_))
    }
}

/// What chains of waits end in.
pub struct Chains<'a> {
    analysis: &'a Analysis,
    nodes: &'a HashMap<u32, Node>,
    /// The threads in cycles, each with a thread that is in a reported deadlock: itself, or one that it waits for.
    in_cycle: &'a HashMap<u32, u32>,
    /// Those that are known.
    ends: HashMap<u32, Option<ChainEnd>>,
    /// Whether who waits in a process for an object may be woken, as far as that was asked.
    woken: HashMap<(u32, Option<u32>), bool>,
}

impl<'a> Chains<'a> {
    pub fn new(analysis: &'a Analysis, nodes: &'a HashMap<u32, Node>, in_cycle: &'a HashMap<u32, u32>) -> Chains<'a> {
        Chains { analysis, nodes, in_cycle, ends: HashMap::new(), woken: HashMap::new() }
    }

    /// What the chain ends in that begins with a thread: that of the first of the threads that it waits for. `None` if one of them leads
    /// to a running thread, or nobody knows.
    pub fn end(&mut self, thread: u32) -> Option<ChainEnd> {
        // Those that a thread waits for come before it.
        let mut pending = vec![thread];
        while let Some(&thread) = pending.last() {
            let blockers = match self.nodes.get(&thread) {
                Some(node) if !self.in_cycle.contains_key(&thread) => node.awaited(self.analysis),
                _ => &[],
            };
            match blockers.iter().find(|blocker| !self.ends.contains_key(blocker)) {
                Some(&blocker) => {
                    // No cycle is left that would lead back to the thread, but through one that is known.
                    self.ends.insert(blocker, None);
                    pending.push(blocker);
                }
                None => {
                    let end = self.end_after(thread, blockers);
                    self.ends.insert(thread, end);
                    pending.pop();
                }
            }
        }
        self.ends.get(&thread).copied().flatten()
    }

    fn end_after(&mut self, thread: u32, blockers: &[u32]) -> Option<ChainEnd> {
        if let Some(&reported) = self.in_cycle.get(&thread) {
            return Some(ChainEnd::Deadlock(reported));
        }
        let Some(node) = self.nodes.get(&thread) else { return self.last_of_chain(thread) };
        if let Some(owner) = node.left_behind {
            return Some(ChainEnd::LeftBehind(owner));
        }
        let mut ends = blockers.iter().map(|blocker| {
            let end = self.ends.get(blocker).copied().flatten();
            match end {
                // The end of another one in the chain is a fact.
                Some(ChainEnd::Ended(it)) if it == *blocker && self.may_be_robust(&node.call) => {
                    Some(ChainEnd::Robust(it))
                }
                None if self.may_have_been_killed(thread, *blocker) => Some(ChainEnd::Killed(*blocker)),
                end => end,
            }
        });
        let first = ends.next()??;
        let others: Vec<ChainEnd> = ends.collect::<Option<_>>()?;
        // One that is not certain makes all of them so.
        let end = others.into_iter().find(|end| !end.is_certain()).unwrap_or(first);
        let stays = end.is_certain() || matches!(end, ChainEnd::MayBeWoken { .. });
        let is_handed_on = node.blockers.is_empty() && stays;
        Some(match end {
            _ if is_handed_on => ChainEnd::HandedOn(blockers[0]),
            ChainEnd::MayBeWoken { thread, call, is_behind_lock } => {
                let is_behind_lock = is_behind_lock || node.call.wanted().is_some();
                ChainEnd::MayBeWoken { thread, call, is_behind_lock }
            }
            end => end,
        })
    }

    /// Whether a thread that another one waits for may have been killed with its process, which is not that one's. No record shows that, and
    /// all processes of a trace may have been killed at once.
    fn may_have_been_killed(&self, waiter: u32, thread: u32) -> bool {
        let [of_waiter, of_thread] = [waiter, thread].map(|thread| self.analysis.threads[thread as usize].process);
        of_waiter != of_thread && self.analysis.processes[of_thread as usize].end == ImageEnd::Unknown
    }

    /// Whether a call waits for a mutex that goes to the next one if its owner ends.
    fn may_be_robust(&self, call: &OngoingCall) -> bool {
        call.object.is_some_and(|object| self.analysis.objects[object as usize].may_be_robust)
    }

    /// What a thread does that waits for no other one.
    fn last_of_chain(&mut self, thread: u32) -> Option<ChainEnd> {
        let analysis = self.analysis;
        let state = &analysis.threads[thread as usize];
        if state.open.is_empty() && !state.is_in_gap {
            let end = if analysis.is_gone(thread) { ChainEnd::Ended(thread) } else { ChainEnd::Ending(thread) };
            return state.has_exited.then_some(end);
        }
        if let Some(call) = state.cancelled_wait() {
            return Some(ChainEnd::Cancelled(thread, *call));
        }
        let last_call = state.call_with_mutex().or_else(|| state.call_before_records());
        let call = *last_call.filter(|call| is_idle(analysis, call) && !state.may_be_cancelled_in(call))?;
        if state.may_have_left(&call) {
            return Some(ChainEnd::Left(thread, call));
        }
        let key = (state.process, call.object);
        if *self.woken.entry(key).or_insert_with(|| may_be_woken(analysis, state.process, &call)) {
            return Some(ChainEnd::MayBeWoken { thread, call, is_behind_lock: false });
        }
        // A thread that is ending may come to a barrier.
        let ending = ending_thread(analysis, state.process).filter(|_| call.event == BARRIER_WAIT);
        Some(ending.map_or(ChainEnd::Idle(thread, call), ChainEnd::Ending))
    }
}
