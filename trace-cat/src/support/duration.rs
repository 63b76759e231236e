//! Durations as people read them.

/// Writes a duration with the unit that leaves one to three digits before the point; returns its length.
pub fn write_duration(nanoseconds: u64, text: &mut [u8; 24]) -> usize {
    let (unit, name): (u64, &[u8]) = match nanoseconds {
        0..1_000 => (1, b" ns"),
        1_000..1_000_000 => (1_000, b" us"),
        1_000_000..1_000_000_000 => (1_000_000, b" ms"),
        _ => (1_000_000_000, b" s"),
    };
    let mut digits = itoa::Buffer::new();
    let integer = digits.format(nanoseconds / unit).as_bytes();
    let mut length = 0;
    let mut put = |bytes: &[u8]| {
        text[length..length + bytes.len()].copy_from_slice(bytes);
        length += bytes.len();
    };
    put(integer);
    if unit > 1 {
        let thousandths = (nanoseconds % unit * 1000 / unit) as u16;
        put(b".");
        put(&[100, 10, 1].map(|place| b'0' + (thousandths / place % 10) as u8));
    }
    put(name);
    length
}

/// A duration as text: `8.571 ms`.
pub fn duration_text(nanoseconds: u64) -> String {
    let mut text = [0; 24];
    let length = write_duration(nanoseconds, &mut text);
    String::from_utf8_lossy(&text[..length]).into_owned()
}
