//! Short texts that many lines contain.

/// A text in an array of fixed length, which is copied without a call.
#[derive(Clone, Copy, Debug)]
pub struct ShortText {
    text: [u8; 32],
    length: u8,
}

impl ShortText {
    /// A copy of up to 32 bytes, which is more than any argument has that is written; a longer text is truncated.
    pub fn new(bytes: &[u8]) -> ShortText {
        let mut text = [0; 32];
        let length = bytes.len().min(text.len());
        text[..length].copy_from_slice(&bytes[..length]);
        ShortText { text, length: length as u8 }
    }

    /// The label of an argument that is not the first: `, name=`.
    pub fn label(name: &str) -> ShortText {
        ShortText::new(format!(", {name}=").as_bytes())
    }

    pub fn bytes(&self) -> &[u8] {
        &self.text[..self.length()]
    }

    /// The text and the zeros after it, which can be appended without a call.
    pub fn padded(&self) -> &[u8; 32] {
        &self.text
    }

    pub fn length(&self) -> usize {
        usize::from(self.length)
    }
}
