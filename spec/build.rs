//! Turns `events.tsv` and `functions.tsv` into the statics of `tables.rs`.
//!
//! A wrong row fails the build, with its place: `functions.tsv:12: unknown event 'mutex_lok'`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs};

/// The rows of a table, each with its place (file and line) and its cells. A line that starts with `#` is a header.
fn rows(file: &str) -> Vec<(String, Vec<String>)> {
    println!("cargo:rerun-if-changed={file}");
    let text = fs::read_to_string(file).unwrap_or_else(|error| panic!("{file}: {error}"));
    text.lines()
        .enumerate()
        .filter(|(_, line)| !line.starts_with('#') && !line.is_empty())
        .map(|(index, line)| {
            let place = format!("{file}:{}", index + 1);
            (place, line.split('\t').map(str::to_owned).collect())
        })
        .collect()
}

/// The expression, of type `Option<Column>`, of a column's cell: `name:base` or `-`.
fn column_expression(place: &str, cell: &str) -> String {
    if cell == "-" {
        return "None".to_owned();
    }
    let (name, base) = cell.split_once(':').unwrap_or_else(|| panic!("{place}: column '{cell}' names no base"));
    let base = match base {
        "d" => "Signed",
        "u" => "Unsigned",
        "x" => "Hex",
        "t" => "Thread",
        _ => panic!("{place}: base '{base}' is none of d, u, x, t"),
    };
    format!("Some(Column {{ name: {name:?}, base: Base::{base} }})")
}

/// A number up to `limit`.
fn parse_number(place: &str, cell: &str, limit: u8) -> u8 {
    match cell.parse() {
        Ok(number) if number <= limit => number,
        _ => panic!("{place}: '{cell}' is not a number up to {limit}"),
    }
}

/// The name of the variant of a Rust enum that stands for `cell`, which is one of `known`.
fn variant(place: &str, cell: &str, known: &[&str]) -> String {
    assert!(known.contains(&cell), "{place}: '{cell}' is none of {known:?}");
    cell[..1].to_uppercase() + &cell[1..]
}

/// Writes `EVENTS` and a constant for each event and record kind, and returns the names of the events in their order.
fn write_events(out: &mut String) -> Vec<String> {
    let mut events: BTreeMap<(u8, u8), (String, Vec<String>)> = BTreeMap::new();
    for (place, row) in rows("events.tsv") {
        assert_eq!(row.len(), 11, "{place}: a row has 11 columns");
        let key = (parse_number(&place, &row[0], 13), parse_number(&place, &row[1], 99));
        let which = parse_number(&place, &row[2], 2);
        let stamp = variant(&place, &row[4], &["before", "after"]);
        let level = variant(&place, &row[5], &["always", "blocked", "failed", "waiters", "never"]);
        let columns: Vec<String> = row[6..].iter().map(|cell| column_expression(&place, cell)).collect();
        let entry = events.entry(key).or_insert_with(|| (row[3].clone(), Vec::new()));
        assert_eq!(entry.0, row[3], "{place}: the event has another name above");
        entry.1.push(format!(
            "RecordKind::new({}, {}, {which}, Stamp::{stamp}, Level::{level}, [{}])",
            key.0,
            key.1,
            columns.join(", ")
        ));
    }
    let (mut consts, mut numbers) = (String::new(), String::new());
    writeln!(out, "/// Every event of the table, ordered by category and number.").unwrap();
    writeln!(out, "pub static EVENTS: [Event; {}] = [", events.len()).unwrap();
    for (index, ((category, number), (name, kinds))) in events.iter().enumerate() {
        let upper = name.to_uppercase();
        writeln!(
            out,
            "    Event {{ category: {category}, number: {number}, name: {name:?}, kinds: &[{}] }},",
            kinds.join(", ")
        )
        .unwrap();
        writeln!(consts, "    /// `{name}` ({category}, {number}).").unwrap();
        writeln!(consts, "    pub const {upper}: EventId = EventId({index});").unwrap();
        writeln!(numbers, "    /// `{name}`.").unwrap();
        writeln!(numbers, "    pub const {upper}: (u8, u8) = ({category}, {number});").unwrap();
        for (position, kind) in kinds.iter().enumerate() {
            // A call's only record has which 0; of two records the first has 1, the second 2.
            let which = if kinds.len() == 1 { 0 } else { position + 1 };
            writeln!(consts, "    /// The record of `{name}` with which {which}.").unwrap();
            writeln!(consts, "    pub static {upper}_{which}: RecordKind = {kind};").unwrap();
        }
    }
    writeln!(out, "];\n").unwrap();
    writeln!(out, "/// Each event's place in [`EVENTS`] and each of its record kinds, by name.").unwrap();
    writeln!(out, "pub mod id {{\n    use super::*;\n{consts}}}").unwrap();
    writeln!(out, "/// Each event's category and number, by name.").unwrap();
    writeln!(out, "pub mod event_numbers {{\n{numbers}}}").unwrap();
    events.into_values().map(|(name, _)| name).collect()
}

/// Writes `FUNCTIONS`.
fn write_functions(out: &mut String, events: &[String]) {
    let rows = rows("functions.tsv");
    writeln!(out, "/// Every traced C function, in the order of `functions.tsv`.").unwrap();
    writeln!(out, "pub static FUNCTIONS: [Function; {}] = [", rows.len()).unwrap();
    let name = |cell: &str| cell.split('@').next().unwrap_or_default().to_owned();
    let mut names = BTreeMap::new();
    for (_, row) in &rows {
        *names.entry(name(&row[0])).or_insert(0) += 1;
    }
    for (place, row) in rows {
        assert!([6, 7].contains(&row.len()), "{place}: a row has 6 columns, or 7");
        let event = events
            .iter()
            .position(|name| *name == row[1])
            .unwrap_or_else(|| panic!("{place}: unknown event '{}'", row[1]));
        writeln!(
            out,
            "    Function {{ symbol: {:?}, export: {:?}, event: EventId({event}), next: {:?}, prototype: {:?} }},",
            // An old version that is the only one needs no other name.
            if row[0].contains("@@") || names[&name(&row[0])] == 1 { name(&row[0]) } else { row[0].clone() },
            row[0],
            row[3],
            row[5]
        )
        .unwrap();
    }
    writeln!(out, "];").unwrap();
}

fn main() {
    let mut out = String::new();
    let events = write_events(&mut out);
    write_functions(&mut out, &events);
    let target = Path::new(&env::var_os("OUT_DIR").expect("cargo sets OUT_DIR")).join("tables.rs");
    fs::write(target, out).expect("OUT_DIR is writable");
}
