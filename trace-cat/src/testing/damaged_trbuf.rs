//! Trbufs that are damaged at random.

use super::seeded_random::SeededRandom;
use super::trbuf_image::TrbufImage;

/// The bytes of a trbuf, of buffers or of rings, whose regions hold `text`, with random bytes where the words are.
pub fn damaged_trbuf(random: &mut SeededRandom, text: &str) -> Vec<u8> {
    let mut image = if random.below(2) == 0 { TrbufImage::new() } else { TrbufImage::ring(64 * 1024) };
    for lwp in [1, 0x1001, 0x2002] {
        let slot = image.add_slot(lwp);
        image.put_region(slot, 0, text, 0..text.len(), Some((140, 0..140)));
        image.put_region(slot, 1, text, 70..text.len(), None);
        if image.layout.is_ring() {
            image.put_wrapped_ring(slot, 2, 1, (1024, &text[30..]), text);
            image.put_wrapped_ring(slot, 3, 9, (2048, text), "");
        }
    }
    for _ in 0..random.below(40) {
        // The words are in the header and in the slots' first pages.
        let slot = image.slot_offset(random.below(3));
        let at = if random.below(20) == 0 { random.below(128) } else { slot + random.below(1100) };
        image.bytes[at] = if random.below(2) == 0 { 0 } else { random.next() as u8 };
    }
    if random.below(10) == 0 {
        image.bytes.truncate(random.below(image.bytes.len()));
    }
    image.bytes
}
