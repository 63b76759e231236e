//! A row of the table.

/// The number of a text; 0 is none.
pub type TextId = u32;

/// A row: a record with what it ended, or something that no record of its own ended. Numbers are as the records have them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Row {
    pub kind: TextId,
    pub time: u64,
    pub process: ProcessTexts,
    pub lwp: u32,
    pub tid: u64,
    pub event: TextId,
    /// Category and number, if `event` is known.
    pub event_number: (u8, u8),
    /// Only records have these.
    pub record: Option<(u8, [u64; 5])>,
    pub entry: Option<u64>,
    pub duration: Option<u64>,
    pub waited: Option<RowWait>,
    pub blame: Option<BlameShare>,
    pub held: Option<RowHold>,
    pub object: ObjectTexts,
    pub site: TextId,
    /// A call or hold has not ended; of waits, `waited` has that.
    pub is_open: bool,
}

/// What the rows of a process have in common.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessTexts {
    pub pid: u32,
    pub host: TextId,
    pub boot: TextId,
    pub program: TextId,
    pub build_id: TextId,
}

/// What the rows of an object have in common.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ObjectTexts {
    pub object: TextId,
    pub kind: TextId,
    pub name: TextId,
}

/// A wait that the row's record ended. Times are nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RowWait {
    pub waited: u64,
    pub handoff: u64,
    pub unknown: u64,
    pub is_contention: bool,
    pub has_timed_out: bool,
    pub waker: Option<(u32, TextId)>,
}

/// The part of a wait that a holder is to blame for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlameShare {
    pub holder: u32,
    pub site: TextId,
    pub time: u64,
}

/// A hold that the row's record ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RowHold {
    pub held: u64,
    /// Where the object was acquired.
    pub site: TextId,
}
