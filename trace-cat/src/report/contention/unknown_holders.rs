//! Waits at the end of which the records do not show whom they are for.

use std::collections::HashMap;

use super::analysis::Analysis;
use super::running_threads::{ending_thread, has_running_thread};
use super::tables::{ImageEnd, OngoingCall};
use super::wait_nodes::Node;

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
    let mut unknown: Vec<UnknownHolders> = Vec::new();
    for (thread, call) in waits {
        let Some(object) = call.wanted() else { continue };
        let knowledge = analysis.knowledge_of(object);
        let state = &analysis.objects[object as usize];
        let is_doubtful = state.occupancy.holds.iter().any(|hold| hold.is_doubtful());
        let is_incomplete = knowledge.leaves_calls_out() || knowledge.complete_from > 0 || is_doubtful;
        // No thread of the process has it, which may wait for another process's.
        let is_elsewhere = state.occupancy.holds.is_empty() && analysis.may_be_elsewhere(object);
        let is_left_behind = call.waits && analysis.may_be_left_behind(object);
        if !is_elsewhere && !is_left_behind && (!is_incomplete || state.occupancy.is_free(knowledge)) {
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
