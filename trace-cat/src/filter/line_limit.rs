//! The first or the last records only.

use std::io;
use std::ops::Range;

use memchr::memchr_iter;

use crate::merge::{BatchTransform, Merge};

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
                    lines += memchr_iter(b'\n', batch).count() as u64;
                    Ok(lines < most)
                })?;
                let last = lines.min(most);
                Ok(LineLimit { skip: last.saturating_sub(tail), most: tail.min(last) })
            }
        }
    }

    /// What is kept of the next lines, and whether lines after these can be kept.
    pub fn apply<'a>(&mut self, lines: &'a [u8]) -> (&'a [u8], bool) {
        if *self == LineLimit::ALL {
            return (lines, true);
        }
        let lines = &lines[after_lines(lines, &mut self.skip)..];
        let end = after_lines(lines, &mut self.most);
        (&lines[..end], self.most > 0)
    }
}

/// The end of the first `count` lines. Subtracts the number of lines before it from `count`.
fn after_lines(lines: &[u8], count: &mut u64) -> usize {
    if *count == 0 {
        return 0;
    }
    for newline in memchr_iter(b'\n', lines) {
        *count -= 1;
        if *count == 0 {
            return newline + 1;
        }
    }
    lines.len()
}

#[cfg(test)]
mod tests {
    use super::*;

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
                        out += std::str::from_utf8(kept).unwrap();
                    }
                }
                let all = batches.concat();
                let expected: String = all.split_inclusive('\n').skip(skip as usize).take(most as usize).collect();
                assert_eq!(out, expected, "{skip} {most}");
                assert_eq!(more, most > 6 - skip.min(6), "{skip} {most}");
            }
        }
    }
}
