//! Plain records, which nearly all are, recognised many bytes at a time.
//!
//! What this accepts, `spec::Record::parse` accepts; rare forms (wide thread IDs, negative numbers, many long arguments)
//! are left to it. Processors without AVX2 take the way through [`check`].
//!
//! # Safety
//! The functions with `target_feature` are called only where [`Avx2Scanner::see`] found that the processor has AVX2.

use std::arch::x86_64::*;

use memchr::memchr;
use spec::record::{RECORD_LEN_MAX, RECORD_LEN_MIN, TIME_WIDTH};

use super::columns;
use super::validation;
use super::validation::{COLUMNS, HEAD};

/// Bytes from a line's beginning that have to be there for it to be looked at.
pub const MARGIN: usize = 96;
/// Bytes from a record's beginning that have to be there for its length to be found.
pub const VIEW: usize = 256;
/// Bytes of arguments that are looked at.
const WINDOW: usize = 32;
/// Where a line is fetched from memory before it is looked at: far enough for a cache miss, near enough to stay.
const FETCH: usize = 512;

const _: () = assert!(HEAD + WINDOW <= MARGIN && RECORD_LEN_MAX + WINDOW <= VIEW);

/// A printed time as it stands, comparable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PrintedTime(u64, u64, u32);

impl PrintedTime {
    /// Comes before every other, or is the same.
    pub const FIRST: PrintedTime = PrintedTime(0, 0, 0);

    /// The first bytes of a line.
    pub fn new(line: &[u8; TIME_WIDTH]) -> PrintedTime {
        let [a, b] = [0, 8].map(|at| u64::from_be_bytes(std::array::from_fn(|byte| line[at + byte])));
        PrintedTime(a, b, u32::from_be_bytes([line[16], line[17], line[18], line[19]]))
    }

    /// In nanoseconds since the Epoch, if it is a time.
    pub fn time(self) -> Option<u64> {
        let mut line = [0; TIME_WIDTH];
        line[..8].copy_from_slice(&self.0.to_be_bytes());
        line[8..16].copy_from_slice(&self.1.to_be_bytes());
        line[16..].copy_from_slice(&self.2.to_be_bytes());
        columns::time(&line)
    }
}

/// Why a walk ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WalkEnd {
    /// At the bound.
    Bound,
    /// At a line that is not plain, or that may not be there whole.
    Odd,
    /// At a plain record whose time is before that of the one before it.
    Descent,
}

/// Plain records one behind the other, whose times never descend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlainWalk {
    /// How many bytes they have.
    pub bytes: usize,
    /// How many there are.
    pub records: u64,
    /// The time of the last one, if there is one.
    pub last: PrintedTime,
    /// Why it is not longer.
    pub stop: WalkEnd,
}

/// How lines are looked at.
pub trait LineScanner: Copy {
    /// The length, with its newline, of the plain record that `bytes` begin with; 0 if it is none, or cannot be told.
    fn plain(self, bytes: &[u8; MARGIN]) -> usize;

    /// The length, with its newline, of the record that `line` begins with, which is known to be one; 0 if there is no
    /// newline where a record's may be.
    fn length(self, line: &[u8; VIEW]) -> usize;

    /// Fetches what is read soon after `bytes`.
    fn fetch(self, bytes: &[u8]);
}

/// Any processor's.
#[derive(Clone, Copy, Debug)]
pub struct PortableScanner;

/// Those of a processor with AVX2, and the bit operations that came before it.
#[derive(Clone, Copy, Debug)]
pub struct Avx2Scanner(());

impl Avx2Scanner {
    /// `Some` if the processor has what it takes.
    pub fn see() -> Option<Avx2Scanner> {
        let bits = is_x86_feature_detected!("bmi1") && is_x86_feature_detected!("bmi2");
        (bits && is_x86_feature_detected!("popcnt") && is_x86_feature_detected!("avx2")).then_some(Avx2Scanner(()))
    }
}

impl LineScanner for PortableScanner {
    fn plain(self, bytes: &[u8; MARGIN]) -> usize {
        let length = memchr(b'\n', &bytes[RECORD_LEN_MIN - 1..]).map_or(0, |newline| newline + RECORD_LEN_MIN);
        if length > 0 && validation::is_plain(&bytes[..length - 1]) { length } else { 0 }
    }

    fn length(self, line: &[u8; VIEW]) -> usize {
        memchr(b'\n', &line[RECORD_LEN_MIN - 1..RECORD_LEN_MAX]).map_or(0, |newline| newline + RECORD_LEN_MIN)
    }

    fn fetch(self, _bytes: &[u8]) {}
}

impl LineScanner for Avx2Scanner {
    #[inline(always)]
    fn plain(self, bytes: &[u8; MARGIN]) -> usize {
        // SAFETY: a `Wide` is only made on a processor with AVX2.
        unsafe { plain(bytes) }
    }

    #[inline(always)]
    fn length(self, line: &[u8; VIEW]) -> usize {
        // SAFETY: as above.
        unsafe { length(line) }
    }

