//! What a chain of waits ends in, in words.

use super::tables::thread_label;
use super::view::ReportView;
use crate::report::contention::{ChainEnd, OngoingCall};
use crate::report::trace_names::event_name;

/// What a chain ends in: a statement, and what helps to understand it.
pub fn chain_end_text(view: &ReportView, end: &ChainEnd) -> Vec<String> {
    match *end {
        ChainEnd::Ended(thread) => vec![format!("{} has ended", thread_label(view, thread))],
        ChainEnd::Robust(thread) => {
            vec![format!("{} has ended, and the mutex may be robust", thread_label(view, thread))]
        }
        ChainEnd::Killed(thread) => {
            vec![format!("{} has no recorded end", thread_label(view, thread))]
        }
        ChainEnd::Ending(thread) => vec![format!("{} is ending", thread_label(view, thread))],
        ChainEnd::Cancelled(thread, call) => {
            vec![format!("{} was cancelled in {}", thread_label(view, thread), event_name(call.event))]
        }
        ChainEnd::Left(thread, call) => {
            vec![format!("{} was in {}, or is", thread_label(view, thread), event_name(call.event))]
        }
        ChainEnd::Deadlock(thread) => vec![format!("{} is in a deadlock", thread_label(view, thread))],
        ChainEnd::LeftBehind(thread) => {
            let label = thread_label(view, thread);
            vec![format!("{label} had it in the parent when that forked; the child does not have the thread")]
        }
        ChainEnd::HandedOn(thread) => {
            let label = thread_label(view, thread);
            vec![format!("{label} has taken a lock that other threads than its owner have unlocked before")]
        }
        ChainEnd::Idle(thread, call) => idle_text(view, thread, &call),
        ChainEnd::MayBeWoken { thread, call, .. } => idle_text(view, thread, &call),
    }
}

/// The wait that nobody ends, where it is, and whether who should have ended it came too early.
fn idle_text(view: &ReportView, thread: u32, call: &OngoingCall) -> Vec<String> {
    let object = call.object.map(|object| format!(" {}", view.object_label(object))).unwrap_or_default();
    let mut text = vec![format!("{} is in {}{object}", thread_label(view, thread), event_name(call.event))];
    text.extend(view.place(call.site).map(|place| format!("at {place}")));
    // The figures are those of the complete trace: at an earlier moment, some of these signals are still to be sent.
    let is_known = |object: &u32| view.graph.moment.is_none() && !view.analysis.knowledge_of(*object).only_blocked;
    let object = call.object.filter(is_known);
    let signals = object.map_or(0, |object| view.object(object).figures.wasted_signals);
    if signals > 0 {
        text.push(format!(
            "signals that woke nobody: {signals}; if it waits for what one of them announced, a lost wake-up"
        ));
    }
    text
}
