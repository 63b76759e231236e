//! Plain records, which nearly all are, recognised many bytes at a time.
//!
//! `spec::Record::parse` accepts every plain record. Rare ones (wide thread IDs, negative numbers, many long arguments) are
//! not plain and are left to it. Processors without AVX2 use [`validation`](super::validation) instead.
//!
//! # Safety
//! Functions with `target_feature` are called only with an [`Avx2Scanner`], which exists only on a processor with AVX2.

use std::arch::x86_64::*;

use memchr::memchr;
use spec::record::{A1_OFFSET, FIXED_PART, RECORD_LEN_MAX, RECORD_LEN_MIN, TID_OFFSET, TIME_WIDTH};

use super::columns;
use super::validation::{ArgumentBits, FieldOffsets};

/// Bytes that must exist from a line's beginning on, so that the line can be compared.
pub const MARGIN: usize = 96;
/// Bytes that must exist from a record's beginning on, so that its length can be found.
pub const VIEW: usize = 256;
/// Bytes that are compared together.
pub(super) const WINDOW: usize = 32;
/// Bytes from the fixed part of a record to where the CPU fetches one from memory: far enough for a cache miss, near enough
/// that the line stays in the cache.
const FETCH: usize = 512;
/// The most bytes of arguments of which four can have one digit each and none has more than 16 hex or 18 decimal digits.
const ARGUMENTS_MAX: u32 = 4 * 2 + 18;

const _: () = assert!(A1_OFFSET + WINDOW <= MARGIN && RECORD_LEN_MAX + WINDOW <= VIEW);
const _: () = assert!(A1_OFFSET <= 2 * WINDOW && TID_OFFSET >= WINDOW);

/// The bytes of a printed time, comparable: a time sorts as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PrintedTime(u64, u64, u32);

impl PrintedTime {
    /// The least one.
    pub const FIRST: PrintedTime = PrintedTime(0, 0, 0);

    /// The time that a line begins with.
    pub fn new(line: &[u8; TIME_WIDTH]) -> PrintedTime {
        let [a, b] = [0, 8].map(|at| u64::from_be_bytes(std::array::from_fn(|byte| line[at + byte])));
        PrintedTime(a, b, u32::from_be_bytes([line[16], line[17], line[18], line[19]]))
    }

    /// In nanoseconds since the Epoch, if it is a time.
    pub fn time(self) -> Option<u64> {
        let mut text = [0; TIME_WIDTH];
        text[..8].copy_from_slice(&self.0.to_be_bytes());
        text[8..16].copy_from_slice(&self.1.to_be_bytes());
        text[16..].copy_from_slice(&self.2.to_be_bytes());
        columns::time(&text)
    }
}

/// Why a walk ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WalkEnd {
    /// It reached the bound.
    Bound,
    /// The next line is not plain, or may not be there completely.
    NotPlain,
    /// The next plain record's time is before that of the record before it.
    Descent,
}

/// What a walk passed: plain records one behind the other, whose times never descend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlainWalk {
    pub bytes: usize,
    pub records: u64,
    /// The time of the last one, or that before the walk if there is none.
    pub last: PrintedTime,
    /// Why the walk ended.
    pub stop: WalkEnd,
}

/// A way to compare the bytes of lines.
pub trait LineScanner: Copy {
    /// The length, with its newline, of the plain record that `bytes` begin with; 0 if there is none, or its end is not
    /// among `bytes`.
    fn plain_length(self, bytes: &[u8; MARGIN]) -> usize;

    /// The length, with its newline, of the record that `line` begins with, which is known to be one; 0 if there is no
    /// newline where a record's may be.
    fn record_length(self, line: &[u8; VIEW]) -> usize;

    /// Fetches into the cache what is read soon after `bytes`.
    fn fetch(self, bytes: &[u8]);
}

/// Compares lines on any x86-64.
#[derive(Clone, Copy, Debug)]
pub struct PortableScanner;

/// Compares lines by AVX2, on processors that also have BMI1, BMI2 and POPCNT.
#[derive(Clone, Copy, Debug)]
pub struct Avx2Scanner(());

