//! Short texts that many lines contain.

/// A text in an array of fixed length, which is copied without a call.
#[derive(Clone, Copy, Debug)]
pub struct ShortText {
    text: [u8; 32],
    length: u8,
}

impl ShortText {
    /// A text of up to 32 bytes; it is truncated if it has more.
    pub fn new(text: &str) -> ShortText {
        ShortText::join(&[text])
    }

    /// The label of an argument that is not the first: `, name=`.
    pub fn label(name: &str) -> ShortText {
        ShortText::join(&[", ", name, "="])
    }

    fn join(texts: &[&str]) -> ShortText {
        let (mut text, mut length) = ([0; 32], 0);
        for (place, byte) in text.iter_mut().zip(texts.iter().flat_map(|text| text.bytes())) {
            (*place, length) = (byte, length + 1);
        }
        ShortText { text, length }
    }

    /// The text.
    pub fn bytes(&self) -> &[u8] {
        &self.text[..self.length()]
    }

    /// The text and the zeros after it, which can be appended without a call.
    pub fn padded(&self) -> &[u8; 32] {
        &self.text
    }

    /// Bytes of the text.
    pub fn length(&self) -> usize {
        usize::from(self.length)
    }
}
