//! Finds functions in the loaded objects by walking the list and the symbol tables of the dynamic linker.
//!
//! `dlsym` may allocate, leaves its errors in the host's `dlerror`, requires glibc 2.34 since it moved to libc, and
//! before 2.36 resolved `RTLD_NEXT` to the oldest version of a symbol (glibc bug 14932). The list of loaded objects is
//! public (`link.h`), and so are their hash tables; walking them allocates nothing and takes no lock.

use core::ffi::{CStr, c_char};
use core::ptr;

use libc::{Elf64_Ehdr, Elf64_Phdr, Elf64_Rela, Elf64_Sym};

use super::memory::{PAGE, is_readable};
use super::path;

/// `struct link_map`, the part that `link.h` declares.
#[repr(C)]
pub struct LinkMap {
    pub(super) base: usize,
    name: *const c_char,
    pub(super) dynamic: *const Dynamic,
    next: *const LinkMap,
}

/// `struct r_debug`, the part that is used here.
#[repr(C)]
struct Debug {
    version: i32,
    first: *const LinkMap,
}

/// `Elf64_Dyn`.
#[repr(C)]
pub(super) struct Dynamic {
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
const DT_PLTRELSZ: i64 = 2;
const DT_SYMTAB: i64 = 6;
const DT_RELA: i64 = 7;
const DT_RELASZ: i64 = 8;
const DT_SONAME: i64 = 14;
const DT_JMPREL: i64 = 23;
const DT_GNU_HASH: i64 = 0x6fff_fef5;
const DT_VERSYM: i64 = 0x6fff_fff0;
const DT_VERDEF: i64 = 0x6fff_fffc;

/// The bit of a symbol's entry in DT_VERSYM that says that it is not the default version.
pub(super) const VERSYM_HIDDEN: u16 = 0x8000;
/// The index of symbols without a version.
const VER_NDX_GLOBAL: u16 = 1;
/// The flag of the entry that names the object itself.
const VER_FLG_BASE: u16 = 1;

/// `Elf64_Verdef`.
#[repr(C)]
pub(super) struct VersionDefinition {
    version: u16,
    flags: u16,
    index: u16,
    names: u16,
    hash: u32,
    first_name: u32,
    next: u32,
}

/// The tables of one loaded object.
pub(super) struct Tables {
    pub base: usize,
    pub symbols: *const Elf64_Sym,
    pub strings: *const c_char,
    pub versions: *const u16,
    /// Relocations of data and of calls, each with its size in bytes.
    pub relocations: [(*const Elf64_Rela, usize); 2],
    version_definitions: *const VersionDefinition,
    pub gnu_hash: *const u32,
    pub hash: *const u32,
    /// Where among the strings the object's own name is; 0 if it has none.
    name: usize,
}

/// The loaded objects, in the order in which the linker searches those that were there at the start.
pub fn objects() -> impl Iterator<Item = &'static LinkMap> {
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
    /// An object that is not taken from the list.
    pub(super) fn at(base: usize, dynamic: usize) -> LinkMap {
        LinkMap { base, name: ptr::null(), dynamic: ptr::with_exposed_provenance(dynamic), next: ptr::null() }
    }

    pub(super) fn is_ours(&self) -> bool {
        ptr::eq(self.dynamic, &raw const _DYNAMIC)
    }

    /// The path of the object's file; empty for the program.
    pub fn path(&self) -> &[u8] {
        if self.name.is_null() {
            return b"";
        }
        // SAFETY: the linker's names are NUL-terminated and live as long as the entry.
        unsafe { CStr::from_ptr(self.name) }.to_bytes()
    }

    /// The file name of the object, without its directory.
    pub fn base_name(&self) -> &[u8] {
        path::base_name(self.path())
    }

