//! Records of releases in flight: each is put into a region of its slot, from where it is written like any other text.

use std::io;
use std::mem::offset_of;

use spec::buffer::{PAGE, REGION_OFFSETS, REGIONS, SlotHeader, pack_range, region_word_offsets, u64_at, unpack_range};

use super::claim::ClaimedTrbuf;
use super::file_operations::FileOperations;
use crate::trace::buffers::in_flight;
use crate::trace::buffers::slots::{SlotEntry, Slots};

/// Puts the record of each noted release behind the text of a region, publishes it, and then removes the note. A record
/// that finds no room is dropped.
pub fn place_records(claimed: &ClaimedTrbuf, operations: &mut dyn FileOperations) -> io::Result<()> {
    let (file, layout) = (&claimed.buffers, claimed.owner.layout);
    let mut page = [0; PAGE];
    let mut slots = Slots::new(file, layout)?;
    while let Some(entry) = slots.next(&mut page)? {
        let SlotEntry::Slot { at, .. } = entry else { continue };
        if !in_flight::has_note(&page) {
            continue;
        }
        if let Some(line) = in_flight::pending_line(file, &page, at, &claimed.owner)? {
            let place = (0..REGIONS).find_map(|region| {
                let word = region_word_offsets(region).write_position;
                let range = unpack_range(u64_at(&page, word)?);
                let end = range.end as usize + line.len();
                (range.start <= range.end && end <= layout.region_size(region)).then_some((region, word, range))
            });
            if let Some((region, word, range)) = place {
                let text_at = at + (REGION_OFFSETS[region] + range.end as usize) as u64;
                operations.write(file, line.as_bytes(), text_at)?;
                let position = pack_range(range.start..range.end + line.len() as u32);
                operations.write(file, &position.to_le_bytes(), at + word as u64)?;
            }
        }
        operations.write(file, &0u64.to_le_bytes(), at + offset_of!(SlotHeader, in_flight) as u64)?;
    }
    Ok(())
}
