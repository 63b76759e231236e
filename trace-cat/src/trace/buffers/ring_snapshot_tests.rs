//! A ring that is copied while its thread records, with the steps of both in any order.

use std::collections::VecDeque;

use spec::buffer::{PAGE, pack_range};

use super::*;
use crate::testing::ring_recorder::{EMPTY_RING, RoomMade, make_room};
use crate::testing::seeded_random::SeededRandom;

/// The third region, whose ring is small, so that it wraps often.
const REGION: usize = 2;

/// One step of the recorder that a reader can observe.
enum RecorderStep {
    PutText(usize, Vec<u8>),
    StoreWrapPosition(u32),
    StoreWrapCount(u32),
    StoreWritePosition(Range<u32>),
}

/// A ring and the thread that fills it by the recorder's protocol.
struct ModelRecorder {
    layout: SlotLayout,
    text: Vec<u8>,
    page: [u8; PAGE],
    /// The steps that are planned and not yet taken.
    planned: VecDeque<RecorderStep>,
    /// The words as they are after the planned steps.
    ring: RingSnapshot,
    serial: u64,
    random: SeededRandom,
}

impl ModelRecorder {
    fn new(random: SeededRandom) -> ModelRecorder {
        let layout = SlotLayout::ring(64 * 1024).unwrap();
        let text = vec![0; layout.region_size(REGION)];
        ModelRecorder { layout, text, page: [0; PAGE], planned: VecDeque::new(), ring: EMPTY_RING, serial: 0, random }
    }

    /// Whether `write_position` of a wrapped ring is stored, and `wrap_count` is not.
    fn is_wrapping(&self) -> bool {
        matches!(self.planned.front(), Some(RecorderStep::StoreWrapCount(_)))
    }

    /// Plans the next record's steps.
    fn plan(&mut self) {
        let (size, step) = (self.text.len() as u32, self.layout.ring_step(REGION) as u32);
        let room = make_room(&mut self.ring, 200, size, step);
        let RingSnapshot { start, end, wrap_position, wrap_count, .. } = self.ring;
        if room == RoomMade::Wrapped {
            self.planned.push_back(RecorderStep::StoreWrapPosition(wrap_position));
        }
        if room != RoomMade::None {
            self.planned.push_back(RecorderStep::StoreWritePosition(start..end));
        }
        if room == RoomMade::Wrapped {
            self.planned.push_back(RecorderStep::StoreWrapCount(wrap_count));
        }
        self.serial += 1;
        let line = format!("{:0width$}\n", self.serial, width = 10 + self.random.below(150)).into_bytes();
        // Its bytes are put in two steps.
        let half = line.len() / 2;
        self.planned.push_back(RecorderStep::PutText(end as usize, line[..half].to_vec()));
        self.planned.push_back(RecorderStep::PutText(end as usize + half, line[half..].to_vec()));
        self.ring.end += line.len() as u32;
        self.planned.push_back(RecorderStep::StoreWritePosition(start..self.ring.end));
    }

    fn steps(&mut self, count: usize) {
        for _ in 0..count {
            if self.planned.is_empty() {
                self.plan();
            }
            let words = region_word_offsets(REGION);
            match self.planned.pop_front() {
                Some(RecorderStep::PutText(at, bytes)) => self.text[at..at + bytes.len()].copy_from_slice(&bytes),
                Some(RecorderStep::StoreWrapPosition(at)) => {
                    self.page[words.wrap_position..][..4].copy_from_slice(&at.to_le_bytes())
                }
                Some(RecorderStep::StoreWrapCount(wrap_count)) => {
                    self.page[words.wrap_count..][..4].copy_from_slice(&wrap_count.to_le_bytes())
                }
                Some(RecorderStep::StoreWritePosition(range)) => {
                    self.page[words.write_position..][..8].copy_from_slice(&pack_range(range).to_le_bytes());
                }
                None => {}
            }
        }
    }

    /// One time in three, goes on until it is wrapping, and stops there.
    fn pause_while_wrapping(&mut self) {
        if self.random.below(3) == 0 {
            self.steps(1);
            while !self.is_wrapping() {
                self.steps(1);
            }
        }
    }

    /// The page as a reader reads it twice while the recorder goes on: each word at another time, in any order. `pace` is the
    /// most steps between two words.
    fn read_pages(&mut self, pace: usize) -> [[u8; PAGE]; 2] {
        let words = region_word_offsets(REGION);
        [(); 2].map(|()| {
            let mut page = [0; PAGE];
            let mut places = [(words.write_position, 8), (words.wrap_position, 4), (words.wrap_count, 4)];
            places.rotate_left(self.random.below(3));
            places[1..].rotate_left(self.random.below(2));
            for (at, length) in places {
                page[at..at + length].copy_from_slice(&self.page[at..at + length]);
                let count = self.random.below(pace + 1);
                self.steps(count);
            }
            page
        })
    }
}

