//! Mutated input for every decoder of the format: no decoder panics, and what a decoder accepts is consistent.
//!
//! `cargo test` runs a fixed number of rounds. `THREADT_FUZZ_SECONDS` runs rounds for that long, and `THREADT_SEED`
//! repeats a run whose seed was printed.

use std::env;
use std::time::{Duration, Instant};

use spec::buffer::{self, Owner, PAGE, REGION_OFFSETS, REGIONS, SlotLayout};
use spec::names::FileName;
use spec::{Argument, EVENTS, EventSet, Record, info};

/// Rounds of a run without `THREADT_FUZZ_SECONDS`. Miri is slow, and runs fewer.
const ROUNDS: u64 = if cfg!(miri) { 20 } else { 100_000 };

/// A seeded random generator, splitmix64: small, and good enough to pick bytes.
struct SeededRandom(u64);

impl SeededRandom {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ word >> 31
    }

    /// A number below `limit`, which is not 0.
    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    fn pick<'a>(&mut self, choices: &[&'a [u8]]) -> &'a [u8] {
        choices[self.below(choices.len())]
    }
}

/// Texts that have a meaning for one decoder or another.
const TOKENS: [&[u8]; 24] = [
    b":",
    b"0x",
    b"-",
    b"0",
    b"9",
    b"00",
    b"999999999",
    b"18446744073709551615",
    b"18446744073709551616",
    b"-9223372036854775808",
    b"0xffffffffffffffff",
    b"f",
    b"G",
    b"\n",
    b"\r",
    b" ",
    b"\\x",
    b"\\x0",
    b"tr.",
    b"_",
    b"mutex",
    b"cond_wait",
    b"\0",
    b"\xff",
];

/// Changes `text` in one to four places.
fn mutate(random: &mut SeededRandom, text: &mut Vec<u8>) {
    for _ in 0..=random.below(4) {
        let at = random.below(text.len() + 1);
        let end = (at + random.below(6)).min(text.len());
        match random.below(6) {
            0 if at < text.len() => text[at] ^= 1 << random.below(8),
            1 => text.truncate(at),
            2 => drop(text.splice(at..end, [])),
            3 => drop(text.splice(at..end, random.pick(&TOKENS).iter().copied())),
            4 => drop(text.splice(at..at, text[at..end].to_vec())),
            _ => drop(text.splice(at..at, random.pick(&TOKENS).iter().copied())),
        }
    }
}

/// The line of a decoded record.
fn encoded(record: &Record) -> String {
    let Record { time, lwpid, pid, tid, event1, event2, which, arguments } = record;
    let (seconds, nanoseconds) = (time / 1_000_000_000, time % 1_000_000_000);
    let mut line =
        format!("{seconds:010}:{nanoseconds:09}:{lwpid:07}:{pid:07}:{tid:#014x}:{event1:02}:{event2:02}:{which}");
    for argument in arguments {
        line += &match argument {
            Argument::Decimal(number) => format!(":{number}"),
            Argument::Negative(number) => format!(":{number}"),
            Argument::Hex(bits) => format!(":{bits:#x}"),
        };
    }
    line
}

fn mutate_record(random: &mut SeededRandom) {
    let starts: [&[u8]; 3] = [
        b"1795174740:544763329:0019955:0019953:0x7fc5de3f86c0:02:02:1:0x559469ed90a0:0:0:0:0",
        b"0000000000:000000000:0000001:0000001:0x000000000000:12:99:2:-1:18446744073709551615:0xffffffffffffffff:0:7",
        b"9999999999:999999999:4194304:4194304:0xffffffffffffffff:01:01:2:11:0x7fc5de3f86c0:-9223372036854775808:0:0",
    ];
    let mut line = random.pick(&starts).to_vec();
    mutate(random, &mut line);
    if let Ok(record) = Record::parse(&line) {
        assert!(record.which <= 2 && record.time < 10_000_000_000 * 1_000_000_000);
        assert_eq!(Record::parse(encoded(&record).as_bytes()), Ok(record), "{}", String::from_utf8_lossy(&line));
        if let Some(event) = record.event() {
            assert_eq!((event.category, event.number), (record.event1, record.event2));
        }
    }
}

/// A word that holds a range whose bounds are near the bounds of regions.
fn range_word(random: &mut SeededRandom, layout: SlotLayout) -> u64 {
    let mut bound = || match random.below(5) {
        0 => 0,
        1 => random.below(200) as u64,
        2 => (layout.region_size(random.below(REGIONS)) + random.below(3)).saturating_sub(1) as u64,
        3 => random.below(layout.region_size(0)) as u64,
        _ => random.next() & 0xffff_ffff,
    };
    let (start, end) = (bound(), bound());
    if random.below(4) == 0 { end.min(start) | end.max(start) << 32 } else { start | end << 32 }
}

