//! A table of the report as comma-separated values: a line of names, then a line for each row, with the figures of the JSON document.
//!
//! Durations are nanoseconds; what is not known is empty. Quotes are those of RFC 4180.

use std::borrow::Cow;

use serde_json::Value;

use super::document::for_each_row;
use super::view::ReportView;
use crate::options::ReportTable;

/// The columns of a table, as paths in the row of the document; a column's name has an underscore for the slash.
fn columns(table: ReportTable) -> &'static [&'static str] {
    match table {
        ReportTable::Object => &[
            "object",
            "kind",
            "name",
            "pid",
            "address",
            "site",
            "calls",
            "waits",
            "waited",
            "wait/mean",
            "wait/p50",
            "wait/p90",
            "wait/p99",
            "wait/max",
            "holds",
            "held",
            "hold/mean",
            "hold/p50",
            "hold/p90",
            "hold/p99",
            "hold/max",
            "handoff",
            "unknown",
            "max_waiters",
            "failed_tries",
            "timeouts",
            "owner_changes",
            "wasted_signals",
            "others",
            "lock",
        ],
        ReportTable::Thread => {
            &["thread", "pid", "name", "start", "begin", "end", "contention", "idleness", "waits", "caused"]
        }
        ReportTable::Site => &["site", "calls", "waits", "contention", "idleness", "held", "blamed"],
        ReportTable::Pair => &["waiter", "holder", "object", "waits", "waited"],
    }
}

/// Appends the first `top` rows of a table.
pub fn append_csv(view: &ReportView, table: ReportTable, top: usize, out: &mut Vec<u8>) {
    let columns = columns(table);
    append_line(columns.iter().map(|column| Cow::Owned(column.replace('/', "_"))), out);
    for_each_row(view, table, top, |row| append_line(columns.iter().map(|column| cell(&row, column)), out));
}

/// What a row has at a path. `Value::pointer` would make two strings for each.
fn cell<'a>(row: &'a Value, path: &str) -> Cow<'a, str> {
    match path.split('/').try_fold(row, |value, key| value.get(key)) {
        None | Some(Value::Null) => Cow::Borrowed(""),
        Some(Value::String(text)) => Cow::Borrowed(text),
        Some(value) => Cow::Owned(value.to_string()),
    }
}

fn append_line<'a>(values: impl Iterator<Item = Cow<'a, str>>, out: &mut Vec<u8>) {
    for (index, value) in values.enumerate() {
        if index > 0 {
            out.push(b',');
        }
        out.extend_from_slice(quoted(value).as_bytes());
    }
    out.push(b'\n');
}

/// A value, in quotes if it needs them.
fn quoted(value: Cow<str>) -> Cow<str> {
    let needs_quotes = value.bytes().any(|byte| matches!(byte, b',' | b'"' | b'\r' | b'\n'));
    if needs_quotes { Cow::Owned(format!("\"{}\"", value.replace('"', "\"\""))) } else { value }
}

#[cfg(test)]
mod tests {
    use super::super::sample_view::{INFO, SampleView, WAITS};
    use super::super::tables::sites;
    use super::*;
    use crate::report::contention::Knowledge;

    fn table(table: ReportTable, top: usize) -> String {
        let sample = SampleView::new(WAITS, INFO);
        let mut out = Vec::new();
        append_csv(&sample.view(), table, top, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn values_with_separators_are_quoted() {
        let values = ["plain", "", "a,b", "a\"b", "a\nb", "f(int, char) a.cc:5"].map(|value| quoted(value.into()));
        assert_eq!(values, ["plain", "", "\"a,b\"", "\"a\"\"b\"", "\"a\nb\"", "\"f(int, char) a.cc:5\""]);
    }

    #[test]
    fn a_table_has_exact_figures_and_nothing_for_unknown_ones() {
        let objects = table(ReportTable::Object, usize::MAX);
        let [names, row] = objects.lines().collect::<Vec<_>>()[..] else { panic!("{objects}") };
        let value =
            |name: &str| row.split(',').nth(names.split(',').position(|column| column == name).unwrap()).unwrap();
        let got = ["object", "waits", "waited", "wait_max", "handoff", "wasted_signals", "others"].map(value);
        assert_eq!(got, ["1:0x10#1", "2", "60", "30", "10", "", "0"]);
        for (kind, first) in [
            (ReportTable::Pair, "waiter,holder,object,waits,waited"),
            (ReportTable::Site, "site,calls,waits,contention,idleness,held,blamed"),
            (ReportTable::Thread, "thread,pid,name,start,begin,end,contention,idleness,waits,caused"),
        ] {
            let text = table(kind, usize::MAX);
            assert!(text.lines().next() == Some(first) && text.lines().count() > 2, "{text}");
            assert_eq!(table(kind, 1).lines().collect::<Vec<_>>(), text.lines().take(2).collect::<Vec<_>>());
        }
    }

    #[test]
    fn how_long_objects_of_a_site_were_held_is_unknown_where_calls_are_left_out() {
        let held = |knowledge: Knowledge| {
            let sample = SampleView::with_knowledge(WAITS, INFO, knowledge);
            let (mut csv, mut text) = (Vec::new(), String::new());
            append_csv(&sample.view(), ReportTable::Site, 1, &mut csv);
            sites(&sample.view(), 1, &mut text);
            let csv = String::from_utf8(csv).unwrap();
            let in_csv = csv.lines().nth(1).unwrap().split(',').nth(5).unwrap().to_owned();
            // A duration has a unit.
            let in_text = text.lines().nth(1).unwrap().split_whitespace().rfind(|word| *word == "-").map(str::to_owned);
            (in_csv, in_text)
        };
        assert_eq!(held(Knowledge::default()), ("40".to_owned(), None));
        for knowledge in [
            Knowledge { only_blocked: true, ..Knowledge::default() },
            Knowledge { is_partial: true, ..Knowledge::default() },
            Knowledge { misses_conds: true, ..Knowledge::default() },
        ] {
            assert_eq!(held(knowledge), (String::new(), Some("-".to_owned())), "{knowledge:?}");
        }
    }
}
