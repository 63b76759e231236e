//! Short texts that are put into many lines.

/// A text that is put often. It has a fixed length behind which it is cut off, so that it is copied without a call.
#[derive(Clone, Copy, Debug)]
pub struct ShortText {
    text: [u8; 32],
    length: u8,
}

impl ShortText {
    /// A text of up to 32 bytes; more are left out.
    pub fn new(text: &str) -> ShortText {
        ShortText::join(&[text])
    }

    /// What stands before an argument that is not the first: `, name=`.
    pub fn label(name: &str) -> ShortText {
        ShortText::join(&[", ", name, "="])
    }

    fn join(parts: &[&str]) -> ShortText {
        let (mut text, mut length) = ([0; 32], 0);
        for (place, byte) in text.iter_mut().zip(parts.iter().flat_map(|part| part.bytes())) {
            (*place, length) = (byte, length + 1);
        }
        ShortText { text, length }
    }

    /// The text.
    pub fn bytes(&self) -> &[u8] {
        &self.text[..self.length()]
    }

    /// The text and the bytes behind it, so that it can be appended without a call.
    pub fn padded(&self) -> &[u8; 32] {
        &self.text
    }

    /// How many bytes it has.
    pub fn length(&self) -> usize {
        usize::from(self.length)
    }
}
