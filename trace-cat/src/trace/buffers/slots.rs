//! The slots of a trbuf, one at a time, however large it claims to be: a slot may hold a ring of a gigabyte, so only its
//! first page is read here.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

use spec::buffer::{PAGE, SLOTS_OFFSET, SlotLayout};

/// Bytes of a cut slot that are read at a time.
const CHUNK_LEN: usize = 64 * 1024;

/// What [`Slots::next`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlotEntry {
    /// A slot, whose first page is read.
    Slot {
        /// Which one.
        index: u64,
        /// Where in the trbuf it begins.
        at: u64,
    },
    /// Slot `index` has less than its size in the file. It is the last one.
    Cut {
        /// Which one.
        index: u64,
    },
}

/// Goes over the slots of a trbuf that are not holes.
pub struct Slots<'a> {
    file: &'a File,
    shape: SlotLayout,
    size: u64,
    index: u64,
}

impl<'a> Slots<'a> {
    /// The slots of `file`, which have this shape.
    ///
    /// # Errors
    /// What `fstat` says.
    pub fn new(file: &'a File, shape: SlotLayout) -> io::Result<Slots<'a>> {
        Ok(Slots { file, shape, size: file.metadata()?.len(), index: 0 })
    }

    /// The next one, whose first page is read into `page`.
    ///
    /// # Errors
    /// What reading says.
    pub fn next(&mut self, page: &mut [u8; PAGE]) -> io::Result<Option<SlotEntry>> {
        let slot_size = self.shape.slot_size() as u64;
        loop {
            let index = self.index;
            let at = self.shape.slot_offset(index);
            if at >= self.size {
                return Ok(None);
            }
            let Some(data) = next_data(self.file, at) else { return Ok(None) };
            if data >= at + slot_size {
                self.index = (data - SLOTS_OFFSET as u64) / slot_size;
                continue;
            }
            if self.size - at < slot_size {
                self.size = 0;
                // A kill while the file grew leaves a part of a slot, of which nothing was used.
                return Ok((!self.is_unused(at)?).then_some(SlotEntry::Cut { index }));
            }
            self.index += 1;
            read_up_to(self.file, page, at)?;
            return Ok(Some(SlotEntry::Slot { index, at }));
        }
    }

    /// Whether the file holds nothing but zeros from `at` on.
    fn is_unused(&self, mut at: u64) -> io::Result<bool> {
        let mut piece = vec![0; CHUNK_LEN];
        while let Some(data) = next_data(self.file, at) {
            let length = read_up_to(self.file, &mut piece, data)?;
            if length == 0 {
                break;
            }
            if piece[..length].iter().any(|&byte| byte != 0) {
                return Ok(false);
            }
            at = data + length as u64;
        }
        Ok(true)
    }
}

/// Fills `buffer` as far as the file goes; returns how far.
///
/// # Errors
/// What reading says.
pub fn read_up_to(file: &File, buffer: &mut [u8], at: u64) -> io::Result<usize> {
    let mut length = 0;
    while length < buffer.len() {
        match file.read_at(&mut buffer[length..], at + length as u64) {
            Ok(0) => break,
            Ok(count) => length += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(length)
}

/// Where `file` has its first bytes from `at` on that are not a hole, or `None` if it has no more.
fn next_data(file: &File, at: u64) -> Option<u64> {
    let from = libc::off_t::try_from(at).ok()?;
    // SAFETY: lseek takes no pointer; the descriptor is open, and nobody uses its offset.
    let data = unsafe { libc::lseek(file.as_raw_fd(), from, libc::SEEK_DATA) };
    match u64::try_from(data) {
        Ok(data) => Some(data),
        Err(_) if io::Error::last_os_error().raw_os_error() == Some(libc::ENXIO) => None,
        // A file system that does not know its holes.
        Err(_) => Some(at),
    }
}
