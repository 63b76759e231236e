//! What has been read of a running process's thread.

use std::ops::Range;

use spec::buffer::REGIONS;

use crate::record::columns;
use crate::record::validation;

/// The thread that a slot belongs to.
#[derive(Debug)]
pub struct LiveThread {
    /// Its LWP.
    pub lwp: u32,
    /// The place of its file.
    pub source: usize,
    /// Where the file ended when the buffers were copied.
    pub end: u64,
    /// Which bytes of the slot have been taken from buffers, by region.
    pub taken: [Range<usize>; REGIONS],
    /// How far its rings have been read, by region.
    pub rings: [Option<RingPosition>; REGIONS],
    /// It was told that records of it are missing.
    pub told: bool,
}

/// How far a ring has been read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingPosition {
    /// How often it had begun anew.
    pub wrap_count: u32,
    /// Up to which byte of the region.
    pub end: u32,
}

/// The time of a line, if it is a record.
pub fn time_of(line: &[u8]) -> Option<u64> {
    let text = line.strip_suffix(b"\n")?;
    validation::check(text).ok()?;
    columns::time(text)
}
