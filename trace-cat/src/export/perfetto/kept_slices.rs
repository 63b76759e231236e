//! The encoded fields of slices. Most slices are like an earlier one but for their times and arrows.

use std::collections::HashMap;

use foldhash::fast::RandomState;

/// How many slices' fields are kept.
const KEPT_MAX: usize = 1 << 16;
/// What distinguishes slices but for their times and arrows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SliceKey {
    pub thread: u32,
    /// The lane of a hold.
    pub lane: u32,
    pub object: u32,
    pub site: u32,
    pub holder: u32,
    pub waker: u32,
    /// Which edges cut it off, and what is unusual.
    pub flags: [bool; 4],
}

/// The fields of slices.
#[derive(Debug, Default)]
pub struct KeptSlices {
    indexes: HashMap<SliceKey, usize, RandomState>,
    slices: Vec<KeptSlice>,
}

/// The fields of a slice's beginning and of its end.
#[derive(Debug)]
pub struct KeptSlice {
    pub begin: Box<[u8]>,
    pub end: Box<[u8]>,
}

impl KeptSlices {
    /// The number of the slice that has these properties.
    pub fn find(&self, key: &SliceKey) -> Option<usize> {
        self.indexes.get(key).copied()
    }

    /// A slice; numbers are valid until the next one is added.
    pub fn slice(&self, number: usize) -> &KeptSlice {
        &self.slices[number]
    }

    /// Adds a slice. Returns its number.
    pub fn add(&mut self, key: SliceKey, slice: KeptSlice) -> usize {
        if self.slices.len() >= KEPT_MAX {
            self.indexes.clear();
            self.slices.clear();
        }
        self.slices.push(slice);
        self.indexes.insert(key, self.slices.len() - 1);
        self.slices.len() - 1
    }
}
