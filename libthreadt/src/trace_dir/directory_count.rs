//! How much all processes of a trace directory have written, where that is limited.
//!
//! The file `trctl` has a page for words, and behind it a byte for each 4096 bytes of records. It is appended to, never mapped:
//! an append is atomic whoever dies, and whoever truncates the file does no harm to the programs that count in it.

use spec::buffer::PAGE;
use spec::names::FileName;

use super::directory;
use crate::sys::path::{self, PATH_MAX};
use crate::sys::{self, Fd, Result};

/// The bytes of records that a byte of the file stands for.
const UNIT: u64 = 4096;
/// The most that is appended by one write.
static UNITS: [u8; 256] = [0; 256];

/// The count of a process, with room for a path, which no host's stack has.
pub struct DirectoryCount {
    path: [u8; PATH_MAX],
}

impl DirectoryCount {
    pub const fn new() -> DirectoryCount {
        DirectoryCount { path: [0; PATH_MAX] }
    }

    /// Adds what a process has `written` to the directory's count, of which `counted` bytes are in it already: what it has
    /// `counted` then, and the directory's bytes in all.
    pub fn add(&mut self, written: u64, counted: u64) -> Result<(u64, u64)> {
        let file = sys::repeat_if_closed(|| self.open())?;
        let mut units = written.div_ceil(UNIT).saturating_sub(counted / UNIT);
        let counted = counted / UNIT * UNIT + units * UNIT;
        while units > 0 {
            let length = units.min(UNITS.len() as u64);
            // OBSERVABLE: other processes count on from there.
            file.write(UNITS.get(..length as usize).unwrap_or(&UNITS))?;
            units -= length;
        }
        let size = file.stat()?.st_size as u64;
        Ok((counted, size.saturating_sub(PAGE as u64).saturating_mul(UNIT)))
    }

    /// Opens the file for appending; makes it if there is none.
    fn open(&mut self) -> Result<Fd> {
        let path = path::trace_file(&mut self.path, directory::path(), FileName::Control);
        let flags = libc::O_WRONLY | libc::O_APPEND;
        let (file, _, size) = Fd::open_shared(path, flags)?;
        if size >= PAGE as u64 {
            return Ok(file);
        }
        // Without O_APPEND: the last byte of the page, which may have been written meanwhile, is not another one.
        let (page, ..) = Fd::open_trusted(path, libc::O_WRONLY)?;
        // SAFETY: the byte is static.
        unsafe { page.write_at(UNITS.as_ptr(), 1, PAGE as u64 - 1) }?;
        Ok(file)
    }
}
