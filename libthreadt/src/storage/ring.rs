//! `THR_TRACE_RING`: the regions of a slot keep the newest records, and nothing is written before the process ends.
//!
//! The words of a region are as [`spec::buffer`] has them, and the owner appends as into any other region. Only three
//! things differ: what happens at the region's flush threshold ([`give_up_oldest`]), when a thread ends, and when one
//! begins (`slot_reuse`). At the process's end rings become ordinary regions.

use core::sync::atomic::Ordering::{Relaxed, Release, SeqCst};
use core::sync::atomic::{AtomicU32, compiler_fence};

use spec::buffer::{Region, SlotLayout, pack_range};

use super::layout::{APPEND_ROOM, slot_layout};
use super::slot::Slot;
use crate::sys::{self, observable_step};

/// After how many bytes of a ring, at most, the clock is checked, as it is after each write of a buffer. From there on the kernel reads ahead.
const CHECK_INTERVAL: u32 = 64 * 1024;

/// Whether the clock is to be checked after [`give_up_oldest`].
pub fn is_check_point(region: &Region) -> bool {
    // The start of the oldest record stays at 0 until the ring wraps.
    region.write_position.load(Relaxed) as u32 & (CHECK_INTERVAL - 1) == 0
}

/// Lets the kernel prepare many pages of a ring at a time, from when it has so much text: a process that ends soon needs few of them.
pub fn read_ahead(slot: Slot, depth: usize) {
    if depth == 0 && slot.end_of(depth).load(Relaxed) / CHECK_INTERVAL == 1 {
        sys::read_ahead(slot.base.as_ptr(), slot_layout().slot_size());
    }
}

/// Gives up the oldest records of region `depth` if its owner, who calls this, has no room for more, and sets the next
/// flush threshold. `false` if the region is being written out.
pub fn give_up_oldest(region: &Region, flush_threshold: &AtomicU32, layout: SlotLayout, depth: usize) -> bool {
    let (size, step) = (layout.region_size(depth) as u32, layout.ring_step(depth) as u32);
    for _ in 0..ATTEMPTS {
        let threshold = flush_threshold.load(Relaxed);
        // While the threshold is low, the next record calls this again, also if a handler's jump ends this call.
        observable_step();
        if threshold == 0 || flush_threshold.compare_exchange(threshold, 1, Relaxed, Relaxed).is_err() {
            return false;
        }
        let position = region.write_position.load(Relaxed);
        // Within the region, whatever another process may have written there.
        let (mut start, mut end) = ((position as u32).min(size), ((position >> 32) as u32).min(size));
        let wraps = start <= end && end + APPEND_ROOM > size;
        if wraps {
            observable_step();
            // OBSERVABLE: nobody uses this word before the next store makes `start` greater than `end`.
            region.wrap_position.store(end, Relaxed);
            // What is before `start` has been written out, for an exec that failed; the byte before it ends a line.
            (start, end) = (step.max(start.saturating_sub(1)), 0);
        } else if start > end && end + APPEND_ROOM > start {
            // A step is a power of two.
            start = (end + APPEND_ROOM + step - 1) & !(step - 1);
            if start >= region.wrap_position.load(Relaxed).min(size) {
                start = 0;
            }
        }
        observable_step();
        // OBSERVABLE: the older records before the new start are gone.
        // ORDERING: Release for the wrap position; the fence keeps the records that will overwrite older ones behind
        // it. On x86-64 stores become visible in program order.
        if region.write_position.compare_exchange(position, pack_range(start..end), Release, Relaxed).is_err() {
            // A signal handler has written the region out, for an exec that failed, or forked.
            continue;
        }
        if wraps {
            observable_step();
            region.wrap_count.store(region.wrap_count.load(Relaxed).wrapping_add(1), Release);
        }
        compiler_fence(SeqCst);
        observable_step();
        // A ring that has not wrapped yet stops for the check only.
        let bound = if start > end { start } else { size.min((end | (CHECK_INTERVAL - 1)) + 1 + APPEND_ROOM) };
        return flush_threshold.compare_exchange(1, (bound + 1).saturating_sub(APPEND_ROOM), Relaxed, Relaxed).is_ok();
    }
    false
}

