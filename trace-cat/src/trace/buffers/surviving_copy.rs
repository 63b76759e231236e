//! Copies a ring that its thread goes on filling, until a copy survives.

use std::io;

use super::live_slot::LiveSlot;
use super::ring_snapshot::{RingSnapshot, SurvivingText};

/// The result of copying a ring.
pub enum SurvivingCopy {
    /// This text of the copy was not overwritten before it was copied. The snapshot is from after the copying.
    Copied(SurvivingText, RingSnapshot),
    /// The ring is being written to the record file.
    BeingWritten,
    /// The thread overwrote every copy, or the slot is another thread's by now.
    Overwritten,
}

/// Copies text of region `region` until some of it survives, at most `attempts` times.
///
/// `choose` selects the text to copy from a snapshot. It is given how many copies were overwritten, and has to select half
/// as much after each: less text is copied sooner than it is overwritten. `copy` copies the selected text.
pub fn copy_until_it_survives(
    slot: &LiveSlot,
    region: usize,
    attempts: u32,
    mut choose: impl FnMut(RingSnapshot, u32) -> SurvivingText,
    mut copy: impl FnMut(&SurvivingText) -> io::Result<()>,
) -> io::Result<SurvivingCopy> {
    let mut overwritten = 0;
    for _ in 0..attempts {
        let Some(before) = slot.ring_snapshot(region, RingSnapshot::before)? else { continue };
        if before.is_being_written {
            return Ok(SurvivingCopy::BeingWritten);
        }
        let chosen = choose(before, overwritten);
        if chosen.len() == 0 {
            return Ok(SurvivingCopy::Copied(chosen, before));
        }
        copy(&chosen)?;
        let Some(after) = slot.ring_snapshot(region, RingSnapshot::after)? else { continue };
        match before.surviving(&chosen, after) {
            Some(surviving) => return Ok(SurvivingCopy::Copied(surviving, after)),
            None => overwritten += 1,
        }
    }
    Ok(SurvivingCopy::Overwritten)
}
