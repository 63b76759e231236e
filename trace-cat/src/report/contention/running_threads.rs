//! Which threads run at the end, and which wait for something that any thread may do.

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

/// Whether a thread may be running that may wake who waits in a call: one of its process or, if processes share the object, of any.
pub fn may_be_woken(analysis: &Analysis, process: u32, call: &OngoingCall) -> bool {
    let is_shared = call.object.is_some_and(|object| analysis.objects[object as usize].is_shared);
    let others = 0..if is_shared { analysis.processes.len() as u32 } else { 0 };
    let mut running =
        others.filter(|other| !matches!(analysis.processes[*other as usize].end, ImageEnd::Exit | ImageEnd::Exec));
    has_running_thread(analysis, process) || running.any(|other| has_running_thread(analysis, other))
}

/// Whether a thread of a process may be running. Where recording began late, or not all is recorded, there may be some without a record.
pub fn has_running_thread(analysis: &Analysis, process: u32) -> bool {
    let process = &analysis.processes[process as usize];
    let knowledge = &process.knowledge;
    let lacks_threads = knowledge.lacks_settings && !analysis.shows_threads(process);
    let may_have_others = knowledge.misses_threads || process.changes > 0 || lacks_threads;
    let mut threads = process.threads.iter();
    may_have_others
        || threads.any(|&thread| {
            let state = &analysis.threads[thread as usize];
            let stays = state.has_exited && !state.is_in_gap;
            !stays && !is_blocked(analysis, thread)
        })
}

/// Whether a thread waits for others.
fn is_blocked(analysis: &Analysis, thread: u32) -> bool {
    // Nobody may have the mutex of one that needs it back.
    let waits = |node: &Node| node.call.needed_mutex().is_none() || !node.blockers.is_empty();
    let stays = |call: &OngoingCall| is_idle(analysis, call) || node(analysis, thread).as_ref().is_some_and(waits);
    analysis.threads[thread as usize].certain_call().is_some_and(stays)
}
