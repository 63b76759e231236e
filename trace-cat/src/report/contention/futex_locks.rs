//! Waits by futex(2) in the code of a lock.
//!
//! Records show a word and a call site. Whether that is in the code of a lock is known by its name, and names are looked up by who
//! gives the records: after each it asks for a site without an answer.

use spec::futex_locks::{FutexLock, LOCK_WORDS, WaitedWord};

use super::analysis::{Analysis, WaitPlace};
use super::futex_state::FutexCall;
use super::holds::FinishedWait;
use super::object_state::{ObjectKind, ObjectState};
use super::tables::OngoingCall;
use super::waker::Waker;

impl Analysis {
    /// Takes the site of a wait for a futex.
    pub fn note_futex_site(&mut self, object: u32, site: u32) {
        match self.sites.sites[site as usize].futex_lock {
            Some(lock) => self.objects[object as usize].note_futex_lock(lock),
            None if site > 0 => self.unnamed_site = Some((object, site)),
            None => self.objects[object as usize].note_futex_lock(None),
        }
    }

    /// Whether the last record left something that only who gives the records knows: the names of its code, or its memory.
    pub fn has_questions(&self) -> bool {
        self.unnamed_site.is_some() || self.unwinding.is_some() || !self.locks_by_fork.is_empty()
    }

    /// The site of the last wait for a futex, if nobody has said yet whether it is in the code of a lock.
    pub fn unnamed_futex_site(&self) -> Option<u32> {
        self.unnamed_site.map(|(_, site)| site)
    }

    /// Takes in the code of which lock that site is.
    pub fn name_futex_site(&mut self, lock: Option<&'static FutexLock>) {
        if let Some((object, site)) = self.unnamed_site.take() {
            self.sites.sites[site as usize].futex_lock = Some(lock);
            self.note_futex_site(object, site);
        }
    }

    /// Whether a wait at a site for an object is one in the code of a lock. This alone decides it, for all that the analysis counts
    /// and logs.
    pub fn is_in_futex_lock(&self, object: Option<u32>, site: u32) -> bool {
        object.is_some_and(|object| self.futex_lock_at(object, site).is_some())
    }

    /// Whether a call that waits, waits for a lock.
    pub fn is_contention(&self, call: &OngoingCall) -> bool {
        let is_lock = call.object.is_some_and(|object| self.objects[object as usize].kind.is_lock());
        is_lock || call.futex == FutexCall::Lock || self.is_in_futex_lock(call.object, call.site)
    }

