//! The right word for a wrong one.

use spec::tables::CATEGORIES;
use spec::{EVENTS, FUNCTIONS};

/// The category or event whose name is closest to `wrong`, if one is close; of a C function, the event it records.
pub fn nearest(wrong: &str) -> Option<&'static str> {
    if let Some(function) = FUNCTIONS.iter().find(|function| function.symbol == wrong) {
        return Some(function.event.event().name);
    }
    let categories = CATEGORIES.iter().skip(1).copied();
    let names = categories.chain(EVENTS.iter().filter(|event| event.category != 0).map(|event| event.name));
    // A third of the letters may be wrong, a single one always.
    let most = (wrong.len() / 3).max(1);
    names
        .map(|name| (distance(wrong, name), name))
        .filter(|&(far, _)| far <= most)
        .min_by_key(|&(far, _)| far)
        .map(|(_, name)| name)
}

/// How many letters have to be inserted, removed, replaced or swapped with their neighbour to make `b` of `a`.
fn distance(a: &str, b: &str) -> usize {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut before: Vec<usize> = Vec::new();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for i in 0..a.len() {
        let mut next = vec![i + 1];
        for j in 0..b.len() {
            let replaced = row[j] + usize::from(a[i] != b[j]);
            let mut least = replaced.min(row[j + 1] + 1).min(next[j] + 1);
            if i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j] {
                least = least.min(before[j - 1] + 1);
            }
            next.push(least);
        }
        before = std::mem::replace(&mut row, next);
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances() {
        for (a, b, expected) in
            [("", "abc", 3), ("abc", "abc", 0), ("abc", "acb", 1), ("mutx", "mutex", 1), ("xyz", "abc", 3)]
        {
            assert_eq!(distance(a, b), expected, "{a} {b}");
            assert_eq!(distance(b, a), expected, "{b} {a}");
        }
    }

    #[test]
    fn the_right_word_is_found() {
        assert_eq!(nearest("mutx"), Some("mutex"));
        assert_eq!(nearest("cond_wiat"), Some("cond_wait"));
        assert_eq!(nearest("mutex_unlok"), Some("mutex_unlock"));
        assert_eq!(nearest("threads"), Some("thread"));
        assert_eq!(nearest("pthread_mutex_lock"), Some("mutex_lock"));
        assert_eq!(nearest("elephant"), None);
        assert_eq!(nearest(""), None);
    }
}
