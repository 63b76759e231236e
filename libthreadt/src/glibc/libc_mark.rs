//! Keeps programs of another C library from loading this library.
//!
//! A program of musl's, which a recorded one may execute, would not start with this library in LD_PRELOAD: what it needs of glibc is not
//! there. But musl's dynamic linker leaves out a library that defines both `__libc_start_main`, which has a hook here, and `stdin`: that
//! is another libc (`load_library` in its `ldso/dynlink.c`). So this library defines `stdin`, under a version that no reference asks
//! for. In a program of glibc's it is hidden before a reference without a version, or `dlsym`, could find it.

use core::arch::global_asm;
use core::ffi::CStr;

use crate::sys::own_exports;

/// A version that no reference asks for. What has it, hidden, is found by none.
pub const NOBODYS_VERSION: &CStr = c"THREADT_NOBODYS";

// It has the value that libc's has, for a library behind this one that was linked with no libc: that was relocated earlier.
global_asm!(
    ".pushsection .data.rel.ro.threadt_stdin,\"aw\",@progbits",
    ".balign 8",
    ".globl threadt_stdin",
    ".type threadt_stdin,@object",
    ".size threadt_stdin, 8",
    "threadt_stdin:",
    ".quad _IO_2_1_stdin_",
    ".popsection",
    ".symver threadt_stdin, stdin@@THREADT_NOBODYS",
);

unsafe extern "C" {
    static threadt_stdin: *const u8;
}

/// Keeps the definition in the library. Nobody reads it.
#[used]
static MARK: Mark = Mark(&raw const threadt_stdin);

struct Mark(#[expect(dead_code, reason = "an address that keeps what is there")] *const *const u8);

// SAFETY: an address that nobody follows.
unsafe impl Sync for Mark {}

/// Hides it in this program, which is glibc's.
///
/// # Safety
/// The dynamic linker is relocating this library, and no other thread runs.
pub unsafe fn hide() {
    // SAFETY: the caller's.
    unsafe { own_exports::hide_always(c"stdin", NOBODYS_VERSION) };
}
