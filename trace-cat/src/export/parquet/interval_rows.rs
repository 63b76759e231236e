//! Waits and holds in rows: in that of the record that ended them, or in rows of their own.

use std::cmp::Reverse;
use std::collections::HashMap;

use super::row::{BlameShare, Row, RowHold, RowWait};
use super::row_texts::{RowKind, RowTexts};
use crate::export::scene::TimelineScene;
use crate::report::contention::{HoldInterval, Holder, WaitInterval, WaitShares};

/// What a record's row is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowSubject {
    /// The thread and the object, as indexes of the analysis.
    pub thread: u32,
    pub object: Option<u32>,
    pub time: u64,
    /// When the call began that the record ended.
    pub entry: Option<u64>,
}

impl RowSubject {
    /// Whether the record ended a wait.
    fn ended_wait(&self, wait: &WaitInterval) -> bool {
        let has_ended = !wait.is_open && !wait.is_rest && wait.to <= self.time;
        has_ended
            && (self.thread, self.object) == (wait.thread, wait.object)
            && self.entry.is_some_and(|entry| entry <= wait.from)
    }

    /// Whether the record ended a hold.
    fn ended_hold(&self, hold: &HoldInterval) -> bool {
        (self.thread, self.object, self.time) == (hold.thread, Some(hold.object), hold.complete.1)
    }
}

/// Adds waits and holds to a row, or to `others`.
pub struct IntervalRows<'a> {
    pub scene: &'a TimelineScene<'a>,
    pub texts: &'a mut RowTexts,
    /// The row of the record in progress, if it is selected.
    pub row: Option<(&'a mut Row, RowSubject)>,
    pub others: &'a mut Vec<Row>,
}

impl IntervalRows<'_> {
    /// Adds a wait, of which `shares` are if it is contention.
    pub fn add_wait(&mut self, wait: &WaitInterval, shares: &WaitShares) {
        let waker =
            wait.waker.map(|waker| (self.scene.thread(waker.thread).lwp, self.texts.site(waker.site, self.scene)));
        let figures = RowWait {
            waited: wait.to - wait.from,
            handoff: shares.handoff,
            unknown: shares.unknown,
            is_contention: wait.is_contention,
            has_timed_out: wait.has_timed_out,
            waker,
        };
        let blamed = largest_first(&shares.blamed);
        let mut blames = blamed.iter().map(|(holder, time)| BlameShare {
            holder: self.scene.thread(holder.thread).lwp,
            site: self.texts.site(holder.site, self.scene),
            time: *time,
        });
        let first = blames.next();
        let blames: Vec<BlameShare> = blames.collect();
        let is_free = self.row.as_ref().is_some_and(|(row, subject)| row.waited.is_none() && subject.ended_wait(wait));
        match self.row.as_mut().filter(|_| is_free) {
            Some((row, _)) => (row.waited, row.blame) = (Some(figures), first),
            None => {
                let kind = if wait.is_rest { RowKind::Rest } else { RowKind::Wait };
                let row = self.interval(kind, wait.thread, wait.object, wait.site, (wait.from, wait.to));
                self.others.push(Row { waited: Some(figures), blame: first, is_open: wait.is_open, ..row });
            }
        }
        for (pair, share) in blamed.windows(2).zip(blames) {
            let kind = if pair[0].0.thread == pair[1].0.thread { RowKind::Site } else { RowKind::Blame };
            let row = self.interval(kind, wait.thread, wait.object, wait.site, (wait.from, wait.to));
            self.others.push(Row { blame: Some(share), is_open: wait.is_open, ..row });
        }
    }

    /// Adds a hold, which was still open when the records or the process ended, or not.
    pub fn add_hold(&mut self, hold: &HoldInterval, is_open: bool) {
        let site = self.texts.site(hold.site, self.scene);
        let figures = RowHold { held: hold.to - hold.from, site };
        let is_free = self.row.as_ref().is_some_and(|(row, subject)| row.held.is_none() && subject.ended_hold(hold));
        match self.row.as_mut().filter(|_| is_free) {
            Some((row, _)) => row.held = Some(figures),
            None => {
                let row = self.interval(RowKind::Hold, hold.thread, Some(hold.object), 0, (hold.from, hold.to));
                self.others.push(Row { held: Some(figures), is_open, ..row });
            }
        }
    }

    /// A row without a record, for a time of a thread.
    fn interval(&mut self, kind: RowKind, thread: u32, object: Option<u32>, site: u32, times: (u64, u64)) -> Row {
        let state = self.scene.thread(thread);
        Row {
            kind: self.texts.kind(kind),
            time: times.1,
            process: self.texts.process(state.process, self.scene),
            lwp: state.lwp,
            tid: state.tid,
            entry: Some(times.0),
            object: object.map(|object| self.texts.object(object, self.scene)).unwrap_or_default(),
            site: self.texts.site(site, self.scene),
            ..Row::default()
        }
    }
}

/// The shares of a wait: those of the thread with the largest sum first, and of each thread the largest first. Each holder has one.
fn largest_first(blamed: &[(Holder, u64)]) -> Vec<(Holder, u64)> {
    let mut shares: Vec<(Holder, u64)> = blamed.iter().copied().filter(|(_, time)| *time > 0).collect();
    let mut sums: HashMap<u32, u64> = HashMap::new();
    for (holder, time) in &shares {
        *sums.entry(holder.thread).or_default() += time;
    }
    shares.sort_by_key(|(holder, time)| (Reverse(sums[&holder.thread]), holder.thread, Reverse(*time), holder.site));
    shares
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shares_of_a_thread_follow_each_other() {
        let share = |(thread, site, time)| (Holder { thread, site }, time);
        let shares = [(1, 1, 30), (1, 2, 0), (2, 1, 10), (2, 3, 25), (3, 0, 20), (4, 0, 20)].map(share);
        let expected = [(2, 3, 25), (2, 1, 10), (1, 1, 30), (3, 0, 20), (4, 0, 20)].map(share);
        assert_eq!(largest_first(&shares), expected);
    }
}
