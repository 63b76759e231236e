//! Names of objects as the source of the program has them.

use std::collections::HashMap;

use crate::report::contention::{Analysis, ObjectState};
use crate::report::recorded_process::RecordedProcess;
use crate::symbols::Symbolizer;

/// The name of each object that has one: of the static variable that it is (`queue_lock`, `table.locks[3]`), or else of the place where it was
/// initialised (`mutex of new_queue queue.c:41`) or first used (`mutex first used in worker queue.c:88`), unless the user has another. If a program has
/// several of a name, the second one is `mutex of new_queue queue.c:41 #2`. `place` names a site.
pub fn object_names(
    analysis: &Analysis,
    recorded: &HashMap<u32, RecordedProcess>,
    symbols: &Symbolizer,
    place: impl Fn(u32) -> Option<String>,
) -> HashMap<u32, String> {
    let variable = |object: &ObjectState| {
        let process = &analysis.processes[object.process as usize];
        let program = recorded.get(&process.pid)?.program(process.image)?;
        symbols.variable_name(&program.maps, object.address, object.kind.size())
    };
    let mut places: HashMap<u32, Option<String>> = HashMap::new();
    let mut counts: HashMap<(u32, String), u32> = HashMap::new();
    let mut name_of = |object: &ObjectState| {
        let from_place = || {
            let place = places.entry(object.site).or_insert_with(|| place(object.site)).as_ref()?;
            if object.is_initialised && symbols.aliases.has_site(place) {
                return Some(place.clone());
            }
            let relation = if object.is_initialised { "of" } else { "first used in" };
            Some(format!("{} {relation} {place}", object.kind.name()))
        };
        let alias = symbols.aliases.of_object(object.address).map(str::to_owned);
        let name = alias.or_else(|| variable(object)).or_else(from_place)?;
        let count = counts.entry((object.process, name.clone())).or_default();
        *count += 1;
        Some(if *count == 1 { name } else { format!("{name} #{count}") })
    };
    let named = |number: u32| Some((number, name_of(&analysis.objects[number as usize])?));
    analysis.objects.numbers().filter_map(named).collect()
}

#[cfg(test)]
mod tests {
    use super::super::sample_view::{INFO, SampleView};

    #[test]
    fn objects_are_named_by_where_they_were_initialised_or_first_used() {
        let lines = "\
            1:1:02:01:0:0x10:0:0:0:0x1500\n2:1:02:01:0:0x20:0:0:0:0x1500\n\
            3:1:02:02:1:0x30:0:0:0:0x1600\n4:1:02:02:2:0:0:0:0:0\n\
            5:1:04:01:0:0x40:0:1:0:0\n6:1:04:02:1:0x40:1:0:0:0x1700\n7:1:04:02:2:0:0:0:0:0\n\
            8:1:02:04:0:0x50:0:0:0:0\n";
        let sample = SampleView::new(lines, INFO);
        let view = sample.view();
        let names: Vec<Option<&str>> = (0..5).map(|index| view.source_name(index)).collect();
        let expected = [
            Some("mutex of a b+0xa00"),
            Some("mutex of a b+0xa00 #2"),
            Some("mutex first used in a b+0xb00"),
            // The record of its initialisation has no site.
            Some("sema first used in a b+0xc00"),
            None,
        ];
        assert_eq!(names, expected);
        assert_eq!(view.object_label(3), "sema first used in a b+0xc00 0x40");
        assert_eq!(view.object_label(4), "mutex 1:0x50#1");
    }
}
