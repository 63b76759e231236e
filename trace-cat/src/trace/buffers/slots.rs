//! The slots of a trbuf, one at a time, however large the trbuf is. Only the first page of a slot is read here, since a
//! slot may hold a ring of a gigabyte.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

use spec::buffer::{self, PAGE, SLOTS_OFFSET, SlotLayout};

/// Bytes of an incomplete slot that are read at a time.
const CHUNK_LEN: usize = 64 * 1024;

/// What [`Slots::next`] returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlotEntry {
    /// A slot, whose first page was read: its number, and its beginning in the trbuf.
    Slot { index: u64, at: u64 },
    /// The number of the last slot, which the file does not hold completely.
    Incomplete { index: u64 },
}

/// Reads the slots of a trbuf that are not holes.
pub struct Slots<'a> {
    file: &'a File,
    layout: SlotLayout,
    size: u64,
    index: u64,
}

impl<'a> Slots<'a> {
    /// The slots of `file`, which have this layout.
    pub fn new(file: &'a File, layout: SlotLayout) -> io::Result<Slots<'a>> {
        Ok(Slots { file, layout, size: file.metadata()?.len(), index: 0 })
    }

    /// The next slot, whose first page is read into `page`; `None` after the last.
    pub fn next(&mut self, page: &mut [u8; PAGE]) -> io::Result<Option<SlotEntry>> {
        let slot_size = self.layout.slot_size() as u64;
        loop {
            let index = self.index;
            let at = self.layout.slot_offset(index);
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
                // A process that is killed while it lengthens the file leaves an unused, incomplete slot.
                return Ok((!holds_only_zeros(self.file, at)?).then_some(SlotEntry::Incomplete { index }));
            }
            self.index += 1;
            read_up_to(self.file, page, at)?;
            return Ok(Some(SlotEntry::Slot { index, at }));
        }
    }
}

/// Whether a trbuf with such slots has one that a thread had when the process was killed, or that is damaged.
pub fn has_slot_in_use(file: &File, layout: SlotLayout) -> io::Result<bool> {
    let mut page = [0; PAGE];
    let mut slots = Slots::new(file, layout)?;
    while let Some(entry) = slots.next(&mut page)? {
        if matches!(entry, SlotEntry::Incomplete { .. }) || !matches!(buffer::slot_lwp(&page), Ok(None)) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether nothing has been written to a page.
pub fn is_blank(page: &[u8; PAGE]) -> bool {
    page.iter().all(|&byte| byte == 0)
}

/// Whether `file` holds only zeros from `at` on.
pub fn holds_only_zeros(file: &File, at: u64) -> io::Result<bool> {
    is_zero_but(file, at, |_| false)
}

/// Whether a trbuf whose first page is blank has nothing that a process has left: it was never used, or is a child's that has ended and
/// left it to the next one, with the text of records that are in the files. Of such a one the first page of each slot is blank, too.
pub fn is_left_blank(file: &File) -> io::Result<bool> {
    let has_buffers = file.metadata()?.len() == SlotLayout::BUFFERS.first_size();
    // One with a ring has one slot.
    let slot_size = if has_buffers { SlotLayout::BUFFERS.slot_size() as u64 } else { u64::MAX };
    is_zero_but(file, PAGE as u64, |at| {
        let in_slots = at.checked_sub(SLOTS_OFFSET as u64);
        in_slots.is_some_and(|at| at % slot_size >= PAGE as u64)
    })
}

/// Whether `file` holds only zeros from `at` on, but for offsets that may have anything.
fn is_zero_but(file: &File, mut at: u64, may_be_anything: impl Fn(u64) -> bool) -> io::Result<bool> {
    let mut chunk = vec![0; CHUNK_LEN];
    while let Some(data) = next_data(file, at) {
        let length = read_up_to(file, &mut chunk, data)?;
        if length == 0 {
            break;
        }
        if chunk[..length].iter().zip(data..).any(|(&byte, at)| byte != 0 && !may_be_anything(at)) {
            return Ok(false);
        }
        at = data + length as u64;
    }
    Ok(true)
}

/// Fills `buffer` with the bytes from `at` on, up to the end of the file; returns how many.
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

/// The first byte of `file` from `at` on that is not in a hole; `None` if there is none.
fn next_data(file: &File, at: u64) -> Option<u64> {
    let from = libc::off_t::try_from(at).ok()?;
    // SAFETY: lseek takes no pointer, and the borrowed file keeps the descriptor open. It moves the file offset, which no
    // reader here uses: all of them give their offset.
    let data = unsafe { libc::lseek(file.as_raw_fd(), from, libc::SEEK_DATA) };
    match u64::try_from(data) {
        Ok(data) => Some(data),
        Err(_) if io::Error::last_os_error().raw_os_error() == Some(libc::ENXIO) => None,
        // This file system does not know its holes.
        Err(_) => Some(at),
    }
}
