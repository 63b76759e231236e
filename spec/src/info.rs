//! `trinfo` and `trclock`, and a file of the kernel: lines of text, `key value`.
//!
//! Values are escaped, so that each value stays on its line and each item of a list stays one word: a space, a backslash
//! and every byte outside printable ASCII are written `\xHH`. In `cmdline` a bare space separates the arguments.

use crate::digits::{hex_digit, hex_value};

/// The text before and after the number in the `note` of a process that reused the rings of threads which had ended. Each of
/// its programs counts on from the one before, so the greatest number counts.
pub const RINGS_REUSED: [&str; 2] =
    ["the rings of ", " threads that had ended were reused, and their records are gone"];

/// The key of the number of lost records that no trace_lost record counts, as those of threads without a buffer in a process that was
/// killed. Recovery writes it.
pub const UNCOUNTED_KEY: &str = "uncounted";

/// The text of an escaped byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Escaped {
    text: [u8; 4],
    length: u8,
}

impl Escaped {
    /// The bytes to write.
    pub fn as_bytes(&self) -> &[u8] {
        match self.length {
            1 => &self.text[..1],
            _ => &self.text,
        }
    }
}

/// Whether a byte of a value stands for itself.
pub fn is_literal(byte: u8) -> bool {
    byte.is_ascii_graphic() && byte != b'\\'
}

/// Escapes one byte of a value.
pub fn escape(byte: u8) -> Escaped {
    if is_literal(byte) {
        return Escaped { text: [byte, 0, 0, 0], length: 1 };
    }
    let byte = u32::from(byte);
    Escaped { text: [b'\\', b'x', hex_digit(byte >> 4), hex_digit(byte)], length: 4 }
}

/// The bytes that an escaped value stands for. An incomplete escape stands for itself.
pub fn unescape(value: &[u8]) -> impl Iterator<Item = u8> + '_ {
    let mut remaining = value;
    core::iter::from_fn(move || {
        if let [b'\\', b'x', high, low, tail @ ..] = remaining
            && let (Some(high), Some(low)) = (hex_value(*high), hex_value(*low))
        {
            remaining = tail;
            return Some(high << 4 | low);
        }
        let (&first, tail) = remaining.split_first()?;
        remaining = tail;
        Some(first)
    })
}

/// The lines of such a file as pairs of key and value, in their order. A line without a space has an empty value.
pub fn lines(text: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    text.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()).map(|line| {
        let mut split = line.splitn(2, |&byte| byte == b' ');
        (split.next().unwrap_or(line), split.next().unwrap_or(b""))
    })
}

/// The value of the first line with this key.
pub fn value<'a>(text: &'a [u8], key: &str) -> Option<&'a [u8]> {
    lines(text).find(|(line_key, _)| *line_key == key.as_bytes()).map(|(_, value)| value)
}

/// The value of the first line with this key as a decimal number, which may be negative.
pub fn number(text: &[u8], key: &str) -> Option<i64> {
    core::str::from_utf8(value(text, key)?).ok()?.parse().ok()
}

/// The IDs in the lines `name ID TEXT`, each with its text.
pub fn interned_names(text: &[u8]) -> impl Iterator<Item = (u64, impl Iterator<Item = u8>)> {
    lines(text).filter(|(key, _)| *key == b"name").filter_map(|(_, value)| {
        let mut words = value.splitn(2, |&byte| byte == b' ');
        let id = core::str::from_utf8(words.next()?).ok()?.strip_prefix("0x")?;
        Some((u64::from_str_radix(id, 16).ok()?, unescape(words.next()?)))
    })
}

/// By how many nanoseconds the clocks of a time namespace are ahead of the initial one's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClockShifts {
    /// `CLOCK_MONOTONIC`.
    pub monotonic: i64,
    /// `CLOCK_BOOTTIME`, which the kernel also shows times of processes by.
    pub boottime: i64,
}

/// A clock tick, in nanoseconds, of the times that the kernel shows (USER_HZ, always 100 on this architecture).
pub const TICK_NS: i64 = 10_000_000;

impl ClockShifts {
    /// The shifts in the text of a `/proc/PID/timens_offsets`. Linux 5.6 has the clocks' numbers in the place of their names.
    pub fn parse(text: &[u8]) -> Option<ClockShifts> {
        let shift = |name, number| {
            let line = value(text, name).or_else(|| value(text, number))?;
            let mut numbers = core::str::from_utf8(line).ok()?.split_ascii_whitespace().map(str::parse::<i64>);
            let (seconds, nanoseconds) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
            seconds.checked_mul(1_000_000_000)?.checked_add(nanoseconds)
        };
        Some(ClockShifts { monotonic: shift("monotonic", "1")?, boottime: shift("boottime", "7")? })
    }

