use core::mem::offset_of;
use core::ops::Range;

use super::*;

/// Where the text of region 0 begins.
const TEXT: usize = REGION_OFFSETS[0];

/// The first page of a slot whose region 0 has these words.
fn slot_page(write_position: Range<u32>, write_intent: Range<u32>, write_intent_offset: u64) -> Vec<u8> {
    let mut page = vec![0u8; PAGE];
    let offsets = region_word_offsets(0);
    let mut put = |offset: usize, word: u64| page[offset..][..8].copy_from_slice(&word.to_le_bytes());
    put(offsets.write_position, pack_range(write_position));
    put(offsets.write_intent, pack_range(write_intent));
    put(offsets.write_intent_offset, write_intent_offset);
    page
}

#[test]
fn without_an_intent_all_text_is_unwritten() {
    let leftover = region_leftover(&slot_page(0..83, 0..0, 9), SlotLayout::BUFFERS, 0).unwrap();
    assert_eq!(leftover, RegionLeftover { write_intent: None, older: TEXT..TEXT, unwritten: TEXT..TEXT + 83 });
}

#[test]
fn an_interrupted_write_leaves_its_intent() {
    let leftover = region_leftover(&slot_page(0..200, 0..83, 1000), SlotLayout::BUFFERS, 0).unwrap();
    assert_eq!(leftover.write_intent, Some((1000, TEXT..TEXT + 83)));
    assert_eq!(leftover.unwritten, TEXT + 83..TEXT + 200);
}

#[test]
fn a_finished_write_leaves_its_intent_until_it_is_cleared() {
    let leftover = region_leftover(&slot_page(0..0, 0..83, 1000), SlotLayout::BUFFERS, 0).unwrap();
    assert_eq!(leftover.write_intent, Some((1000, TEXT..TEXT + 83)));
    assert!(leftover.unwritten.is_empty());
}

#[test]
#[expect(clippy::reversed_empty_ranges, reason = "such words are what is tested")]
fn impossible_words_are_damage() {
    let size = SlotLayout::BUFFERS.region_size(0) as u32;
    for (position, intent) in [(5..4, 0..0), (0..size + 1, 0..0), (0..100, 50..40), (10..100, 20..40)] {
        assert_eq!(
            region_leftover(&slot_page(position.clone(), intent.clone(), 0), SlotLayout::BUFFERS, 0),
            Err(Damage::Region(0)),
            "{position:?} {intent:?}"
        );
    }
    assert_eq!(region_leftover(&[0; 8], SlotLayout::BUFFERS, 0), Err(Damage::Short));
    assert_eq!(region_leftover(&slot_page(0..0, 0..0, 0), SlotLayout::BUFFERS, REGIONS), Err(Damage::Region(REGIONS)));
}

#[test]
#[expect(clippy::reversed_empty_ranges, reason = "such words are what is tested")]
fn a_wrapped_ring_has_older_and_newer_text() {
    let layout = SlotLayout::ring(64 * 1024).unwrap();
    let leftover = |position, intent: Range<u32>| {
        let mut page = slot_page(position, intent, 7);
        page[region_word_offsets(0).wrap_position..][..4].copy_from_slice(&60_000u32.to_le_bytes());
        region_leftover(&page, layout, 0)
    };
    let bytes = |start: usize, end: usize| TEXT + start..TEXT + end;
    let untouched = leftover(4096..100, 0..0).unwrap();
    assert_eq!(untouched, RegionLeftover { write_intent: None, older: bytes(4096, 60_000), unwritten: bytes(0, 100) });
    // The older text is being written, from its first complete record on; then it has been written.
    let in_flight =
        RegionLeftover { write_intent: Some((7, bytes(4100, 60_000))), older: TEXT..TEXT, unwritten: bytes(0, 100) };
    assert_eq!(leftover(4096..100, 4100..60_000), Ok(in_flight.clone()));
    assert_eq!(leftover(0..100, 4100..60_000), Ok(in_flight));
    for (position, intent) in [(60_001..100, 0..0), (4096..100, 4100..59_000), (4096..100, 4000..60_000)] {
        assert_eq!(leftover(position.clone(), intent.clone()), Err(Damage::Region(0)), "{position:?} {intent:?}");
    }
}

#[test]
fn rings_have_sizes_of_complete_pages() {
    assert_eq!(SlotLayout::ring(64 * 1024 - 1), None);
    assert_eq!(SlotLayout::ring((1 << 30) + 1), None);
    let layout = SlotLayout::ring(100_000).unwrap();
    assert_eq!((layout.ring_size(), layout.slot_size() % PAGE), (102_400, 0));
    assert_eq!(SlotLayout::from_header(layout.ring_size()), Some(layout));
    assert_eq!((SlotLayout::from_header(0), SlotLayout::from_header(100_000)), (Some(SlotLayout::BUFFERS), None));
}

#[test]
fn a_slot_counts_its_unreported_losses() {
    let mut page = vec![0u8; PAGE];
    assert_eq!(slot_lost(&page), Ok(None));
    page[offset_of!(SlotHeader, cause)] = 28;
    assert_eq!(slot_lost(&page), Ok(None));
    page[offset_of!(SlotHeader, lost)] = 7;
    assert_eq!(slot_lost(&page), Ok(Some((7, 28))));
    assert_eq!(slot_lost(&page[..8]), Err(Damage::Short));
}

#[test]
fn a_truncated_or_foreign_header_is_damage() {
    let mut page = vec![0u8; PAGE];
    assert_eq!(Owner::parse(&page), Err(Damage::Magic));
    page[..16].copy_from_slice(&MAGIC);
    assert_eq!(Owner::parse(&page), Err(Damage::Version(0)));
    page[16] = VERSION as u8;
    assert_eq!(Owner::parse(&page).unwrap().pid, 0);
    assert_eq!(Owner::parse(&page[..60]), Err(Damage::Short));
    assert_eq!(Owner::parse(&[]), Err(Damage::Short));
}