impl Avx2Scanner {
    /// `Some` if the processor has AVX2.
    pub fn detect() -> Option<Avx2Scanner> {
        let bits = is_x86_feature_detected!("bmi1") && is_x86_feature_detected!("bmi2");
        (bits && is_x86_feature_detected!("popcnt") && is_x86_feature_detected!("avx2")).then_some(Avx2Scanner(()))
    }
}

impl LineScanner for PortableScanner {
    fn plain_length(self, bytes: &[u8; MARGIN]) -> usize {
        let length = memchr(b'\n', &bytes[RECORD_LEN_MIN - 1..]).map_or(0, |newline| newline + RECORD_LEN_MIN);
        if length > 0 && FieldOffsets::of_usual(&bytes[..length - 1]).is_some() { length } else { 0 }
    }

    fn record_length(self, line: &[u8; VIEW]) -> usize {
        memchr(b'\n', &line[RECORD_LEN_MIN - 1..RECORD_LEN_MAX]).map_or(0, |newline| newline + RECORD_LEN_MIN)
    }

    fn fetch(self, _bytes: &[u8]) {}
}

impl LineScanner for Avx2Scanner {
    #[inline(always)]
    fn plain_length(self, bytes: &[u8; MARGIN]) -> usize {
        // SAFETY: an `Avx2Scanner` exists only on a processor with AVX2.
        unsafe { plain_length(bytes) }
    }

    #[inline(always)]
    fn record_length(self, line: &[u8; VIEW]) -> usize {
        // SAFETY: as above.
        unsafe { record_length(line) }
    }

    #[inline(always)]
    fn fetch(self, bytes: &[u8]) {
        // SAFETY: a prefetch reads nothing and never faults, whatever the address; every x86-64 has it.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(bytes.as_ptr().wrapping_add(FETCH).cast()) }
    }
}

#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn load(bytes: &[u8], at: usize) -> __m256i {
    let block: &[u8; WINDOW] = bytes[at..].first_chunk().expect("a complete block");
    // SAFETY: the block has 32 bytes, and this load needs no alignment.
    unsafe { _mm256_loadu_si256(block.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn equal(block: __m256i, byte: u8) -> u32 {
    _mm256_movemask_epi8(_mm256_cmpeq_epi8(block, _mm256_set1_epi8(byte as i8))) as u32
}

/// Which bytes of `block` are `low` to `low + span`.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn between(block: __m256i, low: u8, span: u8) -> u32 {
    let above = _mm256_sub_epi8(block, _mm256_set1_epi8(low as i8));
    _mm256_movemask_epi8(_mm256_cmpeq_epi8(_mm256_min_epu8(above, _mm256_set1_epi8(span as i8)), above)) as u32
}

/// By how much each byte misses a range.
#[inline]
#[target_feature(enable = "avx2")]
fn beyond(block: __m256i, low: &[u8; 64], span: &[u8; 64], at: usize) -> __m256i {
    _mm256_subs_epu8(_mm256_sub_epi8(block, load(low, at)), load(span, at))
}

/// Whether every byte before a1 is one that a record can have there, if its thread ID has the usual width.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn fixed_part_is_valid(line: &[u8]) -> bool {
    let (first, second) = (load(line, 0), load(line, WINDOW));
    // Letters of hex numbers are a second range, and all of them are in the second block.
    let invalid = _mm256_or_si256(
        beyond(first, &FIXED_PART.low, &FIXED_PART.span, 0),
        _mm256_min_epu8(
            beyond(second, &FIXED_PART.low, &FIXED_PART.span, WINDOW),
            beyond(second, &FIXED_PART.low2, &FIXED_PART.span2, WINDOW),
        ),
    );
    _mm256_testz_si256(invalid, invalid) == 1
}

#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
fn plain_length(line: &[u8; MARGIN]) -> usize {
    let arguments = load(line, A1_OFFSET);
    let newlines = equal(arguments, b'\n');
    // All bits below the first newline. Without one, all bits; but then the line is not accepted.
    let within = (newlines ^ newlines.wrapping_sub(1)) >> 1;
    let bits = ArgumentBits {
        colons: u64::from(equal(arguments, b':') & within),
        decimals: u64::from(between(arguments, b'0', 9) & within),
        zeros: u64::from(equal(arguments, b'0')),
        letters: u64::from(between(arguments, b'a', 5) & within),
        crosses: u64::from(equal(arguments, b'x') & within),
        minuses: 0,
    };
    let width = newlines.trailing_zeros();
    let is_plain = fixed_part_is_valid(line) && bits.are_valid(within.into()) && width <= ARGUMENTS_MAX;
    if is_plain { A1_OFFSET + width as usize + 1 } else { 0 }
}

