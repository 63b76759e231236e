//! The first or the last records only.

use std::io;
use std::ops::Range;

use memchr::memchr_iter;

use crate::merge::{Merge, Shape};

/// How many lines to leave out, and how many to let through after that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Few {
    /// Lines that are left out first.
    pub skip: u64,
    /// Lines that follow, at most.
    pub most: u64,
}

impl Few {
    /// All lines.
    pub const ALL: Few = Few { skip: 0, most: u64::MAX };

    /// Those that are the last `tail` of the first `head` lines of `times`, which is made to begin where they do.
    pub fn choose(
        merge: &Merge,
        times: &mut Range<u64>,
        shape: Shape,
        head: Option<u64>,
        tail: Option<u64>,
    ) -> io::Result<Few> {
        let most = head.unwrap_or(u64::MAX);
        match tail {
            None => Ok(Few { skip: 0, most }),
            Some(tail) if head.is_none() => {
                let (start, skip) = merge.back(times.clone(), shape, tail);
                times.start = start;
                Ok(Few { skip, most })
            }
            Some(tail) => {
                let mut lines = 0;
                merge.run_for("counting", times.clone(), shape, &mut |piece| {
                    lines += memchr_iter(b'\n', piece).count() as u64;
                    Ok(lines < most)
                })?;
                let last = lines.min(most);
                Ok(Few { skip: last.saturating_sub(tail), most: tail.min(last) })
            }
        }
    }

    /// What goes through of the next lines, and whether more will.
    pub fn cut<'a>(&mut self, lines: &'a [u8]) -> (&'a [u8], bool) {
        if *self == Few::ALL {
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
                let mut few = Few { skip, most };
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
