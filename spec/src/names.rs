//! The names of a trace directory's files.

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
    /// `trinfo.xxxxxxx`: facts about a process.
    Info(u32),
    /// `trclock`: the clock that the processes of the directory share.
    Clock,
}

/// Longest name of a trace directory's file, with its terminating NUL: `tr.xxxxxxx.yyy`.
pub const NAME_MAX: usize = 15;
/// Hex digits of a process ID in a name.
const PROCESS_DIGITS: usize = 7;
/// Hex digits of an LWP ID in a name.
const LWP_DIGITS: usize = 3;
/// The digits of a process ID that a name shows, as a mask.
pub const PROCESS_MASK: u32 = (1 << (4 * PROCESS_DIGITS)) - 1;
/// The digits of an LWP ID that a name shows, as a mask.
pub const LWP_MASK: u32 = (1 << (4 * LWP_DIGITS)) - 1;

impl FileName {
    /// The record file of the thread `lwpid` of the process `pid`.
    pub const fn records(pid: u32, lwpid: u32) -> FileName {
        FileName::Records { process: pid & PROCESS_MASK, lwp: (lwpid & LWP_MASK) as u16 }
    }

    /// The name as text, NUL-terminated, and its length without the NUL.
    pub fn text(self) -> ([u8; NAME_MAX], usize) {
        let (prefix, process, lwp): (&[u8], _, _) = match self {
            FileName::Records { process, lwp } => (b"tr.", Some(process), Some(lwp)),
            FileName::Buffers(process) => (b"trbuf.", Some(process), None),
            FileName::Info(process) => (b"trinfo.", Some(process), None),
            FileName::Clock => (b"trclock", None, None),
        };
        let digits = |value: u32, count: usize| (0..count).rev().map(move |place| hex_digit(value >> (4 * place)));
        let process = process.into_iter().flat_map(|process| digits(process, PROCESS_DIGITS));
        let lwp = lwp.into_iter().flat_map(|lwp| [b'.'].into_iter().chain(digits(u32::from(lwp), LWP_DIGITS)));
        let (mut text, mut length) = ([0; NAME_MAX], 0);
        for (place, byte) in text.iter_mut().zip(prefix.iter().copied().chain(process).chain(lwp)) {
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
        if let Some(digits) = name.strip_prefix(b"trbuf.") {
            return hex(digits, PROCESS_DIGITS).map(FileName::Buffers);
        }
        if let Some(digits) = name.strip_prefix(b"trinfo.") {
            return hex(digits, PROCESS_DIGITS).map(FileName::Info);
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
            (FileName::Info(7), "trinfo.0000007"),
            (FileName::Clock, "trclock"),
        ] {
            let (bytes, length) = name.text();
            assert_eq!(&bytes[..length], text.as_bytes());
            assert_eq!(bytes[length], 0);
            assert_eq!(FileName::parse(text.as_bytes()), Some(name));
        }
    }

    #[test]
    fn names_of_other_files_are_refused() {
        for name in ["tr.0001234.bcde", "tr.0001234", "trbuf.", "old.5.tr.0001234.bcd", "tr.000123G.bcd", ""] {
            assert_eq!(FileName::parse(name.as_bytes()), None, "{name}");
        }
    }
}
