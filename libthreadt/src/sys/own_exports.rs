//! Hides exports of this library where the process lacks the function behind them.
//!
//! A reference without a version (a weak one, or one by `dlsym`) to a function that no library has must find nothing. So
//! the export gets a hidden version: only references to just this version find it, and those come from objects that
//! are linked with a library that has it. Objects that the dynamic linker has relocated earlier have found the export
//! already; their pointers become null, as they are without this library.

use core::ffi::CStr;

use libc::{Elf64_Phdr, Elf64_Rela};

use super::elf::{LinkMap, Tables, VERSYM_HIDDEN, any_definition, objects};
use super::memory::{self, PAGE};

/// The first index of the versions that stand behind the one for references without a version.
const FIRST_VERSION_INDEX: u16 = 3;

const R_X86_64_64: u64 = 1;
const R_X86_64_GLOB_DAT: u64 = 6;
const R_X86_64_JUMP_SLOT: u64 = 7;
const STB_WEAK: u8 = 2;

/// Hides those of `functions`, each a name and the version that it then has, that no other object defines.
///
/// # Safety
/// The dynamic linker is relocating this library: it has relocated the objects behind, and no other thread runs.
pub unsafe fn hide_absent(functions: &[(&CStr, &CStr)]) {
    let Some(ours) = objects().find(|object| object.is_ours()).and_then(LinkMap::tables) else { return };
    let is_absent = |name: &CStr| any_definition(name, None).is_none();
    let mut any = false;
    for (name, version) in functions.iter().filter(|(name, _)| is_absent(name)) {
        // SAFETY: the tables are this library's, which nobody changes meanwhile.
        any |= unsafe { hide(&ours, name, version) };
    }
    if !any {
        return;
    }
    let mut behind = objects().skip_while(|object| !object.is_ours());
    behind.next();
    for tables in behind.filter_map(LinkMap::tables) {
        // SAFETY: the tables are a loaded object's, which was relocated before this library.
        unsafe { unbind(&ours, &tables, functions) };
    }
}

/// Hides an export that no reference asks for by this version of it.
///
/// # Safety
/// As [`hide_absent`].
#[cfg(not(test))]
pub unsafe fn hide_always(name: &CStr, version: &CStr) {
    if let Some(ours) = objects().find(|object| object.is_ours()).and_then(LinkMap::tables) {
        // SAFETY: the caller's.
        unsafe { hide(&ours, name, version) };
    }
}

/// Hides an export. Returns whether that was possible.
unsafe fn hide(ours: &Tables, name: &CStr, version: &CStr) -> bool {
    let mut done = false;
    // SAFETY: the caller's. The table of versions is read-only memory of this library's own file, and private.
    unsafe {
        let Some(version) = ours.version_index(version) else { return false };
        ours.find_symbol(name, |symbol| {
            let entry = ours.versions.add(symbol).cast_mut();
            // What has a version of its own keeps it.
            let index = *entry & !VERSYM_HIDDEN;
            let hidden = VERSYM_HIDDEN | if index < FIRST_VERSION_INDEX { version } else { index };
            let page = entry as usize & !(PAGE - 1);
            if *entry != hidden && memory::protect(page, PAGE, libc::PROT_READ | libc::PROT_WRITE).is_ok() {
                *entry = hidden;
                let _ = memory::protect(page, PAGE, libc::PROT_READ);
                done = true;
            }
            None::<()>
        });
    }
    done
}

/// Makes an object's weak references to hidden exports null.
unsafe fn unbind(ours: &Tables, object: &Tables, functions: &[(&CStr, &CStr)]) {
    for (first, size) in object.relocations {
        for index in 0..size / size_of::<Elf64_Rela>() {
            // SAFETY: the caller's: the table has that many relocations, and their symbols are the object's.
            unsafe {
                let relocation = &*first.add(index);
                let kind = relocation.r_info & 0xffff_ffff;
                if ![R_X86_64_64, R_X86_64_GLOB_DAT, R_X86_64_JUMP_SLOT].contains(&kind) {
                    continue;
                }
                let symbol = &*object.symbols.add((relocation.r_info >> 32) as usize);
                if symbol.st_shndx != 0 || symbol.st_info >> 4 != STB_WEAK {
                    continue;
                }
                let name = CStr::from_ptr(object.strings.add(symbol.st_name as usize));
                let slot = object.base.wrapping_add(relocation.r_offset as usize) as *mut usize;
                // Another object's definition may have been found, or none.
                let is_ours = |symbol| (ours.function(symbol) == Some(*slot)).then_some(());
                if functions.iter().any(|(hidden, _)| *hidden == name)
                    && any_definition(name, None).is_none()
                    && ours.find_symbol(name, is_ours).is_some()
                {
                    clear(object, slot);
                }
            }
        }
    }
}

/// Sets a pointer of an object to null, also where the linker has made it read-only after it relocated the object.
unsafe fn clear(object: &Tables, slot: *mut usize) {
    let Some(headers) = object.program_headers() else { return };
    let address = slot as usize;
    let covers = |header: &&Elf64_Phdr| {
        let start = object.base.wrapping_add(header.p_vaddr as usize);
        (start..start + header.p_memsz as usize).contains(&address)
    };
    let writable = |header: &&Elf64_Phdr| header.p_type == libc::PT_LOAD && header.p_flags & libc::PF_W != 0;
    if !headers.iter().filter(writable).any(|header| covers(&header)) {
        return;
    }
    let relro = headers.iter().filter(|header| header.p_type == libc::PT_GNU_RELRO).find(covers);
    // The linker protects complete pages only.
    let is_protected = relro.is_some_and(|header| {
        let end = object.base.wrapping_add((header.p_vaddr + header.p_memsz) as usize);
        address < end & !(PAGE - 1)
    });
    let page = address & !(PAGE - 1);
    // SAFETY: the caller's: the slot is the object's, in a segment that is writable, or was until it was relocated.
    unsafe {
        if !is_protected {
            slot.write(0);
        } else if memory::protect(page, PAGE, libc::PROT_READ | libc::PROT_WRITE).is_ok() {
            slot.write(0);
            let _ = memory::protect(page, PAGE, libc::PROT_READ);
        }
    }
}
