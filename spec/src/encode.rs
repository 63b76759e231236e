//! Writes records into a buffer: the recorder's inner loop.
//!
//! A thread keeps a [`Template`] with the columns that never change for it. A record is a copy of the template, nine digits
//! of nanoseconds, eight bytes of event and the arguments. Most records end in zeros, which are copied at once. Two
//! records with one time (those of a lock that was free) share the digits.

use core::sync::atomic::{Ordering::SeqCst, compiler_fence};

use crate::arguments::{HEX_STORE, ZEROS_STORE, hex_digit_count, write_argument, write_arguments, write_zeros};
use crate::digits::{four_digits, sixteen_hex_digits};
use crate::record::{
    ARGUMENT_WIDTH_MAX, EVENT_TEXT_WIDTH, EVENT1_OFFSET, EVENT1_OFFSET_MAX, LWPID_OFFSET, LWPID_WIDTH,
    NANOS_PER_SECOND, PID_OFFSET, PID_WIDTH, RECORD_LEN_MAX, TID_OFFSET, TID_WIDTH, TIME_WIDTH, TIME1_WIDTH,
    TIME2_OFFSET,
};
use crate::tables::RecordKind;

/// The room that one record needs: its longest text, and what fixed-width stores may touch behind it.
pub const ENCODE_ROOM: usize = 192;

/// The room that [`Template::encode`] needs for this many records.
pub const fn encode_room(records: usize) -> usize {
    (records - 1) * RECORD_LEN_MAX + ENCODE_ROOM
}

/// Bytes of the store of a template's text.
const TEXT_STORE: usize = 64;

const _: () = assert!(RECORD_LEN_MAX <= ENCODE_ROOM && EVENT1_OFFSET_MAX <= TEXT_STORE);
// The last argument starts, at the latest, where four of the widest end; the zeros, where five of the widest end.
const _: () = {
    const A1_OFFSET_MAX: usize = EVENT1_OFFSET_MAX + EVENT_TEXT_WIDTH;
    assert!(A1_OFFSET_MAX + 4 * (ARGUMENT_WIDTH_MAX + 1) + HEX_STORE <= ENCODE_ROOM);
    assert!(A1_OFFSET_MAX + 5 * (ARGUMENT_WIDTH_MAX + 1) - 1 + ZEROS_STORE <= ENCODE_ROOM);
};

/// The contents of a record, without its time and its thread.
#[derive(Clone, Copy, Debug)]
pub struct UntimedRecord {
    /// Its event, its `which`, and the bases of its columns.
    pub kind: &'static RecordKind,
    /// Its columns a1 to a5; signed ones sign-extended.
    pub arguments: [u64; 5],
}

/// How long the text of a template stays the same, in nanoseconds. The text has all digits of the time but the last four, which
/// are written for each record. So the long numbers are divided only when the text changes.
const TEXT_PERIOD: u64 = 10_000;

/// A period start for templates that have no time: every time of ten digits of seconds is long after it, modulo 2^64.
const NO_PERIOD: u64 = u64::MAX - 2 * TEXT_PERIOD;

/// The columns before `event1`, of one thread, ready to be copied.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub struct Template {
    text: [u8; TEXT_STORE],
    /// The first time, in nanoseconds since the Epoch, of the [`TEXT_PERIOD`] that `text` has; [`NO_PERIOD`] if it has no
    /// time.
    period_start: u64,
    /// The seconds that `text` has.
    seconds: u64,
    /// Bytes of `text` before `event1`.
    width: usize,
}

impl Template {
    /// The template of the thread `lwpid` of the process `pid`, whose `pthread_self()` is `tid`.
    pub fn new(lwpid: u32, pid: u32, tid: u64) -> Template {
        let mut text = [b'0'; TEXT_STORE];
        for colon in [TIME2_OFFSET, LWPID_OFFSET, PID_OFFSET, TID_OFFSET].map(|field| field - 1) {
            text[colon] = b':';
        }
        write_padded(&mut text[LWPID_OFFSET..][..LWPID_WIDTH], u64::from(lwpid));
        write_padded(&mut text[PID_OFFSET..][..PID_WIDTH], u64::from(pid));
        text[TID_OFFSET + 1] = b'x';
        let digits = hex_digit_count(tid).max(TID_WIDTH - 2);
        text[TID_OFFSET + 2..][..digits].copy_from_slice(&sixteen_hex_digits(tid)[16 - digits..]);
        text[TID_OFFSET + 2 + digits] = b':';
        let width = EVENT1_OFFSET - TID_WIDTH + 2 + digits;
        Template { text, period_start: NO_PERIOD, seconds: 0, width }
    }

