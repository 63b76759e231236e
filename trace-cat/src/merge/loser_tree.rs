//! Merges streams of records in memory: the loop that takes most of the time of a merge.
//!
//! A loser tree of keys selects the next stream without branches. The next record of each stream is decoded before it is
//! needed: decoding has a long latency, but does not depend on what the tree selects meanwhile.

use std::ops::Range;

use spec::record::{RECORD_LEN_MAX, TIME_WIDTH};

use super::sort_keys::{MergeKey, StampTable};
use crate::record::columns::time_known;
use crate::record::plain_records::{Avx2Scanner, LineScanner, PortableScanner, VIEW};

/// Bytes of any value that there must be after the last stream.
pub const SLACK: usize = VIEW;

/// Bytes that are copied at once. Nearly all records are shorter.
const COPY_LEN: usize = 96;

const _: () = assert!(RECORD_LEN_MAX <= 2 * COPY_LEN && 2 * COPY_LEN <= VIEW);

/// Lines, one behind the other. The buffer keeps its memory when it is cleared.
#[derive(Debug, Default)]
pub struct LineBuffer {
    bytes: Vec<u8>,
    filled: usize,
}

impl LineBuffer {
    pub fn filled(&self) -> &[u8] {
        &self.bytes[..self.filled]
    }

    /// Bytes of memory that the buffer takes.
    pub fn memory(&self) -> usize {
        self.bytes.capacity()
    }

    pub fn clear(&mut self) {
        self.filled = 0;
    }

    pub fn push(&mut self, lines: &[u8]) {
        self.reserve(lines.len())[..lines.len()].copy_from_slice(lines);
        self.filled += lines.len();
    }

    /// Lets `add` append lines to those in the vector.
    pub fn append(&mut self, add: impl FnOnce(&mut Vec<u8>)) {
        self.bytes.truncate(self.filled);
        add(&mut self.bytes);
        self.filled = self.bytes.len();
    }

    /// The bytes after the lines: at least `length`, and [`SLACK`].
    fn reserve(&mut self, length: usize) -> &mut [u8] {
        let end = self.filled + length + SLACK;
        if self.bytes.len() < end {
            enlarge(&mut self.bytes, end);
        }
        &mut self.bytes[self.filled..]
    }
}

/// Enlarges `bytes` to `length`. Its capacity grows by an eighth and not, as a vector does, by all of it: a large buffer that grows
/// a little would leave half of its memory unused.
pub fn enlarge(bytes: &mut Vec<u8>, length: usize) {
    if length > bytes.capacity() {
        bytes.reserve_exact(length + length / 8 - bytes.len());
    }
    bytes.resize(length, 0);
}

/// The current and the next record of a stream.
///
/// The order of the fields keeps apart those that are copied together. Neighbours would be copied by one load, which waits for
/// two stores.
#[repr(C)]
struct StreamHead<'a, K> {
    line: &'a [u8; VIEW],
    next_key: K,
    length: usize,
    next_line: &'a [u8; VIEW],
    /// How many bytes of `bytes` belong to the stream.
    remaining: usize,
    next_length: usize,
    /// The stream after `next_line`, and the bytes after the stream.
    bytes: &'a [u8],
}

/// Appends the records of `streams` to `out`, in order. The streams are ranges of `bytes`, each of which has sorted records of
/// `times`. Returns the number of lines that are no such records; there are such lines only if a file changed.
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
        // SAFETY: `detect` returns a scanner only on a processor with these features.
        (true, Some(scanner)) => unsafe { merge_avx2(job, streams, scanner, out) },
        (true, None) => job.merge::<u64, _>(streams, PortableScanner, out),
        // The slice lasts for years, so there are few of this kind.
        (false, _) => job.merge::<u128, _>(streams, PortableScanner, out),
    }
}

/// A copy of the loop for processors with AVX2.
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
fn merge_avx2(job: MergeJob, streams: &[Range<usize>], scanner: Avx2Scanner, out: &mut LineBuffer) -> u64 {
    job.merge::<u64, _>(streams, scanner, out)
}

/// What is the same for all records. It is small, so that it stays in registers.
#[derive(Clone, Copy)]
struct MergeJob<'a> {
    bytes: &'a [u8],
    start: u64,
    span: u64,
    stamps: &'a StampTable,
    /// Bits of the number of a stream.
    bits: u32,
}

/// The ten digits of the seconds and their value in nanoseconds, which most records share with the one before.
#[derive(Clone, Copy)]
struct Seconds([u8; 10], u64);

