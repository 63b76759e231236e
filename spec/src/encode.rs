//! One record, written into a buffer: the recorder's inner loop.
//!
//! A thread keeps a [`Template`] with the columns that never change for it; a record is a copy of that, nine digits
//! of nanoseconds, eight bytes of event and the arguments. Every store goes to memory that [`RECORD_MAX`] covers.

use core::sync::atomic::{Ordering::SeqCst, compiler_fence};

use crate::event::{Base, Form};
use crate::record::{ARGUMENT_MAX, HEAD_MAX, HEAD_WIDTH, RECORD_MAX, SECOND};

/// The room that [`Template::encode`] needs: the record, and what its fixed-width stores may touch behind it.
pub const ENCODE_ROOM: usize = 192;

const _: () = assert!(RECORD_MAX <= ENCODE_ROOM && HEAD_MAX <= size_of::<[u8; 64]>());
// The last argument starts, at the latest, where four of the widest end; a hex store is sixteen bytes wide.
const _: () = assert!(HEAD_MAX + 8 + 4 * (ARGUMENT_MAX + 1) + 2 + 16 <= ENCODE_ROOM);

/// The columns before `event1`, of one thread, ready to be copied.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub struct Template {
    text: [u8; 64],
    /// The seconds that `text` shows.
    seconds: u64,
    /// Bytes of `text` before `event1`.
    width: usize,
}

impl Template {
    /// The template of the thread `lwpid` of the process `pid`, whose `pthread_self()` is `tid`.
    pub fn new(lwpid: u32, pid: u32, tid: u64) -> Template {
        let mut text = [b'0'; 64];
        text[10] = b':';
        text[20] = b':';
        padded(&mut text[21..28], u64::from(lwpid));
        text[28] = b':';
        padded(&mut text[29..36], u64::from(pid));
        text[36] = b':';
        text[38] = b'x';
        let digits = (16 - tid.leading_zeros() as usize / 4).max(12);
        for (index, byte) in text[39..39 + digits].iter_mut().rev().enumerate() {
            *byte = b"0123456789abcdef"[(tid >> (4 * index)) as usize & 15];
        }
        text[39 + digits] = b':';
        Template { text, seconds: 0, width: HEAD_WIDTH - 12 + digits }
    }

    /// Writes one record at `out` and returns its length.
    ///
    /// `time` is in nanoseconds since the Epoch; seconds of more than ten digits lose their first ones. Arguments are
    /// printed in the bases of `form`.
    ///
    /// # Safety
    /// [`ENCODE_ROOM`] bytes from `out` on must be writable and not read or written by anybody else meanwhile.
    #[inline]
    pub unsafe fn encode(&mut self, out: *mut u8, time: u64, form: &Form, arguments: &[u64; 5]) -> usize {
        let (seconds, nanoseconds) = (time / SECOND, time % SECOND);
        if seconds != self.seconds {
            // A jump out of a signal handler may leave this halfway: then no seconds are known to be shown.
            self.seconds = u64::MAX;
            compiler_fence(SeqCst);
            padded(&mut self.text[..10], seconds);
            compiler_fence(SeqCst);
            self.seconds = seconds;
        }
        let mut digits = itoa::Buffer::new();
        let digits = digits.format(SECOND + nanoseconds).as_bytes();
        // SAFETY: the caller grants ENCODE_ROOM bytes, which by the assertions above cover the head (64 bytes), the
        // event behind it and five arguments; `digits` has ten bytes, because its number is in 10^9..2*10^9.
        unsafe {
            out.cast::<[u8; 64]>().write_unaligned(self.text);
            out.add(11).cast::<[u8; 9]>().write_unaligned(*digits.as_ptr().add(1).cast::<[u8; 9]>());
            out.add(self.width).cast::<[u8; 8]>().write_unaligned(form.head);
            let mut end = out.add(self.width + 8);
            for (index, &argument) in arguments.iter().enumerate() {
                end = write(end, argument, form.bases[index]);
                end.write(b':');
                end = end.add(1);
            }
            end.sub(1).write(b'\n');
            end.offset_from(out) as usize
        }
    }
}

/// Fills `text` with the last digits of `number`, zeros in front.
fn padded(text: &mut [u8], mut number: u64) {
    for byte in text.iter_mut().rev() {
        *byte = b'0' + (number % 10) as u8;
        number /= 10;
    }
}

/// Writes one argument and returns where it ends.
///
/// # Safety
/// 20 bytes from `out` on must be writable.
#[inline]
unsafe fn write(out: *mut u8, value: u64, base: Base) -> *mut u8 {
    // SAFETY: the caller grants 20 bytes: one digit, "0x" and sixteen hex digits, or the longest decimal.
    unsafe {
        if value < 10 && (base != Base::Hex && base != Base::Thread || value == 0) {
            out.write(b'0' + value as u8);
            return out.add(1);
        }
        match base {
            Base::Hex => write_hex(out, value, 16 - value.leading_zeros() as usize / 4),
            Base::Thread => write_hex(out, value, (16 - value.leading_zeros() as usize / 4).max(12)),
            Base::Unsigned => write_text(out, itoa::Buffer::new().format(value).as_bytes()),
            Base::Signed => write_text(out, itoa::Buffer::new().format(value as i64).as_bytes()),
        }
    }
}

/// # Safety
/// `text.len()` bytes from `out` on must be writable.
unsafe fn write_text(out: *mut u8, text: &[u8]) -> *mut u8 {
    // SAFETY: the caller grants the bytes; a fresh text cannot overlap them.
    unsafe {
        core::ptr::copy_nonoverlapping(text.as_ptr(), out, text.len());
        out.add(text.len())
    }
}

