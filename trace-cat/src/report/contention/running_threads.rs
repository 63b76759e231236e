//! Which threads run at the end, and which wait for something that any thread may do.

use std::collections::HashSet;

use super::analysis::Analysis;
use super::tables::{ImageEnd, OngoingCall};
use super::wait_nodes::{Node, node};

/// A thread of a process that is ending, and may not have ended.
pub fn ending_thread(analysis: &Analysis, process: u32) -> Option<u32> {
    let threads = analysis.processes[process as usize].threads.iter().copied();
    let is_ending = |&thread: &u32| {
        let state = &analysis.threads[thread as usize];
        state.has_exited && !state.is_in_gap && !analysis.is_gone(thread) && !is_blocked(analysis, thread)
    };
    threads.filter(is_ending).last()
}

/// Whether a call waits for a condition, semaphore or barrier, without a time limit, and has not been woken for certain.
pub fn is_idle(analysis: &Analysis, call: &OngoingCall) -> bool {
    let is_posted = |object: u32| {
        let queue = &analysis.objects[object as usize].wakeups;
        call.event == (4, 2) && queue.has_pending() && queue.count_of_woken() as usize >= queue.waits.len()
    };
    let waits = call.waits && call.woken.is_none() && matches!(call.event, (3, 4) | (4, 2) | (7, 2));
    waits && !call.object.is_some_and(is_posted)
}

/// Whether a thread of a process may be running.
pub fn has_running_thread(analysis: &Analysis, process: u32) -> bool {
    let mut threads = analysis.processes[process as usize].threads.iter();
    threads.any(|&thread| !has_stopped(analysis, thread) && !is_blocked(analysis, thread))
}

/// The thread that may end a wait for a condition or semaphore: it has sent signals or posts before, and runs or waits for one that
/// does.
pub fn running_waker(analysis: &Analysis, process: u32, call: &OngoingCall) -> Option<u32> {
    let is_over = |other: u32| {
        other != process && matches!(analysis.processes[other as usize].end, ImageEnd::Exit | ImageEnd::Exec)
    };
    let mut seen = HashSet::new();
    wakers(analysis, call).iter().copied().find(|&waker| {
        let mut pending = vec![waker];
        while let Some(thread) = pending.pop() {
            let state = &analysis.threads[thread as usize];
            if !seen.insert(thread) || has_stopped(analysis, thread) || is_over(state.process) {
                continue;
            }
            match state.certain_call().filter(|_| is_blocked(analysis, thread)) {
                Some(call) if is_idle(analysis, call) => pending.extend(wakers(analysis, call)),
                Some(_) => match node(analysis, thread).map(|node| node.awaited(analysis).to_vec()) {
                    Some(awaited) if !awaited.is_empty() => pending.extend(awaited),
                    // Nobody knows whom it waits for.
                    _ => return true,
                },
                None => return true,
            }
        }
        false
    })
}

/// The threads that have ended waits for the condition or semaphore of a call, or any that may have.
fn wakers<'a>(analysis: &'a Analysis, call: &OngoingCall) -> &'a [u32] {
    let Some(object) = call.object.map(|object| &analysis.objects[object as usize]) else { return &[] };
    let all = || &analysis.processes[object.process as usize].threads[..];
    object.wakeups.wakers.threads().unwrap_or_else(all)
}

/// Whether a thread has made the record of its end.
fn has_stopped(analysis: &Analysis, thread: u32) -> bool {
    let state = &analysis.threads[thread as usize];
    state.has_exited && !state.is_in_gap
}

/// Whether a thread waits for others.
fn is_blocked(analysis: &Analysis, thread: u32) -> bool {
    // Nobody may have the mutex of one that needs it back.
    let waits = |node: &Node| node.call.needed_mutex().is_none() || !node.blockers.is_empty();
    let stays = |call: &OngoingCall| is_idle(analysis, call) || node(analysis, thread).as_ref().is_some_and(waits);
    analysis.threads[thread as usize].certain_call().is_some_and(stays)
}
