//! A ring that is read while it is written, a step at a time.

use super::*;
use crate::testing::ring_recorder::{EMPTY_RING, make_room};
use crate::testing::seeded_random::SeededRandom;
use crate::testing::test_trace::record;
use crate::testing::trbuf_image::TrbufImage;
use crate::trace::file_handle::DescriptorBudget;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Bytes of the region, by how many it gives up its oldest records, and what is kept free behind the newest.
const SIZE: u32 = 4096;
const STEP: u32 = 512;
const NEEDED: u32 = 200;

/// A ring of numbered lines, which keeps the words as the recorder does.
struct RingFixture {
    snapshot: RingSnapshot,
    text: Vec<u8>,
    next: usize,
}

impl RingFixture {
    fn new() -> RingFixture {
        RingFixture { snapshot: EMPTY_RING, text: vec![b'?'; SIZE as usize], next: 0 }
    }

    fn append(&mut self, width: usize) {
        make_room(&mut self.snapshot, NEEDED, SIZE, STEP);
        let end = &mut self.snapshot.end;
        let line = format!("{:0width$}\n", self.next);
        self.text[*end as usize..][..line.len()].copy_from_slice(line.as_bytes());
        *end += line.len() as u32;
        self.next += 1;
    }

    fn bytes(&self, wanted: &SurvivingText) -> Vec<u8> {
        let bytes = |range: &Range<u32>| &self.text[range.start as usize..range.end as usize];
        [bytes(&wanted.older), bytes(&wanted.newer)].concat()
    }
}

/// However the ring is read, a little at a time or late, each line is new once; missing lines are noticed, and reading all
/// new text reaches the newest line.
#[test]
fn each_line_of_a_ring_is_new_once() {
    let mut random = SeededRandom::seeded("ring", 4);
    let (mut overtaken, mut continued) = (0, 0);
    for _ in 0..300 {
        let (mut ring, mut position, mut expected) = (RingFixture::new(), None, 0);
        let burst = 1 + random.below(120);
        for _ in 0..60 {
            for _ in 0..random.below(burst) {
                ring.append(20 + random.below(70));
            }
            let limit = if random.below(2) == 0 { u32::MAX } else { 100 + random.below(3000) as u32 };
            let new = NewRingText::since(ring.snapshot, position);
            let wanted = oldest(&new.text, limit);
            let text = ring.bytes(&wanted);
            let from = if wanted.truncated { text.iter().position(|&byte| byte == b'\n').unwrap() + 1 } else { 0 };
            for line in text[from..].split_inclusive(|&byte| byte == b'\n').filter(|line| line.ends_with(b"\n")) {
                let number: usize = std::str::from_utf8(line).unwrap().trim_end().parse().unwrap();
                assert!(number == expected || number > expected && !new.continues, "{number}, {expected} is next");
                assert!(
                    number == expected || new.missed || position.is_none(),
                    "{expected} is missing, and nobody noticed"
                );
                expected = number + 1;
            }
            overtaken += u32::from(new.missed);
            continued += u32::from(new.continues);
            if !text.is_empty() {
                position = Some(position_after(ring.snapshot, &wanted, &text));
            } else {
                position = Some(RingPosition { wrap_count: ring.snapshot.wrap_count, end: ring.snapshot.end });
            }
            assert!(limit != u32::MAX || expected == ring.next, "the newest are missing");
        }
    }
    assert!(overtaken > 500 && continued > 500, "{overtaken} {continued}");
}

#[test]
fn a_ring_that_was_written_out_is_new_from_its_beginning() {
    let snapshot = RingSnapshot { wrap_count: 0, start: 0, end: 90, wrap_position: 0, is_being_written: false };
    let new = NewRingText::since(snapshot, Some(RingPosition { wrap_count: 7, end: 80 }));
    assert_eq!((new.text.newer, new.missed, new.continues), (0..90, false, false));
}

#[test]
fn the_oldest_text_comes_first() {
    let text = SurvivingText { older: 100..160, newer: 0..50, truncated: true };
    assert_eq!(oldest(&text, 40), SurvivingText { older: 100..140, newer: 0..0, truncated: true });
    assert_eq!(oldest(&text, 70), SurvivingText { older: 100..160, newer: 0..10, truncated: true });
    assert_eq!(oldest(&text, 1000), text);
}

/// What a signal handler records after the page is read is taken together with the later records of the first region.
#[test]
fn what_a_handler_recorded_after_the_page_is_read_is_taken() {
    let file = tempfile::tempfile().unwrap();
    let (mut files, mut intake) = (GrowingFiles::new(DescriptorBudget::new(1)), Intake::default());
    let mut thread = LiveThread::new(2, files.index(Path::new("tr.0000001.002")));
    let line = |time| record(time, 2, "02:04:0", time);
    let mut page = [0; PAGE];
    for (first, second, is_seen) in
        [("", "", true), (&*line(1), "", true), (&*[line(1), line(3)].concat(), &*line(2), false)]
    {
        let mut image = TrbufImage::ring(64 << 10);
        let slot = image.add_slot(2);
        image.put_text(slot, 0, first);
        let at = image.slot_offset(slot);
        if !is_seen {
            page.copy_from_slice(&image.bytes[at..at + PAGE]);
        }
        image.put_text(slot, 1, second);
        file.write_all_at(&image.bytes, 0).unwrap();
        if is_seen {
            page.copy_from_slice(&image.bytes[at..at + PAGE]);
        }
        let slot = LiveSlot { file: &file, at: at as u64, layout: image.layout, lwp: 2 };
        read_new(&slot, &page, 0, &mut thread, &mut files, &mut intake).unwrap();
    }
    assert_eq!(intake.window.count, 3);
}
