//! A list of reusable things, without locks: a Treiber stack.
//!
//! The head holds the address of the first thing in its low 48 bits and a count of changes in the others, so that a
//! thing that was taken and put back meanwhile does not look as if nothing had happened. Things are never unmapped;
//! reading the link of one that somebody else has just taken is harmless.

use core::sync::atomic::{
    AtomicU64,
    Ordering::{AcqRel, Acquire, Relaxed},
};

/// Something that can be in a [`Pool`].
pub trait Pooled: 'static {
    /// Where the pool keeps the next thing's address.
    fn link(&self) -> &AtomicU64;
}

/// Things that wait for being used again.
pub struct Pool<T> {
    head: AtomicU64,
    things: core::marker::PhantomData<fn() -> T>,
}

/// Addresses in user space have 47 bits (mappings above need to be asked for).
const ADDRESS: u64 = (1 << 48) - 1;

impl<T: Pooled> Pool<T> {
    /// An empty pool; all its bytes are zero.
    pub const fn new() -> Pool<T> {
        Pool { head: AtomicU64::new(0), things: core::marker::PhantomData }
    }

    /// Puts a thing in. It must not be in a pool already.
    pub fn put(&self, thing: &'static T) {
        let address = thing as *const T as u64;
        let mut head = self.head.load(Relaxed);
        loop {
            thing.link().store(head & ADDRESS, Relaxed);
            let next = address | (head & !ADDRESS).wrapping_add(ADDRESS + 1);
            // ORDERING: Release makes what the thing holds, and its link, visible to whoever takes it.
            match self.head.compare_exchange_weak(head, next, AcqRel, Relaxed) {
                Ok(_) => return,
                Err(now) => head = now,
            }
        }
    }

    /// Takes a thing out.
    pub fn take(&self) -> Option<&'static T> {
        // ORDERING: Acquire pairs with the Release in `put`.
        let mut head = self.head.load(Acquire);
        loop {
            // SAFETY: only addresses of `&'static T` are put in.
            let thing = unsafe { ((head & ADDRESS) as *const T).as_ref() }?;
            let next = thing.link().load(Relaxed) | (head & !ADDRESS).wrapping_add(ADDRESS + 1);
            match self.head.compare_exchange_weak(head, next, AcqRel, Acquire) {
                Ok(_) => return Some(thing),
                Err(now) => head = now,
            }
        }
    }

    /// Forgets everything that is in the pool.
    pub fn clear(&self) {
        self.head.store(0, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU32;

    struct Thing {
        link: AtomicU64,
        owners: AtomicU32,
    }

    impl Pooled for Thing {
        fn link(&self) -> &AtomicU64 {
            &self.link
        }
    }

    #[test]
    fn a_thing_has_one_owner_at_a_time() {
        static POOL: Pool<Thing> = Pool::new();
        for _ in 0..3 {
            POOL.put(Box::leak(Box::new(Thing { link: AtomicU64::new(0), owners: AtomicU32::new(0) })));
        }
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..200_000 {
                        if let Some(thing) = POOL.take() {
                            assert_eq!(thing.owners.fetch_add(1, AcqRel), 0);
                            thing.owners.fetch_sub(1, AcqRel);
                            POOL.put(thing);
                        }
                    }
                });
            }
        });
        assert_eq!(std::iter::from_fn(|| POOL.take()).count(), 3);
    }
}
