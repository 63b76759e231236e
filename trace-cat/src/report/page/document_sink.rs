//! Where the members of the JSON document go, one after the other: what lists have need not be in memory as a whole.

use std::io;

use serde_json::{Map, Value};

/// How many bytes of text are collected before they are written.
const CHUNK: usize = 1 << 16;

/// Takes the members of a document.
pub trait DocumentSink {
    /// # Errors
    /// Those of the output.
    fn member(&mut self, name: &str, value: Value) -> io::Result<()>;

    /// A member that is a list; each entry is made when it is taken.
    ///
    /// # Errors
    /// Those of the output.
    fn list(&mut self, name: &str, entries: impl Iterator<Item = Value>) -> io::Result<()>;
}

/// The document as a value.
impl DocumentSink for Map<String, Value> {
    fn member(&mut self, name: &str, value: Value) -> io::Result<()> {
        self.insert(name.to_owned(), value);
        Ok(())
    }

    fn list(&mut self, name: &str, entries: impl Iterator<Item = Value>) -> io::Result<()> {
        self.member(name, entries.collect())
    }
}

/// The document as text, indented by two spaces.
pub struct DocumentText<'a> {
    text: Vec<u8>,
    has_members: bool,
    write: &'a mut dyn FnMut(&[u8]) -> io::Result<()>,
}

impl<'a> DocumentText<'a> {
    pub fn new(write: &'a mut dyn FnMut(&[u8]) -> io::Result<()>) -> DocumentText<'a> {
        DocumentText { text: Vec::new(), has_members: false, write }
    }

    /// Writes what ends the document.
    ///
    /// # Errors
    /// Those of the output.
    pub fn finish(mut self) -> io::Result<()> {
        self.text.extend_from_slice(b"\n}\n");
        (self.write)(&self.text)
    }

    fn begin(&mut self, name: &str) {
        self.text.extend_from_slice(if self.has_members { b",\n  " } else { b"{\n  " });
        self.has_members = true;
        self.text.extend_from_slice(format!("{}: ", Value::from(name)).as_bytes());
    }

    fn value(&mut self, value: &Value, indentation: &str) {
        // In strings, newlines are escaped.
        self.text.extend_from_slice(format!("{value:#}").replace('\n', indentation).as_bytes());
    }

    fn write_chunk(&mut self) -> io::Result<()> {
        if self.text.len() >= CHUNK {
            (self.write)(&self.text)?;
            self.text.clear();
        }
        Ok(())
    }
}

impl DocumentSink for DocumentText<'_> {
    fn member(&mut self, name: &str, value: Value) -> io::Result<()> {
        self.begin(name);
        self.value(&value, "\n  ");
        self.write_chunk()
    }

    fn list(&mut self, name: &str, entries: impl Iterator<Item = Value>) -> io::Result<()> {
        self.begin(name);
        let mut before = "[\n    ";
        for entry in entries {
            self.text.extend_from_slice(before.as_bytes());
            self.value(&entry, "\n    ");
            before = ",\n    ";
            self.write_chunk()?;
        }
        let end: &[u8] = if before.starts_with('[') { b"[]" } else { b"\n  ]" };
        self.text.extend_from_slice(end);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The same members for both.
    fn fill(sink: &mut impl DocumentSink) {
        sink.member("a", json!({ "x": [1, { "y\n": "z\n" }], "w": {} })).unwrap();
        sink.list("b", std::iter::empty()).unwrap();
        sink.list("c", (0..3).map(|number| json!({ "number": number, "list": [null, []] }))).unwrap();
        sink.list("d", std::iter::once(Value::Null)).unwrap();
    }

    #[test]
    fn the_text_is_that_of_the_value() {
        let mut value = Map::new();
        fill(&mut value);
        let mut text = Vec::new();
        let mut write = |chunk: &[u8]| {
            text.extend_from_slice(chunk);
            Ok(())
        };
        let mut sink = DocumentText::new(&mut write);
        fill(&mut sink);
        sink.finish().unwrap();
        assert_eq!(String::from_utf8(text).unwrap(), format!("{:#}\n", Value::from(value)));
    }

    #[test]
    fn a_list_is_written_while_it_is_made() {
        let mut sizes = Vec::new();
        let mut write = |chunk: &[u8]| {
            sizes.push(chunk.len());
            Ok(())
        };
        let mut sink = DocumentText::new(&mut write);
        let entry = "x".repeat(1000);
        sink.list("a", (0..1000).map(|_| entry.clone().into())).unwrap();
        sink.finish().unwrap();
        assert!(sizes.len() > 10 && sizes.iter().all(|size| *size < 2 * CHUNK), "{sizes:?}");
    }
}
