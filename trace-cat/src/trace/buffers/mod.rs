//! What a process has in its trbuf and not in its files.
//!
//! ```text
//! inspection             opens a trbuf, and reads it as its process's state requires
//! process_state          the result: the process is dead or runs, and what its buffers hold (leftovers)
//! dead_process           what a dead process left in its buffers
//! running_process_copy   a copy of what a running process has in its buffers
//!   copy_buffers           of buffers, whose text may move to a file meanwhile
//!   copy_rings             of rings, whose records may be overwritten meanwhile
//!     surviving_copy         copies less of a ring until a copy survives
//!     ring_snapshot          what of a copy was not overwritten
//! complete_from          from when on a thread is complete that overwrote records
//! lost_records           records that were lost without a record of the loss
//! slots                  the slots of a trbuf, one after the other
//! live_slot              a slot of a running process, which changes while it is read
//! region_text            the text of a slot's region
//! page_words             the words of a slot's first page
//! ```

pub mod complete_from;
pub mod copy_buffers;
mod copy_rings;
pub mod dead_process;
pub mod inspection;
pub mod leftovers;
pub mod live_slot;
pub mod lost_records;
mod page_words;
pub mod process_state;
pub mod region_text;
pub mod ring_snapshot;
mod running_process_copy;
pub mod slots;
pub mod surviving_copy;
