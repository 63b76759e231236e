//! Prints the manual page `thread_trace(5)`: the prose of `man/thread_trace.5.in`, with its tables filled in from
//! `events.tsv` and `functions.tsv`.
//!
//! ```text
//! cargo run -q -p spec --example thread_trace_man | man -l -
//! ```

use std::fmt::Write as _;
use std::io::{self, Write as _};

use spec::tables::CATEGORIES;
use spec::{Base, Column, EVENTS, FUNCTIONS, RecordKind, Stamp};

/// The page without its tables. A line `@NAME@` stands for one of them.
const TEMPLATE: &str = include_str!("../man/thread_trace.5.in");

/// In a table's cell: neither stretched nor hyphenated, so that what a reader copies is what the table says.
const RAGGED: &str = ".ad l\n.nh";

/// Text as roff takes it literally.
fn literal(text: &str) -> String {
    text.replace('\\', "\\e").replace('-', "\\-")
}

/// A column as in `events.tsv`: `mutex:x`.
fn column(column: Column) -> String {
    let base = match column.base {
        Base::Signed => 'd',
        Base::Unsigned => 'u',
        Base::Hex => 'x',
        Base::Thread => 't',
    };
    format!("{}:{base}", literal(column.name))
}

/// What stands in a1 to a5 of a record; an empty column before the last used one is shown as 0.
fn columns(kind: &RecordKind) -> String {
    let used = kind.columns.iter().rposition(Option::is_some).map_or(0, |last| last + 1);
    if used == 0 {
        return "\\-".to_owned();
    }
    let cells = kind.columns[..used].iter().map(|cell| cell.map_or("0".to_owned(), column));
    cells.collect::<Vec<_>>().join(", ")
}

/// A table for each category: its events, each record of theirs with its columns.
fn events() -> String {
    let mut out = String::new();
    for (category, name) in CATEGORIES.iter().enumerate() {
        writeln!(out, ".SS {category} {name}").unwrap();
        let events = EVENTS.iter().filter(|event| usize::from(event.category) == category);
        let rows: Vec<String> = events
            .flat_map(|event| event.kinds.iter().map(move |kind| (event, kind)))
            .map(|(event, kind)| {
                let stamp = match kind.stamp {
                    Stamp::Before => 'b',
                    Stamp::After => 'a',
                };
                let (number, which, name) = (event.number, kind.which, event.name);
                format!("{number}\t{name}\t{which}\t{stamp}\tT{{\n{RAGGED}\n{}\nT}}", columns(kind))
            })
            .collect();
        if rows.is_empty() {
            writeln!(out, "Event number, which and arguments are the program's own.").unwrap();
            continue;
        }
        writeln!(out, ".TS\nl l l l l\nn l n l lx.\nevent2\tname\twhich\tstamp\ta1 to a5\n_").unwrap();
        for row in rows {
            writeln!(out, "{row}").unwrap();
        }
        writeln!(out, ".TE").unwrap();
    }
    out
}

/// Each event with the C functions that record it. Category 6 shares those of category 2.
fn functions() -> String {
    let mut out = String::from(".TS\nl l\nl lx.\nevent\tfunctions\n_\n");
    for (index, event) in EVENTS.iter().enumerate() {
        let symbols: Vec<&str> = FUNCTIONS
            .iter()
            .filter(|function| function.event.index() == index)
            .map(|function| function.symbol)
            .collect();
        if !symbols.is_empty() {
            writeln!(out, "{}\tT{{\n{RAGGED}\n{}\nT}}", event.name, symbols.join(", ")).unwrap();
        }
    }
    out + ".TE\n"
}

fn page() -> String {
    let mut out = String::new();
    for line in TEMPLATE.lines() {
        match line {
            "@EVENTS@" => out += &events(),
            "@FUNCTIONS@" => out += &functions(),
            line => {
                out += &line.replace("@VERSION@", env!("CARGO_PKG_VERSION"));
                out.push('\n');
            }
        }
    }
    out
}

fn main() -> io::Result<()> {
    io::stdout().write_all(page().as_bytes())
}
