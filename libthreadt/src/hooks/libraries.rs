//! `dlclose`, after which another library may be where one was. It makes no record.
//!
//! `dlopen` and `dlmopen` have no hooks: they search where their caller says, which they know by the return address. What was
//! opened shows when it is closed.

use core::ffi::{c_int, c_void};

use crate::lifecycle::{after_close, before_close};

hook! {
    /// `int dlclose(void *handle);`
    fn dlclose(handle: *mut c_void; _caller) -> c_int {
        let Some(closing) = before_close() else {
            // SAFETY: the next function with the host's arguments.
            return unsafe { jump_to_next!(dlclose(handle: *mut c_void) -> c_int) };
        };
        // SAFETY: as above. The library's destructors may do anything, and need not return.
        let result = unsafe { call_next!(dlclose(handle: *mut c_void) -> c_int) };
        after_close(closing);
        result
    }
}
