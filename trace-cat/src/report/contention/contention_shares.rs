//! Contention by waiter, site, object and holder at once, for outputs that show stacks.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use super::wait_shares::{Holder, WaitShares};

/// The most rows that are kept.
const ROWS_MAX: usize = 1 << 20;

/// A thread's waits at a site for an object, as far as one cause has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ShareKey {
    pub thread: u32,
    pub site: u32,
    pub object: u32,
    pub cause: WaitCause,
}

/// What a part of a wait is due to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum WaitCause {
    /// Somebody held the object.
    Held(Holder),
    Handoff,
    Unknown,
}

/// How many waits, and how long. A wait with several causes counts for that which had most of its time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WaitSum {
    pub waits: u64,
    pub time: u64,
}

/// Sums that add up to all contention.
#[derive(Debug, Default)]
pub struct ContentionShares {
    pub rows: HashMap<ShareKey, WaitSum, RandomState>,
    /// What came when there were too many rows.
    pub others: WaitSum,
}

impl ContentionShares {
    /// Adds a wait of a thread at a site for an object.
    pub fn add(&mut self, (thread, site, object): (u32, u32, u32), shares: &WaitShares) {
        let held = shares.blamed.iter().map(|(holder, time)| (WaitCause::Held(*holder), *time));
        let other = [(WaitCause::Handoff, shares.handoff), (WaitCause::Unknown, shares.unknown)];
        let causes: Vec<(WaitCause, u64)> = held.chain(other).filter(|(_, time)| *time > 0).collect();
        let most = (0..causes.len()).max_by_key(|index| causes[*index].1);
        for (index, (cause, time)) in causes.into_iter().enumerate() {
            let key = ShareKey { thread, site, object, cause };
            let has_room = self.rows.len() < ROWS_MAX || self.rows.contains_key(&key);
            let sum = if has_room { self.rows.entry(key).or_default() } else { &mut self.others };
            sum.time += time;
            sum.waits += u64::from(most == Some(index));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_add_up_to_the_waits() {
        let [first, second] = [1, 2].map(|thread| Holder { thread, site: 7 });
        let mut shares = ContentionShares::default();
        shares.add((0, 3, 4), &WaitShares { blamed: vec![(first, 10), (second, 30)], handoff: 5, unknown: 0 });
        shares.add((0, 3, 4), &WaitShares { blamed: vec![(first, 10)], handoff: 0, unknown: 11 });
        shares.add((0, 3, 4), &WaitShares::default());
        let sum = |cause| {
            shares.rows.get(&ShareKey { thread: 0, site: 3, object: 4, cause }).map(|sum| (sum.waits, sum.time))
        };
        assert_eq!(sum(WaitCause::Held(first)), Some((0, 20)));
        assert_eq!(sum(WaitCause::Held(second)), Some((1, 30)));
        assert_eq!(sum(WaitCause::Handoff), Some((0, 5)));
        assert_eq!(sum(WaitCause::Unknown), Some((1, 11)));
        assert_eq!((shares.rows.len(), shares.others), (4, WaitSum::default()));
    }
}
