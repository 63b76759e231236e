//! The entry of an address in a module's `.eh_frame`, by the binary search table of `.eh_frame_hdr` (Linux Standard Base,
//! Core, 10.6).

use super::bounded_memory::{BoundedMemory, Cursor};
use super::cfi::{Alignment, RuleBuilder};
use super::rule::UnwindRule;

// How a pointer is encoded.
const DW_EH_PE_ABSPTR: u8 = 0x00;
const DW_EH_PE_PCREL: u8 = 0x10;
const DW_EH_PE_OMIT: u8 = 0xff;
const DW_EH_PE_UDATA4: u8 = 0x03;
const DW_EH_PE_DATAREL_SDATA4: u8 = 0x3b;
const FORMAT: u8 = 0x0f;
const APPLICATION: u8 = 0x70;
const INDIRECT: u8 = 0x80;

/// The rule of `address` by the module's `.eh_frame_hdr`, which is at `header` in `memory`; `None` if it has none.
pub fn rule_of(memory: &mut BoundedMemory, header: usize, address: usize) -> Option<UnwindRule> {
    let entry = find_entry(memory, header, address)?;
    interpret_entry(memory, entry, address)
}

/// The address of the entry that the table has for `address`.
fn find_entry(memory: &mut BoundedMemory, header: usize, address: usize) -> Option<usize> {
    let mut cursor = Cursor { memory, at: header };
    let [version, section_encoding, count_encoding, table_encoding] =
        [cursor.byte()?, cursor.byte()?, cursor.byte()?, cursor.byte()?];
    // All linkers write the table in this form.
    if version != 1 || count_encoding != DW_EH_PE_UDATA4 || table_encoding != DW_EH_PE_DATAREL_SDATA4 {
        return None;
    }
    pointer(&mut cursor, section_encoding)?;
    let count = cursor.unsigned(4)? as usize;
    let table = cursor.at;
    let memory = cursor.memory;
    let mut at = |index: usize, half: usize| {
        let place = table.checked_add(index.checked_mul(8)?)?.checked_add(4 * half)?;
        let offset = memory.number(place, 4)? as u32 as i32;
        Some(header.wrapping_add_signed(offset as isize))
    };
    let (mut low, mut high) = (0, count);
    while low < high {
        let middle = low + (high - low) / 2;
        if at(middle, 0)? <= address {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    at(low.checked_sub(1)?, 1)
}

/// The size of a pointer in bytes, and whether it is signed; `None` for LEB128, which no compiler writes here.
fn format(encoding: u8) -> Option<(usize, bool)> {
    match encoding & FORMAT {
        0x0 | 0x4 => Some((8, false)),
        0x2 => Some((2, false)),
        0x3 => Some((4, false)),
        0xa => Some((2, true)),
        0xb => Some((4, true)),
        0xc => Some((8, true)),
        _ => None,
    }
}

/// Reads an encoded number, without adding what it is relative to.
fn encoded(cursor: &mut Cursor<'_>, encoding: u8) -> Option<usize> {
    let (size, is_signed) = format(encoding)?;
    let number = cursor.unsigned(size)?;
    Some(match size {
        2 if is_signed => number as i16 as usize,
        4 if is_signed => number as i32 as usize,
        _ => number as usize,
    })
}

/// Reads an encoded pointer.
fn pointer(cursor: &mut Cursor<'_>, encoding: u8) -> Option<usize> {
    let place = cursor.at;
    let number = encoded(cursor, encoding)?;
    match encoding & (APPLICATION | INDIRECT) {
        DW_EH_PE_ABSPTR => Some(number),
        DW_EH_PE_PCREL => Some(number.wrapping_add(place)),
        _ => None,
    }
}

/// What a CIE has.
struct CommonInformation {
    alignment: Alignment,
    pointer_encoding: u8,
    has_augmentation: bool,
    is_signal_frame: bool,
    /// Its instructions.
    instructions: usize,
    end: usize,
}

/// Reads the length of an entry at the cursor, and returns where it ends. 64-bit entries are written by nobody.
fn entry_end(cursor: &mut Cursor<'_>) -> Option<usize> {
    match cursor.unsigned(4)? {
        0 | 0xffff_ffff => None,
        length => cursor.at.checked_add(length as usize),
    }
}

fn interpret_entry(memory: &mut BoundedMemory, entry: usize, address: usize) -> Option<UnwindRule> {
    let mut cursor = Cursor { memory: &mut *memory, at: entry };
    let end = entry_end(&mut cursor)?;
    let place = cursor.at;
    let distance = cursor.unsigned(4)? as usize;
    let behind_distance = cursor.at;
    if distance == 0 {
        return None;
    }
    let common = common_information(memory, place.checked_sub(distance)?)?;
    let mut cursor = Cursor { memory: &mut *memory, at: behind_distance };
    let start = pointer(&mut cursor, common.pointer_encoding)?;
    let size = encoded(&mut cursor, common.pointer_encoding)?;
    if address.checked_sub(start)? >= size {
        return None;
    }
    if common.has_augmentation {
        let length = cursor.uleb128()?;
        cursor.skip(length)?;
    }
    let instructions = cursor.at;
    let mut builder = RuleBuilder::new(common.alignment, start, common.is_signal_frame);
    builder.begin(&mut Cursor { memory: &mut *memory, at: common.instructions }, common.end)?;
    builder.finish(&mut Cursor { memory, at: instructions }, end, address)
}

fn common_information(memory: &mut BoundedMemory, at: usize) -> Option<CommonInformation> {
    let mut cursor = Cursor { memory, at };
    let end = entry_end(&mut cursor)?;
    let (id, version) = (cursor.unsigned(4)?, cursor.byte()?);
    if id != 0 || version != 1 && version != 3 {
        return None;
    }
    let augmentation = cursor.at;
    while cursor.byte()? != 0 {}
    let alignment = Alignment { code: cursor.uleb128()?, data: cursor.sleb128()? };
    let return_address = if version == 1 { cursor.byte()?.into() } else { cursor.uleb128()? };
    if return_address != 16 {
        return None;
    }
    let mut common = CommonInformation {
        alignment,
        pointer_encoding: DW_EH_PE_ABSPTR,
        has_augmentation: false,
        is_signal_frame: false,
        instructions: cursor.at,
        end,
    };
    let mut letters = augmentation;
    loop {
        let letter = cursor.memory.byte(letters)?;
        match letter {
            0 => break,
            b'z' if letters == augmentation => {
                let length = cursor.uleb128()?;
                common.has_augmentation = true;
                common.instructions = cursor.at.checked_add(usize::try_from(length).ok()?)?;
            }
            _ if !common.has_augmentation => return None,
            b'R' => common.pointer_encoding = cursor.byte()?,
            b'L' => drop(cursor.byte()?),
            b'P' => {
                let encoding = cursor.byte()?;
                if encoding != DW_EH_PE_OMIT {
                    encoded(&mut cursor, encoding)?;
                }
            }
            b'S' => common.is_signal_frame = true,
            _ => return None,
        }
        letters += 1;
    }
    Some(common)
}
