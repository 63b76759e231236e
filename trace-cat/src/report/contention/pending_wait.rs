//! What is kept of an object while threads wait for it.

use super::holds::FinishedWait;
use super::wait_shares::WaitShares;

/// A wait whose shares are not known yet.
#[derive(Debug, Default)]
pub struct PendingWait {
    pub key: u64,
    pub entry: u64,
    /// The shares of the time before are in `shares`.
    pub divided_until: u64,
    pub shares: WaitShares,
    /// The number of the first segment that it covers.
    pub first: u64,
    /// When it ended, if it did so without an acquisition.
    pub end: Option<u64>,
    pub has_timed_out: bool,
    pub site: u32,
    /// How many waited when it began, itself included.
    pub rank: u32,
    /// Of a time that is watched: how many woken threads may want the object.
    pub woken: u32,
}

impl PendingWait {
    /// The wait with its end and its shares.
    pub fn finished(self, end: u64, shares: WaitShares) -> FinishedWait {
        let PendingWait { key, entry, has_timed_out, site, rank, .. } = self;
        FinishedWait { key, entry, end, shares, has_timed_out, site, rank }
    }
}
