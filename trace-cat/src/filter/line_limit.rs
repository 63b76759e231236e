//! The first or the last records only.

use std::io;
use std::ops::Range;

use memchr::memchr_iter;

use crate::merge::{BatchTransform, Merge};

/// How many lines to leave out, and how many to let through after that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineLimit {
    /// Lines that are left out first.
    pub skip: u64,
    /// Lines that follow, at most.
    pub most: u64,
}

impl LineLimit {
    /// All lines.
    pub const ALL: LineLimit = LineLimit { skip: 0, most: u64::MAX };

    /// Those that are the last `tail` of the first `head` lines of `times`, which is made to begin where they do.
    pub fn choose(
        merge: &Merge,
        times: &mut Range<u64>,
        shape: BatchTransform,
        head: Option<u64>,
        tail: Option<u64>,
    ) -> io::Result<LineLimit> {
        let most = head.unwrap_or(u64::MAX);
        match tail {
            None => Ok(LineLimit { skip: 0, most }),
            Some(tail) if head.is_none() => {
                let (start, skip) = merge.back(times.clone(), shape, tail);
                times.start = start;
                Ok(LineLimit { skip, most })
            }
            Some(tail) => {
                let mut lines = 0;
                merge.run_phase("counting", times.clone(), shape, &mut |piece| {
                    lines += memchr_iter(b'\n', piece).count() as u64;
                    Ok(lines < most)
                })?;
                let last = lines.min(most);
                Ok(LineLimit { skip: last.saturating_sub(tail), most: tail.min(last) })
            }
        }
    }

    /// What goes through of the next lines, and whether more will.
    pub fn cut<'a>(&mut self, lines: &'a [u8]) -> (&'a [u8], bool) {
        if *self == LineLimit::ALL {
            return (lines, true);
        }
        let lines = &lines[behind(lines, &mut self.skip)..];
        let end = behind(lines, &mut self.most);
        (&lines[..end], self.most > 0)
    }
}

/// Where the line begins that has `count` lines before it; takes those from `count`.
fn behind(lines: &[u8], count: &mut u64) -> usize {
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
    fn lines_are_counted_across_pieces() {
        let pieces = ["a\nb\n", "c\n", "", "d\ne\nf\n"];
        for skip in 0..8 {
            for most in 0..8 {
                let mut few = LineLimit { skip, most };
                let (mut out, mut more) = (String::new(), true);
                for piece in pieces {
                    if more {
                        let part;
                        (part, more) = few.cut(piece.as_bytes());
                        out += std::str::from_utf8(part).unwrap();
                    }
                }
                let all = pieces.concat();
                let expected: String = all.split_inclusive('\n').skip(skip as usize).take(most as usize).collect();
                assert_eq!(out, expected, "{skip} {most}");
                assert_eq!(more, most > 6 - skip.min(6), "{skip} {most}");
            }
        }
    }
}
