//! One record, written into a buffer: the recorder's inner loop.
//!
//! A thread keeps a [`Template`] with the columns that never change for it; a record is a copy of that, nine digits
//! of nanoseconds, eight bytes of event and the arguments. Most records end in zeros: those are copied at once. Two records
//! with one time (a lock that was free) share the digits.

use core::sync::atomic::{Ordering::SeqCst, compiler_fence};

use crate::digits::{four, hex};
use crate::record::{ARGUMENT_WIDTH_MAX, EVENT1_OFFSET, EVENT1_OFFSET_MAX, NANOS_PER_SECOND, RECORD_LEN_MAX};
use crate::tables::{Base, RecordKind};

/// The room that one record needs: its longest text, and what fixed-width stores may touch behind it.
pub const ENCODE_ROOM: usize = 192;

/// The room that [`Template::encode`] needs for so many records.
pub const fn encode_room(records: usize) -> usize {
    (records - 1) * RECORD_LEN_MAX + ENCODE_ROOM
}

const _: () = assert!(RECORD_LEN_MAX <= ENCODE_ROOM && EVENT1_OFFSET_MAX <= size_of::<[u8; 64]>());
// The last argument starts, at the latest, where four of the widest end; a hex store is eighteen bytes wide. The store of
// the zeros that end a record is sixteen, and starts, at the latest, where five of the widest end.
const _: () = assert!(EVENT1_OFFSET_MAX + 8 + 4 * (ARGUMENT_WIDTH_MAX + 1) + 18 <= ENCODE_ROOM);
const _: () = assert!(EVENT1_OFFSET_MAX + 8 + 5 * (ARGUMENT_WIDTH_MAX + 1) - 1 + 16 <= ENCODE_ROOM);

/// One record but for its time.
#[derive(Clone, Copy, Debug)]
pub struct UntimedRecord {
    /// What it looks like.
    pub kind: &'static RecordKind,
    /// Its columns a1 to a5; signed ones sign-extended.
    pub arguments: [u64; 5],
}

/// The end of a record whose arguments are all 0, with the colon before them; from byte 2n on, behind n arguments.
static ZEROS: [u8; 26] = *b":0:0:0:0:0\n               ";

/// How much of a time a template shows: all but its last four digits, which are written for each record. So the long
/// numbers are divided only when it has changed.
const SHOWN: u64 = 10_000;

/// As the beginning of what a template shows: every time of ten digits of seconds is long after it, modulo 2^64.
const NEVER: u64 = u64::MAX - 2 * SHOWN;

