//! What a process has in its trbuf and not in its files.
//!
//! `inspection` finds out whether the process runs, and that decides: `dead_process` lists what is in the trbuf;
//! `running_process_copy` copies it, since it changes, by `copy_buffers` or `copy_rings`. The result is in `leftovers`.
//! `record_span` needs only the first and the last time of what is there, whether or not the process runs.

pub mod complete_from;
pub mod copy_buffers;
mod copy_rings;
pub mod dead_process;
pub mod in_flight;
pub mod inspection;
pub mod leftovers;
pub mod live_slot;
pub mod lost_records;
pub mod record_span;
pub mod region_text;
pub mod ring_snapshot;
mod running_process_copy;
pub mod slots;
pub mod spare;
pub mod surviving_copy;
