//! The names of a trace directory's files.

use core::ops::Range;

use crate::digits::{hex_digit, hex_value};

/// The name of a trace directory's file, decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FileName {
    /// `tr.xxxxxxx.yyy`: records.
    Records {
        /// The seven least significant hex digits of the process ID.
        process: u32,
        /// The three least significant hex digits of the LWP ID.
        lwp: u16,
    },
    /// `trbuf.xxxxxxx`: the record buffers of a process.
    Buffers(u32),
    /// `trspare.xxxxxxx.n`: an emptied trbuf, for the next child that this process or one of its children forks; or one that
    /// the process made for a child in a sandbox, or the page where such children count what they lose ([`SANDBOX_SPARES`]).
    Spare {
        /// The seven least significant hex digits of the process ID.
        process: u32,
        /// Less than [`SPARES`], or one of [`SANDBOX_SPARES`].
        number: u8,
    },
    /// `trinfo.xxxxxxx`: facts about a process.
    Info(u32),
    /// `trclock`: the clock that the processes of the directory share.
    Clock,
    /// `trctl`: how much the processes of the directory have written, where that is limited.
    Control,
}

/// Longest name of a trace directory's file, with its terminating NUL: `trspare.xxxxxxx.nn`.
pub const NAME_MAX: usize = 19;
/// How many emptied trbufs a process keeps at most for its next children.
pub const SPARES: u8 = 8;
/// The numbers of the trbufs that a process makes for children in a sandbox, and of the page where those without one count.
pub const SANDBOX_SPARES: Range<u8> = SPARES..32;
/// Bits of a process ID: the kernel has no greater ones.
const PROCESS_BITS: u32 = 22;
/// Greater than every process ID, in the numbers of [`FileName::number_of_spare`].
const SPARE_FLAG: u32 = 1 << (4 * PROCESS_DIGITS - 1);
/// Hex digits of a process ID in a name.
const PROCESS_DIGITS: usize = 7;
/// Hex digits of an LWP ID in a name.
const LWP_DIGITS: usize = 3;
/// The digits of a process ID that a name shows, as a mask.
pub const PROCESS_MASK: u32 = (1 << (4 * PROCESS_DIGITS)) - 1;
/// The digits of an LWP ID that a name shows, as a mask.
pub const LWP_MASK: u32 = (1 << (4 * LWP_DIGITS)) - 1;

/// The process ID in the records of a child that records in the spare trbuf with this number, and does not know its own ID:
/// one of seven digits that no process has.
pub const fn pid_of_spare(number: u32) -> u32 {
    const LEAST: u32 = (1 << PROCESS_BITS) + 1;
    LEAST + (number & (SPARE_FLAG - 1)) % (10_000_000 - LEAST)
}

impl FileName {
    /// The record file of the thread `lwpid` of the process `pid`.
    pub const fn records(pid: u32, lwpid: u32) -> FileName {
        FileName::Records { process: pid & PROCESS_MASK, lwp: (lwpid & LWP_MASK) as u16 }
    }

    /// The number that stands for a process in the names of its files, for a child that records in a spare trbuf: no process
    /// has such an ID, and no other spare trbuf of the directory has the same number.
    pub const fn number_of_spare(process: u32, number: u8) -> u32 {
        SPARE_FLAG | (process & ((1 << PROCESS_BITS) - 1)) << 5 | (number & 31) as u32
    }

    /// The trbuf of the process with this number in the names of its files.
    pub const fn buffers(number: u32) -> FileName {
        if number & SPARE_FLAG == 0 {
            return FileName::Buffers(number);
        }
        FileName::Spare { process: number >> 5 & ((1 << PROCESS_BITS) - 1), number: (number & 31) as u8 }
    }

    /// The name as text, NUL-terminated, and its length without the NUL.
    pub fn text(self) -> ([u8; NAME_MAX], usize) {
        let (prefix, process, suffix): (&[u8], _, _) = match self {
            FileName::Records { process, lwp } => (b"tr.", Some(process), Some((u32::from(lwp), LWP_DIGITS))),
            FileName::Buffers(process) => (b"trbuf.", Some(process), None),
            FileName::Spare { process, number } => {
                (b"trspare.", Some(process), Some((number.into(), if number < 16 { 1 } else { 2 })))
            }
            FileName::Info(process) => (b"trinfo.", Some(process), None),
            FileName::Clock => (b"trclock", None, None),
            FileName::Control => (b"trctl", None, None),
        };
        let digits = |value: u32, count: usize| (0..count).rev().map(move |place| hex_digit(value >> (4 * place)));
        let process = process.into_iter().flat_map(|process| digits(process, PROCESS_DIGITS));
        let suffix = suffix.into_iter().flat_map(|(value, count)| [b'.'].into_iter().chain(digits(value, count)));
        let (mut text, mut length) = ([0; NAME_MAX], 0);
        for (place, byte) in text.iter_mut().zip(prefix.iter().copied().chain(process).chain(suffix)) {
            *place = byte;
            length += 1;
        }
        (text, length)
    }

