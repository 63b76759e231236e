//! The command line in trinfo. Servers change theirs to say what a process does: `nginx: worker process`.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::info_file::{InfoWriter, nonzero_hash};
use crate::sys::{Fd, SetOnce};

static TEXT: SetOnce<[u8; 4096]> = SetOnce::new([0; 4096]);
/// The hash of the beginning, as much as [`TEXT`] holds, of the command line that trinfo has; 0 if it has none.
static WRITTEN: AtomicU64 = AtomicU64::new(0);

/// Writes the command line to a trinfo that has none of this program.
pub fn write(writer: &mut InfoWriter) {
    WRITTEN.store(0, Relaxed);
    write_if_changed(writer);
}

/// Writes the command line if it is another one than trinfo has.
pub fn write_if_changed(writer: &mut InfoWriter) {
    // SAFETY: the one writer of trinfo calls this.
    let text = unsafe { TEXT.get_mut() };
    let Ok(file) = Fd::open_proc(c"/proc/self/cmdline") else { return };
    let mut length = file.read(text).unwrap_or(0);
    let hash = nonzero_hash(text.get(..length).unwrap_or(b""));
    if WRITTEN.load(Relaxed) == hash {
        return;
    }
    WRITTEN.store(hash, Relaxed);
    writer.raw(b"cmdline ");
    // Each argument ends with a NUL; the last NUL is not written.
    let mut ended = false;
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
        length = file.read(text).unwrap_or(0);
    }
    writer.raw(b"\n");
}