#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
fn record_length(line: &[u8; VIEW]) -> usize {
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

/// Walks over the plain records of `bytes` that begin before `bound`. `last` is the time of the record before them.
pub fn walk(bytes: &[u8], bound: usize, last: PrintedTime) -> PlainWalk {
    match Avx2Scanner::detect() {
        // SAFETY: an `Avx2Scanner` exists only on a processor with AVX2.
        Some(scanner) => unsafe { walk_avx2(scanner, bytes, bound, last) },
        None => walk_with(PortableScanner, bytes, bound, last),
    }
}

#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
fn walk_avx2(scanner: Avx2Scanner, bytes: &[u8], bound: usize, last: PrintedTime) -> PlainWalk {
    walk_with(scanner, bytes, bound, last)
}

#[inline(always)]
fn walk_with(scanner: impl LineScanner, bytes: &[u8], bound: usize, mut last: PrintedTime) -> PlainWalk {
    let (mut unread, mut records) = (bytes, 0);
    // How many bytes are behind the bound; negative if `bytes` end before it.
    let behind = bytes.len() as isize - bound as isize;
    let at_bound = |unread: &[u8]| unread.len() as isize <= behind;
    let stop = loop {
        let Some(line) = unread.first_chunk::<MARGIN>() else {
            break if at_bound(unread) { WalkEnd::Bound } else { WalkEnd::NotPlain };
        };
        if at_bound(unread) {
            break WalkEnd::Bound;
        }
        scanner.fetch(line);
        let length = scanner.plain_length(line);
        if length == 0 {
            break WalkEnd::NotPlain;
        }
        let time = PrintedTime::new(line.first_chunk().expect("more than a time"));
        // Nearly always the first digits are the same, and the next ones ascend.
        if (time.0 != last.0 || time.1 <= last.1) && time < last {
            break WalkEnd::Descent;
        }
        (last, unread, records) = (time, &unread[length..], records + 1);
    };
    PlainWalk { bytes: bytes.len() - unread.len(), records, last, stop }
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

    /// Walks with both scanners.
    fn walk_twice(bytes: &[u8], bound: usize) -> PlainWalk {
        let portable = walk_with(PortableScanner, bytes, bound, PrintedTime::FIRST);
        let usual = walk(bytes, bound, PrintedTime::FIRST);
        // AVX2 leaves long arguments to the decoder.
        assert!(
            usual == portable || usual.bytes <= portable.bytes && usual.stop == WalkEnd::NotPlain,
            "{usual:?} {portable:?}"
        );
        usual
    }

    #[test]
    fn walks_cover_plain_records_and_end_at_others() {
        let walked = |lines: &[&str]| {
            let text = lines.concat() + &" ".repeat(MARGIN);
            let walk = walk_twice(text.as_bytes(), lines.concat().len());
            (walk.records, walk.stop)
        };
        assert_eq!(walked(&[LINES[0], LINES[1]]), (2, WalkEnd::Bound));
        assert_eq!(walked(&[LINES[0], LINES[1], LINES[0]]), (2, WalkEnd::Descent));
        assert_eq!(walked(&[LINES[0], LINES[2]]), (1, WalkEnd::NotPlain));
        assert_eq!(walked(&[LINES[0], LINES[3]]), (1, WalkEnd::NotPlain));
        assert_eq!(walked(&[LINES[5]]), (1, WalkEnd::Bound));
        assert_eq!(walked(&["\n"]), (0, WalkEnd::NotPlain));
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
    fn lengths_are_found_wherever_the_newline_is() {
        for length in RECORD_LEN_MIN..=RECORD_LEN_MAX {
            let mut bytes = vec![b'0'; length - 1];
            bytes.push(b'\n');
            bytes.resize(length + VIEW, b'0');
            let line = bytes.first_chunk().unwrap();
            assert_eq!(PortableScanner.record_length(line), length);
            if let Some(avx2) = Avx2Scanner::detect() {
                assert_eq!(avx2.record_length(line), length);
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
            let walk = walk_twice(&line, 1);
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
