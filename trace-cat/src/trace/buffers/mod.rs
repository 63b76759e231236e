//! What a process has in its trbuf and not in its files.
//!
//! ```text
//! inspection             whose a trbuf is, and what it holds (process_state, leftovers)
//! dead_process           what a dead process left in its buffers
//! running_process_copy   a copy of what a running process has in its buffers
//!   copy_buffers           while text may go to a file
//!   copy_rings             while records may be overwritten; ring_snapshot: what of a copy is good
//! complete_from          from when on a thread is complete that overwrote records
//! lost_records           records that were lost without a record of it
//! slots, live_slot       the slots of a trbuf, and one that changes while it is read
//! region_text            the text of a slot's region
//! ```

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
