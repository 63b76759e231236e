//! A ring that is copied while it is written, every step of both in any order.

use std::collections::VecDeque;

use spec::buffer::{PAGE, pack_range};

use super::*;
use crate::testing::seeded_random::SeededRandom;

/// The third region's ring: small, so that many laps are little work.
const REGION: usize = 2;

/// One step of the recorder that others can see.
enum RecorderStep {
    Text(usize, Vec<u8>),
    WrappedAt(u32),
    Laps(u32),
    Filled(Range<u32>),
}

/// A ring and the thread that fills it, by the recorder's rules.
struct ModelRecorder {
    shape: SlotLayout,
    text: Vec<u8>,
    page: [u8; PAGE],
    ahead: VecDeque<RecorderStep>,
    /// Where the recorder stands behind the steps that are ahead.
    start: u32,
    end: u32,
    wrap_position: u32,
    wrap_count: u32,
    serial: u64,
    /// It is beginning anew: `write_position` is stored, `wrap_count` not yet.
    between: bool,
    random: SeededRandom,
}

impl ModelRecorder {
    fn new(random: SeededRandom) -> ModelRecorder {
        let shape = SlotLayout::ring(64 * 1024).unwrap();
        let text = vec![0; shape.region_size(REGION)];
        let (ahead, page) = (VecDeque::new(), [0; PAGE]);
        ModelRecorder {
            shape,
            text,
            page,
            ahead,
            start: 0,
            end: 0,
            wrap_position: 0,
            wrap_count: 0,
            serial: 0,
            between: false,
            random,
        }
    }

    /// Plans the next record's steps.
    fn plan(&mut self) {
        let needed = 200;
        let (size, step) = (self.text.len() as u32, self.shape.ring_step(REGION) as u32);
        if self.start <= self.end && self.end + needed > size {
            self.wrap_position = self.end;
            self.wrap_count += 1;
            (self.start, self.end) = (step, 0);
            self.ahead.push_back(RecorderStep::WrappedAt(self.wrap_position));
            self.ahead.push_back(RecorderStep::Filled(self.start..self.end));
            self.ahead.push_back(RecorderStep::Laps(self.wrap_count));
        } else if self.start > self.end && self.end + needed > self.start {
            self.start = (self.end + needed).next_multiple_of(step);
            if self.start >= self.wrap_position {
                self.start = 0;
            }
            self.ahead.push_back(RecorderStep::Filled(self.start..self.end));
        }
        self.serial += 1;
        let line = format!("{:0width$}\n", self.serial, width = 10 + self.random.below(150)).into_bytes();
        // Its bytes come one part after the other.
        let half = line.len() / 2;
        self.ahead.push_back(RecorderStep::Text(self.end as usize, line[..half].to_vec()));
        self.ahead.push_back(RecorderStep::Text(self.end as usize + half, line[half..].to_vec()));
        self.end += line.len() as u32;
        self.ahead.push_back(RecorderStep::Filled(self.start..self.end));
    }

    fn steps(&mut self, count: usize) {
        for _ in 0..count {
            if self.ahead.is_empty() {
                self.plan();
            }
            let words = region_word_offsets(REGION);
            match self.ahead.pop_front() {
                Some(RecorderStep::Text(at, bytes)) => self.text[at..at + bytes.len()].copy_from_slice(&bytes),
                Some(RecorderStep::WrappedAt(at)) => {
                    self.page[words.wrap_position..][..4].copy_from_slice(&at.to_le_bytes())
                }
                Some(RecorderStep::Laps(wrap_count)) => {
                    self.page[words.wrap_count..][..4].copy_from_slice(&wrap_count.to_le_bytes())
                }
                Some(RecorderStep::Filled(filled)) => {
                    self.page[words.write_position..][..8].copy_from_slice(&pack_range(filled).to_le_bytes());
                }
                None => {}
            }
            self.between = matches!(self.ahead.front(), Some(RecorderStep::Laps(_)));
        }
    }

    /// Goes on until it is beginning anew, one time in three, and is held up there.
    fn hold(&mut self) {
        if self.random.below(3) == 0 {
            self.steps(1);
            while !self.between {
                self.steps(1);
            }
        }
    }

    /// The page as a reader sees it twice while the recorder goes on: each word at another moment, in any order.
    fn pages(&mut self, pace: usize) -> [[u8; PAGE]; 2] {
        let words = region_word_offsets(REGION);
        [(); 2].map(|()| {
            let mut seen = [0; PAGE];
            let mut places = [(words.write_position, 8), (words.wrap_position, 4), (words.wrap_count, 4)];
            places.rotate_left(self.random.below(3));
            places[1..].rotate_left(self.random.below(2));
            for (at, length) in places {
                seen[at..at + length].copy_from_slice(&self.page[at..at + length]);
                let some = self.random.below(pace + 1);
                self.steps(some);
            }
            seen
        })
    }
}

