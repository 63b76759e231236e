//! `pthread_spin_lock`: the lock is tried first, so that `block?` shows whether the call had to spin.

use core::ffi::c_int;

use spec::id;

use crate::config::detail;
use crate::glibc::next_functions;
use crate::glibc::object_words::Ptr;
use crate::process_state::Switch;
use crate::{clock, recorder};

/// Locks `spin` by its next try, and if that fails by `call_next`.
///
/// # Safety
/// `spin` is what the host passed.
#[inline(always)]
pub unsafe fn spin_lock(switch: Switch, spin: Ptr, caller: u64, call_next: impl Fn() -> c_int) -> c_int {
    let entry = [spin as u64, 0, 0, 0, detail(caller)];
    // SAFETY: the next try with the host's argument.
    let try_lock = || unsafe { call_next!(pthread_spin_trylock(spin: Ptr) -> c_int) };
    if next_functions::pthread_spin_trylock.is_libc() && try_lock() == 0 {
        if !switch.is_selective() {
            recorder::put_pair([&id::SPIN_LOCK_1, &id::SPIN_LOCK_2], clock::now_fenced(), entry, [0; 5]);
        }
        return 0;
    }
    let time = clock::now_unfenced();
    recorder::put(&id::SPIN_LOCK_1, time, entry);
    recorder::put_stack(time);
    let result = call_next();
    recorder::put(&id::SPIN_LOCK_2, clock::now_fenced(), [1, 0, 0, 0, 0]);
    result
}
