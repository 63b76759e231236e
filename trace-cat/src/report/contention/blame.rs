//! Who is to blame for waits: by thread, site, object, and pairs of threads.

use super::analysis::Analysis;
use super::wait_shares::Holder;

/// The most pairs of waiter and holder that are kept: as many as a hash table of 2^19 places takes.
const PAIRS_MAX: usize = 7 << 16;

impl Analysis {
    /// Blames holders for their shares of a wait of a thread for an object. They are in order if pairs are kept.
    pub fn blame(&mut self, object: u32, waiter: u32, blamed: &[(Holder, u64)]) {
        // A thread may have held the object at several sites.
        let mut by_thread: Vec<(u32, u64)> = Vec::new();
        for &(holder, time) in blamed.iter().filter(|(_, time)| *time > 0) {
            let figures = &mut self.objects[object as usize].figures;
            if self.parts.callers && !self.blame_limits.add(&mut figures.blamed, holder, time) {
                figures.blamed_others += time;
                self.blame_limits.blamed_left_out += 1;
            }
            self.threads[holder.thread as usize].caused += time;
            self.sites.sites[holder.site as usize].blamed += time;
            if !self.parts.pairs {
                continue;
            }
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

    /// Counts waits for an object that a thread ended at a site.
    pub fn count_waker(&mut self, object: u32, thread: u32, site: u32, waits: u64) {
        let wakers = &mut self.objects[object as usize].figures.wakers;
        let is_kept = self.blame_limits.add(wakers, (thread, site), waits);
        self.blame_limits.wakers_left_out += if is_kept { 0 } else { waits };
    }
}
