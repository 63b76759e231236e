//! `pthread_spin_lock`: tried first, so that `block?` tells whether it spun.

use core::ffi::c_int;

use spec::id;

use crate::config::detail;
use crate::measure::Ptr;
use crate::{clock, process, real, record};

hook! {
    /// `int pthread_spin_lock(pthread_spinlock_t *spin);`
    fn pthread_spin_lock(spin: Ptr; caller) -> c_int {
        type Function = unsafe extern "C" fn(Ptr) -> c_int;
        // SAFETY: the real functions with the host's arguments.
        unsafe {
            let real: Function = core::mem::transmute(real::pthread_spin_lock.address());
            let switch = process::switch(id::SPIN_LOCK);
            if !switch.is_on() {
                return real(spin);
            }
            let first = [spin as u64, 0, 0, 0, detail(caller)];
            if real::pthread_spin_trylock.is_libc() {
                let try_lock: Function = core::mem::transmute(real::pthread_spin_trylock.address());
                if try_lock(spin) == 0 {
                    if !switch.selects() {
                        record::put_pair([&id::SPIN_LOCK_1, &id::SPIN_LOCK_2], clock::now(), first, [0; 5]);
                    }
                    return 0;
                }
            }
            record::put(&id::SPIN_LOCK_1, clock::early(), first);
            let result = real(spin);
            record::put(&id::SPIN_LOCK_2, clock::now(), [1, 0, 0, 0, 0]);
            result
        }
    }
}
