//! Files that other processes still have open or mapped.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd as _;
use std::path::Path;
use std::time::Duration;

use super::TestDirectory;

impl TestDirectory {
    /// Makes a program of a file. A copy by this process could not be executed while another test's child, which was forked
    /// in the middle of it, still has it open for writing; so another process copies.
    pub fn install(&self, source: &Path, program: &Path) {
        self.native("install").arg("-m755").arg(source).arg(program).run().success();
    }

    /// Runs `trace-cat --recover` when all processes of the trace have ended and nobody has their memory any more: who reads a dead
    /// process's `/proc/PID/maps` at this moment keeps it a little longer, and with it the process counts as alive.
    #[track_caller]
    pub fn recover(&self) {
        wait_for_writers(&self.trace_directory());
        self.trace_cat().arg("--recover").run().success();
    }
}

/// Waits until nobody has a trbuf in this directory or one below it open or mapped for writing.
fn wait_for_writers(directory: &Path) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy();
        if path.is_dir() {
            wait_for_writers(&path);
        } else if name.starts_with("trbuf.") || name.starts_with("trspare.") {
            wait_for_writer(&File::open(&path).unwrap());
        }
    }
}

/// Waits until the kernel grants a lease, if it does so on this file system.
fn wait_for_writer(file: &File) {
    // SAFETY: the descriptor is open, and F_SETLEASE takes an integer.
    let lease = |kind: libc::c_int| unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETLEASE, kind) };
    for _ in 0..600_000 {
        if lease(libc::F_RDLCK) == 0 {
            assert_eq!(lease(libc::F_UNLCK), 0);
            return;
        }
        if io::Error::last_os_error().raw_os_error() != Some(libc::EAGAIN) {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    panic!("somebody still writes to {file:?}");
}
