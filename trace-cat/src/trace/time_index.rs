//! Which times are where in a text: the result of reading it once.

use std::ops::Range;

/// Consecutive records of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexBlock {
    /// The beginning of its first record in the text.
    pub at: u64,
    /// The least time of a record.
    pub min: u64,
    /// The greatest time of a record.
    pub max: u64,
}

/// Consecutive blocks whose times ascend: the least time of each is not below the greatest of the block before it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct SortedRun {
    blocks: Range<u32>,
    /// The greatest time in this run and all before it.
    max_so_far: u64,
    /// The least time in this run and all after it.
    min_from_here: u64,
}

impl SortedRun {
    fn indexes(&self) -> Range<usize> {
        self.blocks.start as usize..self.blocks.end as usize
    }
}

/// The blocks of a text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TimeIndex {
    /// All blocks in the order of the text.
    pub blocks: Vec<IndexBlock>,
    /// Empty if all blocks are one run.
    runs: Vec<SortedRun>,
    /// The end of the text.
    pub end: u64,
    min: u64,
    max: u64,
    /// The times of the complete text never descend.
    pub ordered: bool,
    /// All of the text consists of records.
    pub clean: bool,
    /// How many records there are.
    pub records: u64,
    /// The records that name a thread, if they are collected.
    pub name_lines: Vec<Box<[u8]>>,
}

impl TimeIndex {
    /// The index of a text that ends at `end`. `ordered`: within no block a time descends. `clean`: all of the text consists
    /// of records.
    pub fn new(mut blocks: Vec<IndexBlock>, end: u64, ordered: bool, clean: bool) -> TimeIndex {
        blocks.shrink_to_fit();
        let mut runs: Vec<SortedRun> = Vec::new();
        let (mut began, mut max_so_far) = (0, 0);
        for at in 1..=blocks.len() {
            max_so_far = max_so_far.max(blocks[at - 1].max);
            if at == blocks.len() || blocks[at].min < blocks[at - 1].max {
                runs.push(SortedRun { blocks: began as u32..at as u32, max_so_far, min_from_here: blocks[began].min });
                began = at;
            }
        }
        let mut min_from_here = u64::MAX;
        for run in runs.iter_mut().rev() {
            min_from_here = min_from_here.min(run.min_from_here);
            run.min_from_here = min_from_here;
        }
        let (min, max) =
            runs.first().zip(runs.last()).map_or((0, 0), |(first, last)| (first.min_from_here, last.max_so_far));
        if runs.len() <= 1 {
            runs = Vec::new();
        }
        runs.shrink_to_fit();
        let (ordered, records, name_lines) = (ordered && runs.is_empty(), 0, Vec::new());
        TimeIndex { ordered, blocks, runs, end, min, max, clean, records, name_lines }
    }

    /// The least and the greatest time, unless there is no record.
    pub fn span(&self) -> Option<(u64, u64)> {
        (!self.blocks.is_empty()).then_some((self.min, self.max))
    }

    /// The sorted runs of blocks, in the order of the text.
    pub fn runs(&self) -> impl Iterator<Item = Range<usize>> {
        self.only_run().into_iter().chain(self.runs.iter().map(SortedRun::indexes))
    }

    /// All blocks, if they are one run.
    fn only_run(&self) -> Option<Range<usize>> {
        (self.runs.is_empty() && !self.blocks.is_empty()).then_some(0..self.blocks.len())
    }

    /// The blocks that may hold records of times in `times`, as ranges in the order of the text.
    pub fn find(&self, times: Range<u64>) -> impl Iterator<Item = Range<usize>> {
        let first = self.runs.partition_point(|run| run.max_so_far < times.start);
        let last = self.runs.partition_point(|run| run.min_from_here < times.end);
        let runs = self.runs.get(first..last.max(first)).unwrap_or_default();
        self.only_run().into_iter().chain(runs.iter().map(SortedRun::indexes)).filter_map(move |run| {
            let blocks = &self.blocks[run.clone()];
            let first = blocks.partition_point(|block| block.max < times.start);
            let last = blocks.partition_point(|block| block.min < times.end);
            (first < last).then_some(run.start + first..run.start + last)
        })
    }

    /// The place in the text of these blocks; there has to be at least one.
    pub fn place(&self, blocks: &Range<usize>) -> Range<u64> {
        let end = self.blocks.get(blocks.end).map_or(self.end, |block| block.at);
        self.blocks[blocks.start].at..end
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::seeded_random::SeededRandom;

    #[test]
    fn a_block_has_a_place_and_two_times() {
        // A large trace has a million of them.
        assert_eq!(size_of::<IndexBlock>(), 24);
    }

    #[test]
    fn a_search_finds_what_inspecting_each_block_finds() {
        let mut random = SeededRandom::seeded("index", 8);
        for _ in 0..2000 {
            let disorder = [0, 1, 30][random.below(3)];
            let blocks: Vec<IndexBlock> = (0..random.below(30))
                .map(|at| {
                    let min = (5 * at + random.below(disorder + 1)) as u64;
                    IndexBlock { at: 10 * at as u64, min, max: min + random.below(6) as u64 }
                })
                .collect();
            let index = TimeIndex::new(blocks.clone(), 10 * blocks.len() as u64, true, true);
            let start = random.below(160) as u64;
            let times = start..start + random.below(40) as u64;
            let found: Vec<usize> = index.find(times.clone()).flatten().collect();
            let wanted = |block: &IndexBlock| block.max >= times.start && block.min < times.end;
            let expected: Vec<usize> = (0..blocks.len()).filter(|&at| wanted(&blocks[at])).collect();
            assert_eq!(found, expected, "{times:?} {blocks:?}");
            assert_eq!(index.runs().flatten().collect::<Vec<_>>(), (0..blocks.len()).collect::<Vec<_>>());
            let span = blocks.iter().map(|block| block.min).min().zip(blocks.iter().map(|block| block.max).max());
            assert_eq!(index.span(), span);
        }
    }
}
