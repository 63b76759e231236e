//! What a process has in its trbuf.

pub mod copy_buffers;
mod copy_rings;
pub mod dead;
pub mod region_text;
pub mod ring_snapshot;
pub mod running;
pub mod slots;