/// The serials of the records in what is good of a copy, or what is wrong with them.
fn serials(copy: &[u8], good: &SurvivingText) -> Result<Vec<u64>, String> {
    let part = |range: &Range<u32>| &copy[range.start as usize..range.end as usize];
    let text = [part(&good.older), part(&good.newer)].concat();
    let first = match good.cut {
        true => text.iter().position(|&byte| byte == b'\n').map_or(text.len(), |newline| newline + 1),
        false => 0,
    };
    let lines = String::from_utf8(text[first..].to_vec()).map_err(|error| error.to_string())?;
    if !lines.is_empty() && !lines.ends_with('\n') {
        return Err(format!("ends with {:?}", lines.lines().last()));
    }
    lines.lines().map(|line| line.parse().map_err(|_| format!("{line:?}"))).collect()
}

#[test]
fn what_survives_is_whole_records_without_a_gap() {
    let mut random = SeededRandom::seeded("survivors", 21);
    let (mut survived, mut next_laps, mut refused) = (0, 0, 0);
    for round in 0..20_000 {
        let mut writer = ModelRecorder::new(SeededRandom::seeded_by(random.next()));
        let before = random.below(600);
        writer.steps(before);
        writer.hold();
        let pace = [0, 1, 50][random.below(3)];
        let pages = writer.pages(pace);
        let Some(look) = RingSnapshot::before([&pages[0], &pages[1]], writer.shape, REGION) else { continue };
        let all = look.all();
        let copied = all.newest(all.len() >> random.below(3));
        let mut copy = vec![0; writer.text.len()];
        // The copying is as fast as the recording, or slower; and once it is held up itself.
        let (pace, held_up, held_up_for) = (random.below(6), random.below(4096), random.below(200));
        for part in [&copied.older, &copied.newer] {
            for at in (part.start..part.end).step_by(97) {
                let some = random.below(pace + 1) + if at as usize / 97 == held_up / 97 { held_up_for } else { 0 };
                writer.steps(some);
                let piece = at as usize..(at + 97).min(part.end) as usize;
                copy[piece.clone()].copy_from_slice(&writer.text[piece]);
            }
        }
        let pace = [0, 1, 50][random.below(3)];
        writer.hold();
        let pages = writer.pages(pace);
        let Some(after) = RingSnapshot::after([&pages[0], &pages[1]], writer.shape, REGION) else { continue };
        let Some(good) = look.surviving(&copied, after) else {
            refused += 1;
            continue;
        };
        let serials = serials(&copy, &good);
        let serials = serials.unwrap_or_else(|error| panic!("{error} in round {round}: {look:?} {after:?} {good:?}"));
        let gap = serials.windows(2).find(|pair| pair[0] + 1 != pair[1]);
        assert_eq!(gap, None, "round {round}: {look:?} {after:?} {good:?}");
        survived += serials.len();
        next_laps += usize::from(after.wrap_count != look.wrap_count);
    }
    println!("{survived} records survived, {next_laps} times beyond a lap, {refused} copies were refused");
    assert!(survived > 20_000 && next_laps > 100 && refused > 100);
}

#[test]
fn a_ring_at_rest_survives_as_it_is() {
    let look = |wrap_count, start, end| RingSnapshot { wrap_count, start, end, wrap_position: 4000, leaving: false };
    for now in [look(0, 0, 0), look(0, 0, 300), look(2, 0, 3900), look(2, 1024, 300)] {
        assert_eq!(now.surviving(&now.all(), now), Some(now.all()));
    }
    let leaving = RingSnapshot { leaving: true, ..look(0, 0, 300) };
    assert_eq!(look(0, 0, 300).surviving(&look(0, 0, 300).all(), leaving), None);
}

#[test]
fn a_copy_of_which_nothing_is_left_is_to_be_made_anew() {
    let look = |wrap_count, start, end| RingSnapshot { wrap_count, start, end, wrap_position: 4000, leaving: false };
    let before = look(2, 1024, 300);
    let copied = SurvivingText { older: 1024..2000, newer: 0..0, cut: true };
    assert_eq!(before.surviving(&copied, look(2, 2048, 1100)), None);
    assert_eq!(before.surviving(&copied, look(2, 1024, 301)), Some(copied));
}

#[test]
fn less_is_the_newest() {
    let all = SurvivingText { older: 100..200, newer: 0..50, cut: true };
    assert_eq!(all.newest(150), all);
    assert_eq!(all.newest(60), SurvivingText { older: 190..200, newer: 0..50, cut: true });
    assert_eq!(all.newest(20), SurvivingText { older: 200..200, newer: 30..50, cut: true });
    let all = SurvivingText { older: 0..0, newer: 0..50, cut: false };
    assert_eq!((all.newest(50), all.newest(20)), (all.clone(), SurvivingText { newer: 30..50, cut: true, ..all }));
}
