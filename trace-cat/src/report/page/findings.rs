//! What is wrong, as JSON: deadlocks, stuck threads and the lock order.

use serde_json::{Value, json};

use super::chain_end::chain_end_text;
use super::document::{Document, LIST_MAX, surplus};
use super::misuse_text::misuse_text;
use crate::report::contention::{BlockedThread, OngoingCall};
use crate::report::lock_order::{LockCycle, OrderStep};
use crate::report::trace_names::event_name;

impl Document<'_> {
    fn object_of(&self, call: &OngoingCall) -> Option<String> {
        call.object.map(|object| self.object_name(object))
    }

    /// The mutex that a wait for a condition needs back.
    fn mutex_of(&self, call: &OngoingCall) -> Option<String> {
        call.needed_mutex().map(|mutex| self.object_name(mutex))
    }

    pub fn deadlocks(&mut self) -> Vec<Value> {
        let deadlocks: Vec<&Vec<BlockedThread>> = self.view.graph.deadlocks.iter().collect();
        let listed = deadlocks.iter().take(LIST_MAX);
        self.leave_out("deadlocks.threads", listed.clone().map(|threads| surplus(threads)).sum());
        let threads = listed.flat_map(|threads| threads.iter().take(LIST_MAX));
        self.leave_out("deadlocks.threads.holds", threads.map(|thread| surplus(&thread.holds)).sum());
        let entries = self.list("deadlocks", &deadlocks, |document, threads| {
            let thread = |thread: &BlockedThread| {
                let holds = thread.holds.iter().take(LIST_MAX).map(|object| document.object_name(*object));
                json!({
                    "thread": document.lwp(thread.thread),
                    "pid": document.pid(thread.thread),
                    "call": event_name(thread.call.event),
                    "object": document.object_of(&thread.call),
                    "mutex": document.mutex_of(&thread.call),
                    "since": document.time(thread.call.entry),
                    "site": document.view.place(thread.call.site),
                    "holds": holds.collect::<Vec<_>>(),
                })
            };
            json!({ "threads": threads.iter().take(LIST_MAX).map(thread).collect::<Vec<Value>>() })
        });
        entries.collect()
    }

    pub fn stuck(&mut self) -> Vec<Value> {
        let graph = self.view.graph;
        let all = || graph.stuck.iter().chain(&graph.stuck_unless_woken);
        self.leave_out("stuck", all().count().saturating_sub(LIST_MAX) as u64);
        let stuck = all().take(LIST_MAX).map(|stuck| {
            let (mut note, is_certain) = (chain_end_text(self.view, &stuck.end), stuck.end.is_certain());
            if !is_certain {
                note.push("other threads were running, and could wake it".to_owned());
            }
            json!({
                "thread": self.lwp(stuck.thread),
                "pid": self.pid(stuck.thread),
                "call": event_name(stuck.call.event),
                "object": self.object_of(&stuck.call),
                "mutex": self.mutex_of(&stuck.call),
                "since": self.time(stuck.call.entry),
                "held_by": self.lwp(stuck.held_by),
                "site": self.view.place(stuck.call.site),
                "certain": is_certain,
                "note": note.join("; "),
            })
        });
        stuck.collect()
    }

    /// Calls that misuse something, once for each site.
    pub fn misuse(&mut self) -> Vec<Value> {
        let misuses = self.view.misuse();
        let entries = self.list("misuse", &misuses, |document, (misuse, objects)| {
            json!({
                "kind": misuse.kind.name(),
                "object": misuse.object.map(|object| document.object_name(object)),
                "objects": objects,
                "thread": document.lwp(misuse.thread),
                "pid": document.pid(misuse.thread),
                "time": document.time(misuse.time),
                "site": document.view.place(misuse.site),
                "count": misuse.count,
                "text": misuse_text(misuse.kind),
            })
        });
        entries.collect()
    }

    /// Possible deadlocks; null where the lock order is not known.
    pub fn cycles(&mut self) -> Option<Vec<Value>> {
        let cycles = self.view.cycles()?;
        let not_searched = self.view.analysis.order.as_ref().map_or(0, |order| order.left_out);
        self.leave_out("cycles.edges", not_searched);
        self.leave_out("cycles", self.view.analysis.cycles_left_out + cycles.len().saturating_sub(LIST_MAX) as u64);
        let cycles = cycles.into_iter().take(LIST_MAX).map(|LockCycle { steps }| {
            let objects = steps.iter().map(|step| self.object_name(step.from));
            let edge = |step: &OrderStep| {
                json!({
                    "from": self.object_name(step.from),
                    "to": self.object_name(step.to),
                    "thread": self.lwp(step.thread),
                    "pid": self.pid(step.thread),
                    "site_from": self.view.place(step.site_from),
                    "site_to": self.view.place(step.site_to),
                    "count": step.count,
                })
            };
            json!({ "objects": objects.collect::<Vec<_>>(), "edges": steps.iter().map(edge).collect::<Vec<_>>() })
        });
        Some(cycles.collect())
    }
}
