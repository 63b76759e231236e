//! The first or the last records only.

use std::borrow::Cow;
use std::io;
use std::ops::Range;

use crate::merge::{BatchTransform, Merge};
use crate::record::call_stack::{StackOwners, count_records, is_stack};
use crate::record::columns;

/// How many lines to leave out, and how many to keep after those.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineLimit {
    /// The first lines, which are left out.
    pub skip: u64,
    /// The most lines that are kept after those.
    pub most: u64,
}

impl LineLimit {
    pub const ALL: LineLimit = LineLimit { skip: 0, most: u64::MAX };

    /// The limit that keeps the last `tail` of the first `head` lines of `times`. Moves the start of `times` near these lines.
    pub fn choose(
        merge: &Merge,
        times: &mut Range<u64>,
        transform: BatchTransform,
        head: Option<u64>,
        tail: Option<u64>,
    ) -> io::Result<LineLimit> {
        let most = head.unwrap_or(u64::MAX);
        match tail {
            None => Ok(LineLimit { skip: 0, most }),
            Some(tail) if head.is_none() => {
                let (start, skip) = merge.find_last_lines(times.clone(), transform, tail);
                times.start = start;
                Ok(LineLimit { skip, most })
            }
            Some(tail) => {
                let mut lines = 0;
                merge.run_phase("counting", times.clone(), transform, &mut |batch| {
                    lines += count_records(batch);
                    Ok(lines < most)
                })?;
                let last = lines.min(most);
                Ok(LineLimit { skip: last.saturating_sub(tail), most: tail.min(last) })
            }
        }
    }

    /// What is kept of the next records, and whether records after these can be kept. Stacks do not count: they are kept with their
    /// records.
    pub fn apply<'a>(&mut self, records: &'a [u8]) -> (Cow<'a, [u8]>, bool) {
        if *self == LineLimit::ALL {
            return (Cow::Borrowed(records), true);
        }
        let (mut kept, mut owners) = (Vec::new(), StackOwners::default());
        for line in columns::lines(records) {
            if is_stack(line) {
                if owners.own(line) {
                    kept.extend_from_slice(line);
                }
            } else if self.keeps_next() {
                owners.add(line, ());
                kept.extend_from_slice(line);
            }
        }
        (Cow::Owned(kept), self.most > 0)
    }

    /// Whether the next line is kept, which is counted.
    pub fn keeps_next(&mut self) -> bool {
        if self.skip > 0 {
            self.skip -= 1;
            return false;
        }
        let keeps = self.most > 0;
        // Without a limit there is none after the first lines either.
        self.most -= u64::from(keeps && self.most < u64::MAX);
        keeps
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::test_trace::record;

    #[test]
    fn lines_are_counted_across_batches() {
        let batches = ["a\nb\n", "c\n", "", "d\ne\nf\n"];
        for skip in 0..8 {
            for most in 0..8 {
                let mut limit = LineLimit { skip, most };
                let (mut out, mut more) = (String::new(), true);
                for batch in batches {
                    if more {
                        let kept;
                        (kept, more) = limit.apply(batch.as_bytes());
                        out += std::str::from_utf8(&kept).unwrap();
                    }
                }
                let all = batches.concat();
                let expected: String = all.split_inclusive('\n').skip(skip as usize).take(most as usize).collect();
                assert_eq!(out, expected, "{skip} {most}");
                assert_eq!(more, most > 6 - skip.min(6), "{skip} {most}");
            }
        }
    }

    #[test]
    fn stacks_do_not_count_and_stay_with_their_records() {
        let lines = [
            (1, 1, "02:02:1"),
            (1, 2, "02:02:1"),
            (1, 1, "00:03:1"),
            (1, 2, "00:03:1"),
            (1, 2, "00:03:2"),
            (2, 1, "02:02:2"),
        ];
        let lines = lines.map(|(time, lwp, event)| record(time, lwp, event, 16));
        let kept = |skip, most| {
            let text = LineLimit { skip, most }.apply(lines.concat().as_bytes()).0.into_owned();
            lines.iter().map(|line| text.windows(line.len()).any(|part| part == line.as_bytes())).collect::<Vec<_>>()
        };
        let (no, yes) = (false, true);
        assert_eq!(kept(0, 1), [yes, no, yes, no, no, no]);
        assert_eq!(kept(1, 1), [no, yes, no, yes, yes, no]);
        assert_eq!(kept(1, u64::MAX), [no, yes, no, yes, yes, yes]);
        assert_eq!(kept(2, 5), [no, no, no, no, no, yes]);
    }
}
