//! What closes a descriptor within libc: `fclose`, `pclose` and `closedir`, or gives its number to another file: `freopen`. They make no
//! record.
//!
//! A program may have closed the number before, by `close` or by another stream with the same number. Then it may be that of a file of this
//! library.

use core::ffi::{c_char, c_int, c_long, c_void};

use crate::first_use::records_nothing;
use crate::glibc::next_functions::{self, NextFunction};
use crate::lifecycle::{change_within, reopen_within};
use crate::sys::errno::keeping_errno;

/// The number of a file's descriptor; -1 if it has none, or if `closer`, which is about to be called, is not libc's: then the stream may be
/// of another kind than libc's.
fn number_of_file(stream: *mut c_void, closer: &NextFunction) -> c_int {
    // SAFETY: the host's stream, of libc's kind.
    number_if_of_libc(stream, closer, &next_functions::fileno, || unsafe {
        call_next!(fileno(stream: *mut c_void) -> c_int)
    })
}

/// The same of a directory.
fn number_of_directory(stream: *mut c_void, closer: &NextFunction) -> c_int {
    // SAFETY: as above.
    number_if_of_libc(stream, closer, &next_functions::dirfd, || unsafe {
        call_next!(dirfd(stream: *mut c_void) -> c_int)
    })
}

fn number_if_of_libc(
    stream: *mut c_void,
    closer: &NextFunction,
    function: &NextFunction,
    call: impl FnOnce() -> c_int,
) -> c_int {
    if stream.is_null() || !closer.is_libc() || !function.is_libc() { -1 } else { keeping_errno(call) }
}

macro_rules! closing_hook {
    ($(#[$meta:meta])* $symbol:ident $number_of:ident) => {
        hook! {
            $(#[$meta])*
            fn $symbol(stream: *mut c_void; _caller) -> c_int {
                if records_nothing() {
                    // SAFETY: the next function with the host's arguments.
                    return unsafe { jump_to_next!($symbol(stream: *mut c_void) -> c_int) };
                }
                // SAFETY: as above.
                let call_next = || unsafe { call_next!($symbol(stream: *mut c_void) -> c_int) };
                change_within($number_of(stream, &next_functions::$symbol), || call_next().into()) as c_int
            }
        }
    };
}

closing_hook! {
    /// `int fclose(FILE *stream);`
    fclose number_of_file
}
closing_hook! {
    /// `int pclose(FILE *stream);` It waits for a process, unless the number is closed already.
    pclose number_of_file
}
closing_hook! {
    /// `int closedir(DIR *stream);`
    closedir number_of_directory
}

macro_rules! reopening_hook {
    ($(#[$meta:meta])* $symbol:ident) => {
        hook! {
            $(#[$meta])*
            fn $symbol(path: *const c_char, mode: *const c_char, stream: *mut c_void; _caller) -> *mut c_void {
                if records_nothing() {
                    // SAFETY: the next function with the host's arguments.
                    return unsafe {
                        jump_to_next!($symbol(path: *const c_char, mode: *const c_char, stream: *mut c_void) -> *mut c_void)
                    };
                }
                let number = number_of_file(stream, &next_functions::$symbol);
                // SAFETY: as above.
                let call_next = || unsafe {
                    call_next!($symbol(path: *const c_char, mode: *const c_char, stream: *mut c_void) -> *mut c_void)
                };
                // It can be called once only: what failed has closed the stream.
                let result = reopen_within(number, || call_next().expose_provenance() as c_long);
                core::ptr::with_exposed_provenance_mut(result as usize)
            }
        }
    };
}

reopening_hook! {
    /// `FILE *freopen(const char *path, const char *mode, FILE *stream);`
    freopen
}
reopening_hook! {
    /// `FILE *freopen64(const char *path, const char *mode, FILE *stream);`
    freopen64
}