    /// Decodes a name, or returns `None` if a trace directory has no file of this name.
    pub fn parse(name: &[u8]) -> Option<FileName> {
        if name == b"trclock" {
            return Some(FileName::Clock);
        }
        if name == b"trctl" {
            return Some(FileName::Control);
        }
        if let Some(digits) = name.strip_prefix(b"trbuf.") {
            return hex(digits, PROCESS_DIGITS).map(FileName::Buffers);
        }
        if let Some(digits) = name.strip_prefix(b"trinfo.") {
            return hex(digits, PROCESS_DIGITS).map(FileName::Info);
        }
        if let Some(rest) = name.strip_prefix(b"trspare.") {
            let (process, number) = rest.split_at_checked(PROCESS_DIGITS)?;
            let process = hex(process, PROCESS_DIGITS)?;
            let digits = number.strip_prefix(b".")?;
            let number = hex(digits, digits.len().clamp(1, 2))? as u8;
            let name = FileName::Spare { process, number };
            let is_valid = number < SPARES || SANDBOX_SPARES.contains(&number) && process >> PROCESS_BITS == 0;
            return (is_valid && (digits.len() == 1) == (number < 16)).then_some(name);
        }
        let (process, lwp) = name.strip_prefix(b"tr.")?.split_at_checked(PROCESS_DIGITS)?;
        let lwp = hex(lwp.strip_prefix(b".")?, LWP_DIGITS)? as u16;
        Some(FileName::Records { process: hex(process, PROCESS_DIGITS)?, lwp })
    }
}

/// Exactly `width` lower-case hex digits.
fn hex(digits: &[u8], width: usize) -> Option<u32> {
    if digits.len() != width {
        return None;
    }
    digits.iter().try_fold(0, |number, &digit| Some(number << 4 | u32::from(hex_value(digit)?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_their_texts_are_twins() {
        for (name, text) in [
            (FileName::records(0x1234, 0x1abcd), "tr.0001234.bcd"),
            (FileName::Buffers(0xfff_ffff), "trbuf.fffffff"),
            (FileName::Spare { process: 0x1234, number: 7 }, "trspare.0001234.7"),
            (FileName::Spare { process: 0x3f_ffff, number: 31 }, "trspare.03fffff.1f"),
            (FileName::Info(7), "trinfo.0000007"),
            (FileName::Clock, "trclock"),
            (FileName::Control, "trctl"),
        ] {
            let (bytes, length) = name.text();
            assert_eq!(&bytes[..length], text.as_bytes());
            assert_eq!(bytes[length], 0);
            assert_eq!(FileName::parse(text.as_bytes()), Some(name));
        }
    }

    #[test]
    fn a_spare_trbuf_has_a_number_like_a_process() {
        for (process, number) in [(0, 8), (1, 31), (0x3f_ffff, 20)] {
            let given = FileName::number_of_spare(process, number);
            assert_eq!(FileName::buffers(given), FileName::Spare { process, number });
            assert!((0x40_0001..10_000_000).contains(&pid_of_spare(given)));
            assert_eq!(FileName::parse(&FileName::records(given, 7).text().0[..14]), Some(FileName::records(given, 7)));
        }
        assert_eq!(FileName::buffers(0x3f_ffff), FileName::Buffers(0x3f_ffff));
    }

    #[test]
    fn names_of_other_files_are_refused() {
        for name in [
            "tr.0001234.bcde",
            "tr.0001234",
            "trbuf.",
            "old.5.tr.0001234.bcd",
            "tr.000123G.bcd",
            "trspare.0001234.0f",
            "trspare.0001234.20",
            "trspare.0001234.",
            "trspare.0400000.8",
            "",
        ] {
            assert_eq!(FileName::parse(name.as_bytes()), None, "{name}");
        }
    }
}
