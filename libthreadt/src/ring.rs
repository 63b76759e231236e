//! `THR_TRACE_RING`: the regions of a slot keep the newest records, and nothing is written before the process ends.
//!
//! A region's words are as [`spec::buffer`] has them. The owner appends as into any other region; what differs is what
//! happens at the region's `flush_threshold` ([`advance`]), when a thread ends ([`end`]), and when one begins
//! ([`take_longest_dead`]). At the process's end the rings become ordinary regions, whose records are written at once.

use core::sync::atomic::{
    AtomicBool, AtomicU32, AtomicU64,
    Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst},
    compiler_fence,
};

use spec::buffer::{REGIONS, Region, SLOT_ENDED, SLOT_OWNED, SlotLayout, pack_range};

use crate::config::CONFIG;
use crate::slot::{ALL_REGIONS, NEEDED, Slot, Writer};
use crate::{buffers, process, sys};

/// So many rings of threads that have ended are kept; one more thread takes the longest dead one's.
const KEPT: u32 = 16;

/// Rings of threads that have ended.
static DEAD: AtomicU32 = AtomicU32::new(0);
/// Threads that have ended.
static ENDED: AtomicU64 = AtomicU64::new(0);
/// Rings that were taken from dead threads with what was in them.
static REUSED: AtomicU32 = AtomicU32::new(0);

/// Gives up the oldest records of region `depth` if its owner, who calls this, has no room for more, and sets how far it
/// may go on. `false` if it must not: somebody has begun to write the region out.
pub fn advance(region: &Region, shape: SlotLayout, depth: usize) -> bool {
    let (size, step) = (shape.region_size(depth) as u32, shape.ring_step(depth) as u32);
    loop {
        let limit = region.flush_threshold.load(Relaxed);
        // While `flush_threshold` is low, the next record comes here again: a signal handler may leave by a jump before it is set anew.
        if limit == 0 || region.flush_threshold.compare_exchange(limit, 1, Relaxed, Relaxed).is_err() {
            return false;
        }
        let filled = region.write_position.load(Relaxed);
        let (mut start, mut end) = (filled as u32, (filled >> 32) as u32);
        let begins_anew = start <= end && end + NEEDED > size;
        if begins_anew {
            // OBSERVABLE: nobody looks at `wrap_position` before `write_position` is so that it counts.
            region.wrap_position.store(end, Relaxed);
            (start, end) = (step, 0);
        } else if start > end && end + NEEDED > start {
            // A step is a power of two.
            start = (end + NEEDED + step - 1) & !(step - 1);
            if start >= region.wrap_position.load(Relaxed) {
                start = 0;
            }
        }
        // OBSERVABLE: the older records before the new start are gone.
        // ORDERING: Release for `wrap_position`; the fence keeps the records that will overwrite older ones behind it. On x86-64
        // stores become visible in their order.
        if region.write_position.compare_exchange(filled, pack_range(start..end), Release, Relaxed).is_err() {
            // A signal handler has written the region out, for an exec that failed, or forked.
            continue;
        }
        if begins_anew {
            region.wrap_count.store(region.wrap_count.load(Relaxed) + 1, Release);
        }
        compiler_fence(SeqCst);
        let bound = if start > end { start } else { size };
        return region.flush_threshold.compare_exchange(1, bound - NEEDED + 1, Relaxed, Relaxed).is_ok();
    }
}

/// Lets a thread's ring be, now that the thread has ended: it is the last to be reused.
pub fn end(slot: &Slot) {
    slot.death_order.store(ENDED.fetch_add(1, Relaxed) + 1, Relaxed);
    DEAD.fetch_add(1, Release);
}

/// The ring of the thread that ended first, if there are more than enough; the caller becomes its writer.
pub fn take_longest_dead() -> Option<&'static Slot> {
    let pid = process::id();
    while DEAD.load(Acquire) >= KEPT && !process::writes_through() {
        let mut longest: Option<(u64, &'static Slot)> = None;
        buffers::for_each_slot(|slot| {
            let ended_as = slot.death_order.load(Relaxed);
            if slot.state.load(Relaxed) == SLOT_ENDED
                && longest.is_none_or(|(first, _)| ended_as < first)
                && !sys::thread_lives(pid, slot.lwp.load(Relaxed))
            {
                longest = Some((ended_as, slot));
            }
        });
        let (ended_as, slot) = longest?;
        if slot.state.compare_exchange(SLOT_ENDED, SLOT_OWNED, AcqRel, Relaxed).is_err() {
            // Another thread was faster.
            continue;
        }
        let lwp = slot.lwp.load(Relaxed);
        if slot.death_order.load(Relaxed) != ended_as || sys::thread_lives(pid, lwp) {
            // Since we looked it has had another owner, which has ended, perhaps as the last of all, or is about to.
            slot.state.store(SLOT_ENDED, Release);
            continue;
        }
        DEAD.fetch_sub(1, Relaxed);
        // A thread that ended within a write cannot go on with it.
        let _ = slot.writer.compare_exchange(lwp, 0, Acquire, Relaxed);
        if slot.become_writer(sys::thread_id(), ALL_REGIONS) != Writer::Taken {
            slot.state.store(SLOT_ENDED, Relaxed);
            DEAD.fetch_add(1, Relaxed);
            return None;
        }
        // OBSERVABLE: the dead thread's records are gone.
        slot.lwp.store(0, Release);
        buffers::entry(lwp).users.fetch_sub(1, AcqRel);
        REUSED.fetch_add(1, Relaxed);
        return Some(slot);
    }
    None
}

