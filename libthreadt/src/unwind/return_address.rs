//! Whether a word of a stack is a return address, where no unwind information says so: what is before it in the code is a call.

use super::bounded_memory::BoundedMemory;
use super::framed_modules::FramedModules;
use super::loaded_module::LoadedModule;

/// Whether a call in the module returns to an address, or a signal handler; `None` if the code there cannot be read. A byte of an
/// instruction may look like the beginning of a call, so a word that is none may be taken for one, but not the other way round.
pub fn is_return_address(module: &LoadedModule, address: usize, framed: &FramedModules) -> Option<bool> {
    let mut code = module.code(framed)?;
    Some(is_behind_call(&mut code, address)? || is_return_from_handler(&mut code, address))
}

/// Whether what is before an address is a near call: E8 and four bytes, or FF with 2 in the middle of the byte that says where the
/// called address is (Intel's manual, volume 2, CALL).
fn is_behind_call(code: &mut BoundedMemory, address: usize) -> Option<bool> {
    const LONGEST: usize = 7;
    // The lowest byte is the one before the address. The code may begin a little before.
    let before = |distance: usize| code.byte(address.wrapping_sub(distance));
    let mut bytes = (1..=LONGEST).map_while(before).enumerate();
    let (_, last) = bytes.next()?;
    let read = bytes.fold(u64::from(last), |read, (at, byte)| read | u64::from(byte) << (8 * at));
    let byte = |distance: usize| (read >> (8 * (distance - 1))) as u8;
    let is_indirect = |length: &usize| {
        let what_follows = if *length > 2 { byte(length - 2) } else { 0 };
        byte(*length) == 0xff && indirect_call_length(byte(length - 1), what_follows) == *length
    };
    Some(byte(5) == 0xe8 || [2, 3, 4, 6, 7].iter().any(is_indirect))
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

/// Whether the code at an address is what handlers return to: `mov $SYS_rt_sigreturn, %rax; syscall`. Debuggers know it by these bytes,
/// so that C libraries do not change them.
fn is_return_from_handler(code: &mut BoundedMemory, address: usize) -> bool {
    const MOV_AND_FIRST_OF_SYSCALL: u64 = 0x0f00_0000_0fc0_c748;
    const LAST_OF_SYSCALL: u8 = 0x05;
    code.number(address, 8) == Some(MOV_AND_FIRST_OF_SYSCALL)
        && code.byte(address.wrapping_add(8)) == Some(LAST_OF_SYSCALL)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether the end of these bytes, which nothing precedes, is behind a call.
    fn ends_in_call(bytes: &[u8]) -> Option<bool> {
        let start = bytes.as_ptr().addr();
        is_behind_call(&mut BoundedMemory::new(start..start + bytes.len()), start + bytes.len())
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

    #[test]
    fn what_handlers_return_to_is_known() {
        let code = [0x48u8, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05];
        let start = code.as_ptr().addr();
        let is_known = |length| is_return_from_handler(&mut BoundedMemory::new(start..start + length), start);
        assert_eq!([code.len(), 8, 7].map(is_known), [true, false, false]);
    }
}
