//! Finds functions in the loaded objects by walking the list and the symbol tables of the dynamic linker.
//!
//! `dlsym` may allocate, leaves its errors in the host's `dlerror`, requires glibc 2.34 since it moved to libc, and
//! before 2.36 resolved `RTLD_NEXT` to the oldest version of a symbol (glibc bug 14932). The list of loaded objects is
//! public (`link.h`), and so are their hash tables; walking them allocates nothing and takes no lock.

use core::ffi::{CStr, c_char};
use core::ptr;

use libc::Elf64_Sym;

use super::path;

/// `struct link_map`, the part that `link.h` declares.
#[repr(C)]
pub struct LinkMap {
    base: usize,
    name: *const c_char,
    dynamic: *const Dynamic,
    next: *const LinkMap,
    previous: *const LinkMap,
}

/// `struct r_debug`, the part that is used here.
#[repr(C)]
struct Debug {
    version: i32,
    first: *const LinkMap,
}

/// `Elf64_Dyn`.
#[repr(C)]
struct Dynamic {
    tag: i64,
    value: usize,
}

unsafe extern "C" {
    static _r_debug: Debug;
    /// The dynamic section of this library, by which its entry of the list is known.
    static _DYNAMIC: Dynamic;
}

const DT_HASH: i64 = 4;
const DT_STRTAB: i64 = 5;
const DT_SYMTAB: i64 = 6;
const DT_GNU_HASH: i64 = 0x6fff_fef5;
const DT_VERSYM: i64 = 0x6fff_fff0;

/// The tables of one loaded object.
struct Tables {
    base: usize,
    symbols: *const Elf64_Sym,
    strings: *const c_char,
    versions: *const u16,
    gnu_hash: *const u32,
    hash: *const u32,
}

/// The loaded objects, in the order in which the linker searches those that were there at the start.
fn objects() -> impl Iterator<Item = &'static LinkMap> {
    // SAFETY: the linker keeps the list; entries go away only with dlclose, and the objects that matter here (the
    // program, its libraries, libc, the vDSO) are never closed.
    let mut next = unsafe { _r_debug.first };
    core::iter::from_fn(move || {
        // SAFETY: as above.
        let object = unsafe { next.as_ref() }?;
        next = object.next;
        Some(object)
    })
}

impl LinkMap {
    fn is_ours(&self) -> bool {
        ptr::eq(self.dynamic, &raw const _DYNAMIC)
    }

    /// The file name of the object, without its directory.
    fn base_name(&self) -> &[u8] {
        if self.name.is_null() {
            return b"";
        }
        // SAFETY: the linker's names are NUL-terminated and live as long as the entry.
        path::base_name(unsafe { CStr::from_ptr(self.name) }.to_bytes())
    }

    fn tables(&self) -> Option<Tables> {
        let mut entry = self.dynamic;
        if entry.is_null() {
            return None;
        }
        // SAFETY: zeros are null pointers. A dynamic section ends with a zero tag.
        let tables = unsafe {
            let mut tables = Tables { base: self.base, ..core::mem::zeroed() };
            while (*entry).tag != 0 {
                // The linker has relocated these addresses in place, except where the section is read-only (the vDSO).
                let value = (*entry).value;
                let address = if value < self.base { value + self.base } else { value };
                match (*entry).tag {
                    DT_SYMTAB => tables.symbols = address as *const Elf64_Sym,
                    DT_STRTAB => tables.strings = address as *const c_char,
                    DT_VERSYM => tables.versions = address as *const u16,
                    DT_GNU_HASH => tables.gnu_hash = address as *const u32,
                    DT_HASH => tables.hash = address as *const u32,
                    _ => {}
                }
                entry = entry.add(1);
            }
            tables
        };
        (!tables.symbols.is_null() && !tables.strings.is_null()).then_some(tables)
    }
}

/// The GNU hash of a symbol's name.
fn gnu_hash(name: &CStr) -> u32 {
    name.to_bytes().iter().fold(5381, |hash: u32, &byte| hash.wrapping_mul(33).wrapping_add(u32::from(byte)))
}

