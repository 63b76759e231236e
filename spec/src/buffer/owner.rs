//! The header of a trbuf, decoded.

use core::mem::offset_of;

use super::control::ControlWords;
use super::damage::Damage;
use super::layout::SlotLayout;
use super::mapped::{CONTROL_OFFSET, Header, MAGIC, VERSION};
use super::words::{array_at, u32_at, u64_at};

/// The process whose buffers a trbuf holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The process ID, in its own PID namespace.
    pub pid: u32,
    /// Inode of that namespace.
    pub pid_namespace: u64,
    /// Start time, clock ticks since boot.
    pub start_time: u64,
    /// The boot ID.
    pub boot_id: [u8; 36],
    /// Nanoseconds from `CLOCK_MONOTONIC` of the initial time namespace to the Epoch.
    pub realtime_offset: i64,
    /// The sizes of its slots.
    pub layout: SlotLayout,
}

impl Owner {
    /// Whether both are the same process, perhaps before and after an exec.
    pub fn is_same_process(&self, other: &Owner) -> bool {
        Owner { realtime_offset: other.realtime_offset, layout: other.layout, ..*self } == *other
    }

    /// How many records the process has lost so far, according to the first page of its trbuf.
    pub fn lost_records(page: &[u8]) -> u64 {
        let counted = u64_at(page, CONTROL_OFFSET + offset_of!(ControlWords, lost)).unwrap_or(0);
        counted.saturating_add(Owner::lost_without_slot(page).0)
    }

    /// How many of them no slot counts, because their threads had none, and the errno of the last one's cause.
    pub fn lost_without_slot(page: &[u8]) -> (u64, u32) {
        let at = |offset| CONTROL_OFFSET + offset;
        let records = u64_at(page, at(offset_of!(ControlWords, lost_without_slot))).unwrap_or(0);
        (records, u32_at(page, at(offset_of!(ControlWords, without_slot_cause))).unwrap_or(0))
    }

    /// How many threads that had ended have no records any more, because others reused their rings.
    pub fn reused_rings(page: &[u8]) -> u64 {
        if !Owner::parse(page).is_ok_and(|owner| owner.layout.is_ring()) {
            return 0;
        }
        u64_at(page, CONTROL_OFFSET + offset_of!(ControlWords, reused_rings)).unwrap_or(0)
    }

    /// The word [`Header::notes`] in the first page of a trbuf.
    pub fn notes(page: &[u8]) -> u32 {
        u32_at(page, offset_of!(Header, notes)).unwrap_or(0)
    }

    /// Decodes the first page of a trbuf.
    ///
    /// # Errors
    /// [`Damage::Short`], [`Damage::Magic`], [`Damage::Version`] or [`Damage::Ring`].
    pub fn parse(bytes: &[u8]) -> Result<Owner, Damage> {
        let word32 = |offset| u32_at(bytes, offset).ok_or(Damage::Short);
        let word64 = |offset| u64_at(bytes, offset).ok_or(Damage::Short);
        if array_at(bytes, offset_of!(Header, magic)).ok_or(Damage::Short)? != MAGIC {
            return Err(Damage::Magic);
        }
        let version = word32(offset_of!(Header, version))?;
        if version != VERSION {
            return Err(Damage::Version(version));
        }
        let ring_size = word64(offset_of!(Header, ring_size))?;
        Ok(Owner {
            pid: word32(offset_of!(Header, pid))?,
            pid_namespace: word64(offset_of!(Header, pid_namespace))?,
            start_time: word64(offset_of!(Header, start_time))?,
            boot_id: array_at(bytes, offset_of!(Header, boot_id)).ok_or(Damage::Short)?,
            realtime_offset: word64(offset_of!(Header, realtime_offset))? as i64,
            layout: SlotLayout::from_header(ring_size).ok_or(Damage::Ring(ring_size))?,
        })
    }
}
