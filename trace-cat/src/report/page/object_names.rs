//! Names of objects as the source of the program has them.

use std::collections::HashMap;

use crate::report::contention::{Analysis, ObjectState};
use crate::report::recorded_process::RecordedProcess;
use crate::symbols::Symbolizer;

/// The name of each object: of the static variable that it is (`queue_lock`, `table.locks[3]`), or else of the place where it was
/// initialised (`mutex of new_queue queue.c:41`) or first used (`mutex first used in worker queue.c:88`), unless the user has another. If a program has
/// several of a name, the second one is `mutex of new_queue queue.c:41 #2`. `place` names a site.
pub fn object_names(
    analysis: &Analysis,
    recorded: &HashMap<u32, RecordedProcess>,
    symbols: &Symbolizer,
    place: impl Fn(u32) -> Option<String>,
) -> Vec<Option<String>> {
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
    analysis.objects.iter().map(&mut name_of).collect()
}
