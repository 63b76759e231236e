//! The process, its threads and their limits, as the kernel knows them.

use core::ffi::{c_char, c_int};
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;

use super::call::{Errno, Result, call, filled_by};
use super::inherited::INHERITED;
use super::path;
use super::seccomp::has_filter;

/// The result of a system call that takes no arguments and cannot fail.
fn number(name: libc::c_long) -> u32 {
    // SAFETY: the callers below only ask for calls without arguments.
    unsafe { call(name, []) }.unwrap_or(0) as u32
}

/// The process ID; asks the kernel each time.
pub fn process_id() -> u32 {
    number(libc::SYS_getpid)
}

pub fn parent_id() -> u32 {
    number(libc::SYS_getppid)
}

/// The LWP ID of the calling thread; asks the kernel each time.
pub fn thread_id() -> u32 {
    number(libc::SYS_gettid)
}

/// Whether another process uses this process's memory, as a vfork child does. `false` under a seccomp filter, where the
/// kernel cannot be asked.
pub fn shares_memory() -> bool {
    // The threads of this process share its memory, too.
    let is_shared = |flag| asked_to_unshare(flag) == Err(Errno(libc::EINVAL));
    !has_filter() && is_shared(libc::CLONE_VM) && !is_shared(libc::CLONE_THREAD)
}

/// The kernel can unshare neither memory nor threads, and only answers whether there is something to unshare (`check_unshare_flags` in
/// kernel/fork.c): `EINVAL` if so. A seccomp filter may answer in its place.
fn asked_to_unshare(flag: c_int) -> Result {
    debug_assert!([libc::CLONE_VM, libc::CLONE_THREAD].contains(&flag));
    // SAFETY: these flags change nothing.
    unsafe { call(libc::SYS_unshare, [flag as usize]) }.map(drop)
}

pub fn user_id() -> u32 {
    number(libc::SYS_geteuid)
}

/// The real, the effective and the saved user ID of the calling thread; `None` if they are not known.
pub fn user_ids() -> Option<[u32; 3]> {
    let mut ids = [0u32; 3];
    let places = ids.each_mut().map(|id| &raw mut *id as usize);
    // SAFETY: the kernel writes the three words.
    unsafe { call(libc::SYS_getresuid, places) }.ok()?;
    Some(ids)
}

/// Whether the calling thread is root or may become root again, so that it may have given up root's rights a moment ago.
pub fn is_or_may_become_root() -> bool {
    user_ids().is_some_and(|ids| ids.contains(&0))
}

/// The user as whom the calling thread uses files.
pub fn file_system_user() -> Option<u32> {
    // SAFETY: no memory is involved. No user has this ID, so that the call changes nothing.
    unsafe { call(libc::SYS_setfsuid, [u32::MAX as usize]) }.ok().map(|uid| uid as u32)
}

/// In the high half the user as whom a thread uses files for a while, in the low half the one before; 0 for none.
static BORROWED: AtomicU64 = AtomicU64::new(0);

/// In a forked child: uses files as before, if a signal handler has forked it from within [`as_file_system_user`].
pub fn end_borrowed_user() {
    let borrowed = BORROWED.load(Relaxed);
    if borrowed == 0 {
        return;
    }
    BORROWED.store(0, Relaxed);
    if file_system_user() == Some((borrowed >> 32) as u32) {
        // SAFETY: no memory is involved.
        let _ = unsafe { call(libc::SYS_setfsuid, [borrowed as u32 as usize]) };
    }
}

/// Runs `work` as the user `uid` as far as files are concerned, and only this thread. `None` if that is not permitted.
pub fn as_file_system_user<T>(uid: u32, work: impl FnOnce() -> T) -> Option<T> {
    // The call returns the ID before, and does not report a failure.
    // SAFETY: no memory is involved.
    let set = |id: u32| unsafe { call(libc::SYS_setfsuid, [id as usize]) }.ok().map(|before| before as u32);
    // Before it is changed: a signal handler may fork at any time.
    BORROWED.store(u64::from(uid) << 32 | u64::from(file_system_user()?), Relaxed);
    let before = set(uid)?;
    let result = (file_system_user() == Some(uid)).then(work);
    set(before);
    BORROWED.store(0, Relaxed);
    result
}

/// Whether the process `pid` still has the thread `lwp`.
pub fn thread_exists(pid: u32, lwp: u32) -> bool {
    // SAFETY: signal 0 is not delivered.
    let answer = unsafe { call(libc::SYS_tgkill, [pid as usize, lwp as usize]) };
    answer != Err(Errno(libc::ESRCH))
}

/// Whether the thread `lwp`, which has left its mark in this memory, still exists. A vfork child has the memory of its parent, whose other
/// threads go on meanwhile.
pub fn marker_exists(lwp: u32) -> bool {
    let (pid, owner) = (process_id(), INHERITED.last_pid.load(Relaxed));
    thread_exists(pid, lwp) || ![0, pid].contains(&owner) && shares_memory() && thread_exists(owner, lwp)
}

