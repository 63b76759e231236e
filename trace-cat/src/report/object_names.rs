//! Names of objects as the source of the program has them.

use std::collections::HashMap;

use super::contention::ObjectState;
use super::trace_names::TraceNames;

/// The name of each object: the user's, or else the one that the program has given it (`threadt_name`), or that of the static
/// variable that it is (`queue_lock`, `table.locks[3]`), or of the place where it was initialised (`mutex of new_queue queue.c:41`)
/// or first used (`mutex first used in worker queue.c:88`). If a program has several of a name, the second one is
/// `mutex of new_queue queue.c:41 #2`.
#[derive(Debug, Default)]
pub struct ObjectNames {
    names: HashMap<u32, SourceName>,
    /// How many objects have been asked for.
    known: u32,
    places: HashMap<u32, Option<String>>,
    counts: HashMap<(u32, String), u32>,
}

/// How many changes of the mappings are looked at for an object's names.
const CHANGES_MAX: usize = 256;

/// The name of an object whose address was in a library that the program closed, and later in others: no record shows where one
/// variable ended and the next began. The names are in the order of time.
fn of_all(names: impl Iterator<Item = String>) -> Option<String> {
    const NAMED: usize = 3;
    let mut different: Vec<String> = Vec::new();
    for name in names {
        if !different.contains(&name) {
            different.push(name);
        }
    }
    let has_others = different.len() > NAMED;
    different.truncate(NAMED);
    different.extend(has_others.then(|| "others".to_owned()));
    Some(different.join(", then ")).filter(|text| !text.is_empty())
}

/// A name, whose end may be a number.
#[derive(Debug)]
struct SourceName {
    text: String,
    /// How many bytes it has without the number.
    length: u32,
}

impl ObjectNames {
    /// The name of an object, as far as symbols give any.
    pub fn get(&self, index: u32) -> Option<&str> {
        self.names.get(&index).map(|name| name.text.as_str())
    }

    /// The name without the number that tells the object apart from others of that name.
    pub fn without_number(&self, index: u32) -> Option<&str> {
        self.names.get(&index).map(|name| &name.text[..name.length as usize])
    }

    /// Names the objects that are among the first `count` and have no name yet.
    pub fn extend(&mut self, names: TraceNames, count: u32) {
        let objects = &names.analysis.objects;
        for number in (self.known..count).filter(|number| objects.first(*number) == *number) {
            let name = self.name_of(names, &objects[number as usize]);
            name.into_iter().for_each(|name| drop(self.names.insert(number, name)));
        }
        self.known = self.known.max(count);
    }

    fn name_of(&mut self, names: TraceNames, object: &ObjectState) -> Option<SourceName> {
        let TraceNames { analysis, recorded, symbols } = names;
        let variable = || {
            let process = &analysis.processes[object.process as usize];
            let program = recorded.get(&process.pid)?.program(process.image)?;
            let first_use = analysis.sites.sites[object.site as usize].time;
            let of = |time: u64| symbols.variable_name(&program.maps, (object.address, time), object.kind.size());
            let first = of(first_use)?;
            let last_use = object.last_use();
            let changes = program.maps.changes_of_module_before(object.address, first_use).into_iter();
            let within = changes.filter(|time| (first_use..last_use).contains(time)).take(CHANGES_MAX);
            let later = within.chain(program.maps.has_changes().then_some(last_use)).filter_map(of);
            of_all(std::iter::once(first).chain(later))
        };
        let places = &mut self.places;
        let from_place = || {
            let place = places.entry(object.site).or_insert_with(|| names.place(object.site)).as_ref()?;
            if object.is_initialised && symbols.aliases.has_site(place) {
                return Some(place.clone());
            }
            let relation = if object.is_initialised { "of" } else { "first used in" };
            Some(format!("{} {relation} {place}", object.kind_name()))
        };
        // The ID of a text is the same in all processes, and a process may have its parent's names.
        let given = || {
            let own = recorded.get(&analysis.processes[object.process as usize].pid).into_iter();
            let mut all = own.chain(recorded.values()).filter(|_| object.name != 0);
            all.find_map(|process| process.names.get(&object.name).cloned())
        };
        let alias = symbols.aliases.of_object(object.address).map(str::to_owned);
        let name = alias.or_else(given).or_else(variable).or_else(from_place)?;
        let count = self.counts.entry((object.process, name.clone())).or_default();
        *count += 1;
        let length = name.len() as u32;
        Some(SourceName { text: if *count == 1 { name } else { format!("{name} #{count}") }, length })
    }
}

#[cfg(test)]
mod tests {
    use super::of_all;

    #[test]
    fn variables_of_libraries_at_one_address_are_all_named() {
        let name = |names: &[&str]| of_all(names.iter().map(|name| (*name).to_owned()));
        assert_eq!(name(&[]), None);
        assert_eq!(name(&["xlock", "xlock"]).unwrap(), "xlock");
        assert_eq!(name(&["xlock", "ylock", "xlock"]).unwrap(), "xlock, then ylock");
        assert_eq!(name(&["a", "b", "c", "a", "d", "e"]).unwrap(), "a, then b, then c, then others");
    }
}
