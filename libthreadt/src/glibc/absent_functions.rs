//! Functions that the process does not have: those of libpthread in a program without it (before glibc 2.34), and those
//! that came later than this glibc.
//!
//! Programs ask for such functions by weak references or by `dlsym`, and do without them: gnulib's and libstdc++'s
//! threads, `pthread_once` of libselinux. Such a reference must stay null, so the hooks of these functions are hidden
//! before anyone finds them: when the dynamic linker relocates this library, before it relocates the program and before
//! any constructor runs.

#[cfg(not(test))]
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};
#[cfg(not(test))]
use core::{arch::global_asm, ffi::CStr};

#[cfg(not(test))]
use super::libc_mark::{self, NOBODYS_VERSION};
#[cfg(not(test))]
use crate::sys::{elf, own_exports, stack, unwind_sections};

// A pointer to an indirect function: its resolver is called when everything else in the library has been relocated.
#[cfg(not(test))]
global_asm!(
    ".pushsection .text.threadt_relocated,\"ax\",@progbits",
    ".globl threadt_relocated",
    ".hidden threadt_relocated",
    ".type threadt_relocated,@gnu_indirect_function",
    "threadt_relocated:",
    ".cfi_startproc",
    "jmp {relocated}",
    ".cfi_endproc",
    ".size threadt_relocated, . - threadt_relocated",
    ".popsection",
    relocated = sym relocated,
);

#[cfg(not(test))]
unsafe extern "C" {
    fn threadt_relocated();
}

/// The pointer. Nobody reads it.
#[cfg(not(test))]
#[used]
static RELOCATED: unsafe extern "C" fn() = threadt_relocated;

#[cfg(not(test))]
static IS_RELOCATED: AtomicBool = AtomicBool::new(false);

/// Whether the dynamic linker has relocated this library.
pub fn is_relocated() -> bool {
    #[cfg(test)]
    return true;
    #[cfg(not(test))]
    return IS_RELOCATED.load(Relaxed);
}

/// The resolver. Returns what the pointer becomes.
#[cfg(not(test))]
extern "C" fn relocated() -> usize {
    // A library that the program loads may bring libpthread's, but none those that came with the merge or later.
    UNTIL_MERGED.hide_absent(|version| version != UNTIL_MERGED.newest);
    LATER.hide_absent(|_| false);
    // SAFETY: the dynamic linker relocates this library, and no thread runs beside it.
    unsafe { libc_mark::hide() };
    unwind_sections::note_start();
    stack::note_first_thread();
    // ORDERING: Relaxed; no other thread runs while the dynamic linker relocates libraries.
    IS_RELOCATED.store(true, Relaxed);
    RESOLVED
}

/// Functions that a program may be without, each with the version that it has in libpthread, or in later libcs. There are
/// those of the glibcs until 2.34, in which libpthread became a part of libc, and later ones.
#[cfg(not(test))]
struct Optional<const N: usize> {
    /// The newest of the versions. A libc with it has all of the functions.
    newest: &'static CStr,
    functions: [(&'static CStr, &'static CStr); N],
}

#[cfg(not(test))]
impl<const N: usize> Optional<N> {
    /// Hides those that no library has: under the version that a function would have there, if one may bring it.
    fn hide_absent(&self, may_come: impl Fn(&CStr) -> bool) {
        if !elf::libc_has_version(self.newest) {
            let hidden = |version| if may_come(version) { version } else { NOBODYS_VERSION };
            let functions = self.functions.map(|(name, version)| (name, hidden(version)));
            // SAFETY: the dynamic linker relocates this library, after those behind it.
            unsafe { own_exports::hide_absent(&functions) };
        }
    }
}

/// Any value: nobody calls it.
#[cfg(not(test))]
const RESOLVED: usize = 1;

#[cfg(not(test))]
include!(concat!(env!("OUT_DIR"), "/optional_functions.rs"));