    /// Writes records with one time, one after the other, at `out`, and returns their length.
    ///
    /// `time` is in nanoseconds since the Epoch; of seconds with more than ten digits the last ten are written. Arguments
    /// are written in the bases of their kinds.
    ///
    /// # Safety
    /// [`encode_room`]`(records.len())` bytes from `out` on must be writable, and nobody else may read or write them
    /// during the call.
    #[inline(always)]
    pub unsafe fn encode(&mut self, out: *mut u8, time: u64, records: &[UntimedRecord]) -> usize {
        let mut since = time.wrapping_sub(self.period_start);
        if since >= TEXT_PERIOD {
            since = self.write_time(time);
        }
        let digits = four_digits(since as u32);
        let mut end = out;
        for record in records {
            // SAFETY: the caller grants the room of a record for each of them.
            end = unsafe { self.encode_record(end, digits, record) };
        }
        end.addr() - out.addr()
    }

    /// Writes all but the last four digits of `time` into the text, and returns the nanoseconds that these stand for.
    #[inline(never)]
    fn write_time(&mut self, time: u64) -> u64 {
        let (seconds, nanoseconds) = (time / NANOS_PER_SECOND, (time % NANOS_PER_SECOND) as u32);
        // A jump out of a signal handler may leave the text incomplete: until it is complete, the template has no time.
        self.period_start = NO_PERIOD;
        compiler_fence(SeqCst);
        if seconds != self.seconds {
            self.seconds = u64::MAX;
            compiler_fence(SeqCst);
            write_padded(&mut self.text[..TIME1_WIDTH], seconds);
            compiler_fence(SeqCst);
            self.seconds = seconds;
        }
        self.text[TIME2_OFFSET] = b'0' + (nanoseconds / 100_000_000) as u8;
        self.text[TIME2_OFFSET + 1..][..4].copy_from_slice(&four_digits(nanoseconds / TEXT_PERIOD as u32 % 10_000));
        compiler_fence(SeqCst);
        self.period_start = time - time % TEXT_PERIOD;
        time % TEXT_PERIOD
    }

    /// Writes one record, whose time ends in `digits`, and returns where it ends.
    ///
    /// # Safety
    /// [`ENCODE_ROOM`] bytes from `out` on must be writable.
    #[inline(always)]
    unsafe fn encode_record(&self, out: *mut u8, digits: [u8; 4], record: &UntimedRecord) -> *mut u8 {
        let UntimedRecord { kind, arguments } = record;
        // SAFETY: the caller grants ENCODE_ROOM bytes. By the assertions above they have room for the stores of the text,
        // the event behind it, five arguments and the zeros behind them.
        unsafe {
            out.cast::<[u8; TEXT_STORE]>().write_unaligned(self.text);
            out.add(TIME_WIDTH - 4).cast::<[u8; 4]>().write_unaligned(digits);
            let mut end = out.add(self.width);
            end.cast::<[u8; EVENT_TEXT_WIDTH]>().write_unaligned(kind.event_text);
            end = end.add(EVENT_TEXT_WIDTH);
            // Most records have an object and no more, or nothing.
            let [first, others @ ..] = arguments;
            if others.iter().fold(0, |all, argument| all | argument) != 0 {
                return write_arguments(end, kind, arguments);
            }
            if *first == 0 {
                return write_zeros(end, 0);
            }
            write_zeros(write_argument(end, *first, kind.bases[0]).add(1), 1)
        }
    }
}

