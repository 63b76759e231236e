//! The first record of a process: its files are made.

use crate::process_state::{PROCESS, switch_all_off};
use crate::storage;
use crate::sys::Errno;
use crate::trace_dir::directory;
use crate::trace_dir::names_owner::{self, ClaimedTrbuf};

use super::process_info;

/// Makes this process's files in the trace directory, unless they are there; whether they are there now.
///
/// A failure is reported once on stderr and ends all recording in this process.
pub fn prepare_files() -> bool {
    PROCESS.files.run(|| {
        // SAFETY: within `files`, which one thread of the process runs, and all users of the directory's paths have
        // passed; so are the calls of `make_files`.
        let prepared = unsafe { directory::resolve() } && make_files();
        if !prepared {
            switch_all_off();
        }
        prepared
    })
}

// Not inlined, so that later threads' first records need little stack.
#[cold]
#[inline(never)]
fn make_files() -> bool {
    let make_trbuf = || {
        // SAFETY: as above.
        unsafe { names_owner::claim() }.and_then(|trbuf| match trbuf {
            ClaimedTrbuf::New(fd, owner) => storage::make(&fd, &owner),
            ClaimedTrbuf::TakenOver(fd, owner) => storage::take_over(&fd, &owner),
        })
    };
    let mut made = make_trbuf();
    for _ in 0..16 {
        if made != Err(Errno(libc::EBADF)) {
            break;
        }
        // The host closes descriptors that are not its own, or a handler of this thread has lowered the limit on files.
        made = make_trbuf();
    }
    match made {
        Ok(()) => {
            process_info::write_at_first_record();
            true
        }
        Err(errno) => directory::report_unusable(directory::path(), errno),
    }
}
