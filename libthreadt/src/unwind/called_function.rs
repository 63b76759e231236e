//! The function that a call in a module names.

use core::ops::Range;

use super::bounded_memory::BoundedMemory;
use super::call_instruction::Calls;

/// What a call before an address names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Called {
    Function(usize),
    /// It is found in a register.
    Unknown,
    /// It is no call, or was never made.
    Nothing,
}

/// What the call before an address names. `code` is that of a module that is at `range`.
pub fn called_function(code: &mut BoundedMemory, range: &Range<usize>, address: usize) -> Called {
    match Calls::before(code, address) {
        Some(Calls { is_direct: true, is_indirect: false, .. }) => match displaced(code, address) {
            Some(called) if range.contains(&called) => behind_stub(code, range, called),
            Some(_) => Called::Nothing,
            None => Called::Unknown,
        },
        Some(Calls { is_direct: false, is_by_slot: true, .. }) => {
            displaced(code, address).map_or(Called::Unknown, |slot| in_slot(code, range, slot))
        }
        _ => Called::Unknown,
    }
}

/// What an instruction that ends at an address, in four bytes that say how far it is from there, has as its operand.
fn displaced(code: &mut BoundedMemory, end: usize) -> Option<usize> {
    let distance = code.number(end.wrapping_sub(4), 4)? as u32 as i32;
    Some(end.wrapping_add_signed(distance as isize))
}

/// The function to which an entry of the PLT jumps, or the function itself.
fn behind_stub(code: &mut BoundedMemory, range: &Range<usize>, called: usize) -> Called {
    const BND: u8 = 0xf2;
    const JUMP_BY_SLOT: u64 = 0x25ff;
    /// `mov $number, %r11d`, as mold's entries have it before the jump.
    const MOV_TO_R11: u64 = 0xbb41;
    let mut at = behind_endbr64(code, called);
    if code.number(at, 2) == Some(MOV_TO_R11) {
        at += 6;
    }
    if code.byte(at) == Some(BND) {
        at += 1;
    }
    match code.number(at, 2) {
        Some(JUMP_BY_SLOT) => displaced(code, at + 6).map_or(Called::Unknown, |slot| in_slot(code, range, slot)),
        _ => Called::Function(called),
    }
}

/// The function whose address is in a slot of the GOT.
fn in_slot(code: &mut BoundedMemory, range: &Range<usize>, slot: usize) -> Called {
    const PUSH: u8 = 0x68;
    let Some(function) = code.number(slot, 8).map(|word| word as usize) else { return Called::Unknown };
    let start = behind_endbr64(code, function);
    if range.contains(&function) && code.byte(start) == Some(PUSH) {
        // Before the function is called first, the slot leads back to the PLT, and to the linker.
        return Called::Nothing;
    }
    Called::Function(function)
}

/// The first instruction at an address, not counting `endbr64`.
fn behind_endbr64(code: &mut BoundedMemory, address: usize) -> usize {
    const ENDBR64: u64 = 0xfa1e_0ff3;
    if code.number(address, 4) == Some(ENDBR64) { address.wrapping_add(4) } else { address }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the call at the end of the first `length` bytes names, as a place in them if it is there.
    fn called(bytes: &[u8], length: usize) -> Called {
        let start = bytes.as_ptr().addr();
        let range = start..start + bytes.len();
        match called_function(&mut BoundedMemory::new(range.clone()), &range, start + length) {
            Called::Function(address) if range.contains(&address) => Called::Function(address - start),
            called => called,
        }
    }

    #[test]
    fn the_named_function_is_found() {
        assert_eq!(called(&[0x90, 0xe8, 2, 0, 0, 0, 0x90, 0x90, 0x55, 0x90], 6), Called::Function(8));
        assert_eq!(called(&[0x90, 0xe8, 2, 0, 0, 1, 0x90, 0x90, 0x55, 0x90], 6), Called::Nothing);
        assert_eq!(called(&[0x90, 0xff, 0xd0, 0x90], 3), Called::Unknown);
        assert_eq!(called(&[0x90, 0x90, 0x90, 0x90], 3), Called::Unknown);
        // call *slot(%rip)
        assert_eq!(called(&[0xff, 0x15, 1, 0, 0, 0, 0x90, 5, 0, 0, 0, 0, 0, 0, 0], 6), Called::Function(5));
        // By entries of the PLT, of each kind; the word at the end is the slot.
        let entries: [&[u8]; 3] = [
            &[0xff, 0x25, 0, 0, 0, 0],
            &[0xf3, 0x0f, 0x1e, 0xfa, 0xf2, 0xff, 0x25, 0, 0, 0, 0],
            &[0xf3, 0x0f, 0x1e, 0xfa, 0x41, 0xbb, 3, 0, 0, 0, 0xff, 0x25, 0, 0, 0, 0],
        ];
        for entry in entries {
            let before = [0xe8, 0, 0, 0, 0];
            let mut bytes = [&before[..], entry, &7u64.to_le_bytes()].concat();
            assert_eq!(called(&bytes, 5), Called::Function(7));
            // Before it is called first: push and jump to the linker.
            bytes.extend([0x68, 0, 0, 0, 0]);
            let (slot, push) = (bytes.len() - 13, bytes.len() - 5);
            let place = bytes.as_ptr().addr() + push;
            bytes[slot..push].copy_from_slice(&place.to_le_bytes());
            assert_eq!(called(&bytes, 5), Called::Nothing);
        }
    }
}
