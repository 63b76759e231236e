//! When the time of waits was: sums over blocks of time, of which a comparison learns how much a figure varies within a trace.

use super::small_vectors::push;

/// How many blocks there are at most. When there would be more, each two become one.
const BLOCKS_MAX: u64 = 32;

/// Waits by the blocks of time in which they ended. All blocks are as long, a power of two of nanoseconds, and begin at a
/// multiple of it, so that those of several objects can be added.
#[derive(Clone, Debug, Default)]
pub struct WaitBlocks {
    /// The logarithm of the nanoseconds of a block.
    log: u32,
    /// The number of the first block, counted from time 0.
    first: u64,
    /// From the first that has a wait to the last one.
    blocks: Vec<WaitBlock>,
}

/// The waits that ended in a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WaitBlock {
    pub waits: u64,
    /// Nanoseconds.
    pub waited: u64,
}

impl WaitBlock {
    fn plus(self, other: WaitBlock) -> WaitBlock {
        WaitBlock { waits: self.waits + other.waits, waited: self.waited.saturating_add(other.waited) }
    }
}

impl WaitBlocks {
    /// Adds a wait, by the time of its end.
    pub fn add(&mut self, end: u64, waited: u64) {
        self.add_block(end, WaitBlock { waits: 1, waited });
    }

    /// Adds time of a wait that has been added, by its end.
    pub fn add_rest(&mut self, end: u64, waited: u64) {
        self.add_block(end, WaitBlock { waits: 0, waited });
    }

    /// Adds all waits of others.
    pub fn merge(&mut self, other: &WaitBlocks) {
        while self.log < other.log && !self.blocks.is_empty() {
            self.halve();
        }
        if self.blocks.is_empty() {
            self.clone_from(other);
            return;
        }
        for (number, block) in (other.first..).zip(&other.blocks) {
            if *block != WaitBlock::default() {
                self.add_block(number << other.log, *block);
            }
        }
    }

    /// The blocks in order with their length in nanoseconds, and the same with each two as one, until there are two.
    pub fn levels(&self) -> Vec<(u64, Vec<WaitBlock>)> {
        let mut blocks = self.clone();
        let mut levels = Vec::new();
        while blocks.blocks.len() > 1 {
            levels.push((1 << blocks.log, blocks.blocks.clone()));
            blocks.halve();
        }
        levels
    }

    /// The blocks in order.
    pub fn blocks(&self) -> &[WaitBlock] {
        &self.blocks
    }

    pub fn total(&self) -> WaitBlock {
        self.blocks.iter().fold(WaitBlock::default(), |sum, block| sum.plus(*block))
    }

    fn add_block(&mut self, time: u64, block: WaitBlock) {
        if self.blocks.is_empty() {
            (self.first, self.log) = (time, 0);
            push(&mut self.blocks, block);
            return;
        }
        loop {
            let number = time >> self.log;
            let last = self.first + (self.blocks.len() as u64 - 1);
            if last.max(number) - self.first.min(number) >= BLOCKS_MAX {
                self.halve();
                continue;
            }
            if number < self.first {
                let before = (self.first - number) as usize;
                self.blocks.splice(..0, std::iter::repeat_n(WaitBlock::default(), before));
                self.first = number;
            }
            let index = (number - self.first) as usize;
            if index >= self.blocks.len() {
                self.blocks.resize(index + 1, WaitBlock::default());
            }
            self.blocks[index] = self.blocks[index].plus(block);
            return;
        }
    }

    /// Makes one block of each two.
    fn halve(&mut self) {
        let first = self.first;
        let mut halved: Vec<WaitBlock> = Vec::with_capacity(self.blocks.len() / 2 + 1);
        for (number, block) in (first..).zip(&self.blocks) {
            match halved.last_mut() {
                Some(last) if number % 2 == 1 => *last = last.plus(*block),
                _ => halved.push(*block),
            }
        }
        (self.first, self.log, self.blocks) = (first / 2, self.log + 1, halved);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::seeded_random::SeededRandom;

    #[test]
    fn blocks_have_all_waits_in_whatever_order_they_are_added() {
        let mut random = SeededRandom::seeded("wait blocks", 5);
        for _ in 0..300 {
            let (begin, range) = (random.next() >> random.below(64), 1 + (random.next() >> (20 + random.below(40))));
            let waits: Vec<(u64, u64)> = (0..1 + random.below(100))
                .map(|_| (begin.saturating_add(random.next() % range), 1 + random.below(1000)))
                .map(|(end, waited)| (end, waited as u64))
                .collect();
            let of = |waits: &mut dyn Iterator<Item = &(u64, u64)>| {
                let mut blocks = WaitBlocks::default();
                waits.for_each(|(end, waited)| blocks.add(*end, *waited));
                blocks
            };
            let all = of(&mut waits.iter());
            let (first, last) = (waits.iter().min().unwrap().0, waits.iter().max().unwrap().0);
            // The shortest blocks of which there are not too many.
            let is_enough = |log: u32| (last >> log) - (first >> log) < BLOCKS_MAX;
            assert!(is_enough(all.log) && (all.log == 0 || !is_enough(all.log - 1)), "{}", all.log);
            assert_eq!((all.first, all.first + all.blocks.len() as u64 - 1), (first >> all.log, last >> all.log));
            for (number, block) in (all.first..).zip(&all.blocks) {
                let inside: Vec<u64> =
                    waits.iter().filter(|(end, _)| end >> all.log == number).map(|(_, waited)| *waited).collect();
                assert_eq!((block.waits, block.waited), (inside.len() as u64, inside.iter().sum::<u64>()));
            }
            let mut merged = of(&mut waits.iter().step_by(3));
            merged.merge(&of(&mut waits.iter().enumerate().filter(|(index, _)| index % 3 > 0).map(|(_, wait)| wait)));
            let reversed = of(&mut waits.iter().rev());
            for other in [merged, reversed] {
                assert_eq!((other.log, other.first, other.blocks), (all.log, all.first, all.blocks.clone()));
            }
            for (index, (length, level)) in all.levels().into_iter().enumerate() {
                assert_eq!(length, 1 << (all.log + index as u32));
                assert!(level.len() > 1 && level.len() <= all.blocks.len().div_ceil(1 << index) + 1);
                assert_eq!(level.into_iter().fold(WaitBlock::default(), WaitBlock::plus), all.total());
            }
        }
    }
}
