//! Bounded excerpts of long texts and lists, so that the message of a failed test stays readable.

use std::fmt::{Debug, Display};

/// Lines of a text that are printed of its beginning, and of its end.
const EXCERPT_LINES: usize = 50;
/// Bytes of one line that are printed.
const LINE_BYTES: usize = 400;
/// Items of a list that are printed before the first difference, and from there on.
const ITEMS_BEFORE: usize = 3;
const ITEMS_AFTER: usize = 10;

/// The first and the last lines of a text, each shortened, with a line between them that counts those left out.
pub fn excerpt(text: &str) -> String {
    let lines: Vec<String> = text.lines().map(|line| line.chars().take(LINE_BYTES).chain(['\n']).collect()).collect();
    if lines.len() <= 2 * EXCERPT_LINES {
        return lines.concat();
    }
    let (first, last) = (&lines[..EXCERPT_LINES], &lines[lines.len() - EXCERPT_LINES..]);
    format!("{}[{} lines left out]\n{}", first.concat(), lines.len() - 2 * EXCERPT_LINES, last.concat())
}

/// Fails unless two lists are equal, and prints what lies around the first difference.
#[track_caller]
pub fn assert_same_items<T: PartialEq + Debug>(found: &[T], expected: &[T], what: impl Display) {
    if found == expected {
        return;
    }
    let first = found.iter().zip(expected).take_while(|(found, expected)| found == expected).count();
    let around = |items: &[T]| {
        let from = first.saturating_sub(ITEMS_BEFORE);
        let items = items.iter().enumerate().skip(from).take(ITEMS_BEFORE + ITEMS_AFTER);
        items.map(|(index, item)| format!("  {index}: {item:?}\n")).collect::<String>()
    };
    panic!(
        "{what}: the first difference is at item {first}; found {}:\n{}expected {}:\n{}",
        found.len(),
        around(found),
        expected.len(),
        around(expected)
    );
}

/// As [`assert_same_items`], of the lines of two texts.
#[track_caller]
pub fn assert_same_lines(found: &str, expected: &str, what: impl Display) {
    assert_same_items(&found.lines().collect::<Vec<_>>(), &expected.lines().collect::<Vec<_>>(), what);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_excerpt_is_bounded() {
        assert_eq!(excerpt("a\nb\n"), "a\nb\n");
        let long = excerpt(&format!("{}\n", "x".repeat(1000)).repeat(60_000));
        assert_eq!(long.lines().count(), 2 * EXCERPT_LINES + 1);
        assert!(long.contains("\n[59900 lines left out]\n") && long.len() < 50_000);
    }

    #[test]
    fn a_difference_is_printed_with_what_lies_around_it() {
        let expected: Vec<u32> = (0..60_000).collect();
        let mut found = expected.clone();
        found.remove(1000);
        assert_same_items(&expected, &expected, "equal");
        let message = std::panic::catch_unwind(|| assert_same_items(&found, &expected, "numbers")).unwrap_err();
        let message = message.downcast_ref::<String>().unwrap();
        assert!(
            message.starts_with("numbers: the first difference is at item 1000; found 59999:\n  997: 997\n"),
            "{message}"
        );
        assert!(message.contains("\n  1000: 1001\n") && message.contains("\n  1000: 1000\n"), "{message}");
        assert_eq!(message.lines().count(), 2 + 2 * (ITEMS_BEFORE + ITEMS_AFTER));
    }
}
