//! Who has the table of descriptors that the calling thread uses. Most processes have one, of all their threads, and nobody else
//! has it; then nothing here takes time.
//!
//! A child may share its parent's table and not the memory (`clone` with CLONE_FILES and without CLONE_VM): what it finds open there is
//! its parent's. And a thread may leave the table of the others (`unshare`, `close_range`): then a number that another
//! thread has noted says nothing about the same number here.

use core::ffi::c_int;
use core::sync::atomic::AtomicBool;
use core::sync::atomic::Ordering::{Relaxed, SeqCst};

use super::call::{Errno, call};
use super::noted_forks;
use super::process::{parent_id, thread_id};
use super::seccomp::has_filter;

/// Threads of this process may have different tables.
#[unsafe(link_section = "inherited")]
static DIFFER: AtomicBool = AtomicBool::new(false);
/// Another process may use a table of this one.
#[unsafe(link_section = "inherited")]
static IS_SHARED: AtomicBool = AtomicBool::new(false);

/// Notes that a thread is about to make a task by `clone` with these flags.
pub fn note_clone(flags: c_int) {
    let has = |flag: c_int| flags & flag != 0;
    if has(libc::CLONE_FILES) && !has(libc::CLONE_THREAD) {
        IS_SHARED.store(true, SeqCst);
    }
    if has(libc::CLONE_THREAD) && !has(libc::CLONE_FILES) {
        DIFFER.store(true, SeqCst);
    }
}

/// Notes that the calling thread is about to leave the table of the other threads.
pub fn note_leaving() {
    DIFFER.store(true, SeqCst);
}

/// Whether a number that another thread of this process has noted may be one of another table.
#[inline]
pub fn may_differ() -> bool {
    DIFFER.load(SeqCst)
}

/// Whether what this process has not noted may be another process's.
pub fn may_be_shared() -> bool {
    IS_SHARED.load(SeqCst)
}

/// In a forked child, which has this thread alone: whether it uses its parent's table, as is `known`; if it is not, whether it may use it.
/// `lwp` was the forking thread's, 0 if that is not known: it has the table of its process's first thread then, unless threads differ.
pub fn is_parents(lwp: u32, known: Option<bool>) -> bool {
    let lwp = if lwp == 0 && !may_differ() { parent_id() } else { lwp };
    // What is noted may be an earlier fork, which a signal handler has left by a jump.
    let is_parents = known.or_else(|| has_table_of(lwp)).unwrap_or_else(|| !noted_forks::is_noted());
    DIFFER.store(false, Relaxed);
    IS_SHARED.store(is_parents, Relaxed);
    is_parents
}

/// Whether the calling thread has the table of the thread `lwp`; `None` if the kernel does not say.
fn has_table_of(lwp: u32) -> Option<bool> {
    const KCMP_FILES: usize = 2;
    // A filter that was there before the program may kill for what it does not know.
    if lwp == 0 || has_filter() {
        return None;
    }
    // SAFETY: no memory is involved.
    let order: Result<usize, Errno> = unsafe { call(libc::SYS_kcmp, [thread_id() as usize, lwp as usize, KCMP_FILES]) };
    order.ok().map(|order| order == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes a child by the system call with these flags. It ends with what `in_child` returns.
    #[expect(clippy::disallowed_methods, reason = "the process is the test's own")]
    fn status_of_child(flags: c_int, in_child: impl Fn() -> bool) -> c_int {
        // SAFETY: the child makes system calls only.
        let child = unsafe { call(libc::SYS_clone, [(flags | libc::SIGCHLD) as usize, 0, 0, 0, 0]) }.unwrap();
        if child == 0 {
            let status = in_child().into();
            // SAFETY: ends the child.
            unsafe { libc::_exit(status) };
        }
        let mut status = 0;
        // SAFETY: waits for the child of this test.
        unsafe { libc::waitpid(child as c_int, &raw mut status, 0) };
        libc::WEXITSTATUS(status)
    }

    #[test]
    fn a_child_knows_whether_the_table_is_its_parents() {
        let lwp = thread_id();
        // By the kernel's answer, if it gives one: else the child takes care.
        let is_answered = has_table_of(lwp) == Some(true);
        assert_eq!(status_of_child(0, || is_parents(lwp, None)), (!is_answered).into());
        assert_eq!(status_of_child(libc::CLONE_FILES, || is_parents(lwp, None)), 1);
        // The process's first thread has the table, too.
        assert_eq!(status_of_child(0, || is_parents(0, None)), (!is_answered).into());
        assert_eq!(status_of_child(libc::CLONE_FILES, || is_parents(0, None)), 1);
        noted_forks::note();
        assert_eq!(status_of_child(0, || is_parents(0, None)), 0);
        assert_eq!(
            status_of_child(libc::CLONE_FILES, || is_parents(0, None)),
            is_answered.into(),
            "of an earlier fork"
        );
        // A thread of another test may get this one's place in memory.
        noted_forks::forget();
        for known in [false, true] {
            assert_eq!(status_of_child(0, || is_parents(lwp, Some(known))), known.into(), "the kernel is not asked");
        }
    }
}
