//! What of one trace is what of another, by names: addresses differ between runs, and lines between versions.

use std::collections::BTreeMap;

use crate::report::contention::WaitBlocks;

/// The waits for all objects, or at all sites, of a name.
#[derive(Clone, Debug, Default)]
pub struct NamedWaits {
    /// The kind of the objects.
    pub kind: &'static str,
    pub name: String,
    pub blocks: WaitBlocks,
    /// Some of the time is idleness.
    pub is_idle: bool,
}

/// What has the same kind and name but for the line or the offset, by these, in OLD and NEW.
type Group = [BTreeMap<(u64, String), NamedWaits>; 2];

/// OLD and NEW of each name. Several objects of a name are added up. If a function has as many sites in both traces, the first
/// is the first, wherever its line is; else those are the same that are in the same line.
pub fn matched(old: Vec<NamedWaits>, new: Vec<NamedWaits>) -> Vec<[Option<NamedWaits>; 2]> {
    let mut groups: BTreeMap<(&str, String), Group> = BTreeMap::new();
    for (side, list) in [old, new].into_iter().enumerate() {
        for waits in list {
            let name = waits.name.as_str();
            let (function, position) = split_position(name);
            let group = groups.entry((waits.kind, function.to_owned())).or_default();
            let sum = group[side].entry((position, name.to_owned())).or_default();
            (sum.kind, sum.name) = (waits.kind, name.to_owned());
            sum.is_idle |= waits.is_idle;
            sum.blocks.merge(&waits.blocks);
        }
    }
    let mut matches = Vec::new();
    for [old, mut new] in groups.into_values() {
        if old.len() == new.len() {
            matches.extend(old.into_values().zip(new.into_values()).map(|(old, new)| [Some(old), Some(new)]));
            continue;
        }
        matches.extend(old.into_iter().map(|(key, old)| [Some(old), new.remove(&key)]));
        matches.extend(new.into_values().map(|new| [None, Some(new)]));
    }
    matches
}

/// `function file` and the line of `function file:line`, `function module` and the offset of `function module+0xoffset`; else the
/// name and 0.
fn split_position(name: &str) -> (&str, u64) {
    let line = || name.rsplit_once(':').and_then(|(place, line)| Some((place, line.parse().ok()?)));
    let offset = || name.rsplit_once("+0x").and_then(|(place, hex)| Some((place, u64::from_str_radix(hex, 16).ok()?)));
    line().or_else(offset).filter(|(place, _)| place.contains(' ')).unwrap_or((name, 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers of waits of the matches, by names.
    fn matches(old: &[(&str, u64)], new: &[(&str, u64)]) -> Vec<String> {
        let list = |names: &[(&str, u64)]| {
            let named = |&(name, waits): &(&str, u64)| {
                let mut blocks = WaitBlocks::default();
                (0..waits).for_each(|index| blocks.add(index, 5));
                NamedWaits { kind: "mutex", name: name.to_owned(), blocks, is_idle: false }
            };
            names.iter().map(named).collect::<Vec<_>>()
        };
        let text = |side: &Option<NamedWaits>| {
            side.as_ref().map_or("-".to_owned(), |waits| format!("{} {}", waits.name, waits.blocks.total().waits))
        };
        let found = matched(list(old), list(new));
        // The order of the objects in the traces does not matter.
        let reversed = |names| list(names).into_iter().rev().collect();
        let lines = |found: &[[Option<NamedWaits>; 2]]| -> Vec<String> {
            found.iter().map(|[old, new]| format!("{} = {}", text(old), text(new))).collect()
        };
        assert_eq!(lines(&matched(reversed(old), reversed(new))), lines(&found));
        lines(&found)
    }

    #[test]
    fn objects_are_the_same_by_name() {
        let found = matches(&[("a", 2), ("a", 1), ("gone", 1)], &[("new", 1), ("a", 4), ("a", 1)]);
        assert_eq!(found, ["a 3 = a 5", "gone 1 = -", "- = new 1"]);
        // Names of the user's own.
        let found = matches(&[("shard #1", 1), ("shard #2", 2)], &[("shard #2", 3), ("shard #1", 4)]);
        assert_eq!(found, ["shard #1 1 = shard #1 4", "shard #2 2 = shard #2 3"]);
    }

    #[test]
    fn lines_and_offsets_may_move() {
        let found = matches(&[("f a.c:9", 1), ("f a.c:20", 2)], &[("f a.c:11", 3), ("f a.c:22", 4)]);
        assert_eq!(found, ["f a.c:9 1 = f a.c:11 3", "f a.c:20 2 = f a.c:22 4"]);
        let found = matches(&[("f a.c:9", 1), ("f a.c:20", 2)], &[("f a.c:20", 3)]);
        assert_eq!(found, ["f a.c:9 1 = -", "f a.c:20 2 = f a.c:20 3"]);
        assert_eq!(matches(&[("f a+0x12", 1)], &[("f a+0x2f", 3)]), ["f a+0x12 1 = f a+0x2f 3"]);
        assert_eq!(matches(&[("a+0x12", 1)], &[("a+0x2f", 3)]).len(), 2);
        assert_eq!(matches(&[("f a.c:9", 1)], &[("f b.c:9", 3)]).len(), 2);
    }
}