impl Tables {
    /// The function's address: its default version, else any version.
    ///
    /// # Safety
    /// The tables must be those of a loaded object.
    unsafe fn find(&self, name: &CStr) -> Option<usize> {
        let mut other = None;
        // The address of symbol `index` if it is the default version; else it is noted.
        let mut take = |index: usize| {
            // SAFETY: the index comes from the object's own hash table.
            let (address, is_default) = unsafe { self.defined(index, name) }?;
            if !is_default {
                other = Some(address);
            }
            is_default.then_some(address)
        };
        // SAFETY: the layouts of both tables are as the System V ABI and the GNU toolchain document them.
        unsafe {
            if !self.gnu_hash.is_null() {
                let table = self.gnu_hash;
                let (buckets, first, words) = (*table, *table.add(1), *table.add(2));
                let bucket_at = table.add(4 + 2 * words as usize);
                let chain_at = bucket_at.add(buckets as usize);
                let hash = gnu_hash(name);
                let mut index = if buckets == 0 { 0 } else { *bucket_at.add((hash % buckets) as usize) };
                while index >= first && index != 0 {
                    let entry = *chain_at.add((index - first) as usize);
                    if entry | 1 == hash | 1
                        && let Some(address) = take(index as usize)
                    {
                        return Some(address);
                    }
                    if entry & 1 == 1 {
                        break;
                    }
                    index += 1;
                }
            } else if !self.hash.is_null() {
                // Few objects have no other table than this one, whose second word is the number of symbols.
                let default = (1..*self.hash.add(1)).find_map(|index| take(index as usize));
                return default.or(other);
            }
        }
        other
    }

    /// The address of symbol `index` if it is a defined function of this name, and whether it is the default version.
    ///
    /// # Safety
    /// The object must have such a symbol.
    unsafe fn defined(&self, index: usize, name: &CStr) -> Option<(usize, bool)> {
        const STT_NOTYPE: u8 = 0;
        const STT_FUNC: u8 = 2;
        const STT_GNU_IFUNC: u8 = 10;
        // SAFETY: the caller's, and names are NUL-terminated in the string table.
        unsafe {
            let symbol = &*self.symbols.add(index);
            if symbol.st_shndx == 0 || CStr::from_ptr(self.strings.add(symbol.st_name as usize)) != name {
                return None;
            }
            let default = self.versions.is_null() || *self.versions.add(index) & 0x8000 == 0;
            let address = self.base + symbol.st_value as usize;
            match symbol.st_info & 15 {
                STT_FUNC | STT_NOTYPE => Some((address, default)),
                STT_GNU_IFUNC => {
                    let resolver: extern "C" fn() -> usize = core::mem::transmute(address);
                    Some((resolver(), default))
                }
                _ => None,
            }
        }
    }
}

/// Where a function is defined.
#[derive(Clone, Copy, Debug)]
pub struct Definition {
    pub address: *const (),
    /// Whether it is libc's own (or libpthread's, before 2.34), not another interposer's.
    pub is_libc: bool,
}

/// The function that the host's call would reach without this library: the first definition behind ours.
pub fn next_definition(name: &CStr) -> Option<Definition> {
    let mut behind = objects().skip_while(|object| !object.is_ours());
    behind.next();
    behind.find_map(|object| in_object(object, name))
}

/// The first definition in any other object.
pub fn any_definition(name: &CStr) -> Option<Definition> {
    objects().filter(|object| !object.is_ours()).find_map(|object| in_object(object, name))
}

/// The definition in the object that has code at `address`.
pub fn definition_beside(address: usize, name: &CStr) -> Option<Definition> {
    let below = objects().filter(|object| object.base <= address);
    in_object(below.max_by_key(|object| object.base)?, name)
}

fn in_object(object: &LinkMap, name: &CStr) -> Option<Definition> {
    let tables = object.tables()?;
    // SAFETY: the tables are this loaded object's.
    let address = unsafe { tables.find(name) }?;
    let file = object.base_name();
    Some(Definition {
        address: address as *const (),
        is_libc: file.starts_with(b"libc.so") || file.starts_with(b"libpthread.so"),
    })
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "compared by address, not called")]
mod tests {
    use super::*;

    #[test]
    fn a_function_of_libc_is_found() {
        let found = any_definition(c"pthread_mutex_lock").unwrap();
        assert!(found.is_libc);
        assert_eq!(found.address, libc::pthread_mutex_lock as *const ());
        assert!(any_definition(c"no_such_function_anywhere").is_none());
    }

    #[test]
    fn the_default_version_is_preferred() {
        // libc has two of it; the old one takes a pointer to a condition variable of another layout.
        assert_eq!(any_definition(c"pthread_cond_wait").unwrap().address, libc::pthread_cond_wait as *const ());
    }

    #[test]
    fn the_vdso_is_searched() {
        assert!(any_definition(c"__vdso_clock_gettime").is_some());
    }
}
