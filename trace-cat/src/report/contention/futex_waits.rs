//! Sums of the waits by futex(2).

use std::collections::HashMap;

use foldhash::fast::RandomState;

/// The most sums that are kept.
const SUMS_MAX: usize = 1 << 20;

/// What waits have in common that are summed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FutexWait {
    pub object: u32,
    pub thread: u32,
    pub site: u32,
    pub waker: Option<u32>,
}

#[derive(Clone, Copy, Debug, Default)]
pub struct FutexWaitSum {
    pub waits: u64,
    pub waited: u64,
    /// Of that, the time until the wake-up.
    pub until_wake: u64,
}

/// By what they have in common.
#[derive(Debug, Default)]
pub struct FutexWaits(pub HashMap<FutexWait, FutexWaitSum, RandomState>);

impl FutexWaits {
    /// Adds waits; where there is no room for a sum more, they stay what they are.
    pub fn add(&mut self, wait: FutexWait, sum: FutexWaitSum) {
        if self.0.len() < SUMS_MAX || self.0.contains_key(&wait) {
            let known = self.0.entry(wait).or_default();
            known.waits += sum.waits;
            known.waited += sum.waited;
            known.until_wake += sum.until_wake;
        }
    }
}
