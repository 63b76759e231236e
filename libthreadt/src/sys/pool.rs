//! A list of reusable items without locks: a Treiber stack.
//!
//! The head holds the address of the first item in its low 48 bits and a count of changes in the others, so that an
//! item that was taken and put back meanwhile is noticed. Items are never unmapped, so that the link of an item that
//! another thread has just taken can still be read.

use core::marker::PhantomData;
use core::ptr::{NonNull, with_exposed_provenance_mut};
use core::sync::atomic::{
    AtomicU64,
    Ordering::{AcqRel, Acquire, Relaxed},
};

/// Where the items of a [`Pool`] begin; all zero for an empty pool.
pub struct PoolHead(AtomicU64);

/// A handle of memory that can be in a [`Pool`].
///
/// # Safety
/// The memory is never unmapped, and `from_base(handle.base())` is the same handle.
pub unsafe trait Pooled: Copy {
    /// Where the memory begins.
    fn base(self) -> NonNull<u8>;

    /// The handle of the memory that begins at `base`.
    ///
    /// # Safety
    /// `base` must come from [`Pooled::base`] of this type.
    unsafe fn from_base(base: NonNull<u8>) -> Self;

    /// Where the pool keeps the next item's address.
    fn link(&self) -> &AtomicU64;
}

/// Items that wait for being used again.
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
    pub fn put(&self, item: T) {
        let address = item.base().as_ptr().expose_provenance() as u64;
        let mut head = self.head.0.load(Relaxed);
        loop {
            item.link().store(head & ADDRESS, Relaxed);
            let next = address | (head & !ADDRESS).wrapping_add(ADDRESS + 1);
            // ORDERING: Release makes what the item holds, and its link, visible to whoever takes it.
            match self.head.0.compare_exchange_weak(head, next, AcqRel, Relaxed) {
                Ok(_) => return,
                Err(changed) => head = changed,
            }
        }
    }

    /// Takes an item out.
    pub fn take(&self) -> Option<T> {
        // ORDERING: Acquire pairs with the Release in `put`.
        let mut head = self.head.0.load(Acquire);
        loop {
            let base = NonNull::new(with_exposed_provenance_mut((head & ADDRESS) as usize))?;
            // SAFETY: `put` has stored the base of an item of this type, whose provenance it exposed.
            let item = unsafe { T::from_base(base) };
            let next = item.link().load(Relaxed) | (head & !ADDRESS).wrapping_add(ADDRESS + 1);
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

    // SAFETY: the test leaks its items, and both conversions keep the address.
    unsafe impl Pooled for &'static Item {
        fn base(self) -> NonNull<u8> {
            NonNull::from(self).cast()
        }

        unsafe fn from_base(base: NonNull<u8>) -> &'static Item {
            // SAFETY: the caller's.
            unsafe { base.cast().as_ref() }
        }

        fn link(&self) -> &AtomicU64 {
            &self.link
        }
    }

    #[test]
    fn an_item_has_one_owner_at_a_time() {
        static HEAD: PoolHead = PoolHead(AtomicU64::new(0));
        // SAFETY: the only pool at this head.
        static POOL: Pool<&'static Item> = unsafe { Pool::at(&HEAD) };
        for _ in 0..3 {
            POOL.put(Box::leak(Box::new(Item { link: AtomicU64::new(0), owners: AtomicU32::new(0) })));
        }
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..200_000 {
                        if let Some(item) = POOL.take() {
                            assert_eq!(item.owners.fetch_add(1, AcqRel), 0);
                            item.owners.fetch_sub(1, AcqRel);
                            POOL.put(item);
                        }
                    }
                });
            }
        });
        assert_eq!(std::iter::from_fn(|| POOL.take()).count(), 3);
    }
}