/// The serial numbers of the records in the surviving text of a copy, or what is wrong with the text.
fn serials(copy: &[u8], surviving: &SurvivingText) -> Result<Vec<u64>, String> {
    let bytes = |range: &Range<u32>| &copy[range.start as usize..range.end as usize];
    let text = [bytes(&surviving.older), bytes(&surviving.newer)].concat();
    let first = match surviving.truncated {
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
fn surviving_text_is_complete_records_without_a_gap() {
    let mut random = SeededRandom::seeded("survivors", 21);
    let (mut survived, mut wrapped, mut refused) = (0, 0, 0);
    for round in 0..20_000 {
        let mut writer = ModelRecorder::new(SeededRandom::seeded_by(random.next()));
        let first_steps = random.below(600);
        writer.steps(first_steps);
        writer.pause_while_wrapping();
        let pace = [0, 1, 50][random.below(3)];
        let pages = writer.read_pages(pace);
        let Some(before) = RingSnapshot::before([&pages[0], &pages[1]], writer.layout, REGION) else { continue };
        let all = before.all();
        let copied = all.newest(all.len() >> random.below(3));
        let mut copy = vec![0; writer.text.len()];
        // Copying is as fast as recording, or slower, and is delayed once.
        let (pace, delayed_at, delay) = (random.below(6), random.below(4096), random.below(200));
        for range in [&copied.older, &copied.newer] {
            for at in (range.start..range.end).step_by(97) {
                let count = random.below(pace + 1) + if at as usize / 97 == delayed_at / 97 { delay } else { 0 };
                writer.steps(count);
                let chunk = at as usize..(at + 97).min(range.end) as usize;
                copy[chunk.clone()].copy_from_slice(&writer.text[chunk]);
            }
        }
        let pace = [0, 1, 50][random.below(3)];
        writer.pause_while_wrapping();
        let pages = writer.read_pages(pace);
        let Some(after) = RingSnapshot::after([&pages[0], &pages[1]], writer.layout, REGION) else { continue };
        let Some(surviving) = before.surviving(&copied, after) else {
            refused += 1;
            continue;
        };
        let serials = serials(&copy, &surviving);
        let serials =
            serials.unwrap_or_else(|error| panic!("{error} in round {round}: {before:?} {after:?} {surviving:?}"));
        let gap = serials.windows(2).find(|pair| pair[0] + 1 != pair[1]);
        assert_eq!(gap, None, "round {round}: {before:?} {after:?} {surviving:?}");
        survived += serials.len();
        wrapped += usize::from(after.wrap_count != before.wrap_count);
    }
    println!("{survived} records survived, the ring wrapped {wrapped} times, {refused} copies were refused");
    assert!(survived > 20_000 && wrapped > 100 && refused > 100);
}

#[test]
fn a_ring_that_does_not_change_survives() {
    let snapshot =
        |wrap_count, start, end| RingSnapshot { wrap_count, start, end, wrap_position: 4000, is_being_written: false };
    for ring in [snapshot(0, 0, 0), snapshot(0, 0, 300), snapshot(2, 0, 3900), snapshot(2, 1024, 300)] {
        assert_eq!(ring.surviving(&ring.all(), ring), Some(ring.all()));
    }
    let being_written = RingSnapshot { is_being_written: true, ..snapshot(0, 0, 300) };
    assert_eq!(snapshot(0, 0, 300).surviving(&snapshot(0, 0, 300).all(), being_written), None);
}

#[test]
fn a_copy_that_was_overwritten_does_not_survive() {
    let snapshot =
        |wrap_count, start, end| RingSnapshot { wrap_count, start, end, wrap_position: 4000, is_being_written: false };
    let before = snapshot(2, 1024, 300);
    let copied = SurvivingText { older: 1024..2000, newer: 0..0, truncated: true };
    assert_eq!(before.surviving(&copied, snapshot(2, 2048, 1100)), None);
    assert_eq!(before.surviving(&copied, snapshot(2, 1024, 301)), Some(copied));
}

#[test]
fn a_limited_text_is_the_newest() {
    let all = SurvivingText { older: 100..200, newer: 0..50, truncated: true };
    assert_eq!(all.newest(150), all);
    assert_eq!(all.newest(60), SurvivingText { older: 190..200, newer: 0..50, truncated: true });
    assert_eq!(all.newest(20), SurvivingText { older: 200..200, newer: 30..50, truncated: true });
    let all = SurvivingText { older: 0..0, newer: 0..50, truncated: false };
    assert_eq!(
        (all.newest(50), all.newest(20)),
        (all.clone(), SurvivingText { newer: 30..50, truncated: true, ..all })
    );
}
