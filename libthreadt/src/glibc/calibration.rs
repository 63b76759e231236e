//! Tries glibc's layouts on private objects, before the program makes any.

use core::ffi::c_int;

use super::next_functions;
use super::object_words::*;
use crate::sys;

/// Memory for one object: large enough for each of glibc's, and aligned.
#[repr(C, align(16))]
struct ObjectMemory([u32; 32]);

/// Tries the layouts on private objects. Each object is destroyed again, because a lock checker remembers its address.
pub fn calibrate() {
    let cond_wrefs = cond_wrefs();
    let layouts = [
        (MUTEX, mutex_as_expected()),
        (COND, cond_wrefs.is_some()),
        (RWLOCK, rwlock_as_expected()),
        (SEM, sem_as_expected()),
        (BARRIER, barrier_as_expected()),
        (ONCE, once_as_expected()),
        (THREAD, thread_as_expected()),
    ];
    let known = layouts.iter().filter(|(_, expected)| *expected).fold(0, |known, (layout, _)| known | layout);
    set_known(known, cond_wrefs.unwrap_or(0));
}

/// Calls the next function of that name, if there is one, with up to three arguments; whether it returned 0.
macro_rules! succeeds {
    ($function:ident($($argument:expr),*)) => {
        next_functions::$function.address_if_any().is_some_and(|function| {
            let arguments = [$($argument as usize),*];
            let argument = |at: usize| arguments.get(at).copied().unwrap_or(0);
            // SAFETY: the next function, with objects of this file; arguments that it does not take are ignored.
            unsafe {
                let function: unsafe extern "C" fn(usize, usize, usize) -> c_int = core::mem::transmute(function);
                function(argument(0), argument(1), argument(2)) == 0
            }
        })
    };
}

fn mutex_as_expected() -> bool {
    let (mut attribute, mut mutex) = (ObjectMemory([0; 32]), ObjectMemory([0; 32]));
    let (attribute, object) = (&raw mut attribute, &raw mut mutex);
    // SAFETY: the object is on this stack.
    let word = |at| unsafe { word(object.cast(), at) };
    succeeds!(pthread_mutexattr_init(attribute))
        && succeeds!(pthread_mutexattr_settype(attribute, KIND_RECURSIVE))
        && succeeds!(pthread_mutex_init(object, attribute))
        && succeeds!(pthread_mutex_lock(object))
        && succeeds!(pthread_mutex_lock(object))
        && word(MUTEX_LOCK) == 1
        && word(MUTEX_COUNT) == 2
        && word(MUTEX_OWNER) == sys::thread_id()
        && word(MUTEX_KIND) & KIND_TYPE == KIND_RECURSIVE
        && succeeds!(pthread_mutex_unlock(object))
        && succeeds!(pthread_mutex_unlock(object))
        && word(MUTEX_LOCK) == 0
        && word(MUTEX_COUNT) == 0
        && word(MUTEX_OWNER) == 0
        && succeeds!(pthread_mutex_destroy(object))
}

/// Where a condition variable's `__wrefs` is, bytes.
fn cond_wrefs() -> Option<usize> {
    // A condition variable that uses CLOCK_MONOTONIC has one non-zero word, 2, and that is __wrefs.
    let (mut attribute, mut cond) = (ObjectMemory([0; 32]), ObjectMemory([0; 32]));
    let attribute = &raw mut attribute;
    let made = succeeds!(pthread_condattr_init(attribute))
        && succeeds!(pthread_condattr_setclock(attribute, libc::CLOCK_MONOTONIC))
        && succeeds!(pthread_cond_init(&raw mut cond, attribute));
    let cond_address = &raw mut cond;
    let mut words = cond.0.iter().enumerate().filter(|(_, word)| **word != 0);
    match (words.next(), words.next()) {
        (Some((at, 2)), None) if made => succeeds!(pthread_cond_destroy(cond_address)).then_some(4 * at),
        _ => None,
    }
}

fn rwlock_as_expected() -> bool {
    let (mut attribute, mut rwlock) = (ObjectMemory([0; 32]), ObjectMemory([0; 32]));
    let (attribute, object) = (&raw mut attribute, &raw mut rwlock);
    // SAFETY: the object is on this stack.
    let word_at = |at| unsafe { word(object.cast(), at) };
    let (flags, writer, word) = (|| word_at(RW_FLAGS), || word_at(RW_WRITER), || word_at(0));
    succeeds!(pthread_rwlockattr_init(attribute))
        && succeeds!(pthread_rwlockattr_setkind_np(attribute, RW_PREFERS_WRITERS))
        && succeeds!(pthread_rwlock_init(object, attribute))
        && flags() == RW_PREFERS_WRITERS
        && succeeds!(pthread_rwlock_rdlock(object))
        && succeeds!(pthread_rwlock_rdlock(object))
        && word() == 2 << RW_READERS_SHIFT
        && writer() == 0
        && succeeds!(pthread_rwlock_unlock(object))
        && succeeds!(pthread_rwlock_unlock(object))
        && succeeds!(pthread_rwlock_wrlock(object))
        && word() == RW_WRITE_PHASE | RW_WRITE_LOCKED
        && writer() == sys::thread_id()
        && succeeds!(pthread_rwlock_unlock(object))
        && writer() == 0
        && succeeds!(pthread_rwlock_destroy(object))
}

fn sem_as_expected() -> bool {
    let mut sem = ObjectMemory([0; 32]);
    let object = &raw mut sem;
    // SAFETY: the object is on this stack.
    let word = |at| unsafe { word(object.cast(), at) };
    succeeds!(sem_init(object, 0, 5))
        && succeeds!(sem_post(object))
        && word(0) == 6
        && word(SEM_WAITERS) == 0
        && succeeds!(sem_destroy(object))
}

fn barrier_as_expected() -> bool {
    let mut barrier = ObjectMemory([0; 32]);
    let object = &raw mut barrier;
    let made = succeeds!(pthread_barrier_init(object, 0, 3)) && barrier.0[..3] == [0, 0, 3];
    made && succeeds!(pthread_barrier_destroy(object))
}

fn thread_as_expected() -> bool {
    let thread = sys::thread_word::thread_pointer();
    // SAFETY: glibc's structure of this thread is larger.
    unsafe { word(core::ptr::with_exposed_provenance_mut(thread), THREAD_LWP) == sys::thread_id() }
}

fn once_as_expected() -> bool {
    extern "C" fn routine() {}
    let mut once = ObjectMemory([0; 32]);
    let (object, routine): (_, extern "C" fn()) = (&raw mut once, routine);
    // ThreadSanitizer's has other values, and cannot be called so early.
    next_functions::pthread_once.address_if_any().is_some()
        && next_functions::pthread_once.is_libc()
        && succeeds!(pthread_once(object, routine))
        && once.0[0] == ONCE_DONE
}
