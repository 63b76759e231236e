//! `sem_open`: variadic in C, but its two optional arguments are in registers whether they are there or not.

use core::ffi::{c_int, c_uint};

use spec::id;

use super::errno;
use crate::measure::Ptr;
use crate::{clock, process, real, record};

hook! {
    /// `sem_t *sem_open(const char *name, int oflag, mode_t mode, unsigned int value);`
    fn sem_open(name: Ptr, oflag: c_int, mode: c_uint, value: c_uint; _caller) -> Ptr {
        // A variadic function is told in al how many vector registers hold arguments: none.
        type Function = unsafe extern "C" fn(Ptr, c_int, ...) -> Ptr;
        // SAFETY: the real function with the host's arguments.
        unsafe {
            let real: Function = core::mem::transmute(real::sem_open.address());
            let sem = real(name, oflag, mode, value);
            if process::records(id::SEMA_OPEN) {
                let (mode, value) = if oflag & libc::O_CREAT != 0 { (mode, value) } else { (0, 0) };
                // SEM_FAILED is NULL.
                let error = if sem.is_null() { errno() as u64 } else { 0 };
                let columns = [sem as u64, i64::from(oflag) as u64, mode.into(), value.into(), error];
                record::put(&id::SEMA_OPEN_0, clock::now(), columns);
            }
            sem
        }
    }
}
