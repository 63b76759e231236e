//! How far the buffers of a running process's thread have been read.

use std::ops::Range;

use spec::buffer::REGIONS;

use crate::record::{columns, validation};

/// The thread that a slot belongs to.
#[derive(Debug)]
pub struct LiveThread {
    /// Its LWP.
    pub lwp: u32,
    /// The index of its record file.
    pub file: usize,
    /// Where the record file ended when the buffers were copied.
    pub end: u64,
    /// Which bytes of the slot have been taken from buffers, by region.
    pub taken: [Range<usize>; REGIONS],
    /// How far its rings have been read, by region.
    pub ring_positions: [Option<RingPosition>; REGIONS],
    /// It was reported that records of it were overwritten.
    pub reported_loss: bool,
}

impl LiveThread {
    /// A thread of which nothing has been read.
    pub fn new(lwp: u32, file: usize) -> LiveThread {
        let taken = std::array::from_fn(|_| 0..0);
        LiveThread { lwp, file, end: u64::MAX, taken, ring_positions: [None; REGIONS], reported_loss: false }
    }
}

/// How far a ring has been read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingPosition {
    /// How often the ring had wrapped.
    pub wrap_count: u32,
    /// Up to which byte of the region.
    pub end: u32,
}

/// The time of a line, if the line is a record.
pub fn record_time(line: &[u8]) -> Option<u64> {
    let text = line.strip_suffix(b"\n")?;
    validation::validate(text).ok()?;
    columns::time(text)
}
