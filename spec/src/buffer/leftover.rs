//! What a slot still holds that is in no file, decoded from its first page.

use core::mem::offset_of;
use core::ops::Range;

use super::damage::Damage;
use super::layout::{REGION_OFFSETS, SlotLayout};
use super::mapped::{SlotHeader, SpareWords, region_word_offsets};
use super::words::{u32_at, u64_at, unpack_range};

/// The text that one region of a dead process's slot still holds, as ranges of the slot's bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegionLeftover {
    /// Bytes that belong at a place in the tr file, which may have them already, all or some; and that place.
    pub write_intent: Option<(u64, Range<usize>)>,
    /// Bytes that are in no file, of a ring that has wrapped. The first complete record follows the first newline.
    pub older: Range<usize>,
    /// Bytes that are in no file, newer than `older`.
    pub unwritten: Range<usize>,
}

/// The LWP that a slot belongs to, or `None` if it has never had an owner.
///
/// # Errors
/// [`Damage::Short`] if `slot` ends within its header.
pub fn slot_lwp(slot: &[u8]) -> Result<Option<u32>, Damage> {
    let lwp = u32_at(slot, offset_of!(SlotHeader, lwp)).ok_or(Damage::Short)?;
    Ok((lwp != 0).then_some(lwp))
}

/// How many records of its threads a slot dropped that no trace_lost record counts, and the errno that caused the last
/// drop; `None` if there are none.
///
/// # Errors
/// [`Damage::Short`] if `slot` ends within its header.
pub fn slot_lost(slot: &[u8]) -> Result<Option<(u32, u32)>, Damage> {
    let lost = u32_at(slot, offset_of!(SlotHeader, lost)).ok_or(Damage::Short)?;
    let cause = u32_at(slot, offset_of!(SlotHeader, cause)).ok_or(Damage::Short)?;
    Ok((lost != 0).then_some((lost, cause)))
}

/// What processes in a sandbox lost because they found no trbuf, or their threads no slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpareLosses {
    /// Records.
    pub records: u64,
    /// The errno of the last one's cause.
    pub cause: u32,
    /// The time of the first one, nanoseconds since the Epoch.
    pub since: u64,
    /// Processes that found no trbuf.
    pub processes: u32,
}

/// The losses in the page where such processes count them; `None` if there are none.
pub fn spare_losses(page: &[u8]) -> Option<SpareLosses> {
    let records = u64_at(page, offset_of!(SpareWords, lost))?;
    let since = u64_at(page, offset_of!(SpareWords, since))?;
    let [cause, processes] =
        [offset_of!(SpareWords, cause), offset_of!(SpareWords, processes)].map(|at| u32_at(page, at).unwrap_or(0));
    (records != 0).then_some(SpareLosses { records, cause, since, processes })
}

/// The LWP that is writing a slot's text to its file, 0 for none.
///
/// # Errors
/// [`Damage::Short`] if `slot` ends within its header.
pub fn slot_writer(slot: &[u8]) -> Result<u32, Damage> {
    u32_at(slot, offset_of!(SlotHeader, writer)).ok_or(Damage::Short)
}

/// The text that region `region` (less than [`REGIONS`](super::REGIONS)) of a slot still holds. `slot` is at least the
/// slot's first page.
///
/// # Errors
/// [`Damage`] if the page is too short or its words are impossible. The text itself is not checked.
pub fn region_leftover(slot: &[u8], layout: SlotLayout, region: usize) -> Result<RegionLeftover, Damage> {
    let offsets = region_word_offsets(region);
    let word = |offset: usize| u64_at(slot, offset).ok_or(Damage::Short);
    let write_position = unpack_range(word(offsets.write_position)?);
    let intent = unpack_range(word(offsets.write_intent)?);
    let intent_offset = word(offsets.write_intent_offset)?;
    let wrap_position = u32_at(slot, offsets.wrap_position).ok_or(Damage::Short)?;
    let &region_offset = REGION_OFFSETS.get(region).ok_or(Damage::Region(region))?;
    let is_wrapped = layout.is_ring() && write_position.start > write_position.end;
    let (older, newer) =
        if is_wrapped { (write_position.start..wrap_position, 0..write_position.end) } else { (0..0, write_position) };
    let is_inside = |range: &Range<u32>| range.start <= range.end && range.end as usize <= layout.region_size(region);
    if ![&older, &newer, &intent].into_iter().all(is_inside) {
        return Err(Damage::Region(region));
    }
    let bytes = |range: Range<u32>| region_offset + range.start as usize..region_offset + range.end as usize;
    if intent.is_empty() {
        return Ok(RegionLeftover { write_intent: None, older: bytes(older), unwritten: bytes(newer) });
    }
    // Step 4 empties `write_position` first; until then it begins with the intended range.
    let begins_with_intent = |range: &Range<u32>| range.start == intent.start && range.end >= intent.end;
    let is_apart_from_intent =
        |range: &Range<u32>| range.is_empty() || range.start >= intent.end || range.end <= intent.start;
    let newer = if is_wrapped {
        // The older records are written first, all of them, from where the first complete one begins.
        if intent.start < older.start || intent.end != older.end || !is_apart_from_intent(&newer) {
            return Err(Damage::Region(region));
        }
        newer
    } else if begins_with_intent(&newer) {
        intent.end..newer.end
    } else if is_apart_from_intent(&newer) {
        // Step 4 has already emptied `write_position`; a signal handler may have added records since.
        newer
    } else {
        return Err(Damage::Region(region));
    };
    Ok(RegionLeftover {
        write_intent: Some((intent_offset, bytes(intent))),
        older: bytes(0..0),
        unwritten: bytes(newer),
    })
}
