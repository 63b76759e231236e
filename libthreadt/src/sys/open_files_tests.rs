#![expect(clippy::disallowed_methods, reason = "the process is the test's own")]

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;

use core::ffi::c_int;
use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicI32, AtomicU32};

use super::copied_files::{close_inherited, leave_table};
use super::descriptor::{control, stat};
use super::file_notes::Note;
use super::left_files::close_abandoned;
use super::open_files::{MARK, is_marked};
use super::opened_before::add_number;
use super::stack::stack_pointer;
use super::{Fd, process_id, sleep, thread_id};

static CHILD: AtomicI32 = AtomicI32::new(0);
static LWP: AtomicU32 = AtomicU32::new(0);
static FLAGS: AtomicI32 = AtomicI32::new(0);

/// Makes a child, as the host's handler may; the child then does what it does at its first hook.
extern "C" fn make_child(_: c_int) {
    let flags = FLAGS.load(Relaxed) | libc::SIGCHLD;
    // SAFETY: the child makes only system calls.
    let child = unsafe { libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0) } as c_int;
    if child == 0 {
        close_inherited(LWP.load(Relaxed), thread_id(), Some(stack_pointer()), None);
    }
    CHILD.store(child, Relaxed);
}

/// A handler makes a child while the thread is about to write: only the parent writes, whosever the table of descriptors is.
#[test]
fn a_child_does_not_continue_the_write_that_its_handler_interrupted() {
    let directory = tempfile::tempdir().unwrap();
    LWP.store(thread_id(), Relaxed);
    // SIGUSR2 is the interleaving scheduler's, which other tests run at the same time.
    // SAFETY: the handler only makes system calls.
    unsafe { libc::signal(libc::SIGUSR1, make_child as *const () as libc::sighandler_t) };
    for flags in [0, libc::CLONE_FILES] {
        let path = directory.path().join(flags.to_string());
        let file = Fd::create(&CString::new(path.as_os_str().as_bytes()).unwrap(), libc::O_RDWR).unwrap().0;
        FLAGS.store(flags, Relaxed);
        // SAFETY: as above.
        unsafe { libc::raise(libc::SIGUSR1) };
        let child = CHILD.load(Relaxed);
        // SAFETY: the text is readable.
        let write = || unsafe { file.write_at(b"text".as_ptr(), 4, 0) };
        if child == 0 {
            let has_failed = write().is_err();
            drop(file);
            // SAFETY: ends the child.
            unsafe { libc::_exit(if has_failed { 7 } else { 8 }) };
        }
        let mut status = 0;
        // SAFETY: waits for the child of this test.
        unsafe { libc::waitpid(child, &mut status, 0) };
        assert_eq!((write(), libc::WEXITSTATUS(status)), (Ok(()), 7), "process {}, flags {flags}", process_id());
        assert_eq!(std::fs::read(path).unwrap(), b"text");
    }
}

/// A handler leaves the table of descriptors while the thread is about to write: nothing stays open in the other one.
#[test]
fn a_thread_that_leaves_a_table_leaves_no_file_there() {
    extern "C" fn leave(_: c_int) {
        leave_table(thread_id(), stack_pointer(), || {
            // SAFETY: only this test's thread gets another table.
            unsafe { libc::unshare(libc::CLONE_FILES) == 0 }
        });
    }
    // A child, so that no other test uses its descriptors. What such tests have noted is not the child's.
    let lwp = thread_id();
    // SAFETY: the child makes system calls, and a thread.
    let child = unsafe { libc::fork() };
    if child == 0 {
        close_inherited(lwp, thread_id(), Some(stack_pointer()), Some(false));
        let directory = tempfile::tempdir().unwrap();
        let path = CString::new(directory.path().join("file").as_os_str().as_bytes()).unwrap();
        let thread = std::thread::spawn(move || {
            let file = Fd::create(&path, libc::O_RDWR).unwrap().0;
            let number = (0..1024).find(|number| is_marked(*number)).unwrap();
            // SAFETY: the handler only makes system calls.
            unsafe {
                libc::signal(libc::SIGURG, leave as *const () as libc::sighandler_t);
                libc::raise(libc::SIGURG);
            }
            // SAFETY: the text is readable.
            let written = unsafe { file.write_at(b"text".as_ptr(), 4, 0) };
            // A file of the program's own gets the number.
            // SAFETY: the path is NUL-terminated.
            while unsafe { libc::open(c"/".as_ptr(), libc::O_RDONLY) } < number {}
            drop(file);
            (number, written.is_err() && control(number, libc::F_GETFD) == 0 && stat(number).is_ok())
        });
        let (number, is_right) = thread.join().unwrap();
        drop(directory);
        // SAFETY: ends the child.
        unsafe { libc::_exit(if is_right && stat(number).is_err() { 7 } else { 8 }) };
    }
    let mut status = 0;
    // SAFETY: waits for the child of this test.
    unsafe { libc::waitpid(child, &mut status, 0) };
    assert_eq!(libc::WEXITSTATUS(status), 7);
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

/// The program's own file has the flags that the library gives, and a number that the library has had.
#[test]
fn a_file_of_the_programs_is_not_taken_for_one_that_was_left() {
    // Its inode number is none that a removed file of another test has had.
    let path = c"Cargo.toml";
    let lwp = thread_id();
    // A child, so that other tests do not meet its file, nor it their notes.
    // SAFETY: the child makes system calls.
    let child = unsafe { libc::fork() };
    if child == 0 {
        close_inherited(lwp, thread_id(), Some(stack_pointer()), Some(false));
        // SAFETY: the path is NUL-terminated.
        let number = unsafe { libc::open(path.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC | MARK) };
        add_number(number);
        begin_and_leave();
        close_abandoned(thread_id(), Some(stack_pointer()));
        // SAFETY: ends the child.
        unsafe { libc::_exit(if is_marked(number) { 7 } else { 8 }) };
    }
    let mut status = 0;
    // SAFETY: waits for the child of this test.
    unsafe { libc::waitpid(child, &mut status, 0) };
    assert_eq!(libc::WEXITSTATUS(status), 7);
}

/// A jump has left the function before it could open the file, of which nothing is known.
#[inline(never)]
fn begin_and_leave() {
    let room = std::hint::black_box([0u8; 8192]);
    assert!(Note::begin(thread_id(), stack_pointer(), 0).is_some() && std::hint::black_box(&room)[0] == 0);
}
