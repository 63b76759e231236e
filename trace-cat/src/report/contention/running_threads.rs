//! Which threads run at the end, and which wait for something that any thread may do.

use spec::event_numbers::{BARRIER_WAIT, COND_WAIT, SEMA_WAIT};

use super::analysis::Analysis;
use super::tables::OngoingCall;
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
        call.event == SEMA_WAIT && queue.has_pending() && queue.count_of_woken() as usize >= queue.waits.len()
    };
    let waits = call.waits && call.woken.is_none() && matches!(call.event, COND_WAIT | SEMA_WAIT | BARRIER_WAIT);
    waits && !call.object.is_some_and(is_posted)
}

/// Whether a thread may be running that may end a wait for a condition, semaphore or barrier. Any program may post to a semaphore for
/// processes.
pub fn may_be_woken(analysis: &Analysis, process: u32, call: &OngoingCall) -> bool {
    has_running_thread(analysis, process) || is_for_others(analysis, call)
}

/// Whether threads of another process may end such a wait.
fn is_for_others(analysis: &Analysis, call: &OngoingCall) -> bool {
    call.object
        .is_some_and(|object| analysis.objects[object as usize].is_shared || analysis.may_be_used_elsewhere(object))
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

/// Whether a thread waits for others of its process.
fn is_blocked(analysis: &Analysis, thread: u32) -> bool {
    let process = analysis.threads[thread as usize].process;
    let is_elsewhere = |other: &u32| analysis.threads[*other as usize].process != process;
    let waits = |node: &Node| match &node.blockers[..] {
        // Nobody may have the mutex of one that needs it back, or another process may have the lock.
        [] => {
            let wanted = node.call.wanted();
            node.call.needed_mutex().is_none() && !wanted.is_some_and(|object| analysis.may_be_elsewhere(object))
        }
        blockers => !blockers.iter().any(is_elsewhere),
    };
    let stays = |call: &OngoingCall| match is_idle(analysis, call) {
        true => !is_for_others(analysis, call),
        false => node(analysis, thread).as_ref().is_some_and(waits),
    };
    analysis.threads[thread as usize].certain_call().is_some_and(stays)
}
