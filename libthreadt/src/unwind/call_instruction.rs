//! Call instructions before an address.

use super::bounded_memory::BoundedMemory;

/// The calls that may end before an address.
#[derive(Clone, Copy, Debug)]
pub struct Calls {
    /// One that names the function by its distance: E8 and four bytes.
    pub is_direct: bool,
    /// One by a register or a word of memory: FF, with 2 in the middle of the next byte.
    pub is_indirect: bool,
    /// This one, by a word whose distance from the code it names.
    pub is_by_slot: bool,
}

impl Calls {
    /// Which near calls may be before an address (Intel's manual, volume 2, CALL); `None` if that cannot be read.
    pub fn before(code: &mut BoundedMemory, address: usize) -> Option<Calls> {
        const LONGEST: usize = 7;
        const BY_SLOT: u8 = 0x15;
        // The lowest byte is the one before the address. The code may begin a little before.
        let before = |distance: usize| code.byte(address.wrapping_sub(distance));
        let mut bytes = (1..=LONGEST).map_while(before).enumerate();
        let (_, last) = bytes.next()?;
        let read = bytes.fold(u64::from(last), |read, (at, byte)| read | u64::from(byte) << (8 * at));
        let byte = |distance: usize| (read >> (8 * (distance - 1))) as u8;
        let is_indirect = |length: usize| {
            let what_follows = if length > 2 { byte(length - 2) } else { 0 };
            byte(length) == 0xff && indirect_call_length(byte(length - 1), what_follows) == length
        };
        let of_other_lengths = [2, 3, 4, 7].into_iter().any(is_indirect);
        Some(Calls {
            is_direct: byte(5) == 0xe8,
            is_indirect: of_other_lengths || is_indirect(6),
            is_by_slot: is_indirect(6) && byte(5) == BY_SLOT && !of_other_lengths,
        })
    }
}

/// How long an indirect call is whose second and third bytes these are; 0 if it is none.
fn indirect_call_length(mode_and_register: u8, scale_index_base: u8) -> usize {
    const CALL: u8 = 2;
    let (mode, operation, register) = (mode_and_register >> 6, mode_and_register >> 3 & 7, mode_and_register & 7);
    let has_third_byte = mode != 3 && register == 4;
    let displacement = match mode {
        0 if register == 5 || has_third_byte && scale_index_base & 7 == 5 => 4,
        1 => 1,
        2 => 4,
        _ => 0,
    };
    if operation == CALL { 2 + usize::from(has_third_byte) + displacement } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether the end of these bytes, which nothing precedes, is behind a call.
    fn ends_in_call(bytes: &[u8]) -> Option<bool> {
        let start = bytes.as_ptr().addr();
        let calls = Calls::before(&mut BoundedMemory::new(start..start + bytes.len()), start + bytes.len())?;
        Some(calls.is_direct || calls.is_indirect)
    }

    #[test]
    fn calls_of_all_forms_are_known() {
        let calls: [&[u8]; 16] = [
            &[0xe8, 1, 2, 3, 4],
            &[0x67, 0xe8, 1, 2, 3, 4],
            &[0xff, 0xd0],
            &[0x41, 0xff, 0xd7],
            &[0xff, 0x10],
            &[0xff, 0x15, 1, 2, 3, 4],
            &[0xff, 0x14, 0xc3],
            &[0xff, 0x14, 0x25, 1, 2, 3, 4],
            &[0xff, 0x14, 0xc5, 1, 2, 3, 4],
            &[0xff, 0x50, 8],
            &[0x41, 0xff, 0x56, 0xf8],
            &[0xff, 0x54, 0x24, 8],
            &[0xff, 0x90, 1, 2, 3, 4],
            &[0xff, 0x94, 0xc3, 1, 2, 3, 4],
            &[0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0xff, 0xd0],
            &[0x3e, 0xff, 0xd3],
        ];
        for call in calls {
            assert_eq!(ends_in_call(call), Some(true), "{call:x?}");
        }
    }

    #[test]
    fn what_is_no_call_is_not_taken_for_one() {
        let others: [&[u8]; 13] = [
            &[0x90],
            &[0x00; 7],
            &[0xff; 7],
            // A jump; push; inc; a call through a far pointer.
            &[0xe9, 1, 2, 3, 4],
            &[0xff, 0xe0],
            &[0xff, 0x35, 1, 2, 3, 4],
            &[0xff, 0xc0],
            &[0xff, 0x1d, 1, 2, 3, 4],
            // Too short, and too long.
            &[0xff, 0x15],
            &[0xff, 0x54, 0x24],
            &[0xff, 0xd0, 0x90],
            &[0xe8, 1, 2, 3],
            &[0xe8, 1, 2, 3, 4, 5],
        ];
        for other in others {
            assert_eq!(ends_in_call(other), Some(false), "{other:x?}");
        }
        assert_eq!(ends_in_call(&[]), None);
    }
}
