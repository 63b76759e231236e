//! Streams of records in order: a run, or several streams merged.

use spec::{EVENTS, Stamp};

use super::tree::{END, Tree};
use crate::read::columns;
use crate::read::records::{Item, MARK_WIDTH, Records, Trust};
use crate::say::{Say, reason};

/// Where a stream's records come from, for the order of records of the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// All from the input with this rank.
    Input(u32),
    /// A mark before each record says its input's rank.
    Marked,
}

/// A run, being read.
pub struct Cursor {
    records: Records,
    source: Source,
    /// The current record's time, `None` at the end.
    time: Option<u64>,
}

impl Cursor {
    /// A cursor at the first of `records`.
    pub fn new(records: Records, source: Source, say: &Say) -> Cursor {
        let mut cursor = Cursor { records, source, time: None };
        cursor.advance(say);
        cursor
    }

    fn advance(&mut self, say: &Say) {
        self.time = loop {
            match self.records.next() {
                Ok(Some(Item::Record { time })) => break Some(time),
                // It was told when the runs were cut, unless every line was good then.
                Ok(Some(Item::Damage(what))) if self.records.trust() != Trust::None => {
                    let place = format!("{}: byte {}", self.records.text().path().display(), self.records.began());
                    say.damage(place, format_args!("changed while being read: {what}"));
                }
                Ok(Some(Item::Damage(_))) => {}
                Ok(None) => break None,
                Err(error) => {
                    say.damage(self.records.text().path().display(), reason(&error));
                    break None;
                }
            }
        };
    }

    fn line(&self) -> &[u8] {
        match self.source {
            Source::Input(_) => self.records.line(),
            Source::Marked => self.records.line().get(MARK_WIDTH..).unwrap_or_default(),
        }
    }

    fn rank(&self) -> u32 {
        match self.source {
            Source::Input(rank) => rank,
            Source::Marked => unmark(self.records.line()),
        }
    }
}

/// The mark of an input's rank: eight hex digits.
pub fn mark(rank: u32) -> [u8; MARK_WIDTH] {
    std::array::from_fn(|place| b"0123456789abcdef"[(rank >> (28 - 4 * place)) as usize & 15])
}

fn unmark(line: &[u8]) -> u32 {
    line.iter().take(MARK_WIDTH).fold(0, |rank, &digit| {
        rank << 4 | u32::from(if digit <= b'9' { digit.wrapping_sub(b'0') } else { digit.wrapping_sub(b'a' - 10) })
    })
}

/// What decides between records of the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ties {
    /// The streams are runs of one file: the earlier one's come first.
    FileOrder,
    /// The streams are files: first what is stamped before its call, then by name.
    StampThenName,
}

/// A source of records in order.
pub enum Stream {
    /// One run.
    Run(Cursor),
    /// Several streams together.
    Merge(Box<Merge>),
}

impl Stream {
    fn advance(&mut self, say: &Say) {
        match self {
            Stream::Run(cursor) => cursor.advance(say),
            Stream::Merge(merge) => merge.advance(say),
        }
    }

    fn time(&self) -> Option<u64> {
        match self {
            Stream::Run(cursor) => cursor.time,
            Stream::Merge(merge) => merge.streams.get(merge.tree.winner()?)?.time(),
        }
    }

    fn line(&self) -> &[u8] {
        match self {
            Stream::Run(cursor) => cursor.line(),
            Stream::Merge(merge) => merge.line().unwrap_or_default(),
        }
    }

    fn rank(&self) -> u32 {
        match self {
            Stream::Run(cursor) => cursor.rank(),
            Stream::Merge(merge) => merge.rank(),
        }
    }
}

/// Streams merged into one.
pub struct Merge {
    streams: Vec<Stream>,
    tree: Tree,
    ties: Ties,
    stamps: Stamps,
}

impl Merge {
    /// Merges `streams`; the first record of all is the current one.
    pub fn new(streams: Vec<Stream>, ties: Ties) -> Merge {
        let stamps = Stamps::new();
        let keys = streams.iter().enumerate().map(|(index, stream)| key(stream, index, ties, &stamps)).collect();
        Merge { tree: Tree::new(keys), streams, ties, stamps }
    }

    /// The current record with its newline, or `None` at the end.
    pub fn line(&self) -> Option<&[u8]> {
        Some(self.streams[self.tree.winner()?].line())
    }

    /// The rank of the input that the current record comes from.
    pub fn rank(&self) -> u32 {
        self.tree.winner().map_or(0, |winner| self.streams[winner].rank())
    }

    /// Goes to the next record.
    pub fn advance(&mut self, say: &Say) {
        if let Some(winner) = self.tree.winner() {
            let stream = &mut self.streams[winner];
            stream.advance(say);
            self.tree.replace(key(stream, winner, self.ties, &self.stamps));
        }
    }
}

/// What the current record of a stream sorts by: its time, and below it what decides between equal times.
fn key(stream: &Stream, index: usize, ties: Ties, stamps: &Stamps) -> u128 {
    let Some(time) = stream.time() else { return END };
    let low = match ties {
        Ties::FileOrder => index as u64,
        Ties::StampThenName => u64::from(stamps.is_after(stream.line())) << 32 | u64::from(stream.rank()),
    };
    u128::from(time) << 64 | u128::from(low)
}

/// Which records are stamped before their call: a bit for each event and which.
struct Stamps([u64; Stamps::BITS / 64]);

impl Stamps {
    const BITS: usize = 16 * 128 * 4;

    fn new() -> Stamps {
        let mut stamps = Stamps([0; Stamps::BITS / 64]);
        for event in &EVENTS {
            for form in event.forms.iter().filter(|form| form.stamp == Stamp::Before) {
                if let Some(bit) = Stamps::bit((event.category, event.number, form.which)) {
                    stamps.0[bit / 64] |= 1 << (bit % 64);
                }
            }
        }
        stamps
    }

    fn bit((category, number, which): (u8, u8, u8)) -> Option<usize> {
        let known = category < 16 && number < 128 && which < 4;
        known.then_some((usize::from(category) * 128 + usize::from(number)) * 4 + usize::from(which))
    }

    /// Whether the record is stamped after its call. Of events that the table does not know nothing is known to be
    /// given away, so they count as after.
    fn is_after(&self, line: &[u8]) -> bool {
        Stamps::bit(columns::event(line)).is_none_or(|bit| self.0[bit / 64] >> (bit % 64) & 1 == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_and_ranks_are_twins() {
        for rank in [0, 1, 15, 16, 0xabcdef, u32::MAX] {
            assert_eq!(unmark(&mark(rank)), rank);
        }
        assert_eq!(&mark(0x2a), b"0000002a");
    }

    #[test]
    fn stamps_are_the_tables() {
        let stamps = Stamps::new();
        let line = |event: &str| format!("1795174740:544763329:0019955:0019953:0x7fc5de3f86c0:{event}:0:0:0:0:0\n");
        for (event, after) in [
            ("02:02:1", false),
            ("02:02:2", true),
            ("02:04:0", false),
            ("02:03:0", true),
            ("12:04:0", true),
            ("99:99:9", true),
        ] {
            assert_eq!(stamps.is_after(line(event).as_bytes()), after, "{event}");
        }
    }
}
