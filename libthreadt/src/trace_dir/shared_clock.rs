//! The clock that all processes of a trace directory share: the offset from `CLOCK_MONOTONIC` to the Epoch.

use core::sync::atomic::AtomicBool;
use core::sync::atomic::Ordering::Relaxed;

use spec::info;
use spec::names::FileName;

use super::directory::{self, Scratch};
use super::identity;
use crate::sys::diagnostics::{Warning, errno_text, warn};
use crate::sys::{Errno, Fd, path};
use crate::{clock, process_state};

/// The offset is set, in this process or in one that it was forked from.
static OFFSET_SET: AtomicBool = AtomicBool::new(false);

/// Uses the offset that this process had before an exec.
pub(super) fn keep(offset: i64) {
    clock::OFFSET.store(offset, Relaxed);
    OFFSET_SET.store(true, Relaxed);
}

/// Adopts the directory's offset, or makes ours the directory's. To be called by one thread at a time.
pub(super) fn share(scratch: &mut Scratch) {
    if !OFFSET_SET.load(Relaxed) {
        adopt_or_write(scratch);
        OFFSET_SET.store(true, Relaxed);
    }
}

/// An offset of another boot, or one that is more than a second away from the measured one (the wall clock has been
/// stepped), is replaced: processes that begin from now on share the new one.
fn adopt_or_write(scratch: &mut Scratch) {
    const STEP: i64 = 1_000_000_000;
    let ours = clock::measure_offset();
    clock::OFFSET.store(ours, Relaxed);
    let boot_id = identity::boot_id();
    for _ in 0..3 {
        let clock_path = path::trace_file(&mut scratch.path, directory::path(), FileName::Clock);
        let existing = Fd::open_trusted(clock_path, libc::O_RDONLY);
        if let Err(errno) = existing
            && errno.is_foreign_file()
        {
            // Somebody else's, which may say anything.
            let reason = errno_text(errno);
            return warn(Warning::Clock, &[b"'", clock_path.to_bytes(), b"' is not used: ", reason]);
        }
        if let Ok((file, ..)) = &existing {
            let length = file.read_at(&mut scratch.text, 0).unwrap_or(0);
            let text = scratch.text.get(..length).unwrap_or(b"");
            let same_boot = info::value(text, "boot_id") == Some(&boot_id[..]);
            match info::number(text, "offset") {
                Some(theirs) if same_boot && theirs.abs_diff(ours) <= STEP as u64 => {
                    return clock::OFFSET.store(theirs, Relaxed);
                }
                _ => {}
            }
        }
        // Written under another name first, so that nobody reads an incomplete file.
        let mut number = itoa::Buffer::new();
        let pid = number.format(process_state::id()).as_bytes();
        let new = path::join(&mut scratch.other_path, &[directory::path(), b"/trclock.", pid]);
        let Ok((file, _)) = Fd::create(new, libc::O_WRONLY) else { return };
        let mut number = itoa::Buffer::new();
        let slices: [&[u8]; 5] = [b"boot_id ", &boot_id, b"\noffset ", number.format(ours).as_bytes(), b"\n"];
        let written = slices.iter().try_for_each(|slice| file.write(slice));
        // OBSERVABLE: the complete file appears at once, and the first process to link it wins.
        let linked = match written {
            Ok(()) if existing.is_ok() => path::replace(new, clock_path),
            Ok(()) => path::link(new, clock_path),
            Err(errno) => Err(errno),
        };
        let _ = path::unlink(new);
        if linked != Err(Errno(libc::EEXIST)) {
            return;
        }
    }
}
