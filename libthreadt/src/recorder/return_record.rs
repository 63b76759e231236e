//! The return record of a call that ends by unwinding.

use spec::RecordKind;

use super::record::put;
use crate::clock;
use crate::glibc::unwind_guard::{UnwindGuard, guarded_call};

/// Writes a call's return record if the call unwinds.
#[repr(C)]
pub struct ReturnRecord {
    guard: UnwindGuard,
    kind: &'static RecordKind,
    arguments: [u64; 5],
}

impl ReturnRecord {
    pub const fn new(kind: &'static RecordKind, arguments: [u64; 5]) -> ReturnRecord {
        ReturnRecord { guard: UnwindGuard { unwound: put_return_record }, kind, arguments }
    }

    /// Calls `function` with up to four arguments and returns its result.
    ///
    /// # Safety
    /// As for [`guarded_call`]; and the function's result must be an `R`, in a register.
    #[inline(always)]
    pub unsafe fn call<R>(&self, function: *const (), [a, b, c, d]: [u64; 4]) -> R {
        const { assert!(size_of::<R>() <= size_of::<u64>()) };
        // SAFETY: the caller's; `put_return_record` gets the address of a ReturnRecord.
        unsafe {
            let bits = guarded_call(function, (&raw const *self).cast(), a, b, c, d);
            core::mem::transmute_copy(&bits)
        }
    }
}

unsafe extern "C" fn put_return_record(guard: *const UnwindGuard) {
    // SAFETY: `call` has passed the address of a ReturnRecord, whose first field the guard is, and its frame still
    // stands.
    let record = unsafe { &*guard.cast::<ReturnRecord>() };
    put(record.kind, clock::now_fenced(), record.arguments);
}
