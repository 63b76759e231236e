//! The data of the page: the JSON document, shortened, with names of threads, histograms and critical paths.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::{Map, Value, json};

use super::path_strip::{PATHS_MAX, strips};
use crate::report::contention::DurationHistogram;
use crate::report::page::object_rows::{ListedObjects, ObjectRow};
use crate::report::page::place_sums::{PlaceSum, place_sums};
use crate::report::page::view::ReportView;

/// The most entries of a list within an entry.
pub const INNER_MAX: usize = 8;
/// The same for what is on a critical path.
const PATH_LIST_MAX: usize = 100;
/// The most characters of a name.
const NAME_MAX: usize = 300;
/// How many objects have a histogram.
const HISTOGRAMS: usize = 9;
/// Lists that are complete or not at all: a deadlock has all its threads.
const COMPLETE_LISTS: [&str; 4] = ["threads", "holds", "edges", "objects"];
/// How many places an object has.
const PLACES_MAX: usize = 3;
/// What the page does not show.
const UNUSED: [&str; 1] = ["worst"];
/// The most frames of a stack.
const STACK_MAX: usize = 64;
/// The keys of LWPs.
const LWPS: [&str; 4] = ["thread", "waiter", "holder", "held_by"];

/// At most `rows` entries of each list of the document. `left_out` has how many more there are.
pub fn shortened(view: &ReportView, listed: &ListedObjects, document: &Map<String, Value>, rows: usize) -> Value {
    let mut left_out = document["left_out"].as_object().cloned().unwrap_or_default();
    let mut data = Map::new();
    for (key, value) in document.iter().filter(|(key, _)| *key != "left_out") {
        let Value::Array(entries) = value else {
            data.insert(key.clone(), value.clone());
            continue;
        };
        // The page shows those that it has strips of.
        let rows = if key == "critical_path" { rows.min(PATHS_MAX) } else { rows };
        let less = entries.len().saturating_sub(rows) as u64;
        if less > 0 {
            let before = left_out.get(key).and_then(Value::as_u64).unwrap_or(0);
            left_out.insert(key.clone(), (before + less).into());
        }
        data.insert(key.clone(), entries.iter().take(rows).map(entry).collect());
    }
    data.insert("left_out".to_owned(), left_out.into());
    data.insert("histograms".to_owned(), histograms(view, listed));
    data.insert("places".to_owned(), places(view, listed, rows));
    data.insert("paths".to_owned(), strips(view, listed));
    let mut data = Value::from(data);
    let mut lwps = BTreeSet::new();
    add_lwps(&data, &mut lwps);
    data["names"] = names(view, &lwps);
    data["missing_names"] = view.missing_names().into();
    data
}

/// An entry of a list without what is too long.
fn entry(value: &Value) -> Value {
    match value {
        Value::String(text) => short(text).into(),
        Value::Array(entries) => entries.iter().map(entry).collect(),
        Value::Object(fields) => {
            let fields = fields.iter().filter(|(key, _)| !UNUSED.contains(&key.as_str()));
            let field = |(key, value): (&String, &Value)| match value {
                Value::Array(entries) if !COMPLETE_LISTS.contains(&key.as_str()) => {
                    let max = match key.as_str() {
                        "stack" => STACK_MAX,
                        key if key.starts_with("by_") => PATH_LIST_MAX,
                        _ => INNER_MAX,
                    };
                    (key.clone(), entries.iter().take(max).map(entry).collect())
                }
                _ => (key.clone(), entry(value)),
            };
            fields.map(field).collect::<Map<String, Value>>().into()
        }
        _ => value.clone(),
    }
}

/// The beginning and the end of a name.
fn short(text: &str) -> String {
    if text.len() <= NAME_MAX || text.chars().count() <= NAME_MAX {
        return text.to_owned();
    }
    let characters: Vec<char> = text.chars().collect();
    let (begin, end) = (&characters[..NAME_MAX / 2], &characters[characters.len() - NAME_MAX / 2 + 1..]);
    begin.iter().chain(&['…']).chain(end).collect()
}

/// How many waits there were for the first objects, by the power of two that their nanoseconds begin at.
fn histograms(view: &ReportView, listed: &ListedObjects) -> Value {
    let rows = listed.rows.iter().map(|row| (row, row.figures(view).wait));
    let waited = rows.filter(|(_, wait)| wait.count() > 0);
    let histogram =
        |(row, wait): (&ObjectRow, DurationHistogram)| (view.object_name(row.first()), json!(wait.powers_of_two()));
    waited.take(HISTOGRAMS).map(histogram).collect::<Map<String, Value>>().into()
}

/// Where the objects were held while others waited, or where waits for them were ended, most first: threads, site, and sum.
fn places(view: &ReportView, listed: &ListedObjects, rows: usize) -> Value {
    let places = |row: &ObjectRow| {
        let figures = row.figures(view);
        let sums = if row.has_blame(view) {
            place_sums(view, &figures.holders())
        } else {
            place_sums(view, figures.wakers.in_order())
        };
        let place = |sum: &PlaceSum| json!([short(&sum.threads(view)), sum.place.as_deref().map(short), sum.sum]);
        let places: Vec<Value> = sums.iter().take(PLACES_MAX).map(place).collect();
        (!places.is_empty()).then(|| (view.object_name(row.first()), places.into()))
    };
    listed.rows.iter().take(rows).filter_map(places).collect::<Map<String, Value>>().into()
}

fn add_lwps(value: &Value, lwps: &mut BTreeSet<u64>) {
    match value {
        Value::Array(entries) => entries.iter().for_each(|entry| add_lwps(entry, lwps)),
        Value::Object(fields) => {
            lwps.extend(LWPS.iter().filter_map(|key| fields.get(*key)?.as_u64()));
            fields.values().for_each(|value| add_lwps(value, lwps));
        }
        _ => {}
    }
}

/// What threads are called, by LWP.
fn names(view: &ReportView, lwps: &BTreeSet<u64>) -> Value {
    let threads: HashMap<u64, u32> =
        (0..).zip(&view.analysis.threads).map(|(index, thread)| (u64::from(thread.lwp), index)).collect();
    let name = |lwp: &u64| Some((lwp.to_string(), short(&view.group_name(*threads.get(lwp)?)?)));
    let names: BTreeMap<String, String> = lwps.iter().filter_map(name).collect();
    json!(names)
}
