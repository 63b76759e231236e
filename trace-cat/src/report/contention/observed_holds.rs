//! Who had a lock of which only the releases are recorded, and these only while others wait.
//!
//! A thread that wakes another one at a release has had the lock since the release before, but not while it waited itself.

use std::collections::{HashMap, VecDeque};

use foldhash::fast::RandomState;
use spec::futex_locks::WaitedWord;

use super::wait_selection::WaitSelection;
use super::wait_shares::{Holder, Occupant, WaitShares};

/// The most holds that are kept of a lock. Who has waited longer is given the time before to nobody known.
const HOLDS_MAX: usize = 1 << 10;

/// A hold, from when on it is known until its release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ObservedHold {
    thread: u32,
    from: u64,
    to: u64,
}

/// The last holds of a lock, in order of time.
#[derive(Debug, Default)]
pub struct ObservedHolds {
    holds: VecDeque<ObservedHold>,
    /// When threads last returned from a wait for the lock, since its last release.
    returns: HashMap<u32, u64, RandomState>,
}

impl ObservedHolds {
    /// Takes the end of a thread's wait, with the lock or without it.
    pub fn return_from_wait(&mut self, thread: u32, now: u64) {
        self.returns.insert(thread, now);
    }

    /// Takes a release by a thread that has had the lock from `earliest` on at the earliest. Returns from when on it had it as far as
    /// is known, unless a later release is known.
    pub fn release(&mut self, thread: u32, earliest: u64, now: u64) -> Option<u64> {
        let last = self.holds.back().map_or(0, |hold| hold.to);
        if now <= last {
            return None;
        }
        let own_wait = self.returns.get(&thread).copied().unwrap_or(0);
        self.returns.clear();
        if self.holds.len() == HOLDS_MAX {
            self.holds.pop_front();
        }
        let from = earliest.max(own_wait).max(last).min(now);
        self.holds.push_back(ObservedHold { thread, from, to: now });
        Some(from)
    }

    /// Forgets what no wait that begins from now on can ask for.
    pub fn forget(&mut self) {
        if self.holds.len() > 1 {
            self.holds = self.holds.back().copied().into_iter().collect();
        }
    }

    /// Divides the selected part of a wait. What is behind the last release is handoff if that was for this wait. What is before a
    /// hold is so too, unless the word is a thread's own: releases that woke other threads are not among the holds then.
    pub fn divide(
        &self,
        (entry, end): (u64, u64),
        is_woken: bool,
        word: WaitedWord,
        selection: &WaitSelection,
    ) -> WaitShares {
        let mut shares = WaitShares::default();
        let mut add = |occupant: &Occupant, from: u64, to: u64| {
            shares.append(occupant, selection.clip(from.clamp(entry, end), to.clamp(entry, end)));
        };
        let first = self.holds.partition_point(|hold| hold.to <= entry);
        let mut known = None;
        if let Some(before) = first.checked_sub(1) {
            known = Some(self.holds[before].to);
        }
        for hold in self.holds.iter().skip(first) {
            let shows_all = known.is_some() && word != WaitedWord::OfThread;
            let gap = if shows_all { Occupant::Nobody } else { Occupant::Unknown };
            add(&gap, known.unwrap_or(entry), hold.from);
            add(&Occupant::One(Holder { thread: hold.thread, site: 0 }), hold.from, hold.to);
            known = Some(hold.to);
        }
        let rest = if is_woken { Occupant::Nobody } else { Occupant::Unknown };
        add(&rest, known.unwrap_or(entry), end);
        shares.put_in_order();
        shares
    }
}