    /// The lock in the code of which the waits at a site for an object are.
    pub fn futex_lock_at(&self, object: u32, site: u32) -> Option<&'static FutexLock> {
        let lock = self.sites.sites[site as usize].futex_lock.flatten();
        lock.filter(|_| self.objects[object as usize].kind == ObjectKind::Futex)
    }

    /// The process and the address under which the holds of a lock are, some word of which is an object.
    fn place_of_lock(&self, object: u32, lock: &FutexLock) -> (u32, u64) {
        let ObjectState { process, address, .. } = self.objects[object as usize];
        match lock.word {
            WaitedWord::OfLock(offset) => (process, address.wrapping_sub(offset)),
            WaitedWord::OfThread => (process, address),
        }
    }

    /// Takes that a thread returns from a wait, if it was one for a lock: until now it did not have it.
    pub fn note_return_from_futex(&mut self, object: u32, thread: u32, site: u32, now: u64) {
        let Some(lock) = self.futex_lock_at(object, site) else { return };
        match lock.word {
            WaitedWord::OfThread => self.threads[thread as usize].lock_wait_end = now,
            WaitedWord::OfLock(_) => {
                let place = self.place_of_lock(object, lock);
                self.observed_holds.entry(place).or_default().return_from_wait(thread, now);
            }
        }
    }

    /// Takes a call that wakes those who wait for a word, if it is a lock's: who makes it has released the lock.
    pub fn note_futex_wake(&mut self, object: u32, thread: u32, now: u64) {
        if let Some(lock) = self.objects[object as usize].futex_lock() {
            let waited_since = self.objects[object as usize].wakeups.waits.first().map(|wait| wait.entry);
            self.release_futex_lock(object, lock, (thread, now), waited_since);
        }
    }

    /// Takes a release of a lock for which others have waited since some time.
    fn release_futex_lock(
        &mut self,
        object: u32,
        lock: &FutexLock,
        (thread, now): (u32, u64),
        waited_since: Option<u64>,
    ) {
        let own_wait = match lock.word {
            // It may have been for another lock. Who had this one meanwhile is not known then.
            WaitedWord::OfThread => self.threads[thread as usize].lock_wait_end,
            WaitedWord::OfLock(_) => 0,
        };
        let earliest = own_wait.max(self.knowledge_of(object).complete_from);
        let place = self.place_of_lock(object, lock);
        let from = self.observed_holds.entry(place).or_default().release(thread, earliest, now);
        // While nobody waits, who releases the lock and takes it makes no call.
        if let (Some(from), Some(waited_since)) = (from, waited_since) {
            self.activities.add_observed_hold(thread, object, from.max(waited_since), now);
        }
    }

    /// Accounts a wait until `end` in the code of a lock, one of whose words is an object.
    pub fn account_futex_lock(
        &mut self,
        (object, lock): (u32, &FutexLock),
        end: u64,
        place: WaitPlace,
        waker: Option<Waker>,
    ) {
        let WaitPlace { thread, site, entry, has_timed_out, .. } = place;
        if let Some(Waker { thread, time, .. }) = waker {
            // Where other code uses the word too, its wake-ups were not taken for releases.
            self.release_futex_lock(object, lock, (thread, time), Some(entry));
        }
        let (process, address) = self.place_of_lock(object, lock);
        let is_waited_for = LOCK_WORDS.iter().any(|offset| {
            let word = self.object_at(process, address.wrapping_add(*offset));
            word.is_some_and(|word| !self.objects[word as usize].wakeups.waits.is_empty())
        });
        let holds = self.observed_holds.entry((process, address)).or_default();
        let shares = holds.divide((entry, end), waker.is_some(), lock.word, &self.selection);
        if !is_waited_for {
            holds.forget();
        }
        // The first to go on after the last has begun to wait leaves all others behind.
        let rank = self.objects[object as usize].wakeups.waits.len() as u32 + 1;
        let wait = FinishedWait { key: thread.into(), entry, end, shares, has_timed_out, site, rank };
        self.account_contention(object, wait, place, waker);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use spec::futex_locks::FUTEX_LOCKS;

    use super::*;
    use crate::report::contention::analysis_tests::{blamed, figures, record};
    use crate::report::contention::timeline_event::TimelineEvent;
    use crate::report::contention::wait_selection::WaitSelection;

    fn analysed(selection: WaitSelection) -> Analysis {
        let mut analysis = recorded(selection);
        analysis.finish(&[]);
        analysis
    }

    /// Waits for two words, at two sites, of which the first is in the code of a lock.
    fn recorded(selection: WaitSelection) -> Analysis {
        let mut analysis = Analysis::new(HashMap::new(), selection);
        analysis.timeline = Some(Vec::new());
        for line in [
            (0, 2, "1:4:0", &[][..]),
            (1, 1, "10:1:1", &[64, 0x89, 2, 0, 0x1000]),
            (1, 3, "10:1:1", &[72, 0x89, 2, 0, 0x2000]),
            (21, 2, "10:2:0", &[64, 0x81, 1, 1, 0]),
            (24, 2, "10:2:0", &[72, 0x81, 1, 1, 0]),
            (26, 1, "10:1:2", &[0, 0]),
            (31, 3, "10:1:2", &[0, 0]),
            (32, 1, "10:1:1", &[64, 0x89, 2, 5, 0x1000]),
            (39, 1, "10:1:2", &[u64::MAX, libc::ETIMEDOUT as u64]),
        ] {
            analysis.add(&record(line));
            if let Some(site) = analysis.unnamed_futex_site() {
                let is_lock = analysis.sites.sites[site as usize].address == 0x1000;
                analysis.name_futex_site(Some(&FUTEX_LOCKS[0]).filter(|_| is_lock));
            }
        }
        analysis
    }

    #[test]
    fn waits_in_a_lock_are_contention_of_who_woke_them() {
        let analysis = analysed(WaitSelection::default());
        assert_eq!([64, 72].map(|address| figures(&analysis, address)), [(2, 32, 0, 5, 7), (1, 0, 30, 0, 0)]);
        let threads: Vec<_> = analysis.threads.iter().map(|it| (it.lwp, it.contention, it.idleness)).collect();
        assert_eq!(threads, [(2, 0, 0), (1, 32, 0), (3, 0, 30)]);
        assert_eq!(blamed(&analysis, 64), [(2, 0, 20)]);
        assert_eq!(analysis.pairs.values().collect::<Vec<_>>(), [&(1, 20)]);
        let names: Vec<_> = analysis.objects.iter().map(|object| object.kind_name()).collect();
        assert_eq!(names, ["std Mutex", "futex"]);
    }

    #[test]
    fn a_wait_that_goes_on_is_one_for_the_lock_from_its_beginning() {
        let drawn = |only_contention: bool| -> Vec<(u64, u64, bool)> {
            let mut analysis = recorded(WaitSelection { only_contention, ..WaitSelection::default() });
            for line in [(50, 1, "10:1:1", [64, 0x89, 2, 0, 0x1000]), (51, 3, "10:1:1", [72, 0x89, 2, 0, 0x2000])] {
                analysis.add(&record((line.0, line.1, line.2, &line.3)));
            }
            let intervals = (0..3).flat_map(|thread| analysis.open_intervals(thread, 60));
            let waits = intervals.filter_map(|interval| match interval {
                TimelineEvent::Wait(wait) => Some((wait.from, wait.to, wait.is_contention)),
                _ => None,
            });
            waits.collect()
        };
        assert_eq!(drawn(false), [(50, 60, true), (51, 60, false)]);
        assert_eq!(drawn(true), [(50, 60, true)]);
    }

    #[test]
    fn a_word_has_the_name_of_its_lock_whichever_function_of_that_waits() {
        let lock = |function: &str| FUTEX_LOCKS.iter().find(|lock| lock.function == function);
        let mut word = ObjectState::new(0, 64, 1, ObjectKind::Futex, 0);
        word.note_futex_lock(lock("srw_mutex_impltrue::wait_and_lock"));
        word.note_futex_lock(lock("ssux_lock_impltrue::rd_wait"));
        assert_eq!(word.kind_name(), "InnoDB latch");
        // This one is for the second word of a lock.
        word.note_futex_lock(lock("ssux_lock_impltrue::wr_wait"));
        assert_eq!(word.kind_name(), "futex");
    }

    #[test]
    fn all_views_know_them() {
        let drawn = |analysis: &Analysis| -> Vec<(u64, u64, bool, Option<u32>)> {
            let waits = analysis.timeline.iter().flatten().filter_map(|event| match event {
                TimelineEvent::Wait(wait) => Some((wait.from, wait.to, wait.is_contention, wait.holder)),
                _ => None,
            });
            waits.collect()
        };
        let all = [(1, 26, true, Some(0)), (1, 31, false, None), (32, 39, true, None)];
        assert_eq!(drawn(&analysed(WaitSelection::default())), all);
        let only_contention = analysed(WaitSelection { only_contention: true, ..WaitSelection::default() });
        assert_eq!(drawn(&only_contention), [all[0], all[2]]);
        assert_eq!(figures(&only_contention, 64), (2, 32, 0, 5, 7));
        let times = analysed(WaitSelection { times: 10..22, ..WaitSelection::default() });
        assert_eq!((figures(&times, 64), blamed(&times, 64)), ((1, 12, 0, 1, 0), vec![(2, 0, 11)]));
    }
}
