//! The command line in trinfo. Servers change theirs to say what a process does: `nginx: worker process`.

use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use super::identity;
use super::info_file::{InfoWriter, nonzero_hash};
use crate::process_state::PROCESS;
use crate::sys::{self, Fd, SetOnce, seccomp, thread_word};

static TEXT: SetOnce<[u8; 4096]> = SetOnce::new([0; 4096]);
/// The hash of the beginning, as much as [`TEXT`] holds, of the command line that trinfo has; 0 if it has none.
static WRITTEN: AtomicU64 = AtomicU64::new(0);

/// How much of [`TEXT`] is the whole command line as it was last read; 0 if that is not known.
static LENGTH: AtomicUsize = AtomicUsize::new(0);

/// Writes the command line to a trinfo that has none of this program.
pub fn write(writer: &mut InfoWriter) {
    // SAFETY: the one writer of trinfo calls this.
    let text = unsafe { TEXT.get_mut() };
    match text.get_mut(..LENGTH.load(Relaxed)) {
        Some(kept) if PROCESS.parent_has_looked.load(Relaxed) != 0 && !kept.is_empty() => {
            write_line(writer, kept, None)
        }
        _ => {
            WRITTEN.store(0, Relaxed);
            write_if_changed(writer);
        }
    }
}

/// The program has put the command line elsewhere: it is read anew.
pub fn forget_place() {
    LENGTH.store(0, Relaxed);
    identity::forget_arguments();
}

/// Whether the command line is still what was read last, as far as that is known without reading it.
///
/// # Safety
/// If it `is_alone`, by an answer which is asked for only where it matters, the calling thread must be the only one of its process; whether
/// another task has its memory is asked here.
pub unsafe fn is_known(is_alone: impl FnOnce() -> bool) -> bool {
    // SAFETY: the one writer of trinfo calls this.
    let text = unsafe { TEXT.get_mut() };
    let kept = text.get(..LENGTH.load(Relaxed)).unwrap_or(b"");
    // A filter may kill for the calls.
    if kept.is_empty() || seccomp::has_filter() {
        return false;
    }
    let at = identity::arguments_at();
    match !thread_word::is_shared() && is_alone() {
        // SAFETY: the caller's.
        true => unsafe { sys::has_bytes_alone(at, kept) },
        false => sys::has_bytes(sys::process_id(), at, kept),
    }
}

/// Writes the command line if it is another one than trinfo has.
pub fn write_if_changed(writer: &mut InfoWriter) {
    // SAFETY: the one writer of trinfo calls this.
    if let Some((file, text)) = unsafe { begin_reading() }
        && WRITTEN.load(Relaxed) != nonzero_hash(text)
    {
        write_line(writer, text, Some(file));
    }
}

/// Whether the command line is another one than trinfo has.
pub fn has_changed() -> bool {
    // SAFETY: the one writer of trinfo calls this.
    let kept = unsafe { TEXT.get_mut() };
    let is_written = kept.get(..LENGTH.load(Relaxed)).is_some_and(|kept| WRITTEN.load(Relaxed) == nonzero_hash(kept));
    // SAFETY: the kernel says so.
    if is_written && unsafe { is_known(sys::is_only_thread) } {
        return false;
    }
    // SAFETY: as above.
    let begun = unsafe { begin_reading() };
    begun.is_some_and(|(_, text)| WRITTEN.load(Relaxed) != nonzero_hash(text))
}

/// Opens the file, and reads the beginning.
///
/// # Safety
/// The one writer of trinfo may call this, when it does not use the bytes of an earlier call any more.
unsafe fn begin_reading() -> Option<(Fd, &'static mut [u8])> {
    // SAFETY: the caller's.
    let text = unsafe { TEXT.get_mut() };
    let file = Fd::open_command_line().ok()?;
    LENGTH.store(0, Relaxed);
    let length = file.read(text).unwrap_or(0);
    // Else there may be more.
    if length < text.len() {
        LENGTH.store(length, Relaxed);
    }
    Some((file, text.get_mut(..length)?))
}

/// Writes the line; `text` is its beginning, and `file` has the rest.
fn write_line(writer: &mut InfoWriter, text: &mut [u8], file: Option<Fd>) {
    let hash = nonzero_hash(text);
    if WRITTEN.load(Relaxed) != hash {
        WRITTEN.store(hash, Relaxed);
    }
    writer.raw(b"cmdline ");
    // Each argument ends with a NUL; the last NUL is not written.
    let mut ended = false;
    let mut length = text.len();
    while length > 0 {
        for &byte in text.get(..length).unwrap_or(b"") {
            if ended {
                writer.raw(b" ");
            }
            ended = byte == 0;
            if !ended {
                writer.escaped(&[byte]);
            }
        }
        length = file.as_ref().map_or(0, |file| file.read(text).unwrap_or(0));
    }
    writer.raw(b"\n");
}
