//! An object as an entry of the document.

use serde_json::{Value, json};

use super::document::Document;
use super::object_rows::ObjectRow;
use super::view::ranked;
use crate::report::contention::{DurationSummary, Holder, ObjectKind};

impl Document<'_> {
    /// The entry of a row: an object, or the lives of one.
    pub fn object(&self, row: &ObjectRow) -> Value {
        let index = row.first();
        let object = self.view.object(index);
        let figures = row.figures(self.view);
        let has_holds = self.view.has_holds(object);
        let has_blame = row.has_blame(self.view);
        let only_blocked = self.view.analysis.processes[object.process as usize].knowledge.only_blocked;
        let place = |site: u32| self.view.place(site);
        let most = self.callers_max;
        let blamed = ranked(figures.blamed.in_order()).into_iter().take(most).map(|(Holder { thread, site }, time)| {
            json!({ "thread": self.lwp(thread), "pid": self.pid(thread), "site": place(site), "time": time })
        });
        let blamed: Vec<Value> = blamed.collect();
        let wakers = ranked(figures.wakers.in_order()).into_iter().take(most).map(|((thread, site), count)| {
            json!({ "thread": self.lwp(thread), "pid": self.pid(thread), "site": place(site), "count": count })
        });
        let worst = figures.worst.iter().map(|wait| {
            json!({
                "time": self.time(wait.time),
                "thread": self.lwp(wait.thread),
                "pid": self.pid(wait.thread),
                "waited": wait.waited,
                "holder": wait.holder.map(|holder| self.lwp(holder)),
                "site": place(wait.site),
            })
        });
        let wasted = object.kind == ObjectKind::Cond && !only_blocked;
        let wakes = self.view.waiter_wakes(object);
        let mut entry = json!({
            "object": self.view.object_name(index),
            "pid": self.view.pid(object.process),
            "address": format!("{:#x}", object.address),
            "kind": object.kind.name(),
            "lock": object.futex_lock().map(|lock| lock.name),
            "name": row.name(self.view),
            "site": place(object.site),
            "others": object.others,
            "calls": figures.calls,
            "waits": figures.wait.count(),
            "waited": figures.wait.sum(),
            "failed_tries": figures.failed_tries,
            "timeouts": figures.timeouts,
            "owner_changes": has_holds.then_some(figures.owner_changes),
            "wait": figures.wait.summary().map(summary),
            "holds": has_holds.then(|| figures.hold.count() + figures.lost_holds),
            "held": has_holds.then(|| figures.hold.sum()),
            "hold": figures.hold.summary().filter(|_| has_holds).map(summary),
            "max_waiters": has_blame.then_some(figures.max_waiters),
            "handoff": has_blame.then_some(figures.handoff),
            "unknown": has_blame.then_some(figures.unknown),
            "blamed": has_blame.then_some(blamed),
            "wakers": wakers.collect::<Vec<Value>>(),
            "wakes": wakes.map(|wakes| wakes.wakes),
            "wakes_by_waiters": wakes.map(|wakes| wakes.by_waiters),
            "like_lock": wakes.map(|_| self.view.is_like_lock(object)),
            "wasted_signals": wasted.then_some(figures.wasted_signals),
            "worst": worst.collect::<Vec<Value>>(),
        });
        if row.objects.len() > 1 {
            entry["lives"] = row.objects.len().into();
        }
        entry
    }
}

fn summary(DurationSummary { mean, p50, p90, p99, max }: DurationSummary) -> Value {
    json!({ "mean": mean, "p50": p50, "p90": p90, "p99": p99, "max": max })
}
