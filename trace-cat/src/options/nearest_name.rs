//! Which name a wrong name was probably meant to be.

use spec::tables::CATEGORIES;
use spec::{EVENTS, FUNCTIONS};
use strsim::osa_distance;

/// The category or event whose name is nearest to `wrong`, if one is near; for a C function, the event that records it.
pub fn nearest(wrong: &str) -> Option<&'static str> {
    if let Some(function) = FUNCTIONS.iter().find(|function| function.symbol == wrong) {
        return Some(function.event.event().name);
    }
    let categories = CATEGORIES.iter().skip(1).copied();
    nearest_of(wrong, categories.chain(EVENTS.iter().filter(|event| event.category != 0).map(|event| event.name)))
}

/// The one of `names` that is nearest to `wrong`, if one is near.
pub fn nearest_of<'a>(wrong: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    // A third of the letters may be wrong; one letter always may.
    let limit = (wrong.len() / 3).max(1);
    names
        .map(|name| (osa_distance(wrong, name), name))
        .filter(|&(distance, _)| distance <= limit)
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_suggested() {
        assert_eq!(nearest("mutx"), Some("mutex"));
        assert_eq!(nearest("cond_wiat"), Some("cond_wait"));
        assert_eq!(nearest("mutex_unlok"), Some("mutex_unlock"));
        assert_eq!(nearest("threads"), Some("thread"));
        assert_eq!(nearest("pthread_mutex_lock"), Some("mutex_lock"));
        assert_eq!(nearest("elephant"), None);
        assert_eq!(nearest(""), None);
    }
}
