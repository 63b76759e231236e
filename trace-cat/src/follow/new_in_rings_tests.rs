//! A ring that is read while it is written, a step at a time.

use super::*;
use crate::testing::seeded_random::SeededRandom;
use std::ops::Range;

/// Bytes of the region, by how many it gives up its oldest records, and what is kept free behind the newest.
const SIZE: u32 = 4096;
const STEP: u32 = 512;
const NEEDED: u32 = 200;

/// A ring of numbered lines, which keeps the words as the recorder does.
struct RingFixture {
    look: RingSnapshot,
    text: Vec<u8>,
    next: usize,
}

impl RingFixture {
    fn new() -> RingFixture {
        let look = RingSnapshot { wrap_count: 0, start: 0, end: 0, wrap_position: 0, leaving: false };
        RingFixture { look, text: vec![b'?'; SIZE as usize], next: 0 }
    }

    fn append(&mut self, width: usize) {
        let RingSnapshot { wrap_count, start, end, wrap_position, .. } = &mut self.look;
        if *start <= *end && *end + NEEDED > SIZE {
            (*wrap_position, *start, *end, *wrap_count) = (*end, STEP, 0, *wrap_count + 1);
        } else if *start > *end && *end + NEEDED > *start {
            *start = (*end + NEEDED).next_multiple_of(STEP);
            if *start >= *wrap_position {
                *start = 0;
            }
        }
        let line = format!("{:0width$}\n", self.next);
        self.text[*end as usize..][..line.len()].copy_from_slice(line.as_bytes());
        *end += line.len() as u32;
        self.next += 1;
    }

    fn part(&self, part: &SurvivingText) -> Vec<u8> {
        let bytes = |range: &Range<u32>| &self.text[range.start as usize..range.end as usize];
        [bytes(&part.older), bytes(&part.newer)].concat()
    }
}

/// However it is read, a bit at a time or late, each line comes once; one that is missing is told of, and after the last look at all
/// that is new the newest line has come.
#[test]
fn each_line_of_a_ring_is_new_once() {
    let mut random = SeededRandom::seeded("ring", 4);
    let (mut overtaken, mut continued) = (0, 0);
    for _ in 0..300 {
        let (mut trial, mut place, mut expected) = (RingFixture::new(), None, 0);
        let burst = 1 + random.below(120);
        for _ in 0..60 {
            for _ in 0..random.below(burst) {
                trial.append(20 + random.below(70));
            }
            let most = if random.below(2) == 0 { u32::MAX } else { 100 + random.below(3000) as u32 };
            let new = NewRingText::since(trial.look, place);
            let part = oldest(&new.text, most);
            let text = trial.part(&part);
            let from = if part.cut { text.iter().position(|&byte| byte == b'\n').unwrap() + 1 } else { 0 };
            for line in text[from..].split_inclusive(|&byte| byte == b'\n').filter(|line| line.ends_with(b"\n")) {
                let number: usize = std::str::from_utf8(line).unwrap().trim_end().parse().unwrap();
                assert!(number == expected || number > expected && !new.continues, "{number}, {expected} is next");
                assert!(number == expected || new.missed || place.is_none(), "{expected} is missing, and not told of");
                expected = number + 1;
            }
            overtaken += u32::from(new.missed);
            continued += u32::from(new.continues);
            if !text.is_empty() {
                place = Some(place_behind(trial.look, &part, &text));
            } else {
                place = Some(RingPosition { wrap_count: trial.look.wrap_count, end: trial.look.end });
            }
            assert!(most != u32::MAX || expected == trial.next, "the newest are missing");
        }
    }
    assert!(overtaken > 500 && continued > 500, "{overtaken} {continued}");
}

#[test]
fn a_ring_that_was_written_out_is_new_from_its_beginning() {
    let look = RingSnapshot { wrap_count: 0, start: 0, end: 90, wrap_position: 0, leaving: false };
    let new = NewRingText::since(look, Some(RingPosition { wrap_count: 7, end: 80 }));
    assert_eq!((new.text.newer, new.missed, new.continues), (0..90, false, false));
}

#[test]
fn the_oldest_come_first() {
    let text = SurvivingText { older: 100..160, newer: 0..50, cut: true };
    assert_eq!(oldest(&text, 40), SurvivingText { older: 100..140, newer: 0..0, cut: true });
    assert_eq!(oldest(&text, 70), SurvivingText { older: 100..160, newer: 0..10, cut: true });
    assert_eq!(oldest(&text, 1000), text);
}
