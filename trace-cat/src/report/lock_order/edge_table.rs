//! Edges by the two locks that they connect. They stand one after the other: in a hash table of edges, the free places would take as
//! much memory as a third of the edges, and all of it twice while it grows.

use std::collections::HashMap;

use foldhash::fast::RandomState;

/// A table of edges.
#[derive(Debug)]
pub struct EdgeTable<E> {
    edges: Vec<E>,
    numbers: HashMap<(u32, u32), u32, RandomState>,
}

impl<E> Default for EdgeTable<E> {
    fn default() -> EdgeTable<E> {
        EdgeTable { edges: Vec::new(), numbers: HashMap::default() }
    }
}

impl<E: Default> EdgeTable<E> {
    pub fn len(&self) -> usize {
        self.edges.len()
    }

    /// The edge from one lock to another one.
    pub fn get(&self, key: (u32, u32)) -> Option<&E> {
        self.numbers.get(&key).map(|number| &self.edges[*number as usize])
    }

    /// The same; a new one if there is none.
    pub fn get_or_add(&mut self, key: (u32, u32)) -> &mut E {
        let number = *self.numbers.entry(key).or_insert(self.edges.len() as u32) as usize;
        if number == self.edges.len() {
            if number == self.edges.capacity() {
                self.edges.reserve_exact(number / 8 + 16);
            }
            self.edges.push(E::default());
        }
        &mut self.edges[number]
    }

    /// The locks that edges connect, in no order.
    pub fn keys(&self) -> impl Iterator<Item = (u32, u32)> {
        self.numbers.keys().copied()
    }
}
