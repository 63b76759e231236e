//! The next functions: what the host's calls would reach without this library.
//!
//! There is one static for each, named like the C function. All are looked up at the start, or by an earlier hook.

use core::ffi::CStr;
use core::sync::atomic::{AtomicBool, AtomicPtr, Ordering::Relaxed};

use super::absent_functions::is_relocated;
use crate::sys::diagnostics::{Warning, warn};
use crate::sys::errno::set_errno;
use crate::sys::{elf, own_relocations};

/// One function of the next library that defines it.
pub struct NextFunction {
    address: AtomicPtr<()>,
    is_libc: AtomicBool,
    name: &'static CStr,
    /// The version that it has, where its library has several.
    version: Option<&'static CStr>,
    /// Takes its place where this libc has no such function.
    substitute: extern "C" fn() -> isize,
    /// If its library was not there at the start, that may be closed again.
    is_closable: bool,
}

impl NextFunction {
    /// Where the address is, for hooks that are written in assembly: null until it is looked up.
    pub const ADDRESS_OFFSET: usize = core::mem::offset_of!(NextFunction, address);

    /// Where it is noted whether it is libc's, for the same.
    pub const IS_LIBC_OFFSET: usize = core::mem::offset_of!(NextFunction, is_libc);

    const fn new(
        name: &'static CStr,
        version: Option<&'static CStr>,
        substitute: extern "C" fn() -> isize,
        is_closable: bool,
    ) -> NextFunction {
        let (address, is_libc) = (AtomicPtr::new(core::ptr::null_mut()), AtomicBool::new(false));
        NextFunction { address, is_libc, name, version, substitute, is_closable }
    }

    /// Its address, never null: where this libc has no such function, that of one that only fails.
    #[inline(always)]
    pub fn address(&self) -> *const () {
        // ORDERING: Relaxed; code at a valid address needs no further memory to be visible.
        let address = self.address.load(Relaxed);
        if address.is_null() { self.look_up() } else { address }
    }

    /// Whether it has been found. Unlike [`NextFunction::address_if_any`] it does not look again.
    #[inline]
    pub fn is_known(&self) -> bool {
        !self.address.load(Relaxed).is_null()
    }

    /// Its address, if this libc has it.
    pub fn address_if_any(&self) -> Option<*const ()> {
        let address = self.address();
        (address != self.substitute as *const ()).then_some(address)
    }

    /// Whether it is libc's own, not another interposer's. Only libc's locks may be tried first.
    #[inline]
    pub fn is_libc(&self) -> bool {
        self.is_libc.load(Relaxed)
    }

    #[cold]
    #[inline(never)]
    fn look_up(&self) -> *const () {
        // SAFETY: the dynamic linker relocates libraries while no other thread runs.
        if !is_relocated() && !unsafe { own_relocations::relocate() } {
            return unavailable as *const ();
        }
        let find = |version| {
            let next = if cfg!(test) { None } else { elf::next_definition(self.name, version) };
            next.or_else(|| elf::any_definition(self.name, version))
        };
        // Where this libc does not have the version, nothing was linked with it, and dlsym gets the default version.
        let versioned = self.version.and_then(|version| find(Some(version)));
        match versioned.or_else(|| find(None)) {
            Some(definition) if self.is_closable && ARE_LOOKED_UP.load(Relaxed) => definition.address,
            Some(definition) => {
                self.is_libc.store(definition.is_libc, Relaxed);
                self.address.store(definition.address.cast_mut(), Relaxed);
                definition.address
            }
            // Not stored: a library that is loaded later may bring it.
            None => self.substitute as *const (),
        }
    }
}

/// Takes the place of any function while this library is not relocated and cannot be. It calls nothing of libc's.
extern "C" fn unavailable() -> isize {
    libc::ENOSYS as isize
}

/// Takes the place of a function that this libc does not have.
extern "C" fn missing() -> isize {
    warn(Warning::Missing, &[b"a function was called that this libc does not have"]);
    libc::ENOSYS as isize
}

/// Takes the place of a function that reports its error by errno.
extern "C" fn missing_with_errno() -> isize {
    missing();
    set_errno(libc::ENOSYS);
    -1
}

/// Takes the place of a C11 function: returns `thrd_error`.
extern "C" fn missing_c11() -> isize {
    missing();
    2
}

/// Whether the process could not create threads when the functions were looked up: it was without libpthread.
static WITHOUT_THREADS: AtomicBool = AtomicBool::new(false);

/// What is found from now on is in a library that was opened while the program ran.
static ARE_LOOKED_UP: AtomicBool = AtomicBool::new(false);

/// Looks up all of them, so that no hook has to while the program runs.
pub fn look_up_all() {
    for function in ALL {
        function.address();
    }
    ARE_LOOKED_UP.store(true, Relaxed);
    WITHOUT_THREADS.store(!pthread_create.is_known(), Relaxed);
}

/// Whether libpthread has been opened since the functions were looked up. A thread that is being created proves it.
#[inline]
pub fn must_be_looked_up_again() -> bool {
    WITHOUT_THREADS.load(Relaxed) && pthread_create.address_if_any().is_some()
}

include!(concat!(env!("OUT_DIR"), "/next_functions.rs"));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whether_a_function_is_known_is_asked_without_a_search() {
        let there = NextFunction::new(c"pthread_mutex_lock", None, missing, false);
        assert!(!there.is_known());
        assert!(there.address_if_any().is_some() && there.is_known());
        let absent = NextFunction::new(c"no_such_function_anywhere", None, missing, false);
        assert!(absent.address_if_any().is_none() && !absent.is_known());
    }

    /// A library that was opened while the program runs is closed, and opened again elsewhere.
    #[test]
    fn what_may_be_closed_is_looked_up_each_time() {
        ARE_LOOKED_UP.store(true, Relaxed);
        let closable = NextFunction::new(c"pthread_mutex_lock", None, missing, true);
        assert!(closable.address_if_any().is_some() && !closable.is_known());
    }
}
