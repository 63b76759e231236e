//! `--sort`: by thread or by event, and by time within those.

use std::io;

use crate::options::SortOrder;
use crate::record::call_stack::{is_stack, owner_key};
use crate::record::columns;
use crate::support::diagnostics::Diagnostics;
use crate::support::external_sort::ExternalSort;
use crate::support::progress::Amount;

/// Bytes of records that are in memory at most.
const SORT_MEMORY: usize = 32 << 20;
/// Bytes of sorted lines that are output at a time.
const BATCH: usize = 256 << 10;
/// The most bytes of a record with its stack, which is a few thousand in an undamaged trace.
const RECORD_MAX: usize = 32 << 10;

/// Takes records in the order of time and gives them back in another order.
pub struct Sorter {
    sort: ExternalSort<u64>,
    /// Bytes of all lines.
    bytes: u64,
    /// A record with its stack.
    record: Vec<u8>,
}

impl Sorter {
    /// A sorter by `order`; `None` for the order of time, which records have already.
    pub fn new(order: SortOrder) -> Option<Sorter> {
        Sorter::with_memory(order, SORT_MEMORY)
    }

    fn with_memory(order: SortOrder, memory: usize) -> Option<Sorter> {
        let key = match order {
            SortOrder::Tid => columns::tid,
            SortOrder::Event => |line: &[u8]| {
                let (category, number, _) = columns::event(line);
                u64::from(category) << 8 | u64::from(number)
            },
            SortOrder::Time => return None,
        };
        Some(Sorter { sort: ExternalSort::new(key, memory), bytes: 0, record: Vec::new() })
    }

    pub fn push(&mut self, lines: &[u8]) -> io::Result<()> {
        self.bytes += lines.len() as u64;
        // A stack has the place of its record.
        let mut lines = columns::lines(lines).peekable();
        while let Some(line) = lines.next() {
            self.record.clear();
            self.record.extend_from_slice(line);
            let most = RECORD_MAX;
            while let Some(stack) =
                lines.next_if(|next| is_stack(next) && owner_key(next) == owner_key(line) && self.record.len() < most)
            {
                self.record.extend_from_slice(stack);
            }
            self.sort.push(&self.record)?;
        }
        Ok(())
    }

    /// Gives all lines to `put` in order, many at a time.
    pub fn finish(self, put: &mut dyn FnMut(&[u8]) -> io::Result<()>, diagnostics: &Diagnostics) -> io::Result<()> {
        let phase = diagnostics.start_phase("sorting", Amount::Bytes(self.bytes));
        let mut batch = Vec::with_capacity(BATCH + (4 << 10));
        let mut put_batch = |batch: &mut Vec<u8>| {
            put(batch)?;
            phase.advance(batch.len() as u64);
            batch.clear();
            Ok(())
        };
        self.sort.finish(&mut |line| {
            batch.extend_from_slice(line);
            if batch.len() >= BATCH { put_batch(&mut batch) } else { Ok(()) }
        })?;
        put_batch(&mut batch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::support::diagnostics::tests::recorded_diagnostics;
    use crate::testing::seeded_random::SeededRandom;

    #[test]
    fn equal_keys_keep_their_order_in_memory_and_in_runs() {
        let mut random = SeededRandom::seeded("sort", 10);
        for round in 0..40 {
            let lines: Vec<String> = (0..random.below(800))
                .map(|time| {
                    let (tid, lwp) = ([0x7fc5_de3f_86c0_u64, 0xff_7fc5_de3f_86c0, 5][random.below(3)], random.below(9));
                    let (category, number) = (1 + random.below(3), random.below(100));
                    format!(
                        "1795174740:{:09}:{lwp:07}:0000001:{tid:#014x}:{category:02}:{number:02}:0:{time}:0:0:0:0\n",
                        time / 3
                    )
                })
                .collect();
            for order in [SortOrder::Tid, SortOrder::Event] {
                let mut expected = lines.clone();
                expected.sort_by_key(|line| {
                    let fields: Vec<&str> = line.split(':').collect();
                    match order {
                        SortOrder::Tid => u64::from_str_radix(&fields[4][2..], 16).unwrap(),
                        _ => format!("{}{}", fields[5], fields[6]).parse().unwrap(),
                    }
                });
                let mut sorter = Sorter::with_memory(order, [1 << 20, 1 + random.below(9000)][round % 2]).unwrap();
                for lines in lines.chunks(1 + random.below(90)) {
                    sorter.push(lines.concat().as_bytes()).unwrap();
                }
                let mut out = Vec::new();
                let mut put = |lines: &[u8]| {
                    out.extend_from_slice(lines);
                    Ok(())
                };
                sorter.finish(&mut put, &recorded_diagnostics().0).unwrap();
                assert!(out == expected.concat().as_bytes(), "round {round}, {order:?}");
            }
        }
        assert!(Sorter::new(SortOrder::Time).is_none());
    }
}
