//! What a process has in its trbuf.

pub mod complete_from;
pub mod copy_buffers;
mod copy_rings;
pub mod dead_process;
pub mod inspection;
pub mod leftovers;
pub mod live_slot;
pub mod lost_records;
pub mod process_state;
pub mod region_text;
pub mod ring_snapshot;
mod running_process_copy;
pub mod slots;