/// Whether the calling thread is the only one of the process; `false` if that is not known.
pub fn is_only_thread() -> bool {
    // In a tenth of the time that the directory takes, which has itself, its parent and a directory for each thread.
    !has_filter() && asked_to_unshare(libc::CLONE_THREAD).is_ok()
        || path::stat(c"/proc/self/task").is_ok_and(|stat| stat.st_nlink == 3)
}

/// Whether no other thread or process uses this process's memory; `false` if that is not known. A seccomp filter might answer instead of
/// the kernel.
pub fn is_alone_in_memory() -> bool {
    !has_filter() && asked_to_unshare(libc::CLONE_VM).is_ok()
}

/// The calling thread's alternate signal stack.
pub fn signal_stack() -> Result<libc::stack_t> {
    // SAFETY: the kernel fills the struct when it returns 0.
    unsafe { filled_by(|stack| call(libc::SYS_sigaltstack, [0, stack])) }
}

/// Whether the processor's time stamp counter raises SIGSEGV when this thread reads it (`PR_SET_TSC`). A thread inherits
/// that from the one that made it, also over fork and exec.
pub fn counter_is_forbidden() -> bool {
    // SAFETY: the kernel fills an int when it returns 0.
    let mode = unsafe { filled_by::<c_int>(|mode| call(libc::SYS_prctl, [libc::PR_GET_TSC as usize, mode])) };
    mode == Ok(libc::PR_TSC_SIGSEGV)
}

/// The name of the calling thread, which `top` and debuggers show.
pub fn thread_name() -> Result<[c_char; 16]> {
    // SAFETY: the kernel writes 16 bytes, NUL-terminated, when it returns 0.
    unsafe { filled_by(|name| call(libc::SYS_prctl, [libc::PR_GET_NAME as usize, name])) }
}

/// Kernel name, host name, release and so on.
pub fn system_name() -> Result<libc::utsname> {
    // SAFETY: the kernel fills the struct when it returns 0.
    unsafe { filled_by(|name| call(libc::SYS_uname, [name])) }
}

#[cfg(test)]
mod tests {
    use core::ffi::{c_int, c_void};
    use core::ptr::without_provenance_mut;

    use super::*;

    #[test]
    fn only_a_child_in_the_same_memory_shares_it() {
        extern "C" fn child(_: *mut c_void) -> c_int {
            let bit = |is_so: bool, place: u32| c_int::from(is_so) << place;
            bit(shares_memory(), 0) | bit(is_only_thread(), 1) | bit(is_alone_in_memory(), 2)
        }
        let status_with = |flags| {
            let mut stack = [0u128; 4096];
            let mut status = 0;
            // SAFETY: the child has a stack of its own, on which it only makes system calls; this process waits for it.
            unsafe {
                let top = stack.as_mut_ptr_range().end.cast();
                let pid = libc::clone(child, top, flags | libc::SIGCHLD, core::ptr::null_mut());
                assert_eq!(libc::waitpid(pid, &raw mut status, 0), pid);
            }
            libc::WEXITSTATUS(status)
        };
        assert_eq!(status_with(0), 0b110, "forked: the only thread, alone in its memory");
        assert_eq!(status_with(libc::CLONE_VM | libc::CLONE_VFORK), 0b011, "as by vfork");
        assert!(!shares_memory(), "only its threads share it");
    }

    #[test]
    fn a_test_has_more_threads_than_its_own() {
        assert!(!is_only_thread() && !is_alone_in_memory());
    }

    #[test]
    fn the_calling_thread_exists() {
        assert!(thread_exists(process_id(), thread_id()));
    }

    #[test]
    fn a_vfork_child_knows_the_threads_of_its_parent() {
        extern "C" fn child(lwp: *mut c_void) -> c_int {
            marker_exists(lwp.addr() as u32).into()
        }
        let knows = |lwp: u32| {
            let mut stack = vec![0_u64; 1 << 13];
            let (flags, mut status) = (libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD, -1);
            // SAFETY: the child has a stack of its own while this thread waits, and calls only system calls.
            unsafe {
                let child = libc::clone(
                    child,
                    stack.as_mut_ptr_range().end.cast(),
                    flags,
                    without_provenance_mut(lwp as usize),
                );
                assert_eq!(libc::waitpid(child, &raw mut status, 0), child);
            }
            assert!(libc::WIFEXITED(status));
            libc::WEXITSTATUS(status) != 0
        };
        INHERITED.last_pid.store(process_id(), Relaxed);
        let (end, waits) = std::sync::mpsc::channel::<()>();
        let (tell, lwp) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            tell.send(thread_id()).unwrap();
            waits.recv().unwrap_err();
        });
        let lwp = lwp.recv().unwrap();
        assert!(knows(lwp) && knows(thread_id()));
        drop(end);
        thread.join().unwrap();
        // The kernel lets a thread be joined a little before it is gone.
        while thread_exists(process_id(), lwp) {
            std::thread::yield_now();
        }
        assert!(!knows(lwp));
    }
}
