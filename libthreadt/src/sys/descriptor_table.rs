//! Who has the table of descriptors that the calling thread uses. Most processes have one, of all their threads, and nobody else
//! has it; then nothing here takes time.
//!
//! A child may share its parent's table and not the memory (`clone` with CLONE_FILES and without CLONE_VM): what it finds open there is
//! its parent's. And a thread may leave the table of the others (`unshare`, `close_range`): then a number that another
//! thread has noted says nothing about the same number here.

use core::ffi::c_int;
use core::sync::atomic::Ordering::{Relaxed, SeqCst};
use core::sync::atomic::{AtomicBool, AtomicUsize};

use super::call::{Errno, call};
use super::process::{parent_id, thread_id};
use super::seccomp::has_filter;
use super::thread_word::thread_pointer;

/// Threads of this process may have different tables.
static DIFFER: AtomicBool = AtomicBool::new(false);
/// Another process may use a table of this one.
static IS_SHARED: AtomicBool = AtomicBool::new(false);

/// What threads have noted of the children that they were about to make: a thread's pointer, which the child has as well, and what
/// is known in its lowest bits. Threads whose pointers lead to the same place replace each other's.
static NOTED_CHILDREN: [AtomicUsize; 16] = [const { AtomicUsize::new(0) }; 16];
/// The child shares the table.
const SHARES: usize = 1;
/// The child has a table of its own, for certain: libc's `fork` has made it, which does nothing else.
const FORKED: usize = 2;
/// Bits that are 0 in a thread's pointer.
const KNOWLEDGE: usize = SHARES | FORKED;

/// Notes that a thread is about to make a task by `clone` with these flags.
pub fn note_clone(flags: c_int) {
    let has = |flag: c_int| flags & flag != 0;
    if has(libc::CLONE_FILES) && !has(libc::CLONE_THREAD) {
        IS_SHARED.store(true, SeqCst);
    }
    if has(libc::CLONE_THREAD) && !has(libc::CLONE_FILES) {
        DIFFER.store(true, SeqCst);
    }
    if !has(libc::CLONE_VM) {
        note_child(if has(libc::CLONE_FILES) { SHARES } else { 0 });
    }
}

/// Notes that a thread is about to make a child by `fork`.
pub fn note_fork() {
    note_child(FORKED);
}

/// Forgets what the thread has noted: its next child may be made unnoticed.
pub fn forget_noted() {
    place().store(0, Relaxed);
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

/// In a forked child, which has this thread alone: whether it uses its parent's table; if that is not known, whether it may use it.
/// `lwp` was the forking thread's, 0 if that is not known: it has the table of its process's first thread then, unless threads differ.
pub fn is_parents(lwp: u32) -> bool {
    let lwp = if lwp == 0 && !may_differ() { parent_id() } else { lwp };
    let noted = noted();
    let is_parents = noted != Some(FORKED) && (noted == Some(SHARES) || has_table_of(lwp).unwrap_or(noted.is_none()));
    DIFFER.store(false, Relaxed);
    IS_SHARED.store(is_parents, Relaxed);
    forget_noted();
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

fn place() -> &'static AtomicUsize {
    let pointer = thread_pointer();
    // Stacks, whose ends the pointers are near, are apart by multiples of large powers of two.
    &NOTED_CHILDREN[(pointer >> 12 ^ pointer >> 18 ^ pointer >> 23) % NOTED_CHILDREN.len()]
}

fn note_child(knowledge: usize) {
    place().store(thread_pointer() | knowledge, Relaxed);
}

fn noted() -> Option<usize> {
    let word = place().load(Relaxed);
    (word & !KNOWLEDGE == thread_pointer()).then_some(word & KNOWLEDGE)
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
        forget_noted();
        assert_eq!(status_of_child(0, || is_parents(lwp)), (!is_answered).into());
        assert_eq!(status_of_child(libc::CLONE_FILES, || is_parents(lwp)), 1);
        // The process's first thread has the table, too.
        assert_eq!(status_of_child(0, || is_parents(0)), (!is_answered).into(), "nothing was noted");
        note_child(0);
        assert_eq!(status_of_child(0, || is_parents(0)), 0);
        note_child(SHARES);
        assert_eq!(status_of_child(0, || is_parents(0)), 1);
        note_child(0);
        assert_eq!(status_of_child(libc::CLONE_FILES, || is_parents(lwp)), is_answered.into(), "made unnoticed");
        note_fork();
        assert_eq!(status_of_child(0, || is_parents(lwp)), 0);
        assert_eq!(status_of_child(0, || is_parents(0)), 0, "also if that is not asked");
        // A thread of another test may get this one's place in memory.
        forget_noted();
    }
}
