//! Writes the columns a1 to a5 of a record, as text, into a buffer.

use crate::digits::sixteen_hex_digits;
use crate::record::TID_WIDTH;
use crate::tables::{Base, RecordKind};

/// Bytes of the stores of a hex argument.
pub(crate) const HEX_STORE: usize = 2 + 16;
/// Bytes of the store of the zeros that end a record.
pub(crate) const ZEROS_STORE: usize = 16;

/// The end of a record whose arguments are all 0, with the colon before them; from byte 2n on, after n arguments.
static ZEROS: [u8; 10 + ZEROS_STORE] = *b":0:0:0:0:0\n               ";

/// Hex digits of `value` without leading zeros; 0 for 0.
pub(crate) fn hex_digit_count(value: u64) -> usize {
    16 - value.leading_zeros() as usize / 4
}

/// Writes the arguments and the end of a record, and returns where that is.
///
/// # Safety
/// From `end` on five of the widest arguments must be writable, with their colons, and [`ZEROS_STORE`] bytes more. The byte before it
/// must be writable, too.
pub(crate) unsafe fn write_arguments(mut end: *mut u8, kind: &RecordKind, arguments: &[u64; 5]) -> *mut u8 {
    let used = arguments.iter().rposition(|argument| *argument != 0).map_or(0, |last| last + 1);
    // SAFETY: the caller's.
    unsafe {
        if has_only_addresses(arguments) && kind.bases == [Base::Hex; 5] {
            return write_addresses(end, arguments);
        }
        for (argument, base) in arguments.iter().zip(&kind.bases).take(used) {
            end = write_argument(end, *argument, *base);
            end.write(b':');
            end = end.add(1);
        }
        write_zeros(end, used)
    }
}

/// Hex digits that an address of code has, unless it is in the lowest part of the address space: stacks have five a record.
const ADDRESS_DIGITS: usize = 12;

/// Whether all arguments have so many hex digits.
#[inline(always)]
fn has_only_addresses(arguments: &[u64; 5]) -> bool {
    const LEAST: u64 = 1 << (4 * (ADDRESS_DIGITS - 1));
    // Few records but those of a stack have an address in a4: most are told by two comparisons.
    arguments.iter().rev().all(|argument| argument.wrapping_sub(LEAST) < 15 * LEAST)
}

/// Writes five such arguments and the end of the record, as [`write_arguments`] does: no place depends on what is written before.
///
/// # Safety
/// As for [`write_arguments`].
#[inline(always)]
unsafe fn write_addresses(end: *mut u8, arguments: &[u64; 5]) -> *mut u8 {
    const WIDTH: usize = 2 + ADDRESS_DIGITS + 1;
    // SAFETY: the caller's: an argument takes less than the widest, and the store of the last one's digits ends before the zeros' would.
    // What is written behind the digits of an argument is written over by the next one.
    unsafe {
        end.cast::<[u8; 2]>().write_unaligned(*b"0x");
        for (index, argument) in arguments.iter().enumerate() {
            let digits = end.add(WIDTH * index + 2);
            digits.cast::<[u8; 16]>().write_unaligned(sixteen_hex_digits(argument << (64 - 4 * ADDRESS_DIGITS)));
            digits.add(ADDRESS_DIGITS).cast::<[u8; 3]>().write_unaligned(*b":0x");
        }
        end.add(WIDTH * 5 - 1).write(b'\n');
        end.add(WIDTH * 5)
    }
}

/// Writes the end of a record behind `used` arguments and their colons, and returns where that is.
///
/// # Safety
/// The byte before `end` and [`ZEROS_STORE`] bytes from there on must be writable.
#[inline(always)]
pub(crate) unsafe fn write_zeros(end: *mut u8, used: usize) -> *mut u8 {
    // SAFETY: the caller's. ZEROS has ZEROS_STORE bytes from 10 on.
    unsafe {
        // The zeros begin with a colon, in the place of the last one.
        end.sub(1).cast::<[u8; ZEROS_STORE]>().write_unaligned(*ZEROS.as_ptr().add(2 * used).cast());
        end.add(10 - 2 * used)
    }
}

/// Writes one argument and returns where it ends.
///
/// # Safety
/// 20 bytes from `out` on must be writable.
#[inline(always)]
pub(crate) unsafe fn write_argument(out: *mut u8, value: u64, base: Base) -> *mut u8 {
    // SAFETY: the caller grants 20 bytes: one digit, "0x" and sixteen hex digits, or the longest decimal.
    unsafe {
        if value != 0 && base == Base::Hex {
            return write_hex(out, value, hex_digit_count(value));
        }
        if value < 10 && (base != Base::Hex && base != Base::Thread || value == 0) {
            out.write(b'0' + value as u8);
            return out.add(1);
        }
        match base {
            Base::Hex => write_hex(out, value, hex_digit_count(value)),
            Base::Thread => write_hex(out, value, hex_digit_count(value).max(TID_WIDTH - 2)),
            Base::Unsigned => write_bytes(out, itoa::Buffer::new().format(value).as_bytes()),
            Base::Signed => write_bytes(out, itoa::Buffer::new().format(value as i64).as_bytes()),
        }
    }
}

/// Writes `text` and returns where it ends.
///
/// # Safety
/// `text.len()` bytes from `out` on must be writable, and `text` must not overlap them.
unsafe fn write_bytes(out: *mut u8, text: &[u8]) -> *mut u8 {
    // SAFETY: the caller grants the bytes and promises that the texts do not overlap.
    unsafe {
        core::ptr::copy_nonoverlapping(text.as_ptr(), out, text.len());
        out.add(text.len())
    }
}

/// Writes `0x` and the last `digits` (1 to 16) hex digits of `value`, and returns where they end.
///
/// # Safety
/// 18 bytes from `out` on must be writable.
#[inline(always)]
unsafe fn write_hex(out: *mut u8, value: u64, digits: usize) -> *mut u8 {
    // The wanted digits move to the top, so that they come out first; later stores overwrite those behind them.
    let value = value << (64 - 4 * digits as u32);
    // SAFETY: the caller grants 18 bytes.
    unsafe {
        out.cast::<[u8; 2]>().write_unaligned(*b"0x");
        out.add(2).cast::<[u8; 16]>().write_unaligned(sixteen_hex_digits(value));
        out.add(2 + digits)
    }
}
