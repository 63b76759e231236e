//! The texts of a table, each once.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use ::parquet::data_type::ByteArray;
use foldhash::fast::RandomState;

use super::row::TextId;

/// Texts by their numbers, for those who write them.
#[derive(Clone, Debug)]
pub struct SharedTexts(Arc<RwLock<Vec<ByteArray>>>);

/// The numbers of texts.
#[derive(Debug)]
pub struct TextNumbers {
    numbers: HashMap<String, TextId, RandomState>,
    pub texts: SharedTexts,
}

impl TextNumbers {
    pub fn new() -> TextNumbers {
        // Nothing has the number 0.
        let texts = SharedTexts(Arc::new(RwLock::new(vec![ByteArray::from("")])));
        TextNumbers { numbers: HashMap::default(), texts }
    }

    /// The number of a text.
    pub fn number(&mut self, text: &str) -> TextId {
        if let Some(known) = self.numbers.get(text) {
            return *known;
        }
        let number = self.add(text);
        self.numbers.insert(text.to_owned(), number);
        number
    }

    /// The text of a number.
    pub fn text(&self, number: TextId) -> String {
        let texts = self.texts.0.read().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(texts[number as usize].data()).into_owned()
    }

    /// A number for a text that has none, and that nobody will look for.
    pub fn add(&mut self, text: &str) -> TextId {
        let mut texts = self.texts.0.write().unwrap_or_else(PoisonError::into_inner);
        texts.push(ByteArray::from(text.as_bytes().to_vec()));
        (texts.len() - 1) as TextId
    }
}

impl SharedTexts {
    /// Makes `texts` those of these numbers.
    pub fn copy(&self, numbers: &[TextId], texts: &mut Vec<ByteArray>) {
        let all = self.0.read().unwrap_or_else(PoisonError::into_inner);
        texts.clear();
        texts.extend(numbers.iter().map(|number| all[*number as usize].clone()));
    }
}
