//! The build ID of a mapped ELF object, which is read where it is mapped.

use crate::sys::Fd;

/// Longest build ID that is written, bytes.
pub const BUILD_ID_MAX: usize = 32;

/// Reads the GNU build ID of the ELF object that begins at `begin`; returns its length.
pub fn build_id(memory: &Fd, begin: u64, id: &mut [u8; BUILD_ID_MAX]) -> Option<usize> {
    let mut header = [0; 64];
    read_exactly(memory, &mut header, begin)?;
    if !header.starts_with(b"\x7fELF") {
        return None;
    }
    let table = u64::from_le_bytes(header[32..40].try_into().ok()?);
    let count = u16::from_le_bytes(header[56..58].try_into().ok()?);
    for index in 0..u64::from(count) {
        let mut segment = [0; 56];
        read_exactly(memory, &mut segment, begin.checked_add(table)?.checked_add(index * 56)?)?;
        if u32::from_le_bytes(segment[..4].try_into().ok()?) == libc::PT_NOTE {
            let offset = u64::from_le_bytes(segment[8..16].try_into().ok()?);
            let size = u64::from_le_bytes(segment[32..40].try_into().ok()?);
            if let Some(length) = build_id_in(memory, begin.checked_add(offset)?, size, id) {
                return Some(length);
            }
        }
    }
    None
}

/// Searches the notes of a segment for the build ID.
fn build_id_in(memory: &Fd, start: u64, size: u64, id: &mut [u8; BUILD_ID_MAX]) -> Option<usize> {
    const NT_GNU_BUILD_ID: u32 = 3;
    let mut at = 0;
    while at + 16 <= size {
        let mut note = [0; 16];
        read_exactly(memory, &mut note, start.checked_add(at)?)?;
        let word = |index: usize| note.get(4 * index..4 * index + 4)?.try_into().ok().map(u32::from_le_bytes);
        let (name, description, kind) = (u64::from(word(0)?), u64::from(word(1)?), word(2)?);
        let name_room = name.next_multiple_of(4);
        if kind == NT_GNU_BUILD_ID && &note[12..] == b"GNU\0" && name == 4 {
            let length = usize::try_from(description).ok()?.min(BUILD_ID_MAX);
            read_exactly(memory, id.get_mut(..length)?, start.checked_add(at + 16)?)?;
            return Some(length);
        }
        at += 12 + name_room + description.next_multiple_of(4);
    }
    None
}

fn read_exactly(memory: &Fd, buffer: &mut [u8], at: u64) -> Option<()> {
    (memory.read_at(buffer, at) == Ok(buffer.len())).then_some(())
}
