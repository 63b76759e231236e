mod append;
mod nesting;
mod record;
mod return_record;
mod thread_slot;

#[cfg(test)]
pub use append::append;
pub use record::{put, put_mutex, put_pair};
pub use return_record::ReturnRecord;
pub use thread_slot::{pthread_self, slot_or_claim, take_over_losses};