    pub(super) fn tables(&self) -> Option<Tables> {
        let mut entry = self.dynamic;
        if entry.is_null() {
            return None;
        }
        // SAFETY: zeros are null pointers. A dynamic section ends with a zero tag.
        let tables = unsafe {
            let mut tables = Tables { base: self.base, ..core::mem::zeroed() };
            while (*entry).tag != 0 {
                let value = (*entry).value;
                let address = relocated(value, self.base, entry as usize);
                match (*entry).tag {
                    DT_SYMTAB => tables.symbols = address as *const Elf64_Sym,
                    DT_STRTAB => tables.strings = address as *const c_char,
                    DT_VERSYM => tables.versions = address as *const u16,
                    DT_VERDEF => tables.version_definitions = address as *const VersionDefinition,
                    DT_RELA => tables.relocations[0].0 = address as *const Elf64_Rela,
                    DT_SONAME => tables.name = value,
                    DT_RELASZ => tables.relocations[0].1 = value,
                    DT_JMPREL => tables.relocations[1].0 = address as *const Elf64_Rela,
                    DT_PLTRELSZ => tables.relocations[1].1 = value,
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

/// The address of a table. The linker has relocated it in place, but not in sections that are read-only (the vDSO's), and
/// never DT_VERDEF: of `value` and the sum it is the one near `section`, unless (under valgrind) both are.
fn relocated(value: usize, base: usize, section: usize) -> usize {
    let sum = value.wrapping_add(base);
    let is_relocated =
        if base > u32::MAX as usize { value.abs_diff(section) < sum.abs_diff(section) } else { value >= base };
    if is_relocated { value } else { sum }
}

/// The GNU hash of a symbol's name.
fn gnu_hash(name: &CStr) -> u32 {
    name.to_bytes().iter().fold(5381, |hash: u32, &byte| hash.wrapping_mul(33).wrapping_add(u32::from(byte)))
}

impl Tables {
    /// The function's address: of `version`, as the dynamic linker would take it for a reference to that; without a
    /// version the default version, else any version.
    ///
    /// # Safety
    /// The tables must be those of a loaded object.
    unsafe fn find(&self, name: &CStr, version: Option<&CStr>) -> Option<usize> {
        let mut other = None;
        // The address of symbol `index` if it is the wanted version; else it is noted.
        let take = |index: usize| {
            // SAFETY: the index comes from the object's own hash table.
            unsafe {
                let is_wanted = match version {
                    Some(version) => self.has_version(index, version),
                    None => self.versions.is_null() || *self.versions.add(index) & VERSYM_HIDDEN == 0,
                };
                if is_wanted {
                    return self.function(index);
                }
                if version.is_none() {
                    other = self.function(index).or(other);
                }
            }
            None
        };
        // SAFETY: the caller's.
        unsafe { self.find_symbol(name, take) }.or(other)
    }

    /// What `take` makes of the first defined symbol of this name of which it makes something; it gets the index.
    ///
    /// # Safety
    /// The tables must be those of a loaded object.
    pub unsafe fn find_symbol<T>(&self, name: &CStr, mut take: impl FnMut(usize) -> Option<T>) -> Option<T> {
        // SAFETY: the index comes from the object's own hash table.
        let mut take = |index: usize| unsafe { self.is_defined(index, name) }.then(|| take(index)).flatten();
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
                        && let Some(found) = take(index as usize)
                    {
                        return Some(found);
                    }
                    if entry & 1 == 1 {
                        break;
                    }
                    index += 1;
                }
            } else if !self.hash.is_null() {
                // Few objects have no other table than this one, whose second word is the number of symbols.
                return (1..*self.hash.add(1)).find_map(|index| take(index as usize));
            }
        }
        None
    }

    /// The address of the hash table, which stands near the beginning of most files.
    pub fn first_table(&self) -> usize {
        if self.gnu_hash.is_null() { self.hash as usize } else { self.gnu_hash as usize }
    }

    /// The index of the object's own version of this name, if it has that.
    ///
    /// # Safety
    /// As for [`Tables::find_symbol`].
    pub unsafe fn version_index(&self, version: &CStr) -> Option<u16> {
        let mut definition = self.version_definitions;
        // SAFETY: the definitions are a list that ends with an entry without a next one.
        unsafe {
            while let Some(entry) = definition.as_ref() {
                let name = *definition.byte_add(entry.first_name as usize).cast::<u32>();
                if entry.flags & VER_FLG_BASE == 0 && CStr::from_ptr(self.strings.add(name as usize)) == version {
                    return Some(entry.index);
                }
                if entry.next == 0 {
                    return None;
                }
                definition = definition.byte_add(entry.next as usize);
            }
        }
        None
    }

    /// Whether symbol `index` is defined and has this name.
    ///
    /// # Safety
    /// The object must have such a symbol; here and below.
    unsafe fn is_defined(&self, index: usize, name: &CStr) -> bool {
        // SAFETY: the caller's, and names are NUL-terminated in the string table.
        unsafe {
            let symbol = &*self.symbols.add(index);
            symbol.st_shndx != 0 && CStr::from_ptr(self.strings.add(symbol.st_name as usize)) == name
        }
    }

    /// Whether the dynamic linker takes symbol `index` for a reference to `version`: it has that version, or none.
    unsafe fn has_version(&self, index: usize, version: &CStr) -> bool {
        if self.versions.is_null() {
            return true;
        }
        // SAFETY: the caller's.
        unsafe {
            let index = *self.versions.add(index);
            index == VER_NDX_GLOBAL || self.version_index(version) == Some(index & !VERSYM_HIDDEN)
        }
    }

    /// The program headers of the object, if the first page of its file is mapped as usual: where its symbols begin too, or where
    /// its addresses count from.
    pub fn program_headers(&self) -> Option<&'static [Elf64_Phdr]> {
        let tables = [self.symbols as usize, self.strings as usize, self.first_table()];
        let page = tables.into_iter().filter(|table| *table != 0).min()? & !(PAGE - 1);
        let pages = [page, self.base].into_iter().filter(|page| page.is_multiple_of(PAGE) && is_readable(*page));
        // SAFETY: the page is readable; if it has the file's headers, these are as the ELF format has them.
        pages.map(ptr::with_exposed_provenance::<Elf64_Ehdr>).find_map(|header| unsafe {
            let (identity, place) = ((*header).e_ident, (*header).e_phoff as usize);
            let is_header = identity[..4] == *b"\x7fELF" && place == size_of::<Elf64_Ehdr>();
            is_header.then(|| core::slice::from_raw_parts(header.add(1).cast(), (*header).e_phnum.into()))
        })
    }

    /// The address of a variable.
    ///
    /// # Safety
    /// As for [`Tables::find_symbol`].
    pub unsafe fn variable(&self, name: &CStr) -> Option<usize> {
        // SAFETY: the caller's; the object has the symbol that was found.
        unsafe { self.find_symbol(name, |index| Some((*self.symbols.add(index)).st_value as usize + self.base)) }
    }

    /// The address of symbol `index`, if it is a function.
    pub unsafe fn function(&self, index: usize) -> Option<usize> {
        const STT_NOTYPE: u8 = 0;
        const STT_FUNC: u8 = 2;
        const STT_GNU_IFUNC: u8 = 10;
        // SAFETY: the caller's.
        unsafe {
            let symbol = &*self.symbols.add(index);
            let address = self.base.wrapping_add(symbol.st_value as usize);
            match symbol.st_info & 15 {
                STT_FUNC | STT_NOTYPE => Some(address),
                STT_GNU_IFUNC => {
                    let resolver: extern "C" fn() -> usize = core::mem::transmute(address);
                    Some(resolver())
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
///
/// With a version it is the one that a reference to this version gets, else the default version.
pub fn next_definition(name: &CStr, version: Option<&CStr>) -> Option<Definition> {
    let mut behind = objects().skip_while(|object| !object.is_ours());
    behind.next();
    behind.find_map(|object| in_object(object, name, version))
}

/// Whether another copy of this library stands before this one.
pub fn is_second_copy() -> bool {
    // SAFETY: the tables are a loaded object's, whose strings are NUL-terminated.
    let name = |tables: Tables| unsafe { CStr::from_ptr(tables.strings.add(tables.name)) } == c"libthreadt.so";
    objects().take_while(|object| !object.is_ours()).filter_map(LinkMap::tables).any(name)
}

/// The first definition in any other object.
pub fn any_definition(name: &CStr, version: Option<&CStr>) -> Option<Definition> {
    objects().filter(|object| !object.is_ours()).find_map(|object| in_object(object, name, version))
}

/// Whether libc has this version of anything.
pub fn libc_has_version(version: &CStr) -> bool {
    let libc = objects().find(|object| object.base_name() == b"libc.so.6");
    // SAFETY: the tables are the loaded object's.
    libc.and_then(LinkMap::tables).is_some_and(|tables| unsafe { tables.version_index(version) }.is_some())
}

/// The definition in the object that has code at `address`.
pub fn definition_beside(address: usize, name: &CStr) -> Option<Definition> {
    in_object(with_code_at(address, objects())?, name, None)
}

/// The object that has code at `address`. Its dynamic section stands behind its code; its base may be anywhere.
fn with_code_at<'a>(address: usize, objects: impl Iterator<Item = &'a LinkMap>) -> Option<&'a LinkMap> {
    objects.filter(|object| object.dynamic as usize > address).min_by_key(|object| object.dynamic as usize)
}

fn in_object(object: &LinkMap, name: &CStr, version: Option<&CStr>) -> Option<Definition> {
    let tables = object.tables()?;
    // SAFETY: the tables are this loaded object's.
    let address = unsafe { tables.find(name, version) }?;
    let file = object.base_name();
    Some(Definition {
        address: address as *const (),
        is_libc: file.starts_with(b"libc.so") || file.starts_with(b"libpthread.so"),
    })
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "compared by address, not called")]
mod tests;
