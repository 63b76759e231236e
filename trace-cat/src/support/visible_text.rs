//! Text of others, as people may safely see it.

use std::borrow::Cow;

/// A text in which what would change the lines or the terminal is escaped: names of files, programs and threads may hold newlines,
/// commands for a terminal, and characters that reverse the text behind them. Quotes and backslashes stay as they are.
pub fn visible(text: &str) -> Cow<'_, str> {
    if !text.contains(is_hidden) {
        return Cow::Borrowed(text);
    }
    let shown = |letter: char| match is_hidden(letter) {
        true => letter.escape_default().to_string(),
        false => letter.to_string(),
    };
    Cow::Owned(text.chars().map(shown).collect())
}

/// [`visible`] for bytes, of which those that are no UTF-8 are shown as U+FFFD.
pub fn visible_bytes(bytes: &[u8]) -> String {
    visible(&String::from_utf8_lossy(bytes)).into_owned()
}

/// Whether a character has no shape of its own but changes how others are shown: control characters, separators of lines and
/// paragraphs, and marks of the direction of text.
pub fn is_hidden(letter: char) -> bool {
    let is_mark = matches!(letter, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    letter.is_control() || is_mark || matches!(letter, '\u{2028}' | '\u{2029}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_changes_other_text_is_escaped() {
        assert_eq!(visible_bytes(b"queue's \\ \"lock\" \xff"), "queue's \\ \"lock\" \u{fffd}");
        assert_eq!(visible("a\nb\u{1b}[m\u{202e}c\u{e9}"), r"a\nb\u{1b}[m\u{202e}c".to_owned() + "\u{e9}");
    }
}