fn mutate_slot(random: &mut SeededRandom, page: &mut [u8]) {
    let layout = if random.below(2) == 0 { SlotLayout::BUFFERS } else { SlotLayout::ring(64 * 1024).unwrap() };
    let words = size_of::<buffer::SlotHeader>() / 8;
    let mut changed = Vec::new();
    for _ in 0..=random.below(12) {
        let word = 8 * random.below(words);
        page[word..word + 8].copy_from_slice(&range_word(random, layout).to_le_bytes());
        changed.push(word);
    }
    let length = if random.below(3) == 0 { random.below(page.len() + 1) } else { page.len() };
    let truncated = &page[..length];
    let _ = buffer::slot_lwp(truncated);
    assert!(buffer::region_leftover(truncated, layout, REGIONS).is_err());
    for (region, &offset) in REGION_OFFSETS.iter().enumerate() {
        let Ok(leftover) = buffer::region_leftover(truncated, layout, region) else { continue };
        let text = offset..offset + layout.region_size(region);
        let intended = leftover.write_intent.iter().map(|(_, range)| range);
        let ranges: Vec<_> =
            intended.chain([&leftover.older, &leftover.unwritten]).filter(|range| range.start != range.end).collect();
        for (index, range) in ranges.iter().enumerate() {
            assert!(text.start <= range.start && range.start < range.end && range.end <= text.end, "{leftover:?}");
            let is_apart = |other: &&std::ops::Range<usize>| other.start >= range.end || other.end <= range.start;
            assert!(ranges[index + 1..].iter().all(is_apart), "twice: {leftover:?}");
        }
    }
    for word in changed {
        page[word..word + 8].fill(0);
    }
}

fn mutate_header(random: &mut SeededRandom) {
    let mut page = buffer::MAGIC.to_vec();
    page.extend_from_slice(&buffer::VERSION.to_le_bytes());
    page.extend_from_slice(&7u32.to_le_bytes());
    page.resize(size_of::<buffer::Header>() - 8, b'a');
    page.extend_from_slice(&[0u64, 64 * 1024, 65 * 1024][random.below(3)].to_le_bytes());
    if random.below(2) == 0 {
        page.truncate(random.below(page.len() + 1));
        assert!(page.len() == size_of::<buffer::Header>() || Owner::parse(&page).is_err());
    }
    mutate(random, &mut page);
    if let Ok(owner) = Owner::parse(&page) {
        assert!(page.starts_with(&buffer::MAGIC) && page.len() >= 40);
        assert_eq!(owner.pid.to_le_bytes(), page[20..24]);
    }
}

fn mutate_info(random: &mut SeededRandom) {
    let mut text = b"format 1\npid 7\noffset -12\ncmdline sort /a\\x20b c\\\\x\nnote two words\nbare\n".to_vec();
    mutate(random, &mut text);
    for (key, value) in info::lines(&text) {
        assert!(!key.contains(&b' ') && !value.contains(&b'\n'));
        let plain: Vec<u8> = info::unescape(value).collect();
        assert!(plain.len() <= value.len());
        let escaped: Vec<u8> = plain.iter().flat_map(|&byte| info::escape(byte).as_bytes().to_vec()).collect();
        assert_eq!(info::unescape(&escaped).collect::<Vec<u8>>(), plain);
    }
    for key in ["pid", "offset", "none", ""] {
        if let Some(number) = info::number(&text, key) {
            let value = info::value(&text, key).unwrap();
            assert_eq!(std::str::from_utf8(value).unwrap().parse(), Ok(number));
        }
    }
}

fn mutate_event_list(random: &mut SeededRandom) {
    let starts: [&[u8]; 4] = [b"mutex:cond_wait:-mutex_unlock", b"-thr_self", b"_spin_lock:_barrier:process", b""];
    let mut text = random.pick(&starts).to_vec();
    mutate(random, &mut text);
    let mut unknown = 0;
    let set = EventSet::parse(&text, &mut |name| {
        assert!(!name.is_empty() && !name.iter().any(|byte| b":,".contains(byte)));
        unknown += 1;
    });
    assert!(unknown <= text.split(|&byte| b":,".contains(&byte)).count());
    for event in &EVENTS {
        let contained = set.contains_numbers(event.category, event.number);
        assert!(contained || event.category != 0, "category 0 is always on");
    }
    // A list that ends by taking every category away is the empty set.
    let mut emptied = text.clone();
    for category in &spec::tables::CATEGORIES[1..] {
        emptied.extend_from_slice(b":-");
        emptied.extend_from_slice(category.as_bytes());
    }
    let starts_from_all = text.first() == Some(&b'-');
    let set = EventSet::parse(&emptied, &mut |_| ());
    assert!(starts_from_all || set.is_none(), "{}", String::from_utf8_lossy(&text));
}

fn mutate_file_name(random: &mut SeededRandom) {
    let starts: [&[u8]; 4] = [b"tr.0001234.bcd", b"trbuf.fffffff", b"trinfo.0000007", b"trclock"];
    let mut text = random.pick(&starts).to_vec();
    mutate(random, &mut text);
    if let Some(name) = FileName::parse(&text) {
        let (bytes, length) = name.text();
        assert_eq!(&bytes[..length], text, "a name has one spelling");
    }
}

#[test]
fn no_decoder_panics() {
    let number = |key| env::var(key).ok().map(|value| value.parse::<u64>().expect(key));
    let seed = number("THREADT_SEED").unwrap_or(0x5eed);
    let limit = number("THREADT_FUZZ_SECONDS").map(Duration::from_secs);
    println!("THREADT_SEED={seed}");
    let mut random = SeededRandom(seed);
    let mut page = vec![0; PAGE];
    let start = Instant::now();
    let mut rounds = 0;
    while limit.map_or(rounds < ROUNDS, |limit| start.elapsed() < limit) {
        mutate_record(&mut random);
        mutate_slot(&mut random, &mut page);
        mutate_header(&mut random);
        mutate_info(&mut random);
        mutate_event_list(&mut random);
        mutate_file_name(&mut random);
        rounds += 1;
    }
    println!("{rounds} rounds");
}
