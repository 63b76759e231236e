//! Until when the selected calls without a return record lasted.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use super::selected_records::RecordKey;
use crate::calls::pairing::{CallKey, OPEN_CALLS_MAX};
use crate::calls::process_ends::OpenUntil;

/// The selected calls without a return record, by their entry records. Only conditions on calls make entries.
#[derive(Clone, Debug, Default)]
pub struct OpenCallTable(HashMap<RecordKey, OpenUntil, RandomState>);

impl OpenCallTable {
    /// Adds a call that began at `time`, unless there are too many.
    pub fn add_call(&mut self, call: CallKey, time: u64, until: OpenUntil) {
        if self.0.len() < OPEN_CALLS_MAX {
            self.0.insert(entry_key(call, time), until);
        }
    }

    /// Whether it has no call.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Until when the call lasted whose entry record has this time; `None` if it is not in the table.
    pub fn find(&self, call: CallKey, time: u64) -> Option<OpenUntil> {
        if self.is_empty() {
            return None;
        }
        self.0.get(&entry_key(call, time)).copied()
    }
}

fn entry_key(call: CallKey, time: u64) -> RecordKey {
    RecordKey::new(time, call.pid, call.lwp, (call.category, call.number, 1))
}