    /// The start time of a process, in clock ticks since boot, as the initial time namespace has it, by what this one shows in
    /// `/proc/PID/stat`. Where the shift is no multiple of a tick, it may be one more.
    pub fn initial_start_time(self, shown: u64) -> u64 {
        // The kernel divides a time before the namespace's zero as if it were a very late one.
        const LATE: u64 = (1 << 63) / TICK_NS as u64;
        const WRAPPED: i64 = ((1_u128 << 64) / TICK_NS as u128) as i64;
        let shown = if shown < LATE { shown as i64 } else { shown as i64 - WRAPPED };
        shown.saturating_sub(self.boottime.div_euclid(TICK_NS)).max(0) as u64
    }

    /// Whether a process that has this start time by `/proc/PID/stat` is the one for which another start time was `recorded`.
    pub fn is_start_time(self, shown: u64, recorded: u64) -> bool {
        let is_exact = self.boottime % TICK_NS == 0 && self.boottime >= 0;
        self.initial_start_time(shown).abs_diff(recorded) <= u64::from(!is_exact)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_undone() {
        let all: Vec<u8> = (0..=255).collect();
        let escaped: Vec<u8> = all.iter().flat_map(|&byte| escape(byte).as_bytes().to_vec()).collect();
        assert!(escaped.iter().all(u8::is_ascii_graphic));
        assert_eq!(unescape(&escaped).collect::<Vec<u8>>(), all);
        assert_eq!(unescape(br"\x4\xzz\").collect::<Vec<u8>>(), br"\x4\xzz\");
    }

    #[test]
    fn lines_are_keys_and_values() {
        let text = b"format 1\n\npid 7\noffset -12\nnote two words\nbare\n";
        assert_eq!(number(text, "pid"), Some(7));
        assert_eq!(number(text, "offset"), Some(-12));
        assert_eq!(value(text, "note"), Some(&b"two words"[..]));
        assert_eq!(value(text, "bare"), Some(&b""[..]));
        assert_eq!(value(text, "none"), None);
        assert_eq!(number(text, "note"), None);
    }

    #[test]
    fn names_have_an_id_and_a_text() {
        let text = b"format 1\nname 0x10 queue\\x20lock\nname 10 x\nname 0x11\nname 0xg y\nname 0xffffffffffff \n";
        let names: Vec<(u64, Vec<u8>)> = interned_names(text).map(|(id, text)| (id, text.collect())).collect();
        assert_eq!(names, [(16, b"queue lock".to_vec()), (0xffff_ffff_ffff, Vec::new())]);
    }

    #[test]
    fn shifts_have_seconds_and_nanoseconds() {
        let shifts = |monotonic, boottime| Some(ClockShifts { monotonic, boottime });
        let initial = b"monotonic           0         0\nboottime            5         0\n";
        assert_eq!(ClockShifts::parse(initial), shifts(0, 5_000_000_000));
        let before = b"monotonic      -86401 999999999\nboottime 0 0\n";
        assert_eq!(ClockShifts::parse(before), shifts(-86_400_000_000_001, 0));
        assert_eq!(ClockShifts::parse(b"1 3 7\n7 0 -1\n"), shifts(3_000_000_007, -1));
        for text in ["monotonic 3\nboottime 0 0\n", "monotonic 0 0\n", ""] {
            assert_eq!(ClockShifts::parse(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn a_start_time_does_not_depend_on_the_time_namespace() {
        // Began 12.3456 s after the boot.
        for shift in [0, 3_600_000_000_000, 123_456_789, -5_000_000_000, -4_444_444] {
            let shown = ((12_345_600_000_i64 + shift) / TICK_NS) as u64;
            let initial = ClockShifts { monotonic: 7, boottime: shift }.initial_start_time(shown);
            assert!(initial == 1234 || shift % TICK_NS != 0 && initial == 1235, "{shift}: {initial}");
        }
        // The namespace began after the process did.
        for shift in [-12_345_600_001_i64, -13_000_000_000, -100_000_000_000] {
            let shown = (12_345_600_000_i64 + shift) as u64 / TICK_NS as u64;
            let shifts = ClockShifts { monotonic: 0, boottime: shift };
            assert!(shifts.is_start_time(shown, 1234) && !shifts.is_start_time(shown, 1238), "{shift}: {shown}");
        }
    }
}
