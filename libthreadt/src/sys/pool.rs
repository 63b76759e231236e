//! A list of reusable items without locks: a Treiber stack.
//!
//! The head holds the address of the first item in its low 48 bits and a count of changes in the others, so that an
//! item that was taken and put back meanwhile is noticed. Items are never unmapped, so that the link of an item that
//! another thread has just taken can still be read.

use core::marker::PhantomData;
use core::ptr::{NonNull, with_exposed_provenance_mut};
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};

/// Where the items of a [`Pool`] begin; all zero for an empty pool.
pub struct PoolHead(AtomicU64);

/// What can be in a [`Pool`].
pub trait Pooled {
    /// Where the pool keeps the next item's address.
    fn link(&self) -> &AtomicU64;
}

/// Items of type `T` that wait to be used again.
pub struct Pool<T> {
    head: &'static PoolHead,
    items: PhantomData<fn() -> T>,
}

/// Addresses in user space have 47 bits (mappings above need to be asked for).
const ADDRESS: u64 = (1 << 48) - 1;

impl<T: Pooled> Pool<T> {
    /// The pool that begins at `head`.
    ///
    /// # Safety
    /// No pool of another type may use this head.
    pub const unsafe fn at(head: &'static PoolHead) -> Pool<T> {
        Pool { head, items: PhantomData }
    }

    /// Puts an item in. It must not be in a pool already.
    ///
    /// # Safety
    /// The item must never be unmapped.
    pub unsafe fn put(&self, item: NonNull<T>) {
        let address = item.as_ptr().expose_provenance() as u64;
        // SAFETY: the caller's.
        let link = unsafe { item.as_ref() }.link();
        let mut head = self.head.0.load(Relaxed);
        loop {
            link.store(head & ADDRESS, Relaxed);
            let next = address | (head & !ADDRESS).wrapping_add(ADDRESS + 1);
            // ORDERING: Release makes what the item holds, and its link, visible to whoever takes it.
            match self.head.0.compare_exchange_weak(head, next, AcqRel, Relaxed) {
                Ok(_) => return,
                Err(changed) => head = changed,
            }
        }
    }

    /// Empties the pool, whose items nobody uses any more.
    pub fn forget_all(&self) {
        self.head.0.fetch_and(!ADDRESS, AcqRel);
    }

    /// Takes an item out.
    pub fn take(&self) -> Option<NonNull<T>> {
        // ORDERING: Acquire pairs with the Release in `put`.
        let mut head = self.head.0.load(Acquire);
        loop {
            let item = NonNull::new(with_exposed_provenance_mut::<T>((head & ADDRESS) as usize))?;
            // SAFETY: `put` has stored the address of an item of this type, whose provenance it exposed.
            let next = unsafe { item.as_ref() }.link().load(Relaxed) | (head & !ADDRESS).wrapping_add(ADDRESS + 1);
            match self.head.0.compare_exchange_weak(head, next, AcqRel, Acquire) {
                Ok(_) => return Some(item),
                Err(changed) => head = changed,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU32;

    struct Item {
        link: AtomicU64,
        owners: AtomicU32,
    }

    impl Pooled for Item {
        fn link(&self) -> &AtomicU64 {
            &self.link
        }
    }

    #[test]
    fn an_item_has_one_owner_at_a_time() {
        static HEAD: PoolHead = PoolHead(AtomicU64::new(0));
        // SAFETY: the only pool at this head.
        static POOL: Pool<Item> = unsafe { Pool::at(&HEAD) };
        for _ in 0..3 {
            let item = Box::leak(Box::new(Item { link: AtomicU64::new(0), owners: AtomicU32::new(0) }));
            // SAFETY: the item is leaked.
            unsafe { POOL.put(NonNull::from(item)) };
        }
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..200_000 {
                        if let Some(item) = POOL.take() {
                            // SAFETY: the item is leaked, and has just been taken.
                            unsafe {
                                assert_eq!(item.as_ref().owners.fetch_add(1, AcqRel), 0);
                                item.as_ref().owners.fetch_sub(1, AcqRel);
                                POOL.put(item);
                            }
                        }
                    }
                });
            }
        });
        assert_eq!(std::iter::from_fn(|| POOL.take()).count(), 3);
    }
}
