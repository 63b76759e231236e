//! What is shown of each form of a record, worked out once: records are many, forms are few.

use spec::{Base, Column};

use super::short_text::ShortText;
use crate::record::fields::Fields;
use crate::record::record_kinds::{KnownKind, RecordKindTable};

/// The column in which THR_TRACE_DETAIL puts the return address of the call, a5, if it has no other use.
pub const CALLER: usize = 4;

/// Columns that people know by a shorter name.
const SHORT: [(&str, &str); 4] =
    [("start_routine", "start"), ("once_control", "once"), ("init_routine", "init"), ("exit_status", "status")];

/// How one column is shown among the arguments.
#[derive(Clone, Copy, Debug)]
pub enum ColumnLayout {
    /// Not there.
    Nothing,
    /// Its value alone.
    Value,
    /// Its value alone if it is the first argument, else as `Labelled`.
    Object(ShortText),
    /// With its name.
    Labelled(ShortText),
    /// With its name, if it is not 0.
    Unusual(ShortText),
    /// This column and the next as a thread's name.
    Name,
    /// This column and the next as a time limit: seconds and nanoseconds.
    LimitParts,
    /// A time limit in nanoseconds.
    Limit,
    /// A signal's number.
    Signal(ShortText),
    /// An error's number.
    Errno(ShortText),
}

/// What is shown of one form.
#[derive(Clone, Debug)]
pub struct KindLayout {
    /// The event's name.
    pub name: ShortText,
    /// The columns among the arguments.
    pub arguments: [ColumnLayout; 5],
    /// The same behind the arguments of the call's first record.
    pub more: [ColumnLayout; 5],
    /// Which column is the result.
    pub result: Option<usize>,
    /// What columns say if they are not 0.
    pub answers: Vec<(usize, ShortText)>,
    /// Whether a5 is free for the place that the call was made from.
    pub has_caller: bool,
    /// Whether the first record's a1 says what the call is about, and this one does not.
    pub lacks_object: bool,
}

/// All forms.
#[derive(Debug)]
pub struct KindLayouts {
    table: RecordKindTable,
    /// As in the table.
    forms: Vec<KindLayout>,
}

impl KindLayouts {
    /// What is shown of them all.
    pub fn new() -> KindLayouts {
        let table = RecordKindTable::default();
        let forms = table.kinds().iter().map(form).collect();
        KindLayouts { table, forms }
    }

    /// What is shown of a record, if its form is in the table.
    pub fn find(&self, fields: &Fields) -> Option<&KindLayout> {
        self.forms.get(self.table.index(fields)?)
    }
}

fn form(known: &KnownKind) -> KindLayout {
    let KnownKind { event, which, columns, .. } = *known;
    let named = |name: &str| columns.iter().position(|column| column.is_some_and(|column| column.name == name));
    let first = event.kind(1).filter(|_| which == 2).map_or(&[None; 5], |form| &form.columns);
    let arguments = std::array::from_fn(|index| match &columns[index] {
        Some(column) => show(column, index),
        None if index == CALLER && which != 2 => ColumnLayout::Nothing,
        None => ColumnLayout::Unusual(ShortText::label(detail((event.category, event.number), which, index))),
    });
    let is_new = |index: usize| columns[index].is_none_or(|column| !has(first, column.name));
    let more = std::array::from_fn(|index| if is_new(index) { arguments[index] } else { ColumnLayout::Nothing });
    let answer = |(index, column): (usize, &Option<Column>)| {
        let question = column.as_ref()?.name.strip_suffix('?')?;
        Some((index, ShortText::new(if question == "block" { "blocked" } else { question })))
    };
    KindLayout {
        name: ShortText::new(known.name),
        arguments,
        more,
        result: named("rval"),
        answers: columns.iter().enumerate().filter_map(answer).collect(),
        has_caller: which != 2 && columns[CALLER].is_none(),
        lacks_object: first[0].is_some_and(|column| !has(columns, column.name)),
    }
}

fn has(columns: &[Option<Column>; 5], name: &str) -> bool {
    columns.iter().flatten().any(|column| column.name == name)
}

fn show(column: &Column, index: usize) -> ColumnLayout {
    match column.name {
        // The result has a place of its own, questions have answers, and the halves of others are shown with them.
        "rval" | "limit_nsec" | "name_8_15" => ColumnLayout::Nothing,
        name if name.ends_with('?') => ColumnLayout::Nothing,
        "name_0_7" => ColumnLayout::Name,
        "limit_sec" => ColumnLayout::LimitParts,
        "limit_ns" => ColumnLayout::Limit,
        // Attributes that are not there, and the clock that is meant if none is said.
        name @ ("attr" | "clock") => ColumnLayout::Unusual(ShortText::label(name)),
        "signal" => ColumnLayout::Signal(ShortText::label("signal")),
        name @ ("errno" | "cause") => ColumnLayout::Errno(ShortText::label(name)),
        // Well known is what belongs to a condition variable.
        "mutex" => ColumnLayout::Value,
        // The first argument is what the call is about; its name would only say what the event's does.
        name if index == 0 && is_object(column) => ColumnLayout::Object(ShortText::label(short(name))),
        name => ColumnLayout::Labelled(ShortText::label(short(name))),
    }
}

/// What THR_TRACE_DETAIL puts into a column that is empty otherwise.
fn detail(event: (u8, u8), which: u8, index: usize) -> &'static str {
    match (event, which, index) {
        ((2 | 5 | 6, _), 1, 3) => "holder",
        ((5, 4), 0, 3) => "write",
        ((1, 18), 0, 3) => "key",
        _ => ["a1", "a2", "a3", "a4", "a5"][index],
    }
}

/// Whether a column holds an address or a thread.
fn is_object(column: &Column) -> bool {
    matches!(column.base, Base::Hex | Base::Thread) && !column.name.ends_with("status")
}

fn short(name: &'static str) -> &'static str {
    SHORT.iter().find(|(long, _)| *long == name).map_or(name, |(_, short)| short)
}
