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
    /// The record that is written if the call unwinds.
    pub const fn new(kind: &'static RecordKind, arguments: [u64; 5]) -> ReturnRecord {
        ReturnRecord { guard: UnwindGuard { unwound: put_return_record }, kind, arguments }
    }

    /// Calls `function` with up to four arguments and returns its result.
    ///
    /// # Safety
    /// `function` must be callable with these arguments, each an integer or a pointer. No frame between this one and
    /// the host's may have something to drop.
    #[inline(always)]
    pub unsafe fn call(&self, function: *const (), arguments: [u64; 4]) -> u64 {
        // SAFETY: the caller's; `put_return_record` gets the address of a ReturnRecord.
        unsafe { guarded_call(function, (&raw const *self).cast(), arguments) }
    }
}

unsafe extern "C" fn put_return_record(guard: *const UnwindGuard) {
    // SAFETY: `call` has passed the address of a ReturnRecord, whose first field the guard is, and its frame still
    // stands.
    let record = unsafe { &*guard.cast::<ReturnRecord>() };
    put(record.kind, clock::now_fenced(), record.arguments);
}