/// The columns before `event1`, of one thread, ready to be copied.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub struct Template {
    text: [u8; 64],
    /// When the [`SHOWN`] nanoseconds that `text` shows began, since the Epoch; [`NEVER`] if it shows no time.
    begun: u64,
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
        text[39..39 + digits].copy_from_slice(&hex(tid)[16 - digits..]);
        text[39 + digits] = b':';
        Template { text, begun: NEVER, seconds: 0, width: EVENT1_OFFSET - 12 + digits }
    }

    /// Writes records with one time, one behind the other, at `out`, and returns their length.
    ///
    /// `time` is in nanoseconds since the Epoch; seconds of more than ten digits lose their first ones. Arguments are
    /// printed in the bases of their kinds.
    ///
    /// # Safety
    /// [`encode_room`]`(lines.len())` bytes from `out` on must be writable and not read or written by anybody else meanwhile.
    #[inline(always)]
    pub unsafe fn encode(&mut self, out: *mut u8, time: u64, lines: &[UntimedRecord]) -> usize {
        let mut since = time.wrapping_sub(self.begun);
        if since >= SHOWN {
            since = self.show(time);
        }
        let digits = four(since as u32);
        let mut end = out;
        for line in lines {
            // SAFETY: the caller grants the room of a record for each line.
            end = unsafe { self.encode_line(end, digits, line) };
        }
        end.addr() - out.addr()
    }

    /// Puts all but the last four digits of `time` into the text, and returns the nanoseconds that these stand for.
    #[inline(never)]
    fn show(&mut self, time: u64) -> u64 {
        let (seconds, nanoseconds) = (time / NANOS_PER_SECOND, (time % NANOS_PER_SECOND) as u32);
        // A jump out of a signal handler may leave this halfway: then no time is known to be shown.
        self.begun = NEVER;
        compiler_fence(SeqCst);
        if seconds != self.seconds {
            self.seconds = u64::MAX;
            compiler_fence(SeqCst);
            padded(&mut self.text[..10], seconds);
            compiler_fence(SeqCst);
            self.seconds = seconds;
        }
        self.text[11] = b'0' + (nanoseconds / 100_000_000) as u8;
        self.text[12..16].copy_from_slice(&four(nanoseconds / SHOWN as u32 % 10_000));
        compiler_fence(SeqCst);
        self.begun = time - time % SHOWN;
        time % SHOWN
    }

    /// # Safety
    /// [`ENCODE_ROOM`] bytes from `out` on must be writable.
    #[inline(always)]
    unsafe fn encode_line(&self, out: *mut u8, digits: [u8; 4], line: &UntimedRecord) -> *mut u8 {
        let UntimedRecord { kind, arguments } = line;
        // SAFETY: the caller grants ENCODE_ROOM bytes, which by the assertions above cover the head (64 bytes), the event
        // behind it, five arguments and the zeros behind them; ZEROS has 16 bytes from 10 on.
        unsafe {
            out.cast::<[u8; 64]>().write_unaligned(self.text);
            out.add(16).cast::<[u8; 4]>().write_unaligned(digits);
            let mut end = out.add(self.width);
            end.cast::<[u8; 8]>().write_unaligned(kind.event_text);
            end = end.add(8);
            let [first, rest @ ..] = arguments;
            let used = if rest.iter().fold(0, |all, argument| all | argument) != 0 {
                arguments.iter().rposition(|argument| *argument != 0).map_or(0, |last| last + 1)
            } else {
                // Most have an object and no more, or nothing.
                usize::from(*first != 0)
            };
            for (argument, base) in arguments.iter().zip(&kind.bases).take(used) {
                end = write(end, *argument, *base);
                end.write(b':');
                end = end.add(1);
            }
            // The last colon, and zeros for what is left.
            end.sub(1).cast::<[u8; 16]>().write_unaligned(*ZEROS.as_ptr().add(2 * used).cast());
            end.add(10 - 2 * used)
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
#[inline(always)]
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
#[inline(always)]
unsafe fn write_hex(out: *mut u8, value: u64, digits: usize) -> *mut u8 {
    // The wanted digits move to the top, so that they come out first; what is written behind them is overwritten.
    let value = value << (64 - 4 * digits as u32);
    // SAFETY: the caller grants 18 bytes.
    unsafe {
        out.cast::<[u8; 2]>().write_unaligned(*b"0x");
        out.add(2).cast::<[u8; 16]>().write_unaligned(hex(value));
        out.add(2 + digits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Argument, Record};
    use crate::{EVENTS, id};

    fn encoded(template: &mut Template, time: u64, kind: &'static RecordKind, arguments: [u64; 5]) -> Vec<u8> {
        let mut buffer = [0xee; ENCODE_ROOM + 16];
        // SAFETY: the buffer has ENCODE_ROOM bytes.
        let length = unsafe { template.encode(buffer.as_mut_ptr(), time, &[UntimedRecord { kind, arguments }]) };
        assert_eq!(buffer[ENCODE_ROOM..], [0xee; 16], "wrote over its room");
        assert!(length <= RECORD_LEN_MAX);
        buffer[..length].to_vec()
    }

    #[test]
    fn the_manuals_example() {
        let mut template = Template::new(19955, 19953, 0x7fc5_de3f_86c0);
        let line = encoded(&mut template, 1_795_174_740_544_763_329, &id::MUTEX_LOCK_1, [0x5594_69ed_90a0, 0, 0, 0, 0]);
        assert_eq!(line, b"1795174740:544763329:0019955:0019953:0x7fc5de3f86c0:02:02:1:0x559469ed90a0:0:0:0:0\n");
    }

    /// The encoder written as the manual says it, with the standard library.
    fn oracle(lwpid: u32, pid: u32, tid: u64, time: u64, kind: &RecordKind, arguments: [u64; 5]) -> String {
        let mut line = format!(
            "{:010}:{:09}:{lwpid:07}:{pid:07}:{tid:#014x}:{}",
            time / NANOS_PER_SECOND,
            time % NANOS_PER_SECOND,
            std::str::from_utf8(&kind.event_text).unwrap()
        );
        for (index, value) in arguments.into_iter().enumerate() {
            // Beyond its columns a kind has what THR_TRACE_DETAIL puts there: in the last one the caller.
            let empty = if index == 4 { Base::Hex } else { Base::Unsigned };
            let base = kind.columns[index].map_or(empty, |column| column.base);
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
        for kind in EVENTS.iter().flat_map(|event| event.kinds) {
            for turn in 0..edges.len() {
                let mut next = |step: usize| {
                    at += step;
                    edges[at % edges.len()]
                };
                let arguments = [edges[turn], next(7), next(11), next(13), next(17)];
                let time = next(3) % (10_000_000_000 * NANOS_PER_SECOND);
                let (lwpid, pid) = (next(5) as u32 % 10_000_000, next(19) as u32 % 10_000_000);
                let tid = next(23);
                let mut template = Template::new(lwpid, pid, tid);
                let line = encoded(&mut template, time, kind, arguments);
                assert_eq!(String::from_utf8(line.clone()).unwrap(), oracle(lwpid, pid, tid, time, kind, arguments));
                let record = Record::parse(&line[..line.len() - 1]).unwrap();
                assert_eq!((record.time, record.lwpid, record.pid, record.tid), (time, lwpid, pid, tid));
                assert_eq!(record.kind().unwrap().event_text, kind.event_text);
                assert_eq!(record.arguments.map(Argument::bits), arguments);
            }
        }
    }

    #[test]
    fn records_with_one_time_are_as_if_written_one_by_one() {
        let lines = [
            UntimedRecord { kind: &id::RMUTEX_LOCK_1, arguments: [u64::MAX; 5] },
            UntimedRecord { kind: &id::RMUTEX_LOCK_2, arguments: [0, 0, 3, 0, 0] },
        ];
        let mut buffer = [0xee; encode_room(2) + 16];
        let time = 7 * NANOS_PER_SECOND + 89;
        // SAFETY: the buffer has room for two.
        let length = unsafe { Template::new(1, 2, u64::MAX).encode(buffer.as_mut_ptr(), time, &lines) };
        assert_eq!(buffer[encode_room(2)..], [0xee; 16], "wrote over its room");
        let text = lines.map(|line| oracle(1, 2, u64::MAX, time, line.kind, line.arguments)).concat();
        assert_eq!(std::str::from_utf8(&buffer[..length]).unwrap(), text);
    }

    #[test]
    fn what_a_template_shows_is_encoded_again_when_it_changes() {
        let mut template = Template::new(1, 1, 0x7f00_0000_0000);
        let times = [
            0,
            1,
            SHOWN - 1,
            SHOWN,
            SHOWN - 1,
            54_321 * SHOWN,
            NANOS_PER_SECOND - 1,
            NANOS_PER_SECOND,
            1,
            9_999_999_990 * NANOS_PER_SECOND,
        ];
        for time in times.into_iter().flat_map(|time| [time, 5 * NANOS_PER_SECOND + time, time]) {
            let line = encoded(&mut template, time, &id::THR_YIELD_0, [0; 5]);
            assert_eq!(Record::parse(&line[..line.len() - 1]).unwrap().time, time);
        }
    }
}
