//! Objects of other processes that may be the same memory as an object of a process.
//!
//! Each process has its own object for what several share, and records do not have which memory is shared. It may be mapped at another
//! address, but not at another place in its page; and one process initialises it, for all.

use std::collections::HashMap;

use super::object_state::{ObjectKind, ObjectState};

const PAGE: u64 = 4096;

/// The objects of all processes, by kind and place in the page.
#[derive(Debug, Default)]
pub struct Counterparts {
    places: HashMap<(ObjectKind, u64), Vec<u32>>,
}

impl Counterparts {
    /// Adds an object by its number, if it may be in memory that processes share.
    pub fn add(&mut self, number: u32, object: &ObjectState) {
        if object.may_be_in_shared_memory() {
            self.places.entry((object.kind, object.address % PAGE)).or_default().push(number);
        }
    }

    /// The objects at the place of one, if that may be in memory that processes share.
    pub fn at_place_of(&self, object: &ObjectState) -> &[u32] {
        let place = self.places.get(&(object.kind, object.address % PAGE));
        place.filter(|_| object.may_be_in_shared_memory()).map_or(&[], Vec::as_slice)
    }
}
