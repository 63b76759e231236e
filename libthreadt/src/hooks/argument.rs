//! The host's arguments, as columns have them.

use core::ffi::{c_int, c_uint};

use super::result::CallResult;
use crate::glibc::object_words::Ptr;

/// An argument as the 64 bits of a column.
pub trait Bits {
    /// The bits; negative numbers are extended.
    fn bits(self) -> u64;
}

impl Bits for Ptr {
    fn bits(self) -> u64 {
        self as u64
    }
}

impl Bits for c_int {
    fn bits(self) -> u64 {
        i64::from(self) as u64
    }
}

impl Bits for c_uint {
    fn bits(self) -> u64 {
        self.into()
    }
}

impl Bits for u64 {
    fn bits(self) -> u64 {
        self
    }
}

impl Bits for usize {
    fn bits(self) -> u64 {
        self as u64
    }
}

/// The int that the call stored at `pointer`; 0 if it failed or there is no pointer.
pub unsafe fn stored(pointer: Ptr, result: &impl CallResult) -> u64 {
    if pointer.is_null() || result.rval() != 0 {
        return 0;
    }
    // SAFETY: the next function has just written there.
    unsafe { pointer.cast::<c_int>().read() }.bits()
}
