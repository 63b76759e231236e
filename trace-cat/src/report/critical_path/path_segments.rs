//! A path as a list of segments that is short enough for a picture.

/// The most segments of a path.
const SEGMENTS_MAX: usize = 10_000;

/// A part of a critical path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathSegment {
    pub thread: u32,
    pub from: u64,
    pub until: u64,
    pub what: PathActivity,
}

/// What a thread did most of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathActivity {
    /// It held this object.
    Holding(u32),
    /// It waited, perhaps holding something, and who ended that is not known.
    Unknown,
    /// It neither held nor waited for anything.
    Other,
}

/// Segments that are found backwards.
#[derive(Debug)]
pub struct SegmentList {
    /// The last one first; with how long the thread did that.
    segments: Vec<(PathSegment, u64)>,
    /// Shorter ones are put together if there are too many.
    short: u64,
}

impl SegmentList {
    /// An empty list for a path of a length.
    pub fn new(length: u64) -> SegmentList {
        SegmentList { segments: Vec::new(), short: length / SEGMENTS_MAX as u64 + 1 }
    }

    /// Adds the segment before the earliest one so far.
    pub fn push_before(&mut self, segment: PathSegment) {
        let length = segment.until - segment.from;
        match self.segments.last_mut() {
            Some((next, time)) if (next.thread, next.what) == (segment.thread, segment.what) => {
                (next.from, *time) = (segment.from, *time + length);
            }
            _ => self.segments.push((segment, length)),
        }
        if self.segments.len() > 2 * SEGMENTS_MAX {
            self.shorten();
        }
    }

    /// Puts neighbours together while they are short: the thread that did one thing longest stands for all.
    fn shorten(&mut self) {
        let mut shorter: Vec<(PathSegment, u64)> = Vec::new();
        for &(segment, time) in &self.segments {
            match shorter.last_mut() {
                Some((next, longest)) if next.until - next.from < self.short => {
                    if time > *longest {
                        (next.thread, next.what, *longest) = (segment.thread, segment.what, time);
                    }
                    next.from = segment.from;
                }
                _ => shorter.push((segment, time)),
            }
        }
        self.segments = shorter;
    }

    /// All segments in the order of time.
    pub fn finish(mut self) -> Vec<PathSegment> {
        if self.segments.len() > SEGMENTS_MAX {
            self.shorten();
        }
        self.segments.iter().rev().map(|(segment, _)| *segment).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(lengths: impl Iterator<Item = u64>, total: u64) -> Vec<PathSegment> {
        let (mut list, mut until) = (SegmentList::new(total), total);
        for (index, length) in (0..).zip(lengths) {
            let from = until - length;
            list.push_before(PathSegment { thread: index % 2, from, until, what: PathActivity::Other });
            until = from;
        }
        assert_eq!(until, 0);
        list.finish()
    }

    #[test]
    fn segments_are_contiguous_and_not_too_many() {
        let few = list([3, 1, 2].into_iter(), 6);
        let times: Vec<_> = few.iter().map(|segment| (segment.thread, segment.from, segment.until)).collect();
        assert_eq!(times, [(0, 0, 2), (1, 2, 3), (0, 3, 6)]);
        // Thread 1 is on the path three times as long as thread 0.
        let many = list((0..200_000).map(|index| 1 + 2 * (index % 2)), 400_000);
        assert!((5_000..=SEGMENTS_MAX + 1).contains(&many.len()), "{}", many.len());
        assert!(many.iter().all(|segment| segment.thread == 1));
        assert!(many.windows(2).all(|pair| pair[0].until == pair[1].from));
        assert_eq!((many[0].from, many[many.len() - 1].until), (0, 400_000));
    }
}
