//! `trbuf`: the record buffers of a process, in a file that outlives it.
//!
//! ```text
//! 0              Header            whose buffers these are
//! 4096           FileEntry × 4096  one for each yyy: the tr file of that name, and how far it is given to writers
//! SLOTS_OFFSET   slot 0: SlotHeader (one page), then the text of the regions
//!                slot 1 …
//! ```
//!
//! The owner writes all this for readers. What it acts upon itself is in its private memory, because other processes may have
//! mapped the file, too.
//!
//! A slot belongs to one thread at a time. Its four regions are for four depths of nesting: a signal handler that
//! interrupts a record writes to the next region, so that neither overwrites the other. The word `write_position` of a
//! region holds a range, `start..end`: the bytes of complete records that are not yet in the tr file.
//!
//! # Rings
//!
//! With `THR_TRACE_RING` nothing is written before the process ends. Each region is a ring, and the first one has the
//! size that the user asked for ([`SlotLayout`]). When the records reach the end of a region, the next record is placed at
//! 0: the ring wraps, and from then on new records overwrite the oldest. While `start` is greater than `end`, the
//! older records are in `start..wrap_position` and the newer ones in `0..end`.
//!
//! The owner moves `start` ahead of `end` in steps of [`SlotLayout::ring_step`], so `start` need not be where a record
//! begins: the first complete record begins after the next newline. The owner stores `start` before it overwrites anything
//! behind the old `start`, so a reader of a dead process's trbuf finds complete records only. A reader of a running
//! process copies the text and then reads `write_position` and `wrap_count` again. When a ring wraps, the owner stores
//! `wrap_count` after `write_position`, and `end` is 0 until then.
//!
//! # How text gets from a region to its file, exactly once
//!
//! 1. The writer takes the range `end..end + n` of the file by adding to [`FileEntry::end`]. Nobody else writes there.
//! 2. It notes the place and the range in the region: `write_intent_offset`, then `write_intent`.
//! 3. It writes the bytes at that place.
//! 4. It empties `write_position`, then clears `write_intent`.
//!
//! A signal handler that comes between steps 1 and 2, and takes a range itself, does step 2 for the interrupted writer, unless
//! other threads write to the file, too. So a range is not left empty if the handler leaves by a jump.
//!
//! A process that dies before step 2 leaves the text in `write_position`. A process that dies between steps 2 and 4 leaves
//! `write_intent`; writing those bytes to that place once more is right, however many of them had arrived. So whoever
//! finds the file (trace-cat, or the next image after an `exec`) first repeats [`RegionLeftover::write_intent`] and
//! then appends [`RegionLeftover::older`] and [`RegionLeftover::unwritten`].

mod control;
mod damage;
mod layout;
mod leftover;
mod mapped;
mod owner;
#[cfg(test)]
mod tests;
mod words;

pub use control::{CONTROL_VERSION, ControlWords, STACK_FRAMES_MAX, Settings, SettingsWords};
pub use damage::Damage;
pub use layout::{PAGE, REGION_OFFSETS, REGIONS, RING_SIZES, SLOTS_OFFSET, SlotLayout};
pub use leftover::{RegionLeftover, SpareLosses, region_leftover, slot_lost, slot_lwp, slot_writer, spare_losses};
pub use mapped::{
    CONTROL_OFFSET, FileEntry, Header, IN_FLIGHT_EVENT_AT, MAGIC, NOTE_ENDED, NOTE_OWN_MEMORY, Region,
    RegionWordOffsets, SPARE_WORDS_OFFSET, SlotHeader, SpareWords, VERSION, region_word_offsets,
};
pub use owner::Owner;
pub use words::{is_empty_range, pack_range, u32_at, u64_at, unpack_range};
