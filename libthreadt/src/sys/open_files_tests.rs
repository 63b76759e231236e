#![expect(clippy::disallowed_methods, reason = "the process is the test's own")]

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;

use core::ffi::c_int;
use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicI32, AtomicU32};

use super::open_files::{MARK, Note, close_abandoned, close_inherited, is_marked};
use super::opened_before::add_number;
use super::stack::stack_pointer;
use super::{Fd, process_id, sleep, thread_id};

static CHILD: AtomicI32 = AtomicI32::new(0);
static LWP: AtomicU32 = AtomicU32::new(0);

/// Forks, as the host's handler may; the child then does what the hook of fork does.
extern "C" fn fork(_: c_int) {
    // SAFETY: the child calls only system calls.
    let child = unsafe { libc::fork() };
    if child == 0 {
        close_inherited(LWP.load(Relaxed), thread_id(), stack_pointer());
    }
    CHILD.store(child, Relaxed);
}

/// A handler forks while the thread is about to write: only the parent writes.
#[test]
fn a_child_does_not_continue_the_write_that_its_handler_interrupted() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    let file = Fd::create(&CString::new(path.as_os_str().as_bytes()).unwrap(), libc::O_RDWR).unwrap().0;
    LWP.store(thread_id(), Relaxed);
    // SIGUSR2 is the interleaving scheduler's, which other tests run at the same time.
    // SAFETY: the handler only makes system calls.
    unsafe {
        libc::signal(libc::SIGUSR1, fork as *const () as libc::sighandler_t);
        libc::raise(libc::SIGUSR1);
    }
    let child = CHILD.load(Relaxed);
    // SAFETY: the text is readable.
    let written = unsafe { file.write_at(b"text".as_ptr(), 4, 0) };
    if child == 0 {
        // SAFETY: ends the child.
        unsafe { libc::_exit(if written.is_err() { 7 } else { 8 }) };
    }
    let mut status = 0;
    // SAFETY: waits for the child of this test.
    unsafe { libc::waitpid(child, &mut status, 0) };
    assert_eq!((written, libc::WEXITSTATUS(status)), (Ok(()), 7), "process {}", process_id());
    assert_eq!(std::fs::read(path).unwrap(), b"text");
}

/// Opens a file that nothing closes: a jump has left the function before it could note the number.
#[inline(never)]
fn open_and_leave(path: &CString, inode: u64) -> c_int {
    let room = std::hint::black_box([0u8; 8192]);
    assert!(Note::begin(thread_id(), stack_pointer(), inode).is_some() && std::hint::black_box(&room)[0] == 0);
    // SAFETY: the path is NUL-terminated.
    let number = unsafe { libc::open(path.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC | MARK) };
    add_number(number);
    number
}

/// Two jumps in a row leave a file each: neither is taken for what the other was about to open.
#[test]
fn files_that_several_jumps_have_left_are_closed() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let path = CString::new(file.path().as_os_str().as_bytes()).unwrap();
    let inode = file.path().metadata().unwrap().ino();
    let left = [open_and_leave(&path, inode), open_and_leave(&path, inode)];
    assert!(left.into_iter().all(is_marked));
    // While another test opens a file, nothing is certain.
    for _ in 0..10_000 {
        close_abandoned(thread_id(), Some(stack_pointer()));
        if !left.into_iter().any(is_marked) {
            return;
        }
        sleep(1_000_000);
    }
    panic!("still open");
}
