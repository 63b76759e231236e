mod file_table;
mod file_users;
mod flush;
mod flush_point;
mod growth;
mod in_flight;
pub mod kept_records;
mod layout;
mod losses;
mod quota;
mod range_request;
mod range_taking;
mod record_file;
mod replaced_memory;
mod ring;
mod slot;
mod slot_control;
mod slot_reuse;
mod slot_table;
mod stop_time;
pub mod thread_local;
mod trbuf;
mod unused_room;

#[cfg(test)]
mod benches;
#[cfg(test)]
mod tests;

pub use file_table::{file_entry, has_records};
pub use flush::{end_left_write_through, is_left_for_others, report_failure, report_unwritten};
pub use flush_point::{is_flush_point, restart_count};
pub use growth::grow_for_sandbox;
pub use layout::{RECORDS_AT_ONCE, RESERVE, capacity, slot_layout};
pub use quota::check_directory as check_directory_quota;
pub use ring::{give_up_oldest, is_check_point, read_ahead};
pub use slot::{ALL_REGIONS, Slot, WriteRight};
pub use slot_control::{CHANGES_SEEN_OFFSET, OWN_SWITCHES_OFFSET};
pub use slot_reuse::{release_slot, take_slot};
pub use slot_table::{add_note, for_each_slot, forget_unfinished, set_write_through};
pub use stop_time::{outlast, refusal, stopped};
pub use trbuf::{RunsAfter, blank, forget, make, make_in_spare, take_over, touch_slot};
pub use unused_room::{give_back as give_back_unused_room, has_room_on_disk};

/// What tests of other layers need to make slots of their own.
#[cfg(test)]
pub mod testing {
    pub use super::file_table::make as make_file_table;
    pub use super::layout::set_slot_layout;
    pub use super::slot_control::new_controls;
    pub use super::slot_table::{FRESH, HEADERS, add_chunk, forget as forget_slots};
}
