//! Whether the program has put itself under a seccomp filter, which may kill it for a system call that it did not need.

use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

use libc::sock_fprog;

use super::call::{Errno, Result, call};
use super::memory::{copy_memory, map_anonymous};
use super::seccomp_filter::{Filter, left_by_guest};

/// A filter was in force when the program began, as it always is in a container.
static HAD_FILTER: AtomicBool = AtomicBool::new(false);

/// Notes whether a filter is in force, before the program can install one.
pub fn note_filter() {
    HAD_FILTER.store(has_filter(), Relaxed);
}

/// Whether a filter is in force that was not when [`note_filter`] was called.
pub fn has_new_filter() -> bool {
    !HAD_FILTER.load(Relaxed) && has_filter()
}

/// Whether a filter is in force, or refuses the question.
pub fn has_filter() -> bool {
    // SAFETY: the call takes no pointer.
    let mode = unsafe { call(libc::SYS_prctl, [libc::PR_GET_SECCOMP as usize]) };
    mode != Ok(0)
}

/// Copies a filter that the program is about to install; `guest` is the PID of a vfork child that does so for itself. `EFAULT`
/// if it is not where the program says: the kernel will find the same.
pub fn copy_filter(program: *const sock_fprog, guest: Option<u32>) -> Result<&'static Filter> {
    let mut header = sock_fprog { len: 0, filter: core::ptr::null_mut() };
    copy_from_host((&raw mut header).cast(), program.cast(), size_of::<sock_fprog>())?;
    let length = Filter::size(header.len.into());
    let filter = match guest.and_then(|_| left_by_guest(header.len)) {
        Some(filter) => filter,
        // SAFETY: fresh memory, which is never unmapped.
        None => unsafe { Filter::at(map_anonymous(length)?, header.len) },
    };
    copy_from_host(filter.first_instruction().cast(), header.filter.cast(), length - Filter::size(0))?;
    filter.begin(header.len, guest);
    Ok(filter)
}

/// Copies memory that the host has named, if it is there.
fn copy_from_host(to: *mut u8, from: *const u8, length: usize) -> Result {
    // SAFETY: the first call takes no pointer; the callers own `to`.
    let copied = unsafe {
        let process = call(libc::SYS_getpid, []).unwrap_or(0) as u32;
        copy_memory(process, to, from, length)
    };
    match copied {
        Ok(copied) if copied == length => Ok(()),
        Ok(_) | Err(Errno(libc::EFAULT)) => Err(Errno(libc::EFAULT)),
        Err(_) if from.is_null() => Err(Errno(libc::EFAULT)),
        Err(_) => {
            // The kernel has no such call, or a filter forbids it.
            // SAFETY: the host means the kernel to read it.
            unsafe { to.copy_from_nonoverlapping(from, length) };
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_that_is_not_in_memory_is_not_copied() {
        let copy = |program: *const sock_fprog| copy_filter(program, None).map(Filter::kills_for_recording);
        assert_eq!(copy(core::ptr::null()), Err(Errno(libc::EFAULT)));
        assert_eq!(copy(core::ptr::without_provenance(8)), Err(Errno(libc::EFAULT)));
        let filter = sock_fprog { len: 9, filter: core::ptr::without_provenance_mut(4096) };
        assert_eq!(copy(&raw const filter), Err(Errno(libc::EFAULT)));
        for (k, kills) in [(libc::SECCOMP_RET_ALLOW, false), (libc::SECCOMP_RET_TRAP, true)] {
            let mut program = [libc::sock_filter { code: (libc::BPF_RET | libc::BPF_K) as u16, jt: 0, jf: 0, k }];
            let filter = sock_fprog { len: 1, filter: program.as_mut_ptr() };
            assert_eq!(copy(&raw const filter), Ok(kills));
        }
    }
}
