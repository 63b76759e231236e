//! Which code calls are in where a program closes libraries and opens others at the same addresses.

use std::collections::HashMap;
use std::hash::BuildHasher as _;
use std::sync::Arc;

use foldhash::fast::{FixedState, RandomState};

use crate::symbols::CodeMaps;

/// A process, an address, and the innermost frame of a stack.
pub type SiteKey = (u32, u64, u32);

/// From each time on, a number of the code; sorted.
type Changes = Arc<[(u64, u64)]>;

/// The most calls whose code is kept as it was found once.
const CALLS_MAX: usize = 1 << 19;

/// Mappings begin and end at pages.
const PAGE_BITS: u32 = 12;

/// The code of the processes that have closed libraries.
#[derive(Debug, Default)]
pub struct CodeChanges {
    maps: HashMap<u32, CodeMaps, RandomState>,
    pages: HashMap<(u32, u64), Changes, RandomState>,
    calls: HashMap<SiteKey, Changes, RandomState>,
}

impl CodeChanges {
    /// Takes what is known of a process by now.
    pub fn set(&mut self, process: u32, maps: &CodeMaps) {
        if maps.has_changes() {
            self.maps.insert(process, maps.clone());
            self.pages.retain(|(of, _), _| *of != process);
            self.calls.retain(|(of, ..), _| *of != process);
        }
    }

    /// A number of the code that a call with these addresses has at a time, which is another one for other code; 0 in a process that
    /// has closed nothing.
    pub fn code_of(&mut self, key: SiteKey, time: u64, addresses: impl FnOnce() -> Vec<u64>) -> u64 {
        let CodeChanges { maps, pages, calls } = self;
        let Some(maps) = maps.get(&key.0) else { return 0 };
        if calls.len() >= CALLS_MAX {
            calls.clear();
        }
        let changes = calls.entry(key).or_insert_with(|| {
            let mut of_page = |address: u64| {
                let page = address >> PAGE_BITS << PAGE_BITS;
                pages.entry((key.0, page)).or_insert_with(|| maps.identities(page).into()).clone()
            };
            let frames: Vec<Changes> = addresses().into_iter().map(&mut of_page).collect();
            together(&frames)
        });
        number_at(changes, time)
    }
}

/// The number in force at a time.
fn number_at(changes: &[(u64, u64)], time: u64) -> u64 {
    let place = changes.partition_point(|(from, _)| *from <= time);
    changes.get(place.wrapping_sub(1)).map_or(0, |(_, number)| *number)
}

/// Numbers of the code of all frames.
fn together(frames: &[Changes]) -> Changes {
    let mut times: Vec<u64> = frames.iter().flat_map(|changes| changes.iter().map(|(from, _)| *from)).collect();
    times.sort_unstable();
    times.dedup();
    let number = |time: u64| {
        let numbers: Vec<u64> = frames.iter().map(|changes| number_at(changes, time)).collect();
        FixedState::default().hash_one(numbers)
    };
    times.into_iter().map(|time| (time, number(time))).collect()
}
