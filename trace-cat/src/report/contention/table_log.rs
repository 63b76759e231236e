//! What a table says of a record besides what a viewer draws.

use super::wait_shares::WaitShares;

/// What the records since the log was last emptied have shown.
#[derive(Debug, Default)]
pub struct TableLog {
    /// The object and the site of the last record's call.
    pub subject: Option<CallSubject>,
    /// How each wait that is contention is divided, in the order of the waits in the timeline.
    pub shares: Vec<WaitShares>,
}

/// What a call is about, as indexes of the analysis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallSubject {
    pub object: Option<u32>,
    /// 0 if it is not known.
    pub site: u32,
}
