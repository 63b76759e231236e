//! The thread that ended a wait.

use super::holds::Knowledge;

/// Who ended a wait, where and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waker {
    pub thread: u32,
    pub site: u32,
    pub time: u64,
}

impl Waker {
    /// Whether a release is the one that let a wait end that began at `entry`, and not an earlier one: where few releases are
    /// recorded, the last one known may be old.
    pub fn is_last_release(&self, entry: u64, knowledge: Knowledge) -> bool {
        self.time >= knowledge.complete_from && !knowledge.is_partial && (!knowledge.only_blocked || self.time > entry)
    }
}