/// A seccomp filter was in force when the program began: in a container there is one always.
static WAS_FILTERED: AtomicBool = AtomicBool::new(false);

/// Notes whether there is a filter, before the program can make one.
pub fn note_filter() {
    if CONFIG.get().shape.is_ring() {
        WAS_FILTERED.store(sys::is_filtered(), Relaxed);
    }
}

/// Whether the rings have to stay in the trbuf: the program has put itself under a filter, which may kill for a call that
/// writes files. Until now we have made none.
pub fn must_stay() -> bool {
    buffers::shape().is_ring() && !WAS_FILTERED.load(Relaxed) && sys::is_filtered()
}

/// How many threads' records are gone because their rings were reused.
pub fn reused() -> u32 {
    REUSED.load(Relaxed)
}

/// In a forked child: it has no rings yet.
pub fn forget() {
    DEAD.store(0, Relaxed);
    ENDED.store(0, Relaxed);
    REUSED.store(0, Relaxed);
}

const _: () = {
    let mut depth = 0;
    while depth < REGIONS {
        // When a ring begins anew, the step that it gives up has room.
        let step = SlotLayout::BUFFERS.ring_step(depth);
        assert!(step >= NEEDED as usize && step.is_power_of_two());
        depth += 1;
    }
};

#[cfg(test)]
mod tests {
    use super::*;
    use core::ops::Range;

    use spec::buffer::unpack_range;

    /// A ring of records that are their own numbers, 83 bytes each, in memory of the size of the last region.
    struct Trial {
        region: Region,
        text: Vec<u8>,
        next: usize,
    }

    const DEPTH: usize = 3;
    const LINE: usize = 83;

    impl Trial {
        fn new() -> Trial {
            // SAFETY: zeros are a valid region.
            let region: Region = unsafe { std::mem::zeroed() };
            region.flush_threshold.store(1, Relaxed);
            Trial { region, text: vec![b'?'; SlotLayout::BUFFERS.region_size(DEPTH)], next: 0 }
        }

        /// Appends as `record` and `Slot::append` do.
        fn append(&mut self) {
            let end = |region: &Region| (region.write_position.load(Relaxed) >> 32) as usize;
            if end(&self.region) >= self.region.flush_threshold.load(Relaxed) as usize {
                assert!(advance(&self.region, SlotLayout::BUFFERS, DEPTH));
            }
            let at = end(&self.region);
            let line = format!("{:082}\n", self.next);
            self.text[at..at + LINE].copy_from_slice(line.as_bytes());
            // What the encoder's wide stores may touch behind a record.
            self.text[at + LINE..at + NEEDED as usize].fill(b'!');
            self.region.write_position.store(self.region.write_position.load(Relaxed) + ((LINE as u64) << 32), Relaxed);
            self.next += 1;
        }

        /// The numbers that a reader finds.
        fn kept(&self) -> Vec<usize> {
            let words = unpack_range(self.region.write_position.load(Relaxed));
            let numbers = |range: Range<u32>| {
                let text = std::str::from_utf8(&self.text[range.start as usize..range.end as usize]).unwrap();
                text.lines().map(|line| line.parse().unwrap()).collect::<Vec<usize>>()
            };
            if words.start <= words.end {
                return numbers(words);
            }
            let wrapped_at = self.region.wrap_position.load(Relaxed);
            let skip = self.text[words.start as usize..].iter().position(|&byte| byte == b'\n').unwrap() as u32 + 1;
            [numbers(words.start + skip..wrapped_at), numbers(0..words.end)].concat()
        }
    }

    #[test]
    fn the_newest_records_are_kept_whole_and_in_order() {
        let mut trial = Trial::new();
        for turn in 1..2000 {
            trial.append();
            let kept = trial.kept();
            assert_eq!(kept, (turn - kept.len()..turn).collect::<Vec<_>>(), "after {turn}");
            let size =
                SlotLayout::BUFFERS.region_size(DEPTH) - SlotLayout::BUFFERS.ring_step(DEPTH) - 2 * NEEDED as usize;
            assert!(kept.len() >= turn.min(size / LINE - 1), "{} kept after {turn}", kept.len());
        }
        assert!(trial.region.wrap_count.load(Relaxed) > 40);
    }

    #[test]
    fn a_ring_that_is_being_written_out_is_left_alone() {
        let mut trial = Trial::new();
        while (trial.region.write_position.load(Relaxed) >> 32) as u32 + NEEDED
            <= SlotLayout::BUFFERS.region_size(DEPTH) as u32
        {
            trial.append();
        }
        let filled = trial.region.write_position.load(Relaxed);
        trial.region.flush_threshold.store(0, Relaxed);
        assert!(!advance(&trial.region, SlotLayout::BUFFERS, DEPTH));
        assert_eq!(
            (trial.region.write_position.load(Relaxed), trial.region.flush_threshold.load(Relaxed)),
            (filled, 0)
        );
    }
}