/// Fills `text` with the last digits of `number`, zeros in front.
fn write_padded(text: &mut [u8], mut number: u64) {
    for byte in text.iter_mut().rev() {
        *byte = b'0' + (number % 10) as u8;
        number /= 10;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Argument, Record};
    use crate::tables::Base;
    use crate::{EVENTS, id};

    fn encoded(template: &mut Template, time: u64, kind: &'static RecordKind, arguments: [u64; 5]) -> Vec<u8> {
        let mut buffer = [0xee; ENCODE_ROOM + 16];
        // SAFETY: the buffer has ENCODE_ROOM bytes.
        let length = unsafe { template.encode(buffer.as_mut_ptr(), time, &[UntimedRecord { kind, arguments }]) };
        assert_eq!(buffer[ENCODE_ROOM..], [0xee; 16], "wrote beyond its room");
        assert!(length <= RECORD_LEN_MAX);
        buffer[..length].to_vec()
    }

    #[test]
    fn the_example_of_the_manual_is_encoded() {
        let mut template = Template::new(19955, 19953, 0x7fc5_de3f_86c0);
        let line = encoded(&mut template, 1_795_174_740_544_763_329, &id::MUTEX_LOCK_1, [0x5594_69ed_90a0, 0, 0, 0, 0]);
        assert_eq!(line, b"1795174740:544763329:0019955:0019953:0x7fc5de3f86c0:02:02:1:0x559469ed90a0:0:0:0:0\n");
    }

    /// The encoder as the manual describes it, written with the standard library.
    fn oracle(lwpid: u32, pid: u32, tid: u64, time: u64, kind: &RecordKind, arguments: [u64; 5]) -> String {
        let mut line = format!(
            "{:010}:{:09}:{lwpid:07}:{pid:07}:{tid:#014x}:{}",
            time / NANOS_PER_SECOND,
            time % NANOS_PER_SECOND,
            std::str::from_utf8(&kind.event_text).unwrap()
        );
        for (index, value) in arguments.into_iter().enumerate() {
            // THR_TRACE_DETAIL fills columns that a kind leaves empty: a5, or a4 where a5 has the result, with the address of the
            // caller.
            let has_caller = index == 4 || index == 3 && kind.columns[4].is_some();
            let empty = if has_caller { Base::Hex } else { Base::Unsigned };
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
    fn encoder_oracle_and_decoder_agree_on_every_kind() {
        let edges = edges();
        // Miri, which is slow, encodes one record of each kind.
        let step = if cfg!(miri) { edges.len() } else { 1 };
        let mut at = 0usize;
        for kind in EVENTS.iter().flat_map(|event| event.kinds) {
            for first in edges.iter().copied().step_by(step) {
                let mut next = |step: usize| {
                    at += step;
                    edges[at % edges.len()]
                };
                let arguments = [first, next(7), next(11), next(13), next(17)];
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

    /// Five addresses are written by a way of their own.
    #[test]
    fn addresses_are_encoded_like_other_numbers() {
        const LEAST: u64 = 1 << 44;
        let edges = [0x7fc5_de3f_86c0, LEAST, LEAST - 1, 16 * LEAST - 1, 16 * LEAST, 0x5594_69ed_90a0, 1, 0, u64::MAX];
        for kind in [&id::TRACE_STACK_1, &id::TRACE_STACK_2, &id::RMUTEX_LOCK_2, &id::FUNC_ENTER_0] {
            for place in 0..5 {
                for edge in edges {
                    let mut arguments = [0x7fc5_de3f_86c0, 0x5594_69ed_90a0, LEAST, 16 * LEAST - 1, LEAST + 0xabc];
                    arguments[place] = edge;
                    let line = encoded(&mut Template::new(1, 2, 3), 4, kind, arguments);
                    assert_eq!(String::from_utf8(line).unwrap(), oracle(1, 2, 3, 4, kind, arguments));
                }
            }
        }
    }

    #[test]
    fn records_with_one_time_equal_those_encoded_one_by_one() {
        let records = [
            UntimedRecord { kind: &id::RMUTEX_LOCK_1, arguments: [u64::MAX; 5] },
            UntimedRecord { kind: &id::RMUTEX_LOCK_2, arguments: [0, 0, 3, 0, 0] },
        ];
        let mut buffer = [0xee; encode_room(2) + 16];
        let time = 7 * NANOS_PER_SECOND + 89;
        // SAFETY: the buffer has room for two records.
        let length = unsafe { Template::new(1, 2, u64::MAX).encode(buffer.as_mut_ptr(), time, &records) };
        assert_eq!(buffer[encode_room(2)..], [0xee; 16], "wrote beyond its room");
        let text = records.map(|record| oracle(1, 2, u64::MAX, time, record.kind, record.arguments)).concat();
        assert_eq!(std::str::from_utf8(&buffer[..length]).unwrap(), text);
    }

    #[test]
    fn a_template_gets_the_digits_of_a_new_time() {
        let mut template = Template::new(1, 1, 0x7f00_0000_0000);
        let times = [
            0,
            1,
            TEXT_PERIOD - 1,
            TEXT_PERIOD,
            TEXT_PERIOD - 1,
            54_321 * TEXT_PERIOD,
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
