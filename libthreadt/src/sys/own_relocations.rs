//! Relocates this library as far as it has to be before the dynamic linker does so.
//!
//! The linker relocates a preloaded library after those behind it, and meanwhile calls the resolvers of their indirect
//! functions. A resolver that takes a lock calls a hook whose library has no relocated pointers yet. The hook records
//! nothing then, but it has to find the next function: for that the pointers to this library itself and the list of
//! loaded objects do. The linker writes all of them once more.

use core::arch::asm;
#[cfg(not(test))]
use core::arch::global_asm;
use core::ffi::CStr;
use core::ptr::with_exposed_provenance;

use libc::{Elf64_Ehdr, Elf64_Phdr, Elf64_Rela};

use super::elf::{LinkMap, Tables, any_definition};
use super::fd::Fd;
use super::memory::PAGE;
use super::once::Once;

const R_X86_64_GLOB_DAT: u64 = 6;
const R_X86_64_RELATIVE: u64 = 8;

// What the compiler makes of comparisons is called before anything of libc's can be.
#[cfg(not(test))]
global_asm!(
    ".pushsection .text.threadt_strings,\"ax\",@progbits",
    ".globl strlen",
    ".hidden strlen",
    ".type strlen,@function",
    "strlen:",
    ".cfi_startproc",
    "xor eax, eax",
    "2:",
    "cmp byte ptr [rdi + rax], 0",
    "je 3f",
    "inc rax",
    "jmp 2b",
    "3:",
    "ret",
    ".cfi_endproc",
    ".size strlen, . - strlen",
    ".globl bcmp",
    ".hidden bcmp",
    ".type bcmp,@function",
    "bcmp:",
    ".cfi_startproc",
    "xor eax, eax",
    // From the end on: names that begin alike are compared most.
    "2:",
    "sub rdx, 1",
    "jb 3f",
    "mov cl, byte ptr [rdi + rdx]",
    "cmp cl, byte ptr [rsi + rdx]",
    "je 2b",
    "inc eax",
    "3:",
    "ret",
    ".cfi_endproc",
    ".size bcmp, . - bcmp",
    ".popsection",
);

static RELOCATED: Once = Once::new();

/// Relocates the library, if it has not done so. Returns whether the loaded objects can be searched.
///
/// # Safety
/// The dynamic linker is starting the program, and has not relocated this library. No other thread runs.
pub unsafe fn relocate() -> bool {
    RELOCATED.run_calling_others(|| {
        let (base, dynamic): (usize, usize);
        // SAFETY: two addresses of this library, relative to the instruction.
        unsafe {
            asm!(
                ".hidden __ehdr_start",
                ".hidden _DYNAMIC",
                "lea {base}, [rip + __ehdr_start]",
                "lea {dynamic}, [rip + _DYNAMIC]",
                base = out(reg) base,
                dynamic = out(reg) dynamic,
                options(nomem, nostack, preserves_flags),
            );
        }
        let Some(ours) = LinkMap::at(base, dynamic).tables() else { return false };
        // SAFETY: the linker has mapped the library and noted where its tables are; it protects no page of it before
        // all is relocated.
        unsafe {
            relocate_each(&ours, |relocation, kind, _| {
                (kind == R_X86_64_RELATIVE).then(|| base.wrapping_add(relocation.r_addend as usize))
            });
            let Some(debug) = dynamic_linker().and_then(|linker| linker.variable(c"_r_debug")) else { return false };
            relocate_each(&ours, |_, kind, name| match kind {
                R_X86_64_GLOB_DAT if name == c"_r_debug" => Some(debug),
                _ => None,
            });
            relocate_each(&ours, |_, kind, name| match kind {
                R_X86_64_GLOB_DAT => any_definition(name, None).map(|found| found.address as usize),
                _ => None,
            });
        }
        true
    })
}

/// Stores what `value` makes of each relocation, its kind and its symbol's name.
///
/// # Safety
/// The tables are this library's, which the linker has not relocated.
unsafe fn relocate_each(ours: &Tables, value: impl Fn(&Elf64_Rela, u64, &CStr) -> Option<usize>) {
    for (first, size) in ours.relocations {
        for index in 0..size / size_of::<Elf64_Rela>() {
            // SAFETY: the table has that many relocations, of words in pages that can still be written to.
            unsafe {
                let relocation = &*first.add(index);
                let symbol = &*ours.symbols.add((relocation.r_info >> 32) as usize);
                let name = CStr::from_ptr(ours.strings.add(symbol.st_name as usize));
                if let Some(value) = value(relocation, relocation.r_info & 0xffff_ffff, name) {
                    let word = ours.base.wrapping_add(relocation.r_offset as usize) as *mut usize;
                    word.write_volatile(value);
                }
            }
        }
    }
}

/// The tables of the dynamic linker, which the kernel has started with the program, or as the program.
unsafe fn dynamic_linker() -> Option<Tables> {
    let file = Fd::open_proc(c"/proc/self/auxv").ok()?;
    let mut headers = 0;
    let mut base = 0;
    loop {
        let mut entry = [0; 16];
        if file.read(&mut entry).ok()? < entry.len() {
            break;
        }
        // SAFETY: any bytes are two words.
        let [key, value]: [usize; 2] = unsafe { core::mem::transmute(entry) };
        match key as u64 {
            libc::AT_BASE => base = value,
            libc::AT_PHDR => headers = value,
            _ => {}
        }
    }
    if base == 0 {
        base = headers & !(PAGE - 1);
    }
    // SAFETY: the linker's file begins with its headers, which the kernel has mapped with its first page.
    unsafe {
        let header = with_exposed_provenance::<Elf64_Ehdr>(base).as_ref()?;
        let headers = with_exposed_provenance::<Elf64_Phdr>(base + header.e_phoff as usize);
        let headers = core::slice::from_raw_parts(headers, header.e_phnum.into());
        let dynamic = headers.iter().find(|header| header.p_type == libc::PT_DYNAMIC)?;
        LinkMap::at(base, base + dynamic.p_vaddr as usize).tables()
    }
}
