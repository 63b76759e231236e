//! The stretches of all threads, in the order in which they were logged, to be read backwards.

use std::io;
use std::mem;
use std::os::unix::fs::FileExt;

use super::activity::{Activity, HeldTime};
use crate::support::temporary_files::{TemporaryFile, temporary_file_error};

/// Bytes of a block, which is decoded from its beginning.
const BLOCK: usize = 64 << 10;
/// Bytes of blocks that are kept in memory. Later ones are written to a temporary file.
const MEMORY_MAX: usize = 8 << 20;

/// A log of stretches.
#[derive(Debug, Default)]
pub struct ActivityLog {
    /// The first blocks.
    blocks: Vec<Vec<u8>>,
    /// Bytes of `blocks`.
    size: usize,
    /// The blocks after these, and the length of each.
    file: Option<TemporaryFile>,
    written: Vec<u32>,
    /// The last block.
    block: Vec<u8>,
    /// The end of the last stretch in it.
    previous: u64,
    error: Option<io::Error>,
}

impl ActivityLog {
    /// Appends a stretch, with what was held during it.
    pub fn push(&mut self, activity: &Activity, holds: &[HeldTime]) {
        activity.append_to(holds, self.previous, &mut self.block);
        self.previous = activity.until;
        if self.block.len() >= BLOCK {
            self.end_block(MEMORY_MAX);
        }
    }

    fn end_block(&mut self, memory_max: usize) {
        self.previous = 0;
        if self.size < memory_max {
            self.size += self.block.len();
            self.blocks.push(mem::take(&mut self.block));
        } else if let Err(error) = self.write_block() {
            // It is returned when the log is read; until then nothing can be done.
            self.error.get_or_insert(error);
        }
        self.block.clear();
    }

    fn write_block(&mut self) -> io::Result<()> {
        if self.error.is_none() {
            let file = match &mut self.file {
                Some(file) => file,
                none => none.insert(TemporaryFile::new()?),
            };
            file.push(&self.block)?;
            self.written.push(self.block.len() as u32);
        }
        Ok(())
    }

    /// Gives `take` all stretches, the last first.
    ///
    /// # Errors
    /// Any failure of the temporary file, also an earlier one.
    pub fn read_backwards(mut self, take: &mut dyn FnMut(&Activity, &[HeldTime])) -> io::Result<()> {
        if let Some(error) = self.error {
            return Err(error);
        }
        let mut decoded = DecodedBlock::default();
        decoded.give(&self.block, take);
        if let Some(file) = &mut self.file {
            file.flush()?;
            let (mut end, mut bytes) = (file.length, Vec::new());
            for length in self.written.into_iter().rev() {
                bytes.resize(length as usize, 0);
                end -= u64::from(length);
                file.file().read_exact_at(&mut bytes, end).map_err(temporary_file_error)?;
                decoded.give(&bytes, take);
            }
        }
        while let Some(block) = self.blocks.pop() {
            decoded.give(&block, take);
        }
        Ok(())
    }
}

/// The stretches of a block.
#[derive(Default)]
struct DecodedBlock {
    /// Each with the end of its part of `holds`.
    activities: Vec<(Activity, usize)>,
    holds: Vec<HeldTime>,
}

impl DecodedBlock {
    fn give(&mut self, mut bytes: &[u8], take: &mut dyn FnMut(&Activity, &[HeldTime])) {
        self.activities.clear();
        self.holds.clear();
        let mut previous = 0;
        while !bytes.is_empty() {
            let activity = Activity::take_from(&mut bytes, previous, &mut self.holds);
            previous = activity.until;
            self.activities.push((activity, self.holds.len()));
        }
        while let Some((activity, end)) = self.activities.pop() {
            let start = self.activities.last().map_or(0, |(_, end)| *end);
            take(&activity, &self.holds[start..end]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::activity::{ActivityKind, WaitEnd};
    use super::*;
    use crate::testing::seeded_random::SeededRandom;

    #[test]
    fn what_was_logged_is_read_backwards() {
        let mut random = SeededRandom::seeded("activity log", 1);
        for memory_max in [usize::MAX, 100] {
            let mut log = ActivityLog::default();
            let mut pushed = Vec::new();
            for index in 0..2000u32 {
                let (from, length) = (1 << 62 | random.below(1 << 40) as u64, random.below(1 << 20) as u64);
                let until = from + length;
                let kind = match random.below(6) {
                    0 => ActivityKind::Running,
                    1 => ActivityKind::Retraction,
                    2 => ActivityKind::Waiting(WaitEnd::Latency),
                    3 => ActivityKind::Waiting(WaitEnd::TimedOut),
                    4 => ActivityKind::Waiting(WaitEnd::Unknown),
                    _ => ActivityKind::Waiting(WaitEnd::Woken(index * 7, from + length / 2)),
                };
                let activity = Activity { thread: index, from, until, kind, held: length / 3, uncertain: 1 };
                let holds: Vec<HeldTime> = (0..random.below(4) as u32)
                    .map(|hold| HeldTime {
                        object: hold << 20,
                        site: hold,
                        time: length,
                        count: hold + 1,
                        carried_from: (hold > 1).then(|| from - u64::from(hold)),
                    })
                    .collect();
                log.push(&activity, &holds);
                if random.below(50) == 0 {
                    log.end_block(memory_max);
                }
                pushed.push((activity, holds));
            }
            assert_eq!(log.file.is_some(), memory_max == 100);
            log.read_backwards(&mut |activity, holds| assert_eq!(pushed.pop(), Some((*activity, holds.to_vec()))))
                .unwrap();
            assert_eq!(pushed, []);
        }
    }
}
