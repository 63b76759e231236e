//! Who is to blame for waits: by thread, site, object, and pairs of threads.

use super::analysis::Analysis;
use super::small_vectors::add_sum;
use super::wait_shares::Holder;

/// The most pairs of waiter and holder that are kept: as many as a hash table of 2^20 places takes.
const PAIRS_MAX: usize = 7 << 17;
/// How many holders and wakers are kept of all objects together; when there are so many, an object gets no more than a few.
const CALLERS_MAX: usize = 1 << 22;
/// A few.
const CALLERS_OF_FULL: usize = 16;

/// How much was left out of the tables.
#[derive(Debug, Default)]
pub struct BlameLimits {
    /// How many holders and wakers are kept.
    callers: usize,
    /// Shares of waits of holders that are not kept.
    pub blamed_left_out: u64,
    /// Waits whose wakers are not kept.
    pub wakers_left_out: u64,
    /// Shares of waits of pairs that are not kept.
    pub pairs_left_out: u64,
}

impl BlameLimits {
    /// Adds to the sum of a caller; returns whether it is kept.
    fn add<K: Ord>(&mut self, sums: &mut Vec<(K, u64)>, key: K, value: u64) -> bool {
        let count = sums.len();
        let is_full = self.callers >= CALLERS_MAX && count >= CALLERS_OF_FULL;
        if is_full && sums.binary_search_by(|(known, _)| known.cmp(&key)).is_err() {
            return false;
        }
        add_sum(sums, key, value);
        self.callers += sums.len() - count;
        true
    }
}

impl Analysis {
    /// Blames holders, given in order, for their shares of a wait of a thread for an object.
    pub fn blame(&mut self, object: u32, waiter: u32, blamed: &[(Holder, u64)]) {
        // A thread may have held the object at several sites.
        let mut by_thread: Vec<(u32, u64)> = Vec::new();
        for &(holder, time) in blamed.iter().filter(|(_, time)| *time > 0) {
            let figures = &mut self.objects[object as usize].figures;
            if !self.blame_limits.add(&mut figures.blamed, holder, time) {
                figures.blamed_others += time;
                self.blame_limits.blamed_left_out += 1;
            }
            self.threads[holder.thread as usize].caused += time;
            self.sites.sites[holder.site as usize].blamed += time;
            match by_thread.last_mut().filter(|(thread, _)| *thread == holder.thread) {
                Some((_, sum)) => *sum += time,
                None => by_thread.push((holder.thread, time)),
            }
        }
        for (holder, time) in by_thread {
            let key = (waiter, holder, object);
            if self.pairs.len() < PAIRS_MAX || self.pairs.contains_key(&key) {
                let (waits, sum) = self.pairs.entry(key).or_default();
                (*waits, *sum) = (*waits + 1, *sum + time);
            } else {
                self.blame_limits.pairs_left_out += 1;
            }
        }
    }

    /// Counts a wait for an object that a thread ended at a site.
    pub fn count_waker(&mut self, object: u32, thread: u32, site: u32) {
        let wakers = &mut self.objects[object as usize].figures.wakers;
        let is_kept = self.blame_limits.add(wakers, (thread, site), 1);
        self.blame_limits.wakers_left_out += u64::from(!is_kept);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_tables_go_on_with_whom_they_have() {
        let mut limits = BlameLimits { callers: CALLERS_MAX - 1, ..BlameLimits::default() };
        let mut sums = Vec::new();
        for key in 0..40 {
            assert_eq!(limits.add(&mut sums, key, 1), key < CALLERS_OF_FULL);
        }
        assert!(limits.add(&mut sums, 3, 5));
        assert_eq!((sums.len(), sums[3]), (CALLERS_OF_FULL, (3, 6)));
    }
}
