//! `sem_open`: variadic in C, but its two optional arguments are in registers whether they are there or not.

use core::ffi::{c_int, c_uint};

use spec::id;

use crate::glibc::next_functions;
use crate::glibc::object_words::Ptr;
use crate::recorder::records;
use crate::sys::errno::errno;
use crate::{clock, recorder};

hook! {
    /// `sem_t *sem_open(const char *name, int oflag, mode_t mode, unsigned int value);`
    fn sem_open(name: Ptr, oflag: c_int, mode: c_uint, value: c_uint; _caller) -> Ptr {
        // A variadic function takes in al how many vector registers hold arguments: none.
        type Function = unsafe extern "C-unwind" fn(Ptr, c_int, ...) -> Ptr;
        // SAFETY: the next function with the host's arguments.
        unsafe {
            let next: Function = core::mem::transmute(next_functions::sem_open.address());
            let sem = next(name, oflag, mode, value);
            if records(id::SEMA_OPEN) {
                let (mode, value) = if oflag & libc::O_CREAT != 0 { (mode, value) } else { (0, 0) };
                // SEM_FAILED is NULL.
                let error = if sem.is_null() { errno() as u64 } else { 0 };
                let columns = [sem as u64, i64::from(oflag) as u64, mode.into(), value.into(), error];
                recorder::put_result(&id::SEMA_OPEN_0, clock::now_fenced(), columns, error != 0);
            }
            sem
        }
    }
}
