//! What the dynamic linker has loaded, and whether it has loaded or unloaded libraries since somebody asked.

use core::ffi::{CStr, c_int, c_void};
use core::mem::offset_of;

use libc::{dl_phdr_info, size_t};

use super::next_functions;

/// The function that is called for each library until it returns another number than 0.
type VisitLibrary = unsafe extern "C" fn(*mut dl_phdr_info, size_t, *mut c_void) -> c_int;

/// A number that is another one, never 0, after libraries were loaded or unloaded; 0 if it is not known.
///
/// glibc takes the linker's lock for this, which a thread that closes a library takes, too. A forked child must not ask: another
/// thread of its parent may have had the lock.
pub fn change_number() -> u64 {
    let Some(address) = next_functions::dl_iterate_phdr.address_if_any() else { return 0 };
    let mut number = 0u64;
    // SAFETY: libc's function with the prototype in `link.h`; `note` gets the address of the number.
    unsafe {
        let iterate: unsafe extern "C" fn(VisitLibrary, *mut c_void) -> c_int = core::mem::transmute(address);
        iterate(note, (&raw mut number).cast());
    }
    number
}

unsafe extern "C" fn note(info: *mut dl_phdr_info, size: size_t, number: *mut c_void) -> c_int {
    if size >= offset_of!(dl_phdr_info, dlpi_subs) + size_of::<u64>() {
        // SAFETY: the linker's struct has the counts, by its size; the number is the caller's.
        unsafe { *number.cast::<u64>() = ((*info).dlpi_adds.rotate_left(32) ^ (*info).dlpi_subs).max(1) };
    }
    1
}

/// Shows `visitor` the base and the path of each loaded object; `false` if that cannot be done. As [`change_number`], nothing for a
/// forked child. The visitor must not take what a thread has that asks the linker.
pub fn visit(visitor: &mut dyn FnMut(usize, &[u8])) -> bool {
    let Some(address) = next_functions::dl_iterate_phdr.address_if_any() else { return false };
    let mut visitor = visitor;
    // SAFETY: libc's function with the prototype in `link.h`; `show` gets the address of the visitor.
    unsafe {
        let iterate: unsafe extern "C" fn(VisitLibrary, *mut c_void) -> c_int = core::mem::transmute(address);
        iterate(show, (&raw mut visitor).cast());
    }
    true
}

unsafe extern "C" fn show(info: *mut dl_phdr_info, _size: size_t, visitor: *mut c_void) -> c_int {
    // SAFETY: the linker's struct, whose name is NUL-terminated or null; the visitor is the caller's.
    unsafe {
        let (base, name) = ((*info).dlpi_addr as usize, (*info).dlpi_name);
        let path = if name.is_null() { &[] } else { CStr::from_ptr(name).to_bytes() };
        (*visitor.cast::<&mut dyn FnMut(usize, &[u8])>())(base, path);
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "needs the dynamic linker")]
    #[expect(clippy::disallowed_methods, reason = "the test is the program that opens a library")]
    fn the_number_changes_when_a_library_is_loaded() {
        // What the tests are linked with does not load it.
        let [library, missing] = [c"libanl.so.1", c"libno_such_library.so"];
        let (before, again) = (change_number(), change_number());
        assert!(before != 0 && before == again);
        // SAFETY: a library of libc.
        unsafe {
            assert!(libc::dlopen(missing.as_ptr(), libc::RTLD_NOW).is_null());
            assert_eq!(change_number(), before);
            let handle = libc::dlopen(library.as_ptr(), libc::RTLD_NOW);
            assert!(!handle.is_null());
            let loaded = change_number();
            assert_ne!(loaded, before);
            libc::dlclose(handle);
            assert_ne!(change_number(), loaded);
        }
    }
}
