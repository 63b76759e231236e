//! The file names of a trace directory.

/// What a file of a trace directory is.
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
    /// `trinfo.xxxxxxx`: what is known of a process.
    Info(u32),
    /// `trclock`: the clock that the processes of the directory share.
    Clock,
}

/// Longest name of a trace directory's file, with its terminating NUL: `tr.xxxxxxx.yyy`.
pub const NAME_MAX: usize = 15;
/// The digits of a process ID that a name shows, as a mask.
pub const PROCESS_MASK: u32 = 0xfff_ffff;
/// The digits of an LWP ID that a name shows, as a mask.
pub const LWP_MASK: u32 = 0xfff;

impl FileName {
    /// The record file of this thread.
    pub const fn records(pid: u32, lwpid: u32) -> FileName {
        FileName::Records { process: pid & PROCESS_MASK, lwp: (lwpid & LWP_MASK) as u16 }
    }

    /// The name as text, NUL-terminated, and its length without the NUL.
    pub fn text(self) -> ([u8; NAME_MAX], usize) {
        let mut text = [0; NAME_MAX];
        let (prefix, process, lwp): (&[u8], _, _) = match self {
            FileName::Records { process, lwp } => (b"tr.", Some(process), Some(lwp)),
            FileName::Buffers(process) => (b"trbuf.", Some(process), None),
            FileName::Info(process) => (b"trinfo.", Some(process), None),
            FileName::Clock => (b"trclock", None, None),
        };
        let mut length = 0;
        let mut put = |byte: u8| {
            if let Some(slot) = text.get_mut(length) {
                *slot = byte;
                length += 1;
            }
        };
        prefix.iter().for_each(|&byte| put(byte));
        let digit = |value: u32, place: u32| b"0123456789abcdef"[(value >> (4 * place)) as usize & 15];
        if let Some(process) = process {
            (0..7).rev().for_each(|place| put(digit(process, place)));
        }
        if let Some(lwp) = lwp {
            put(b'.');
            (0..3).rev().for_each(|place| put(digit(u32::from(lwp), place)));
        }
        (text, length)
    }

    /// What a file of this name is, if it is a trace directory's.
    pub fn parse(name: &[u8]) -> Option<FileName> {
        if name == b"trclock" {
            return Some(FileName::Clock);
        }
        if let Some(digits) = name.strip_prefix(b"trbuf.") {
            return hex(digits, 7).map(FileName::Buffers);
        }
        if let Some(digits) = name.strip_prefix(b"trinfo.") {
            return hex(digits, 7).map(FileName::Info);
        }
        let rest = name.strip_prefix(b"tr.")?;
        if rest.len() != 11 || rest[7] != b'.' {
            return None;
        }
        Some(FileName::Records { process: hex(&rest[..7], 7)?, lwp: hex(&rest[8..], 3)? as u16 })
    }
}

/// Exactly `width` lower-case hex digits.
fn hex(digits: &[u8], width: usize) -> Option<u32> {
    if digits.len() != width {
        return None;
    }
    digits.iter().try_fold(0, |number, &byte| match byte {
        b'0'..=b'9' => Some(number << 4 | u32::from(byte - b'0')),
        b'a'..=b'f' => Some(number << 4 | u32::from(byte - b'a' + 10)),
        _ => None,
    })
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
    fn other_names_are_not_ours() {
        for name in ["tr.0001234.bcde", "tr.0001234", "trbuf.", "old.5.tr.0001234.bcd", "tr.000123G.bcd", ""] {
            assert_eq!(FileName::parse(name.as_bytes()), None, "{name}");
        }
    }
}
