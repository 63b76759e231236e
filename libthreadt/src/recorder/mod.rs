mod append;
mod followed_settings;
mod handler;
mod handler_call;
mod keeping;
mod late_record;
mod nesting;
mod record;
mod release_note;
mod return_record;
mod slot_adoption;
mod stack_record;
mod switches;
mod thread_slot;

#[cfg(test)]
pub use append::append;
#[cfg(not(test))]
pub use handler::begin_early as begin_handler;
pub use handler::end as end_handler;
pub use record::{put, put_pair};
pub use release_note::{note_release, record_abandoned_release, release_is_recorded};
pub use return_record::ReturnRecord;
#[cfg(test)]
pub use slot_adoption::claim_slot;
pub use slot_adoption::pthread_self;
pub use stack_record::{put_mutex, put_result, put_stack};
pub use switches::{begin_thread, records, switch, switch_at};
pub use thread_slot::{has_records_without_slot, slot_or_claim, take_over_last_losses};