/// Writes `0x` and the last `digits` (1 to 16) hex digits of `value`.
///
/// # Safety
/// 18 bytes from `out` on must be writable.
unsafe fn write_hex(out: *mut u8, value: u64, digits: usize) -> *mut u8 {
    // The wanted digits move to the top, so that they come out first; what is written behind them is overwritten.
    let value = value << (64 - 4 * digits as u32);
    let text = [hex_digits((value >> 32) as u32), hex_digits(value as u32)];
    // SAFETY: the caller grants 18 bytes.
    unsafe {
        out.cast::<[u8; 2]>().write_unaligned(*b"0x");
        out.add(2).cast::<[u64; 2]>().write_unaligned(text);
        out.add(2 + digits)
    }
}

/// The eight hex digits of `value` as text, the most significant first in memory.
const fn hex_digits(value: u32) -> u64 {
    // Spread the nibbles over eight bytes, then add '0', and 'a' - '9' - 1 where a nibble is over nine.
    let mut spread = value as u64;
    spread = (spread | spread << 16) & 0x0000_ffff_0000_ffff;
    spread = (spread | spread << 8) & 0x00ff_00ff_00ff_00ff;
    spread = (spread | spread << 4) & 0x0f0f_0f0f_0f0f_0f0f;
    let letters = (spread + 0x0606_0606_0606_0606) >> 4 & 0x0101_0101_0101_0101;
    (spread + 0x3030_3030_3030_3030 + letters * 39).to_be()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Record, Value};
    use crate::{EVENTS, id};

    fn encoded(template: &mut Template, time: u64, form: &Form, arguments: [u64; 5]) -> Vec<u8> {
        let mut buffer = [0xee; ENCODE_ROOM + 16];
        // SAFETY: the buffer has ENCODE_ROOM bytes.
        let length = unsafe { template.encode(buffer.as_mut_ptr(), time, form, &arguments) };
        assert_eq!(buffer[ENCODE_ROOM..], [0xee; 16], "wrote over its room");
        assert!(length <= RECORD_MAX);
        buffer[..length].to_vec()
    }

    #[test]
    fn the_manuals_example() {
        let mut template = Template::new(19955, 19953, 0x7fc5_de3f_86c0);
        let line = encoded(&mut template, 1_795_174_740_544_763_329, &id::MUTEX_LOCK_1, [0x5594_69ed_90a0, 0, 0, 0, 0]);
        assert_eq!(line, b"1795174740:544763329:0019955:0019953:0x7fc5de3f86c0:02:02:1:0x559469ed90a0:0:0:0:0\n");
    }

    /// The encoder written as the manual says it, with the standard library.
    fn oracle(lwpid: u32, pid: u32, tid: u64, time: u64, form: &Form, arguments: [u64; 5]) -> String {
        let mut line = format!(
            "{:010}:{:09}:{lwpid:07}:{pid:07}:{tid:#014x}:{}",
            time / SECOND,
            time % SECOND,
            std::str::from_utf8(&form.head).unwrap()
        );
        for (index, value) in arguments.into_iter().enumerate() {
            let base = form.columns[index].map_or(Base::Unsigned, |column| column.base);
            line += &match (value, base) {
                (0, _) => "0".to_owned(),
                (_, Base::Hex) => format!("{value:#x}"),
                (_, Base::Thread) => format!("{value:#014x}"),
                (_, Base::Unsigned) => format!("{value}"),
                (_, Base::Signed) => format!("{}", value as i64),
            };
            line += if index < 4 { ":" } else { "\n" };
        }
        line
    }

    /// Values around every boundary of width and sign.
    fn edges() -> Vec<u64> {
        let mut edges = vec![0, 1, 9, 10, 11, 15, 16, u64::MAX, i64::MIN as u64, i64::MAX as u64];
        for shift in 0..64 {
            edges.extend([1u64 << shift, (1 << shift) - 1, (1u64 << shift).wrapping_neg()]);
        }
        for power in 0..20 {
            edges.extend([10u64.pow(power), 10u64.pow(power) - 1]);
        }
        edges
    }

    #[test]
    fn encoder_oracle_and_decoder_agree_on_every_form() {
        let edges = edges();
        let mut at = 0usize;
        for form in EVENTS.iter().flat_map(|event| event.forms) {
            for turn in 0..edges.len() {
                let mut next = |step: usize| {
                    at += step;
                    edges[at % edges.len()]
                };
                let arguments = [edges[turn], next(7), next(11), next(13), next(17)];
                let time = next(3) % (10_000_000_000 * SECOND);
                let (lwpid, pid) = (next(5) as u32 % 10_000_000, next(19) as u32 % 10_000_000);
                let tid = next(23);
                let mut template = Template::new(lwpid, pid, tid);
                let line = encoded(&mut template, time, form, arguments);
                assert_eq!(String::from_utf8(line.clone()).unwrap(), oracle(lwpid, pid, tid, time, form, arguments));
                let record = Record::parse(&line[..line.len() - 1]).unwrap();
                assert_eq!((record.time, record.lwpid, record.pid, record.tid), (time, lwpid, pid, tid));
                assert_eq!(record.form().unwrap().head, form.head);
                assert_eq!(record.arguments.map(Value::bits), arguments);
            }
        }
    }

    #[test]
    fn seconds_are_encoded_again_when_they_change() {
        let mut template = Template::new(1, 1, 0x7f00_0000_0000);
        for time in [5 * SECOND, 5 * SECOND + 1, 6 * SECOND, 5 * SECOND - 1] {
            let line = encoded(&mut template, time, &id::THR_YIELD_0, [0; 5]);
            assert_eq!(Record::parse(&line[..line.len() - 1]).unwrap().time, time);
        }
    }
}
