//! Contention by waiter, site, object and holder at once, for outputs that show stacks.
//!
//! A thousand threads that take turns with one lock are a million pairs of waiter and holder. Where there are too many, holders are
//! told apart by their sites alone.

use std::collections::{HashMap, HashSet};

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
    /// One of many threads held it that acquired it at this site.
    HeldFrom(u32),
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
    /// Whether the rows leave out which thread held an object.
    has_sites_alone: bool,
}

impl ContentionShares {
    /// Adds a wait of a thread at a site for an object.
    pub fn add(&mut self, (thread, site, object): (u32, u32, u32), shares: &WaitShares) {
        let held = shares.blamed.iter().map(|(holder, time)| (WaitCause::Held(*holder), *time));
        let other = [(WaitCause::Handoff, shares.handoff), (WaitCause::Unknown, shares.unknown)];
        let mut causes: Vec<(WaitCause, u64)> = held.chain(other).filter(|(_, time)| *time > 0).collect();
        // A wait that began with the last record of its process is counted, too.
        if causes.is_empty() {
            causes.push((WaitCause::Unknown, 0));
        }
        let most = (0..causes.len()).max_by_key(|index| causes[*index].1);
        for (index, (cause, time)) in causes.into_iter().enumerate() {
            let key = ShareKey { thread, site, object, cause };
            self.add_row(key, WaitSum { waits: u64::from(most == Some(index)), time });
        }
    }

    /// Takes back that nobody held these objects.
    pub fn forget_handoffs(&mut self, objects: &HashSet<u32>) {
        let is_forgotten = |key: &ShareKey| key.cause == WaitCause::Handoff && objects.contains(&key.object);
        let forgotten: Vec<(ShareKey, WaitSum)> = self.rows.extract_if(|key, _| is_forgotten(key)).collect();
        for (key, sum) in forgotten {
            self.rows.entry(ShareKey { cause: WaitCause::Unknown, ..key }).or_default().add(sum);
        }
    }

    fn has_room(&self, key: &ShareKey) -> bool {
        self.rows.len() < ROWS_MAX || self.rows.contains_key(key)
    }

    fn add_row(&mut self, key: ShareKey, added: WaitSum) {
        if !self.has_sites_alone && !self.has_room(&key) {
            self.has_sites_alone = true;
            for (key, sum) in std::mem::take(&mut self.rows) {
                self.rows.entry(key.with_site_alone()).or_default().add(sum);
            }
        }
        let key = if self.has_sites_alone { key.with_site_alone() } else { key };
        let sum = if self.has_room(&key) { self.rows.entry(key).or_default() } else { &mut self.others };
        sum.add(added);
    }
}

impl ShareKey {
    /// The key without the thread that held the object.
    fn with_site_alone(self) -> ShareKey {
        let cause = match self.cause {
            WaitCause::Held(holder) => WaitCause::HeldFrom(holder.site),
            cause => cause,
        };
        ShareKey { cause, ..self }
    }
}

impl WaitSum {
    fn add(&mut self, sum: WaitSum) {
        (self.waits, self.time) = (self.waits + sum.waits, self.time + sum.time);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_add_up_to_the_waits_even_those_that_took_no_time() {
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
        assert_eq!(sum(WaitCause::Unknown), Some((2, 11)));
        assert_eq!((shares.rows.len(), shares.others), (4, WaitSum::default()));
    }

    #[test]
    fn too_many_pairs_of_threads_become_sites() {
        const THREADS: u32 = 1100;
        let mut shares = ContentionShares::default();
        for (waiter, thread) in (0..THREADS).flat_map(|waiter| (0..THREADS).map(move |holder| (waiter, holder))) {
            let holder = Holder { thread, site: thread % 3 };
            shares.add((waiter, 1, 2), &WaitShares { blamed: vec![(holder, 2)], handoff: 1, unknown: 0 });
        }
        assert_eq!(shares.rows.len() as u32, THREADS * 4);
        let key = ShareKey { thread: 5, site: 1, object: 2, cause: WaitCause::HeldFrom(0) };
        let sum = WaitSum { waits: u64::from(THREADS.div_ceil(3)), time: 2 * u64::from(THREADS.div_ceil(3)) };
        assert_eq!((shares.rows[&key], shares.others), (sum, WaitSum::default()));
        assert_eq!(shares.rows.values().map(|sum| sum.time).sum::<u64>(), 3 * u64::from(THREADS * THREADS));
    }
}
