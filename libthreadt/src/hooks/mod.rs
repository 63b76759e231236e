//! The functions that the host calls instead of libc's.
//!
//! A hook is thin: it asks whether its event is recorded, calls the real function, and hands what it knows to
//! [`record::put`]. Nothing is held across the real call, and no frame has anything to drop, because the call may never
//! return: `pthread_exit`, cancellation and exceptions unwind through it, `siglongjmp` jumps over it.
//!
//! The usual hooks are generated from `functions.tsv` by `build.rs`:
//! - `one_record`: one record, stamped before the call (and written after it if it tells a result) or after it;
//! - `two_records`: two, around a call that may wait for long and may be left by unwinding.
//!
//! With `THR_TRACE_LEVEL=blocked` a switch says of an event that only some of its calls are recorded
//! ([`process::Switch::selects`]): those that waited, failed, or found a waiter. The hook knows which, and passes the others on
//! without having read the clock.
//!
//! The others have a file each below.

use core::ffi::{c_int, c_uint};

use spec::id;

use crate::config::detail;
use crate::guard::Guard;
use crate::measure::{self, Ptr};
use crate::{clock, process, real, record};

/// Defines a hook: `fn symbol(parameters; caller) -> result { … }`, where `caller` is the call's return address. Several
/// symbols, separated by commas, share it.
///
/// What the host calls is a stub that only jumps, and hands the return address on in the register of a sixth argument: no
/// hooked function has more than five. That is where the call returns to, also if the host made it in a tail call.
macro_rules! hook {
    ($(#[$meta:meta])* fn $($symbol:ident),+($($name:ident: $kind:ty),*; $caller:ident) -> $result:ty $body:block) => {
        hook! {
            @pad [$(#[$meta])*] [$($symbol)+] [$($name: $kind,)*] $caller [$result] $body
            [$($name)*] [_a _b _c _d _e]
        }
    };
    // One unused parameter less for each one that there is.
    (@pad $meta:tt $symbols:tt $parameters:tt $caller:ident $result:tt $body:block
        [$name:ident $($names:ident)*] [$padding:ident $($paddings:ident)*]) => {
        hook! { @pad $meta $symbols $parameters $caller $result $body [$($names)*] [$($paddings)*] }
    };
    (@pad $meta:tt [$($symbol:ident)+] [$($name:ident: $kind:ty,)*] $caller:ident [$result:ty] $body:block
        [] [$($padding:ident)*]) => {
        const _: () = {
            unsafe extern "C" fn hook($($name: $kind,)* $($padding: u64,)* $caller: u64) -> $result $body
            $(hook! { @stub $meta $symbol })+
        };
    };
    (@stub [$(#[$meta:meta])*] $symbol:ident) => {
        $(#[$meta])*
        #[cfg_attr(not(test), unsafe(no_mangle))]
        #[unsafe(naked)]
        unsafe extern "C" fn $symbol() {
            // Described for the unwinder: asynchronous cancellation may come here.
            core::arch::naked_asm!(
                ".cfi_startproc",
                "mov r9, qword ptr [rsp]",
                "jmp {hook}",
                ".cfi_endproc",
                hook = sym hook
            )
        }
    };
}

mod create;
mod exec;
mod exit;
mod fork;
mod join;
mod mutex;
mod rwlock;
mod sem_open;
mod spin;

#[cfg(not(test))]
pub use exit::last;

/// The calling thread's errno.
fn errno() -> c_int {
    // SAFETY: libc's own errno of this thread.
    unsafe { *libc::__errno_location() }
}

/// What a C function returns.
trait Outcome: Copy {
    /// The table's `rval`: 0 or an errno value; what the function returned where that is something else.
    fn rval(&self) -> u64;

    /// The outcome from the register it was returned in.
    fn from_bits(bits: u64) -> Self;
}

impl Outcome for c_int {
    fn rval(&self) -> u64 {
        i64::from(*self) as u64
    }

    fn from_bits(bits: u64) -> c_int {
        bits as c_int
    }
}

/// Of functions that return nothing: they succeed.
impl Outcome for () {
    fn rval(&self) -> u64 {
        0
    }

    fn from_bits(_bits: u64) {}
}

/// Of the semaphore functions: 0, or -1 and errno.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct SemStatus(c_int);

impl Outcome for SemStatus {
    fn rval(&self) -> u64 {
        if self.0 == 0 { 0 } else { errno() as u64 }
    }

    fn from_bits(bits: u64) -> SemStatus {
        SemStatus(bits as c_int)
    }
}

/// Of the C11 functions: `thrd_success`, `thrd_busy` and so on, in glibc's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct ThrdStatus(c_int);

impl Outcome for ThrdStatus {
    fn rval(&self) -> u64 {
        let errno = match self.0 {
            0 => 0,
            1 => libc::EBUSY,
            3 => libc::ENOMEM,
            4 => libc::ETIMEDOUT,
            // thrd_error, 2
            _ => -1,
        };
        i64::from(errno) as u64
    }

    fn from_bits(bits: u64) -> ThrdStatus {
        ThrdStatus(bits as c_int)
    }
}

/// An argument as the 64 bits of a column.
trait Bits {
    fn bits(self) -> u64;
}

impl Bits for Ptr {
    fn bits(self) -> u64 {
        self as u64
    }
}

impl Bits for c_int {
    fn bits(self) -> u64 {
        i64::from(self) as u64
    }
}

impl Bits for c_uint {
    fn bits(self) -> u64 {
        self.into()
    }
}

impl Bits for u64 {
    fn bits(self) -> u64 {
        self
    }
}

impl Bits for usize {
    fn bits(self) -> u64 {
        self as u64
    }
}

/// The int that the call stored at `pointer`; 0 if it failed or there is no pointer.
unsafe fn stored(pointer: Ptr, result: &impl Outcome) -> u64 {
    if pointer.is_null() || result.rval() != 0 {
        return 0;
    }
    // SAFETY: the real call has just written there.
    unsafe { pointer.cast::<c_int>().read() }.bits()
}

/// The hooks that `functions.tsv` describes.
#[allow(
    clippy::let_unit_value,
    clippy::unused_unit,
    unused_variables,
    reason = "one template serves functions that return nothing, and those whose records have no room for the caller"
)]
mod table {
    use super::*;

    include!(concat!(env!("OUT_DIR"), "/hooks.rs"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c11_results_are_errno_values() {
        let rval = |result| ThrdStatus(result).rval() as i64;
        assert_eq!([rval(0), rval(1), rval(2), rval(3), rval(4)], [0, 16, -1, 12, 110]);
    }
}
