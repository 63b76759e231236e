//! Finds sites by what they are. An entry is a number of four bytes: what it stands for is compared in the site itself, which its
//! call needs next, so that a call at one of many sites waits for the memory of its site alone.

use std::hash::{BuildHasher, Hash};

use foldhash::fast::RandomState;

/// An entry that stands for no site.
const NONE: u32 = u32::MAX;

/// The numbers of sites, each at the first free place from that of its hash on. At least half of the places are free.
#[derive(Debug)]
pub struct SiteIndex {
    places: Vec<u32>,
    count: usize,
    state: RandomState,
}

impl SiteIndex {
    pub fn new() -> SiteIndex {
        SiteIndex { places: vec![NONE; 64], count: 0, state: RandomState::default() }
    }

    /// The number of the site with a key.
    pub fn find<K: Hash>(&self, key: &K, mut is_same: impl FnMut(u32) -> bool) -> Option<u32> {
        let mut place = self.first_place(key);
        while self.places[place] != NONE {
            if is_same(self.places[place]) {
                return Some(self.places[place]);
            }
            place = self.next_place(place);
        }
        None
    }

    /// Adds a site, whose key no other one has. `key_of` gives the keys of all sites.
    pub fn add<K: Hash>(&mut self, site: u32, key_of: impl Fn(u32) -> K) {
        self.count += 1;
        if self.count * 2 > self.places.len() {
            let grown = vec![NONE; self.places.len() * 2];
            let known = std::mem::replace(&mut self.places, grown);
            known.into_iter().filter(|known| *known != NONE).for_each(|known| self.put(known, &key_of(known)));
        }
        self.put(site, &key_of(site));
    }

    fn put<K: Hash>(&mut self, site: u32, key: &K) {
        let mut place = self.first_place(key);
        while self.places[place] != NONE {
            place = self.next_place(place);
        }
        self.places[place] = site;
    }

    fn first_place<K: Hash>(&self, key: &K) -> usize {
        self.state.hash_one(key) as usize & (self.places.len() - 1)
    }

    fn next_place(&self, place: usize) -> usize {
        (place + 1) & (self.places.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_of_many_sites_is_found_and_no_other() {
        let mut index = SiteIndex::new();
        let key_of = |site: u32| (site / 7, u64::from(site) * 64);
        for site in 0..5000 {
            assert_eq!(index.find(&key_of(site), |known| key_of(known) == key_of(site)), None);
            index.add(site, key_of);
        }
        for site in 0..5000 {
            assert_eq!(index.find(&key_of(site), |known| key_of(known) == key_of(site)), Some(site));
        }
    }
}
