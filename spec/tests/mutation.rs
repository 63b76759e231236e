//! Mutated input for every decoder of the format: whatever the bytes, they answer and never panic, and what they
//! accept holds together.
//!
//! `cargo test` makes a fixed number of turns. `THREADT_FUZZ_SECONDS` makes them last that long, and `THREADT_SEED`
//! repeats a run whose seed was printed.

use std::env;
use std::time::{Duration, Instant};

use spec::buffer::{self, Owner, PAGE, REGION_OFFSETS, REGIONS, SlotLayout};
use spec::names::FileName;
use spec::{Argument, EVENTS, EventSet, Record, info};

/// Turns of a run without `THREADT_FUZZ_SECONDS`.
const TURNS: u64 = 100_000;

/// The splitmix64 generator: small, and good enough to pick bytes.
struct Random(u64);

impl Random {
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

/// Pieces that mean something to one decoder or another.
const PIECES: [&[u8]; 24] = [
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
fn mutate(random: &mut Random, text: &mut Vec<u8>) {
    for _ in 0..=random.below(4) {
        let at = random.below(text.len() + 1);
        let end = (at + random.below(6)).min(text.len());
        match random.below(6) {
            0 if at < text.len() => text[at] ^= 1 << random.below(8),
            1 => text.truncate(at),
            2 => drop(text.splice(at..end, [])),
            3 => drop(text.splice(at..end, random.pick(&PIECES).iter().copied())),
            4 => drop(text.splice(at..at, text[at..end].to_vec())),
            _ => drop(text.splice(at..at, random.pick(&PIECES).iter().copied())),
        }
    }
}

/// The line that stands for a record, in the form that its decoder reads.
fn rendered(record: &Record) -> String {
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

fn record(random: &mut Random) {
    let starts: [&[u8]; 3] = [
        b"1795174740:544763329:0019955:0019953:0x7fc5de3f86c0:02:02:1:0x559469ed90a0:0:0:0:0",
        b"0000000000:000000000:0000001:0000001:0x000000000000:12:99:2:-1:18446744073709551615:0xffffffffffffffff:0:7",
        b"9999999999:999999999:4194304:4194304:0xffffffffffffffff:01:01:2:11:0x7fc5de3f86c0:-9223372036854775808:0:0",
    ];
    let mut line = random.pick(&starts).to_vec();
    mutate(random, &mut line);
    if let Ok(record) = Record::parse(&line) {
        assert!(record.which <= 2 && record.time < 10_000_000_000 * 1_000_000_000);
        assert_eq!(Record::parse(rendered(&record).as_bytes()), Ok(record), "{}", String::from_utf8_lossy(&line));
        if let Some(event) = record.event() {
            assert_eq!((event.category, event.number), (record.event1, record.event2));
        }
    }
}

/// A word whose halves are around the bounds that matter.
fn range_word(random: &mut Random, layout: SlotLayout) -> u64 {
    let mut half = || match random.below(5) {
        0 => 0,
        1 => random.below(200) as u64,
        2 => (layout.region_size(random.below(REGIONS)) + random.below(3)).saturating_sub(1) as u64,
        3 => random.below(layout.region_size(0)) as u64,
        _ => random.next() & 0xffff_ffff,
    };
    let (start, end) = (half(), half());
    if random.below(4) == 0 { end.min(start) | end.max(start) << 32 } else { start | end << 32 }
}

fn slot(random: &mut Random, slot: &mut [u8]) {
    let layout = if random.below(2) == 0 { SlotLayout::BUFFERS } else { SlotLayout::ring(64 * 1024).unwrap() };
    let words = (PAGE - buffer::SLOT_PATH_MAX) / 8;
    let mut changed = Vec::new();
    for _ in 0..=random.below(12) {
        let at = 8 * random.below(words);
        slot[at..at + 8].copy_from_slice(&range_word(random, layout).to_le_bytes());
        changed.push(at);
    }
    let length = if random.below(3) == 0 { random.below(slot.len() + 1) } else { slot.len() };
    let cut = &slot[..length];
    let _ = buffer::slot_lwp(cut);
    assert!(buffer::region_leftover(cut, layout, REGIONS).is_err());
    for (region, &at) in REGION_OFFSETS.iter().enumerate() {
        let Ok(leftover) = buffer::region_leftover(cut, layout, region) else { continue };
        let text = at..at + layout.region_size(region);
        let write_intent = leftover.write_intent.iter().map(|(_, range)| range);
        let ranges: Vec<_> = write_intent
            .chain([&leftover.older, &leftover.unwritten])
            .filter(|range| range.start != range.end)
            .collect();
        for (at, range) in ranges.iter().enumerate() {
            assert!(text.start <= range.start && range.start < range.end && range.end <= text.end, "{leftover:?}");
            let apart = |other: &&std::ops::Range<usize>| other.start >= range.end || other.end <= range.start;
            assert!(ranges[at + 1..].iter().all(apart), "twice: {leftover:?}");
        }
    }
    for at in changed {
        slot[at..at + 8].fill(0);
    }
}

fn header(random: &mut Random) {
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

fn information(random: &mut Random) {
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

fn list(random: &mut Random) {
    let starts: [&[u8]; 4] = [b"mutex:cond_wait:-mutex_unlock", b"-thr_self", b"_spin_lock:_barrier:process", b""];
    let mut text = random.pick(&starts).to_vec();
    mutate(random, &mut text);
    let mut unknown = 0;
    let set = EventSet::parse(&text, &mut |name| {
        assert!(!name.is_empty() && !name.contains(&b':'));
        unknown += 1;
    });
    assert!(unknown <= text.split(|&byte| byte == b':').count());
    for event in &EVENTS {
        let known = set.contains_numbers(event.category, event.number);
        assert!(known || event.category != 0, "category 0 is always on");
    }
    // Taking everything away leaves nothing, whatever came before.
    let mut all = text.clone();
    for category in &spec::tables::CATEGORIES[1..] {
        all.extend_from_slice(b":-");
        all.extend_from_slice(category.as_bytes());
    }
    let starts_from_all = text.first() == Some(&b'-');
    let rest = EventSet::parse(&all, &mut |_| ());
    assert!(starts_from_all || rest.is_none(), "{}", String::from_utf8_lossy(&text));
}

fn name(random: &mut Random) {
    let starts: [&[u8]; 4] = [b"tr.0001234.bcd", b"trbuf.fffffff", b"trinfo.0000007", b"trclock"];
    let mut text = random.pick(&starts).to_vec();
    mutate(random, &mut text);
    if let Some(name) = FileName::parse(&text) {
        let (bytes, length) = name.text();
        assert_eq!(&bytes[..length], text, "a name has one spelling");
    }
}

#[test]
fn decoders_answer_whatever_the_bytes() {
    let number = |key| env::var(key).ok().map(|value| value.parse::<u64>().expect(key));
    let seed = number("THREADT_SEED").unwrap_or(0x5eed);
    let limit = number("THREADT_FUZZ_SECONDS").map(Duration::from_secs);
    println!("THREADT_SEED={seed}");
    let mut random = Random(seed);
    let mut page = vec![0; PAGE];
    let start = Instant::now();
    let mut turns = 0;
    while limit.map_or(turns < TURNS, |limit| start.elapsed() < limit) {
        record(&mut random);
        slot(&mut random, &mut page);
        header(&mut random);
        information(&mut random);
        list(&mut random);
        name(&mut random);
        turns += 1;
    }
    println!("{turns} turns");
}
