//! `pthread_spin_lock`: the lock is tried first, so that `block?` says whether the call had to spin.

use core::ffi::c_int;

use spec::id;

use crate::config::detail;
use crate::first_use::switch;
use crate::glibc::next_functions;
use crate::glibc::object_words::Ptr;
use crate::{clock, recorder};

hook! {
    /// `int pthread_spin_lock(pthread_spinlock_t *spin);`
    fn pthread_spin_lock(spin: Ptr; caller) -> c_int {
        type Function = unsafe extern "C-unwind" fn(Ptr) -> c_int;
        // SAFETY: the next functions with the host's arguments.
        unsafe {
            let next: Function = core::mem::transmute(next_functions::pthread_spin_lock.address());
            let switch = switch(id::SPIN_LOCK);
            if !switch.is_on() {
                return next(spin);
            }
            let entry = [spin as u64, 0, 0, 0, detail(caller)];
            if next_functions::pthread_spin_trylock.is_libc() {
                let try_lock: Function = core::mem::transmute(next_functions::pthread_spin_trylock.address());
                if try_lock(spin) == 0 {
                    if !switch.is_selective() {
                        recorder::put_pair([&id::SPIN_LOCK_1, &id::SPIN_LOCK_2], clock::now_fenced(), entry, [0; 5]);
                    }
                    return 0;
                }
            }
            recorder::put(&id::SPIN_LOCK_1, clock::now_unfenced(), entry);
            let result = next(spin);
            recorder::put(&id::SPIN_LOCK_2, clock::now_fenced(), [1, 0, 0, 0, 0]);
            result
        }
    }
}
