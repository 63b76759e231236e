//! The real functions: what the host's calls would have reached without us.
//!
//! There is one static for each, named like the C function. All are looked up when the library wakes, and any that a
//! hook needs earlier is looked up then.

use core::ffi::{CStr, c_int};
use core::sync::atomic::{AtomicBool, AtomicPtr, Ordering::Relaxed};

use crate::elf;
use crate::say::{Cause, say};

/// One real function.
pub struct Real {
    address: AtomicPtr<()>,
    is_libc: AtomicBool,
    name: &'static CStr,
}

impl Real {
    const fn new(name: &'static CStr) -> Real {
        Real { address: AtomicPtr::new(core::ptr::null_mut()), is_libc: AtomicBool::new(false), name }
    }

    /// Its address; that of a function that only fails where this libc has none, never null.
    #[inline(always)]
    pub fn address(&self) -> *const () {
        // ORDERING: Relaxed; code at a valid address needs no further memory to be visible.
        let address = self.address.load(Relaxed);
        if address.is_null() { self.look_up() } else { address }
    }

    /// Its address, if this libc has it.
    pub fn found(&self) -> Option<*const ()> {
        let address = self.address();
        let stands_in = [missing as *const (), missing_with_errno as *const (), missing_c11 as *const ()];
        (!stands_in.contains(&address)).then_some(address)
    }

    /// Whether it is libc's own, not another interposer's. Only those may be tried before they are really called.
    #[inline]
    pub fn is_libc(&self) -> bool {
        self.is_libc.load(Relaxed)
    }

    #[cold]
    #[inline(never)]
    fn look_up(&self) -> *const () {
        let found = if cfg!(test) { elf::any(self.name) } else { elf::next(self.name).or_else(|| elf::any(self.name)) };
        match found {
            Some(found) => {
                self.is_libc.store(found.is_libc, Relaxed);
                self.address.store(found.address.cast_mut(), Relaxed);
                found.address
            }
            // Not stored: a library that is loaded later may bring it.
            None => match self.name.to_bytes() {
                [b's', b'e', b'm', b'_', ..] | [b'e', b'x', b'e', b'c', ..] | b"fexecve" | b"_Fork" => {
                    missing_with_errno as *const ()
                }
                [b't', b'h', b'r', b'd', b'_', ..] | [b'm' | b'c' | b't', _, b'x' | b'd' | b's', b'_', ..] => {
                    missing_c11 as *const ()
                }
                _ => missing as *const (),
            },
        }
    }
}

/// Stands for a function that this libc does not have.
extern "C" fn missing() -> isize {
    say(Cause::Missing, &[b"a function was called that this libc does not have"]);
    libc::ENOSYS as isize
}

/// Stands for such a function that reports its error by errno.
extern "C" fn missing_with_errno() -> isize {
    missing();
    // SAFETY: libc's own errno of this thread.
    unsafe { *libc::__errno_location() = libc::ENOSYS as c_int };
    -1
}

/// Stands for a C11 function: `thrd_error`.
extern "C" fn missing_c11() -> isize {
    missing();
    2
}

/// Looks up all of them, so that no hook has to while the program runs.
pub fn look_up_all() {
    for real in ALL {
        real.address();
    }
}

include!(concat!(env!("OUT_DIR"), "/real.rs"));
