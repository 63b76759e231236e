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
    places: HashMap<(ObjectKind, u64), PlaceUsers>,
}

/// Which processes have objects at a place.
#[derive(Debug, Default)]
struct PlaceUsers {
    /// They have not initialised theirs.
    users: Pids,
    /// They have initialised theirs with attributes.
    makers: Pids,
    /// They have initialised theirs with attributes for which being one for several processes is the only reason.
    makers_for_processes: Pids,
}

/// One process or several.
#[derive(Debug, Default)]
struct Pids {
    first: Option<u32>,
    has_more: bool,
}

impl Pids {
    fn add(&mut self, pid: u32) {
        self.has_more |= *self.first.get_or_insert(pid) != pid;
    }

    fn has_other_than(&self, pid: u32) -> bool {
        self.has_more || self.first.is_some_and(|first| first != pid)
    }
}

impl Counterparts {
    /// Adds the object of the process with this ID.
    pub fn add(&mut self, pid: u32, object: &ObjectState) {
        let place = self.places.entry((object.kind, object.address % PAGE)).or_default();
        if !object.is_made_here {
            place.users.add(pid);
        } else if object.has_attributes {
            place.makers.add(pid);
        }
        if object.is_made_here && object.may_be_held_elsewhere {
            place.makers_for_processes.add(pid);
        }
    }

    /// Whether another process than this one, whose object it is, uses an object that may be one for processes, or made it.
    pub fn may_be_used_elsewhere(&self, pid: u32, object: &ObjectState) -> bool {
        self.has_other(pid, object, |place| &place.makers, object.may_be_for_processes())
    }

    /// Whether another process may have a lock of which nothing but this shows it: one of the two is initialised for several processes.
    pub fn may_be_held_elsewhere(&self, pid: u32, object: &ObjectState) -> bool {
        self.has_other(pid, object, |place| &place.makers_for_processes, object.may_be_held_elsewhere)
    }

    /// Whether another process uses an object, if that `may_be`, or made what this process only uses.
    fn has_other(&self, pid: u32, object: &ObjectState, makers: impl Fn(&PlaceUsers) -> &Pids, may_be: bool) -> bool {
        self.places.get(&(object.kind, object.address % PAGE)).is_some_and(|place| {
            may_be && place.users.has_other_than(pid) || !object.is_made_here && makers(place).has_other_than(pid)
        })
    }
}
