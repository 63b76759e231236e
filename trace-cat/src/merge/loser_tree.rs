//! Merges streams of records that are in memory: the loop in which nearly all time goes.
//!
//! A tournament of keys tells which stream comes next, without branches. Each stream's next record is decoded before it
//! is needed: decoding takes long from end to end, but needs nothing of what the tournament decides meanwhile.

use std::ops::Range;

use spec::record::{RECORD_LEN_MAX, TIME_WIDTH};

use super::sort_keys::{MergeKey, StampTable};
use crate::record::columns::time_known;
use crate::record::plain_records::{Avx2Scanner, LineScanner, PortableScanner, VIEW};

/// Bytes that have to be there behind the last stream, whatever they are.
pub const SLACK: usize = VIEW;

/// Bytes that are copied at once; nearly all records are shorter.
const USUAL: usize = 96;

const _: () = assert!(RECORD_LEN_MAX <= 2 * USUAL && 2 * USUAL <= VIEW);

/// Where lines are put, one behind the other. It grows, and keeps its bytes when it is emptied.
#[derive(Debug, Default)]
pub struct LineBuffer {
    bytes: Vec<u8>,
    filled: usize,
}

impl LineBuffer {
    /// What was put there.
    pub fn filled(&self) -> &[u8] {
        &self.bytes[..self.filled]
    }

    /// Bytes of memory that it takes.
    pub fn memory(&self) -> usize {
        self.bytes.capacity()
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.filled = 0;
    }

    /// Adds some lines.
    pub fn push(&mut self, lines: &[u8]) {
        self.room(lines.len())[..lines.len()].copy_from_slice(lines);
        self.filled += lines.len();
    }

    /// Lets `add` append.
    pub fn append(&mut self, add: impl FnOnce(&mut Vec<u8>)) {
        self.bytes.truncate(self.filled);
        add(&mut self.bytes);
        self.filled = self.bytes.len();
    }

    /// Room for `length` bytes and some more.
    fn room(&mut self, length: usize) -> &mut [u8] {
        let end = self.filled + length + SLACK;
        if self.bytes.len() < end {
            enlarge(&mut self.bytes, end);
        }
        &mut self.bytes[self.filled..]
    }
}

/// Makes `bytes` so long. Memory grows by less than a vector's own doubling, which for what is large and grows little would be
/// half in vain.
pub fn enlarge(bytes: &mut Vec<u8>, length: usize) {
    if length > bytes.capacity() {
        bytes.reserve_exact(length + length / 8 - bytes.len());
    }
    bytes.resize(length, 0);
}

/// A stream: its current record, and the one behind it.
///
/// The order of the fields keeps those apart that are copied together: as neighbours they would be copied by one load that has to
/// wait for two stores.
#[repr(C)]
struct StreamHead<'a, K> {
    line: &'a [u8; VIEW],
    next_key: K,
    length: usize,
    next_line: &'a [u8; VIEW],
    /// How many bytes of `rest` are the stream's.
    left: usize,
    next_length: usize,
    /// What is not decoded, and bytes behind it.
    rest: &'a [u8],
}

/// Merges `streams`, parts of `bytes` which are records of `times` in order; at equal times the earlier stream comes
/// first. Returns how many lines were none, which can only be if a file changed.
pub fn merge(
    bytes: &[u8],
    streams: &[Range<usize>],
    times: Range<u64>,
    stamps: &StampTable,
    out: &mut LineBuffer,
) -> u64 {
    let bits = usize::BITS - streams.len().leading_zeros();
    let span = times.end.saturating_sub(times.start);
    let job = MergeJob { bytes, start: times.start, span, stamps, bits };
    match (u64::BITS - span.leading_zeros() <= u64::room(bits), Avx2Scanner::detect()) {
        // SAFETY: a `Wide` is only made on a processor with AVX2.
        (true, Some(eyes)) => unsafe { merge_wide(job, streams, eyes, out) },
        (true, None) => job.merge::<u64, _>(streams, PortableScanner, out),
        // Years in one slice: there cannot be many.
        (false, _) => job.merge::<u128, _>(streams, PortableScanner, out),
    }
}

/// A copy for processors that have the [`Avx2Scanner`] eyes.
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
fn merge_wide(job: MergeJob, streams: &[Range<usize>], eyes: Avx2Scanner, out: &mut LineBuffer) -> u64 {
    job.merge::<u64, _>(streams, eyes, out)
}

/// What stays the same for all records; small, so that it stays in registers.
#[derive(Clone, Copy)]
struct MergeJob<'a> {
    bytes: &'a [u8],
    start: u64,
    span: u64,
    stamps: &'a StampTable,
    /// Bits of a stream's number.
    bits: u32,
}

/// Ten digits of seconds, and the nanoseconds that they stand for: most records have those of the one before.
#[derive(Clone, Copy)]
struct Seconds([u8; 10], u64);

