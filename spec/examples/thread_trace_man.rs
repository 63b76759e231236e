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

/// The page without its tables. A line `@NAME@` stands for the table of that name.
const TEMPLATE: &str = include_str!("../man/thread_trace.5.in");

/// Requests at the start of a table's cell: its text is neither stretched nor hyphenated, so that readers can copy it.
const RAGGED: &str = ".ad l\n.nh";

/// Escapes text for roff.
fn escape_roff(text: &str) -> String {
    text.replace('\\', "\\e").replace('-', "\\-")
}

/// The cell of a column, as in `events.tsv`: `mutex:x`.
fn column_cell(column: Column) -> String {
    let base = match column.base {
        Base::Signed => 'd',
        Base::Unsigned => 'u',
        Base::Hex => 'x',
        Base::Thread => 't',
    };
    format!("{}:{base}", escape_roff(column.name))
}

/// The cell of a record's columns a1 to a5. An empty column before the last one with a name is shown as 0.
fn columns_cell(kind: &RecordKind) -> String {
    let used = kind.columns.iter().rposition(Option::is_some).map_or(0, |last| last + 1);
    if used == 0 {
        return "\\-".to_owned();
    }
    let cells = kind.columns[..used].iter().map(|cell| cell.map_or("0".to_owned(), column_cell));
    cells.collect::<Vec<_>>().join(", ")
}

/// A table for each category: its events, with the columns of each of their records.
fn event_tables() -> String {
    let mut out = String::new();
    for (category, name) in CATEGORIES.iter().enumerate() {
        writeln!(out, ".SS {category} {name}").unwrap();
        let events = EVENTS.iter().filter(|event| usize::from(event.category) == category);
        let rows: Vec<String> = events
            .flat_map(|event| event.kinds.iter().map(move |kind| (event, kind)))
            .map(|(event, kind)| {
                let stamp = match kind.stamp {
                    Stamp::Before => "before",
                    Stamp::After => "after",
                };
                let (number, which, name) = (event.number, kind.which, event.name);
                format!("{number}\t{name}\t{which}\t{stamp}\tT{{\n{RAGGED}\n{}\nT}}", columns_cell(kind))
            })
            .collect();
        writeln!(out, ".TS\nl l l l l\nn l n l lx.\nevent2\tname\twhich\tstamp\ta1 to a5\n_").unwrap();
        for row in rows {
            writeln!(out, "{row}").unwrap();
        }
        writeln!(out, ".TE").unwrap();
    }
    out
}

/// The table of the C functions that each event records. Category 6 shares the functions of category 2.
fn function_table() -> String {
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
            "@EVENTS@" => out += &event_tables(),
            "@FUNCTIONS@" => out += &function_table(),
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
