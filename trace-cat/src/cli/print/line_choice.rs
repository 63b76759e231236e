//! Which lines `--head` and `--tail` select in a format whose lines are calls.

use std::io;
use std::ops::Range;

use crate::filter::LineLimit;
use crate::merge::{BatchTransform, Merge};
use crate::output::{LimitedFormat, TimelineFormatter};
use crate::record::columns;

/// What `--head` and `--tail` ask for.
#[derive(Clone, Copy)]
pub struct LineRange {
    pub head: Option<u64>,
    pub tail: Option<u64>,
    /// The lines are those of whole calls, so that all earlier records are needed.
    pub needs_all_records: bool,
}

impl LineRange {
    /// The limits of records to format and of lines to show. Moves the start of `times` near the first of these records.
    /// `formatter` makes the lines, to count them.
    pub fn choose(
        self,
        merge: &Merge,
        times: &mut Range<u64>,
        transform: BatchTransform,
        formatter: Box<dyn TimelineFormatter>,
    ) -> io::Result<(LineLimit, LineLimit)> {
        let most = self.head.unwrap_or(u64::MAX);
        let Some(tail) = self.tail else { return Ok((LineLimit::ALL, LineLimit { skip: 0, most })) };
        let mut records = LineLimit::ALL;
        if self.head.is_none() && !self.needs_all_records {
            // A line has at most two records.
            (times.start, records.skip) = merge.find_last_lines(times.clone(), transform, tail.saturating_mul(2));
        }
        let mut counter = LimitedFormat::new(formatter, LineLimit { skip: u64::MAX, most: 0 });
        let (mut limit, mut unused) = (records, Vec::new());
        merge.run_phase("counting", times.clone(), transform, &mut |batch| {
            let (lines, _) = limit.apply(batch);
            columns::lines(&lines).for_each(|line| counter.record(line, &mut unused));
            Ok(counter.lines < most)
        })?;
        counter.end(&mut unused);
        let last = counter.lines.min(most);
        Ok((records, LineLimit { skip: last.saturating_sub(tail), most: tail.min(last) }))
    }
}