impl<'a> MergeJob<'a> {
    #[inline(always)]
    fn merge<K: MergeKey, E: LineScanner>(self, streams: &[Range<usize>], eyes: E, out: &mut LineBuffer) -> u64 {
        let (mut seconds, mut broken) = (Seconds([0; 10], 0), 0);
        let mut heads = Vec::with_capacity(streams.len());
        let mut keys = Vec::with_capacity(streams.len());
        for (number, stream) in streams.iter().enumerate() {
            let (line, rest) = (&[0; VIEW], &self.bytes[stream.start..]);
            let next_key = K::begin(number as u32);
            let mut head =
                StreamHead { line, next_key, length: 0, next_line: line, left: stream.len(), next_length: 0, rest };
            broken += self.turn(&mut head, &mut seconds, eyes);
            keys.push(head.next_key);
            broken += self.turn(&mut head, &mut seconds, eyes);
            heads.push(head);
        }
        let mut tree = LoserTree::new(&keys);
        let total = streams.iter().map(|stream| stream.len()).sum();
        let room = out.room(total);
        let mut filled = 0;
        let mut winner = tree.winner;
        while winner != K::END {
            let number = winner.stream(self.bits);
            let head = &mut heads[number];
            let (line, length) = (head.line, head.length);
            let place: &mut [u8; VIEW] = room[filled..].first_chunk_mut().expect("room for all streams");
            // Fixed lengths are copied without a call.
            place[..USUAL].copy_from_slice(&line[..USUAL]);
            if length > USUAL {
                place[USUAL..2 * USUAL].copy_from_slice(&line[USUAL..2 * USUAL]);
            }
            filled += length;
            let key = head.next_key;
            broken += self.turn(head, &mut seconds, eyes);
            winner = tree.replace(number, key);
        }
        out.filled += filled;
        broken
    }

    /// Goes to the next record, and decodes the one behind it. Returns how many lines were none.
    #[inline(always)]
    fn turn<K: MergeKey, E: LineScanner>(self, head: &mut StreamHead<'a, K>, seconds: &mut Seconds, eyes: E) -> u64 {
        (head.line, head.length) = (head.next_line, head.next_length);
        let before = head.next_key;
        let mut broken = 0;
        while head.left > 0 {
            let line: &[u8; VIEW] = head.rest.first_chunk().expect("the slack");
            eyes.fetch(line);
            let length = eyes.length(line);
            let time = seconds.time(line.first_chunk().expect("more than a time")).wrapping_sub(self.start);
            if length != 0 && length <= head.left && time < self.span {
                let after = self.stamps.after(line.first_chunk().expect("more than a head"));
                let key = K::next(before, time, after, self.bits);
                (head.next_key, head.next_line, head.next_length) = (key, line, length);
                (head.rest, head.left) = (&head.rest[length..], head.left - length);
                return broken;
            }
            (head.rest, head.left) = behind_line(head.rest, head.left);
            broken += 1;
        }
        head.next_key = K::END;
        broken
    }
}

impl Seconds {
    #[inline(always)]
    fn time(&mut self, text: &[u8; TIME_WIDTH]) -> u64 {
        let seconds: [u8; 10] = *text.first_chunk().expect("more than seconds");
        if seconds != self.0 {
            let mut whole = *b"0000000000:000000000";
            whole[..10].copy_from_slice(&seconds);
            *self = Seconds(seconds, time_known(&whole));
        }
        let mut rest = *b"0000000000:000000000";
        rest[11..].copy_from_slice(&text[11..]);
        self.1.wrapping_add(time_known(&rest))
    }
}

/// What is behind a line, of whose `left` bytes some may be left. What is passed over was a record before.
#[cold]
#[inline(never)]
fn behind_line(rest: &[u8], left: usize) -> (&[u8], usize) {
    let length = memchr::memchr(b'\n', &rest[..left]).map_or(left, |newline| newline + 1);
    (&rest[length..], left - length)
}

/// A tree of losers: each inner node keeps the key that lost there.
struct LoserTree<K> {
    /// Node `n` has the children `2n` and `2n + 1`; stream `i` is leaf `losers.len() + i`.
    losers: Vec<K>,
    winner: K,
}

impl<K: MergeKey> LoserTree<K> {
    fn new(keys: &[K]) -> LoserTree<K> {
        let count = keys.len();
        let mut losers = vec![K::END; count];
        let mut winners = vec![K::END; count];
        winners.extend_from_slice(keys);
        for node in (1..count).rev() {
            let (left, right) = (winners[2 * node], winners[2 * node + 1]);
            (winners[node], losers[node]) = (left.min(right), left.max(right));
        }
        LoserTree { losers, winner: winners.get(1).copied().unwrap_or(K::END) }
    }

    /// Replaces the winner, which is of stream `number`, and finds the new one.
    #[inline(always)]
    fn replace(&mut self, number: usize, mut key: K) -> K {
        let mut node = (self.losers.len() + number) / 2;
        while node > 0 {
            let loser = &mut self.losers[node];
            (key, *loser) = (key.min(*loser), key.max(*loser));
            node /= 2;
        }
        key
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::seeded_random::SeededRandom;

    #[test]
    fn streams_come_out_sorted_whatever_their_number() {
        let mut random = SeededRandom::seeded("tree", 3);
        for count in 0..40u32 {
            let bits = 6;
            let mut streams: Vec<Vec<u64>> = (0..count).map(|_| Vec::new()).collect();
            let mut time = 0;
            for _ in 0..count as usize * random.below(9) {
                time += random.below(3) as u64;
                let number = random.below(count as usize);
                streams[number].push(u64::next(number as u64, time, 0, bits));
            }
            let mut expected: Vec<u64> = streams.concat();
            expected.sort_unstable();
            let mut streams: Vec<_> = streams.into_iter().map(Vec::into_iter).collect();
            let first: Vec<u64> = streams.iter_mut().map(|stream| stream.next().unwrap_or(u64::END)).collect();
            let mut tree = LoserTree::new(&first);
            let (mut found, mut winner) = (Vec::new(), tree.winner);
            while winner != u64::END {
                found.push(winner);
                let number = winner.stream(bits);
                winner = tree.replace(number, streams[number].next().unwrap_or(u64::END));
            }
            assert_eq!(found, expected, "{count} streams");
        }
    }
}