/// How often the position of a ring is tried to be changed: only signal handlers change it meanwhile, or another process.
const ATTEMPTS: u32 = 10_000;

#[cfg(test)]
mod tests {
    use super::*;
    use core::ops::Range;

    use spec::buffer::unpack_range;

    /// A ring whose records are their own numbers, 83 bytes each, in memory of the size of the last region.
    struct NumberedRing {
        region: Region,
        flush_threshold: AtomicU32,
        text: Vec<u8>,
        next: usize,
    }

    const DEPTH: usize = 3;
    const LINE: usize = 83;

    impl NumberedRing {
        fn new() -> NumberedRing {
            // SAFETY: zeros are a valid region.
            let region: Region = unsafe { std::mem::zeroed() };
            NumberedRing {
                region,
                flush_threshold: AtomicU32::new(1),
                text: vec![b'?'; SlotLayout::BUFFERS.region_size(DEPTH)],
                next: 0,
            }
        }

        /// Appends as the recorder and `Slot::append` do.
        fn append(&mut self) {
            let end = |region: &Region| (region.write_position.load(Relaxed) >> 32) as usize;
            if end(&self.region) >= self.flush_threshold.load(Relaxed) as usize {
                assert!(give_up_oldest(&self.region, &self.flush_threshold, SlotLayout::BUFFERS, DEPTH));
            }
            let at = end(&self.region);
            let line = format!("{:082}\n", self.next);
            self.text[at..at + LINE].copy_from_slice(line.as_bytes());
            // What the encoder's wide stores may touch behind a record.
            self.text[at + LINE..at + APPEND_ROOM as usize].fill(b'!');
            self.region.write_position.store(self.region.write_position.load(Relaxed) + ((LINE as u64) << 32), Relaxed);
            self.next += 1;
        }

        /// The numbers that a reader finds.
        fn kept(&self) -> Vec<usize> {
            let range = unpack_range(self.region.write_position.load(Relaxed));
            let numbers = |range: Range<u32>| {
                let text = std::str::from_utf8(&self.text[range.start as usize..range.end as usize]).unwrap();
                text.lines().map(|line| line.parse().unwrap()).collect::<Vec<usize>>()
            };
            if range.start <= range.end {
                return numbers(range);
            }
            let wrap_position = self.region.wrap_position.load(Relaxed);
            let skip = self.text[range.start as usize..].iter().position(|&byte| byte == b'\n').unwrap() as u32 + 1;
            [numbers(range.start + skip..wrap_position), numbers(0..range.end)].concat()
        }
    }

    #[test]
    fn the_newest_records_are_kept_complete_and_in_order() {
        let mut ring = NumberedRing::new();
        for appended in 1..2000 {
            ring.append();
            let kept = ring.kept();
            assert_eq!(kept, (appended - kept.len()..appended).collect::<Vec<_>>(), "after {appended}");
            let size = SlotLayout::BUFFERS.region_size(DEPTH)
                - SlotLayout::BUFFERS.ring_step(DEPTH)
                - 2 * APPEND_ROOM as usize;
            assert!(kept.len() >= appended.min(size / LINE - 1), "{} kept after {appended}", kept.len());
        }
        assert!(ring.region.wrap_count.load(Relaxed) > 40);
    }

    #[test]
    fn a_ring_that_is_being_written_out_is_left_alone() {
        let mut ring = NumberedRing::new();
        while (ring.region.write_position.load(Relaxed) >> 32) as u32 + APPEND_ROOM
            <= SlotLayout::BUFFERS.region_size(DEPTH) as u32
        {
            ring.append();
        }
        let write_position = ring.region.write_position.load(Relaxed);
        ring.flush_threshold.store(0, Relaxed);
        assert!(!give_up_oldest(&ring.region, &ring.flush_threshold, SlotLayout::BUFFERS, DEPTH));
        assert_eq!((ring.region.write_position.load(Relaxed), ring.flush_threshold.load(Relaxed)), (write_position, 0));
    }
}
