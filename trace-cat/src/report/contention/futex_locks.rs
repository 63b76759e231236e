//! Waits by futex(2) in the code of a lock.
//!
//! Whether a call site is in such code is known when it has a name, after the last record. So waits count as idleness first, with
//! sums by which they can be counted anew.

use std::collections::HashSet;

use super::analysis::{Analysis, WaitPlace};
use super::futex_waits::{FutexWait, FutexWaitSum};
use super::object_state::ObjectKind;
use super::wait_shares::{Holder, WaitShares};
use super::wakeups::Waker;

impl Analysis {
    /// Adds a wait of which `waited` is accounted, if it is for a futex.
    pub fn sum_futex_wait(&mut self, object: u32, waited: u64, place: WaitPlace, waker: Option<Waker>) {
        if self.objects[object as usize].kind != ObjectKind::Futex {
            return;
        }
        let until_wake = waker.map_or(0, |waker| self.selection.clip(place.entry, waker.time).min(waited));
        let WaitPlace { thread, site, .. } = place;
        let wait = FutexWait { object, thread, site, waker: waker.map(|waker| waker.thread) };
        self.futex_waits.add(wait, FutexWaitSum { waits: u64::from(!place.is_rest), waited, until_wake });
    }

    /// The sites of waits for futexes.
    pub fn futex_sites(&self) -> HashSet<u32> {
        self.futex_waits.0.keys().map(|wait| wait.site).filter(|site| *site > 0).collect()
    }

    /// Counts the waits at these sites as contention. Who woke a thread had the lock until then, as where acquisitions are not
    /// recorded.
    pub fn count_as_contention(&mut self, lock_sites: &HashSet<u32>) {
        for (wait, sum) in std::mem::take(&mut self.futex_waits).0 {
            let FutexWait { object, thread, site, waker } = wait;
            if !lock_sites.contains(&site) {
                continue;
            }
            let FutexWaitSum { waits, waited, until_wake } = sum;
            let mut shares = WaitShares::default();
            match waker {
                Some(thread) => {
                    let holder = Holder { thread, site: 0 };
                    shares.blamed = vec![(holder, until_wake)];
                    shares.handoff = waited - until_wake;
                    self.blame(object, wait.thread, &shares.blamed);
                    if until_wake > 0
                        && let Some(pair) = self.pairs.get_mut(&(wait.thread, thread, object))
                    {
                        pair.0 += waits - 1;
                    }
                }
                None => shares.unknown = waited,
            }
            let figures = &mut self.objects[object as usize].figures;
            figures.idleness -= waited;
            figures.contention += waited;
            figures.handoff += shares.handoff;
            figures.unknown += shares.unknown;
            let thread = &mut self.threads[thread as usize];
            (thread.idleness, thread.contention) = (thread.idleness - waited, thread.contention + waited);
            let state = &mut self.sites.sites[site as usize];
            (state.idleness, state.contention) = (state.idleness - waited, state.contention + waited);
            if let Some(sums) = &mut self.shares {
                sums.add((wait.thread, site, object), &shares);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::contention::analysis_tests::{analysed, blamed, figures};

    #[test]
    fn waits_in_a_lock_are_contention_of_who_woke_them() {
        let (mut analysis, _) = analysed(&[
            (0, 2, "1:4:0", &[]),
            (1, 1, "10:1:1", &[64, 0x89, 2, 0, 0x1000]),
            (1, 3, "10:1:1", &[72, 0x89, 2, 0, 0x2000]),
            (21, 2, "10:2:0", &[64, 0x81, 1, 1, 0]),
            (24, 2, "10:2:0", &[72, 0x81, 1, 1, 0]),
            (26, 1, "10:1:2", &[0, 0]),
            (31, 3, "10:1:2", &[0, 0]),
            (32, 1, "10:1:1", &[64, 0x89, 2, 5, 0x1000]),
            (39, 1, "10:1:2", &[u64::MAX, libc::ETIMEDOUT as u64]),
        ]);
        assert_eq!([64, 72].map(|address| figures(&analysis, address)), [(2, 0, 32, 0, 0), (1, 0, 30, 0, 0)]);
        let in_lock = |site: &u32| analysis.sites.sites[*site as usize].address == 0x1000;
        let sites: HashSet<u32> = analysis.futex_sites().into_iter().filter(in_lock).collect();
        analysis.count_as_contention(&sites);
        assert_eq!([64, 72].map(|address| figures(&analysis, address)), [(2, 32, 0, 5, 7), (1, 0, 30, 0, 0)]);
        let threads: Vec<_> = analysis.threads.iter().map(|it| (it.lwp, it.contention, it.idleness)).collect();
        assert_eq!(threads, [(2, 0, 0), (1, 32, 0), (3, 0, 30)]);
        assert_eq!(blamed(&analysis, 64), [(2, 0, 20)]);
        assert_eq!(analysis.pairs.values().collect::<Vec<_>>(), [&(1, 20)]);
    }

    #[test]
    fn who_unlocks_a_word_with_priority_inheritance_had_it() {
        let (analysis, _) = analysed(&[
            (1, 1, "10:3:1", &[64, 0x86, 0, 0, 0x1000]),
            (21, 2, "10:3:1", &[64, 0x87, 0, 0, 0x2000]),
            (22, 2, "10:3:2", &[0, 0]),
            (26, 1, "10:3:2", &[0, 0]),
        ]);
        assert_eq!((figures(&analysis, 64), blamed(&analysis, 64)), ((1, 25, 0, 5, 0), vec![(2, 0, 20)]));
    }
}
