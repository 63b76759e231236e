//! Numbers with what they count.

use std::fmt::Display;

/// `1 file`, `2 files`: a number and its noun, or `one` and `more` of whatever the sentence goes on with.
pub fn counted<Number: PartialEq + From<u8> + Display>(number: Number, one: &str, more: &str) -> String {
    let noun = if number == Number::from(1) { one } else { more };
    format!("{number} {noun}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_have_their_noun() {
        assert_eq!(counted(1usize, "file", "files"), "1 file");
        assert_eq!(counted(0u64, "file", "files"), "0 files");
    }
}
