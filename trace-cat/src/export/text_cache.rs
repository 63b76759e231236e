//! The names of threads, objects and sites in the form that a format writes, each made once.

use std::collections::HashMap;
use std::hash::Hash;
use std::rc::Rc;

use foldhash::fast::RandomState;

/// Texts by what they name.
#[derive(Debug)]
pub struct TextCache<K> {
    texts: HashMap<K, Rc<str>, RandomState>,
}

impl<K: Eq + Hash> TextCache<K> {
    /// The text of `key`, which `make` makes the first time.
    pub fn get(&mut self, key: K, make: impl FnOnce() -> String) -> Rc<str> {
        self.texts.entry(key).or_insert_with(|| make().into()).clone()
    }
}

impl<K> Default for TextCache<K> {
    fn default() -> TextCache<K> {
        TextCache { texts: HashMap::default() }
    }
}
