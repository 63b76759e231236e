//! `trinfo` and `trclock`: text, `key value`, one a line.
//!
//! Values are escaped so that a line stays a line and an item stays one word: a space, a backslash and every byte
//! outside printable ASCII are written `\xHH`. In `cmdline` a bare space separates the arguments.

/// What stands before and behind the number in the `note` of a process that reused the rings of threads which had ended.
pub const RINGS_REUSED: [&str; 2] =
    ["the rings of ", " threads that had ended were reused, and their records are gone"];

/// What an escaped byte looks like.
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

/// One byte of a value, as it is written.
pub fn escape(byte: u8) -> Escaped {
    if byte.is_ascii_graphic() && byte != b'\\' {
        return Escaped { text: [byte, 0, 0, 0], length: 1 };
    }
    let digit = |value: u8| b"0123456789abcdef"[usize::from(value & 15)];
    Escaped { text: [b'\\', b'x', digit(byte >> 4), digit(byte)], length: 4 }
}

/// The bytes that an escaped value stands for; a broken escape stands for itself.
pub fn unescape(value: &[u8]) -> impl Iterator<Item = u8> + '_ {
    let mut rest = value;
    core::iter::from_fn(move || {
        if let [b'\\', b'x', high, low, tail @ ..] = rest
            && let (Some(high), Some(low)) = (nibble(*high), nibble(*low))
        {
            rest = tail;
            return Some(high << 4 | low);
        }
        let (&first, tail) = rest.split_first()?;
        rest = tail;
        Some(first)
    })
}

fn nibble(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

/// The lines of such a file as (key, value), in order; a line without a space has an empty value.
pub fn lines(text: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    text.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()).map(|line| {
        let mut halves = line.splitn(2, |&byte| byte == b' ');
        (halves.next().unwrap_or(line), halves.next().unwrap_or(b""))
    })
}

/// The value of the first line with this key.
pub fn value<'a>(text: &'a [u8], key: &str) -> Option<&'a [u8]> {
    lines(text).find(|(found, _)| *found == key.as_bytes()).map(|(_, value)| value)
}

/// The decimal value of the first line with this key, perhaps negative.
pub fn number(text: &[u8], key: &str) -> Option<i64> {
    core::str::from_utf8(value(text, key)?).ok()?.parse().ok()
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
}