impl<'a> MergeJob<'a> {
    #[inline(always)]
    fn merge<K: MergeKey, E: LineScanner>(self, streams: &[Range<usize>], scanner: E, out: &mut LineBuffer) -> u64 {
        let (mut seconds, mut invalid_lines) = (Seconds([0; 10], 0), 0);
        let mut heads = Vec::with_capacity(streams.len());
        let mut keys = Vec::with_capacity(streams.len());
        for (number, stream) in streams.iter().enumerate() {
            let (line, bytes) = (&[0; VIEW], &self.bytes[stream.start..]);
            let next_key = K::begin(number as u32);
            let mut head = StreamHead {
                line,
                next_key,
                length: 0,
                next_line: line,
                remaining: stream.len(),
                next_length: 0,
                bytes,
            };
            invalid_lines += self.step(&mut head, &mut seconds, scanner);
            keys.push(head.next_key);
            invalid_lines += self.step(&mut head, &mut seconds, scanner);
            heads.push(head);
        }
        let mut tree = LoserTree::new(&keys);
        let total = streams.iter().map(|stream| stream.len()).sum();
        let room = out.reserve(total);
        let mut filled = 0;
        let mut winner = tree.winner;
        while winner != K::END {
            let number = winner.stream(self.bits);
            let head = &mut heads[number];
            let (line, length) = (head.line, head.length);
            let place: &mut [u8; VIEW] = room[filled..].first_chunk_mut().expect("room for all streams");
            // A copy of a fixed length needs no call.
            place[..COPY_LEN].copy_from_slice(&line[..COPY_LEN]);
            if length > COPY_LEN {
                place[COPY_LEN..2 * COPY_LEN].copy_from_slice(&line[COPY_LEN..2 * COPY_LEN]);
            }
            filled += length;
            let key = head.next_key;
            invalid_lines += self.step(head, &mut seconds, scanner);
            winner = tree.replace(number, key);
        }
        out.filled += filled;
        invalid_lines
    }

    /// Goes to the next record, and decodes the one after it. Returns the number of lines between them that are no records.
    #[inline(always)]
    fn step<K: MergeKey, E: LineScanner>(self, head: &mut StreamHead<'a, K>, seconds: &mut Seconds, scanner: E) -> u64 {
        (head.line, head.length) = (head.next_line, head.next_length);
        let before = head.next_key;
        let mut invalid_lines = 0;
        while head.remaining > 0 {
            let line: &[u8; VIEW] = head.bytes.first_chunk().expect("the slack");
            scanner.fetch(line);
            let length = scanner.record_length(line);
            let time = seconds.time(line.first_chunk().expect("more than a time")).wrapping_sub(self.start);
            if length != 0 && length <= head.remaining && time < self.span {
                let after = self.stamps.after(line.first_chunk().expect("more than a head"));
                let key = K::next(before, time, after, self.bits);
                (head.next_key, head.next_line, head.next_length) = (key, line, length);
                (head.bytes, head.remaining) = (&head.bytes[length..], head.remaining - length);
                return invalid_lines;
            }
            (head.bytes, head.remaining) = skip_line(head.bytes, head.remaining);
            invalid_lines += 1;
        }
        head.next_key = K::END;
        invalid_lines
    }
}

impl Seconds {
    #[inline(always)]
    fn time(&mut self, text: &[u8; TIME_WIDTH]) -> u64 {
        let seconds: [u8; 10] = *text.first_chunk().expect("more than seconds");
        if seconds != self.0 {
            let mut without_nanoseconds = *b"0000000000:000000000";
            without_nanoseconds[..10].copy_from_slice(&seconds);
            *self = Seconds(seconds, time_known(&without_nanoseconds));
        }
        let mut without_seconds = *b"0000000000:000000000";
        without_seconds[11..].copy_from_slice(&text[11..]);
        self.1.wrapping_add(time_known(&without_seconds))
    }
}

/// The bytes after the first line of a stream, and how many of them belong to the stream. The line was a record when the file
/// was scanned.
#[cold]
#[inline(never)]
fn skip_line(bytes: &[u8], remaining: usize) -> (&[u8], usize) {
    let length = memchr::memchr(b'\n', &bytes[..remaining]).map_or(remaining, |newline| newline + 1);
    (&bytes[length..], remaining - length)
}

/// A loser tree: each inner node has the greater key of the winners of its two subtrees.
struct LoserTree<K> {
    /// Node `n` has the children `2n` and `2n + 1`; stream `i` is leaf `losers.len() + i`.
    losers: Vec<K>,
    /// The least key.
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

    /// Replaces the winner, the key of stream `number`, by the next key of this stream. Returns the new winner.
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
    fn any_number_of_streams_is_merged_in_order() {
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
            let (mut merged, mut winner) = (Vec::new(), tree.winner);
            while winner != u64::END {
                merged.push(winner);
                let number = winner.stream(bits);
                winner = tree.replace(number, streams[number].next().unwrap_or(u64::END));
            }
            assert_eq!(merged, expected, "{count} streams");
        }
    }
}