    #[inline(always)]
    fn fetch(self, bytes: &[u8]) {
        // SAFETY: a prefetch reads nothing and never faults, whatever the address; every x86-64 has it.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(bytes.as_ptr().wrapping_add(FETCH).cast()) }
    }
}

#[inline]
#[target_feature(enable = "avx2")]
fn load(bytes: &[u8], at: usize) -> __m256i {
    let block: &[u8; 32] = bytes[at..].first_chunk().expect("a whole block");
    // SAFETY: the block has 32 bytes, and this load asks for no alignment.
    unsafe { _mm256_loadu_si256(block.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx2")]
fn equal(block: __m256i, byte: u8) -> u32 {
    _mm256_movemask_epi8(_mm256_cmpeq_epi8(block, _mm256_set1_epi8(byte as i8))) as u32
}

/// Which bytes of `block` are `low` to `low + span`.
#[inline]
#[target_feature(enable = "avx2")]
fn between(block: __m256i, low: u8, span: u8) -> u32 {
    let above = _mm256_sub_epi8(block, _mm256_set1_epi8(low as i8));
    _mm256_movemask_epi8(_mm256_cmpeq_epi8(_mm256_min_epu8(above, _mm256_set1_epi8(span as i8)), above)) as u32
}

/// By how much each byte misses its first range.
#[inline]
#[target_feature(enable = "avx2")]
fn beyond(block: __m256i, low: &[u8; 64], span: &[u8; 64], at: usize) -> __m256i {
    _mm256_subs_epu8(_mm256_sub_epi8(block, load(low, at)), load(span, at))
}

#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
fn plain(line: &[u8; MARGIN]) -> usize {
    let (head, neck, arguments) = (load(line, 0), load(line, 32), load(line, HEAD));
    // Letters of hex numbers are a second range, and all of them are in the second half.
    let bad = _mm256_or_si256(
        beyond(head, &COLUMNS.low, &COLUMNS.span, 0),
        _mm256_min_epu8(beyond(neck, &COLUMNS.low, &COLUMNS.span, 32), beyond(neck, &COLUMNS.low2, &COLUMNS.span2, 32)),
    );
    let newlines = equal(arguments, b'\n');
    // All bits below the first newline. Without one, all bits; but then the line is not accepted.
    let within = (newlines ^ newlines.wrapping_sub(1)) >> 1;
    let colons = equal(arguments, b':') & within;
    let decimals = between(arguments, b'0', 9) & within;
    let letters = between(arguments, b'a', 5) & within;
    let crosses = equal(arguments, b'x') & within;
    let digits = decimals | letters;
    let starts = colons << 1 | 1;
    let bodies = crosses << 1;
    // Adding a body's first bit carries through its digits; numbers without a cross stay as they are.
    let hex = digits & !bodies.wrapping_add(digits);
    let wrong = ((digits | colons | crosses) ^ within)
        | (starts & !decimals)
        | (crosses & !((starts & equal(arguments, b'0')) << 1))
        | (bodies & !digits)
        | (letters & !hex);
    let width = newlines.trailing_zeros();
    // Up to 26 bytes, no argument has more than 16 hex or 18 decimal digits, for four others have two bytes each.
    let accepted = _mm256_testz_si256(bad, bad) == 1 && wrong == 0 && colons.count_ones() == 4 && width <= 26;
    if accepted { HEAD + width as usize + 1 } else { 0 }
}

#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
fn length(line: &[u8; VIEW]) -> usize {
    let mut from = RECORD_LEN_MIN - 1;
    while from < RECORD_LEN_MAX {
        let newlines = equal(load(line, from), b'\n');
        if newlines != 0 {
            return from + newlines.trailing_zeros() as usize + 1;
        }
        from += WINDOW;
    }
    0
}

/// Walks over the plain records of `bytes` that begin before `bound`, the first of which comes after one of the time `last`.
pub fn walk(bytes: &[u8], bound: usize, last: PrintedTime) -> PlainWalk {
    match Avx2Scanner::see() {
        // SAFETY: a `Wide` is only made on a processor with AVX2.
        Some(eyes) => unsafe { walk_wide(eyes, bytes, bound, last) },
        None => walk_with(PortableScanner, bytes, bound, last),
    }
}

#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
fn walk_wide(eyes: Avx2Scanner, bytes: &[u8], bound: usize, last: PrintedTime) -> PlainWalk {
    walk_with(eyes, bytes, bound, last)
}

#[inline(always)]
fn walk_with(eyes: impl LineScanner, bytes: &[u8], bound: usize, mut last: PrintedTime) -> PlainWalk {
    let (mut rest, mut records) = (bytes, 0);
    // How many bytes are behind the bound; less than none if it is further than what is there.
    let behind = bytes.len() as isize - bound as isize;
    let reached = |rest: &[u8]| rest.len() as isize <= behind;
    let stop = loop {
        let Some(line) = rest.first_chunk::<MARGIN>() else {
            break if reached(rest) { WalkEnd::Bound } else { WalkEnd::Odd };
        };
        if reached(rest) {
            break WalkEnd::Bound;
        }
        eyes.fetch(line);
        let length = eyes.plain(line);
        if length == 0 {
            break WalkEnd::Odd;
        }
        let time = PrintedTime::new(line.first_chunk().expect("more than a time"));
        // Nearly always the first digits are the same, and the next ones ascend.
        if (time.0 != last.0 || time.1 <= last.1) && time < last {
            break WalkEnd::Descent;
        }
        (last, rest, records) = (time, &rest[length..], records + 1);
    };
    PlainWalk { bytes: bytes.len() - rest.len(), records, last, stop }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::seeded_random::{SeededRandom, fuzz_time};
    use std::time::Instant;

    const LINES: [&str; 6] = [
        "1795174740:544763329:0019955:0019953:0x7fc5de3f86c0:02:02:1:0x559469ed90a0:0:0:0:0\n",
        "1795174740:544763330:0019955:0019953:0x7fc5de3f86c0:12:99:2:0x5:1234567890:16:0:0xffff\n",
        "1795174740:544763330:0019955:0019953:0x7fc5de3f86c0:07:02:2:-1:18446744073709551615:0:0:0\n",
        "1795174741:000000000:0019955:0019953:0xff7fc5de3f86c0:01:04:0:0:0:0:0:0\n",
        "1795174741:000000001:0019955:0019953:0x7fc5de3f86c0:03:04:1:0x559469ed90a0:0x559469ed90a8:0:0:0\n",
        "1795174741:000000001:0019955:0019953:0x7fc5de3f86c0:03:04:1:999999999999999999:0:0:0:0\n",
    ];

    fn everyone(bytes: &[u8], bound: usize) -> PlainWalk {
        let common = walk_with(PortableScanner, bytes, bound, PrintedTime::FIRST);
        let found = walk(bytes, bound, PrintedTime::FIRST);
        // The wide eyes leave long arguments to the decoder.
        assert!(found == common || found.bytes <= common.bytes && found.stop == WalkEnd::Odd, "{found:?} {common:?}");
        found
    }

    #[test]
    fn plain_records_are_walked_over_and_others_are_not() {
        let walked = |lines: &[&str]| {
            let text = lines.concat() + &" ".repeat(MARGIN);
            let walk = everyone(text.as_bytes(), lines.concat().len());
            (walk.records, walk.stop)
        };
        assert_eq!(walked(&[LINES[0], LINES[1]]), (2, WalkEnd::Bound));
        assert_eq!(walked(&[LINES[0], LINES[1], LINES[0]]), (2, WalkEnd::Descent));
        assert_eq!(walked(&[LINES[0], LINES[2]]), (1, WalkEnd::Odd));
        assert_eq!(walked(&[LINES[0], LINES[3]]), (1, WalkEnd::Odd));
        assert_eq!(walked(&[LINES[5]]), (1, WalkEnd::Bound));
        assert_eq!(walked(&["\n"]), (0, WalkEnd::Odd));
    }

    #[test]
    fn times_compare_as_they_print() {
        let times = ["0000000000:000000000", "0000000000:000000001", "0000000001:000000000", "9999999999:999999999"];
        let printed = times.map(|time| PrintedTime::new(time.as_bytes().first_chunk().unwrap()));
        assert!(printed.is_sorted() && printed[0] > PrintedTime::FIRST);
        assert_eq!(printed[2].time(), Some(1_000_000_000));
        assert_eq!(PrintedTime::FIRST.time(), None);
    }

    #[test]
    fn lengths_are_found_wherever_the_newline_may_be() {
        for length in RECORD_LEN_MIN..=RECORD_LEN_MAX {
            let mut bytes = vec![b'0'; length - 1];
            bytes.push(b'\n');
            bytes.resize(length + VIEW, b'0');
            let line = bytes.first_chunk().unwrap();
            assert_eq!(PortableScanner.length(line), length);
            if let Some(eyes) = Avx2Scanner::see() {
                assert_eq!(eyes.length(line), length);
            }
        }
    }

    #[test]
    fn mutated_lines_are_accepted_only_if_the_decoder_accepts_them() {
        let mut random = SeededRandom::seeded("plain", 7);
        let until = fuzz_time();
        let (mut rounds, mut accepted, mut refused) = (0, 0, 0);
        while rounds < 200_000 || until.is_some_and(|end| Instant::now() < end) {
            rounds += 1;
            let mut line = LINES[random.below(LINES.len())].as_bytes().to_vec();
            for _ in 0..random.below(4) {
                random.mutate(&mut line, b"0123456789abcdefx:-\r\0A\n");
            }
            let end = memchr(b'\n', &line).map_or(0, |newline| newline + 1);
            line.resize(line.len() + MARGIN, b'0');
            let walk = everyone(&line, 1);
            if walk.records == 1 {
                accepted += 1;
                assert_eq!(walk.bytes, end);
                assert!(spec::Record::parse(&line[..end - 1]).is_ok(), "{}", line.escape_ascii());
            } else {
                refused += 1;
            }
        }
        assert!(accepted > 1000 && refused > 1000, "{accepted} {refused}");
    }
}
