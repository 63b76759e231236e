mod flush;
mod flush_point;
mod layout;
mod losses;
mod quota;
mod record_file;
mod ring;
mod slot;
mod slot_reuse;
mod slot_table;
pub mod thread_local;
mod trbuf;

#[cfg(test)]
mod benches;
#[cfg(test)]
mod tests;

pub use flush::report_failure;
pub use flush_point::{is_flush_point, restart_count};
pub use layout::{LOSS_RECORD_ROOM, RECORDS_AT_ONCE, capacity, slot_layout};
pub use quota::stopped;
pub use ring::give_up_oldest;
pub use slot::{ALL_REGIONS, Slot, WriteRight};
pub use slot_reuse::{release_slot, take_slot};
pub use slot_table::{end_left_write_through, file_entry, for_each_slot, set_write_through};
pub use trbuf::{forget, make, take_over};

/// What tests of other layers need to make slots of their own.
#[cfg(test)]
pub mod testing {
    pub use super::layout::set_slot_layout;
    pub use super::slot_table::{HEADER, add_chunk, forget as forget_slots};
}
