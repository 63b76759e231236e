//! What a line shows of each record kind, computed once: there are many records, but few kinds.

use spec::{Base, Column};

use super::short_text::ShortText;
use crate::record::fields::Fields;
use crate::record::record_kinds::{KnownKind, RecordKindTable, detail_name};
use crate::trace::interned_names;

/// The column in which THR_TRACE_DETAIL puts the return address of the call: a5, if it has no other use.
pub const CALLER: usize = 4;

/// Columns whose label is shorter than their name.
const SHORT_LABELS: [(&str, &str); 4] =
    [("start_routine", "start"), ("once_control", "once"), ("init_routine", "init"), ("exit_status", "status")];

/// How one column is shown among the arguments.
#[derive(Clone, Copy, Debug)]
pub enum ColumnLayout {
    /// Not shown.
    Nothing,
    /// The value without a label.
    Value,
    /// As `Value` if it is the first argument, else as `Labelled`.
    Object(ShortText),
    /// The value with a label.
    Labelled(ShortText),
    /// As `Labelled` if it is not 0, else not shown.
    Unusual(ShortText),
    /// This column and the next as a thread's name.
    Name,
    /// The text of a name's ID.
    InternedName,
    /// The name of the function that begins at an address.
    Function,
    /// This column and the next as a time limit: seconds and nanoseconds.
    LimitTimespec,
    /// A time limit in nanoseconds.
    Limit,
    /// The name of an operation of futex(2), without a label.
    FutexOperation,
    /// The name of a signal.
    Signal(ShortText),
    /// The name of an error.
    Errno(ShortText),
    /// The name of an event, by its two numbers.
    Event(ShortText),
}

/// What a line shows of one record kind.
#[derive(Clone, Debug)]
pub struct KindLayout {
    pub name: ShortText,
    /// The columns among the arguments.
    pub arguments: [ColumnLayout; 5],
    /// The columns that a return record adds to the arguments of its entry record.
    pub added: [ColumnLayout; 5],
    /// The indices of the columns with the result and with its error: of `rval` both, else of `result` and `errno`.
    pub result: Option<[usize; 2]>,
    /// Columns that are questions (their names end in `?`), and the text for an answer that is not 0.
    pub answers: Vec<(usize, ShortText)>,
    /// Whether a5 is free for the return address.
    pub has_caller: bool,
    /// Whether only the entry record has the object, in its a1.
    pub lacks_object: bool,
}

#[derive(Debug)]
pub struct KindLayouts {
    table: RecordKindTable,
    /// In the order of [`RecordKindTable::kinds`].
    layouts: Vec<KindLayout>,
}

impl KindLayouts {
    pub fn new() -> KindLayouts {
        let table = RecordKindTable::default();
        let layouts = table.kinds.iter().map(kind_layout).collect();
        KindLayouts { table, layouts }
    }

    /// The layout for a record, if its kind is in the table.
    pub fn find(&self, fields: &Fields) -> Option<&KindLayout> {
        self.layouts.get(self.table.index(fields)?)
    }
}

fn kind_layout(known: &KnownKind) -> KindLayout {
    let KnownKind { event, which, columns, .. } = *known;
    let named = |name: &str| columns.iter().position(|column| column.is_some_and(|column| column.name == name));
    let entry = event.kind(1).filter(|_| which == 2).map_or(&[None; 5], |kind| &kind.columns);
    let result = named("rval").map(|rval| [rval; 2]).or_else(|| Some([named("result")?, named("errno")?]));
    let arguments = std::array::from_fn(|index| match &columns[index] {
        // It has its own place.
        _ if result.is_some_and(|result| result.contains(&index)) => ColumnLayout::Nothing,
        Some(column) => column_layout(column, index),
        None if index == CALLER && which != 2 => ColumnLayout::Nothing,
        None => ColumnLayout::Unusual(ShortText::label(
            detail_name((event.category, event.number), which, index).unwrap_or(["a1", "a2", "a3", "a4", "a5"][index]),
        )),
    });
    let is_new = |index: usize| columns[index].is_none_or(|column| !has(entry, column.name));
    let added = std::array::from_fn(|index| if is_new(index) { arguments[index] } else { ColumnLayout::Nothing });
    let answer = |(index, column): (usize, &Option<Column>)| {
        let question = column.as_ref()?.name.strip_suffix('?')?;
        Some((index, ShortText::new(if question == "block" { b"blocked" } else { question.as_bytes() })))
    };
    KindLayout {
        name: ShortText::new(event.name.as_bytes()),
        arguments,
        added,
        result,
        answers: columns.iter().enumerate().filter_map(answer).collect(),
        has_caller: which != 2 && columns[CALLER].is_none(),
        lacks_object: entry[0].is_some_and(|column| !has(columns, column.name)),
    }
}

fn has(columns: &[Option<Column>; 5], name: &str) -> bool {
    columns.iter().flatten().any(|column| column.name == name)
}

fn column_layout(column: &Column, index: usize) -> ColumnLayout {
    match column.name {
        // Answers have their own places; the second of two columns is shown with the first.
        "limit_nsec" | "name_8_15" => ColumnLayout::Nothing,
        name if name.ends_with('?') => ColumnLayout::Nothing,
        "name_0_7" => ColumnLayout::Name,
        interned_names::COLUMN => ColumnLayout::InternedName,
        "function" => ColumnLayout::Function,
        "limit_sec" => ColumnLayout::LimitTimespec,
        "limit_ns" => ColumnLayout::Limit,
        // 0 is the default.
        name @ ("attr" | "clock") => ColumnLayout::Unusual(ShortText::label(name)),
        "op" => ColumnLayout::FutexOperation,
        "signal" => ColumnLayout::Signal(ShortText::label("signal")),
        name @ ("errno" | "cause") => ColumnLayout::Errno(ShortText::label(name)),
        "call" => ColumnLayout::Event(ShortText::label("call")),
        // The object of a mutex call, or the mutex of a condition variable: clear without a label.
        "mutex" => ColumnLayout::Value,
        // The first argument is the object of the call, whose label would repeat the event's name.
        name if index == 0 && is_object(column) => ColumnLayout::Object(ShortText::label(short_label(name))),
        name => ColumnLayout::Labelled(ShortText::label(short_label(name))),
    }
}

/// Whether a column holds an address or a thread.
fn is_object(column: &Column) -> bool {
    matches!(column.base, Base::Hex | Base::Thread) && !column.name.ends_with("status")
}

fn short_label(name: &'static str) -> &'static str {
    SHORT_LABELS.iter().find(|(long, _)| *long == name).map_or(name, |(_, short)| short)
}
