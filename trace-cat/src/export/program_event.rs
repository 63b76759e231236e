//! What a viewer draws of the program's own events and of its functions.

/// What such an event is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ProgramText {
    /// The ID of a name.
    Name(u64),
    /// The number of an event that has no name.
    Number(u8),
    /// The process that a function is in, its address, and since when it has been there.
    Function(u32, u64, u64),
}

/// The names of the values of an event that has a number.
const VALUE_NAMES: [&str; 5] = ["a1", "a2", "a3", "a4", "a5"];

/// The values of a mark, each with its name: all up to the last that is not 0 where there are several.
pub fn mark_arguments(text: ProgramText, values: [i64; 5]) -> impl Iterator<Item = (&'static str, i64)> {
    let (names, count) = match text {
        ProgramText::Number(_) => {
            (VALUE_NAMES, values.iter().rposition(|value| *value != 0).map_or(0, |last| last + 1))
        }
        _ => (["value"; 5], 1),
    };
    names.into_iter().zip(values).take(count)
}

/// Something that a program, or the code that a compiler put into its functions, has recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramEvent {
    Span(ProgramSpan),
    /// Values without a meaning to the format are 0.
    Mark {
        thread: u32,
        time: u64,
        text: ProgramText,
        values: [i64; 5],
    },
    /// A counter of the thread's process has a value from a time on.
    Count {
        thread: u32,
        time: u64,
        text: ProgramText,
        value: i64,
    },
    /// The end of a span whose beginning is not recorded.
    MissingBegin {
        thread: u32,
        time: u64,
        text: ProgramText,
    },
}

/// The time between a beginning and an end in one thread, as far as it is selected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProgramSpan {
    pub thread: u32,
    pub text: ProgramText,
    pub from: u64,
    pub to: u64,
    /// It began before the selected time, or ended after it or nobody knows when.
    pub is_cut: (bool, bool),
    /// No end is recorded.
    pub has_no_end: bool,
    /// 0 if the span nests with the waits of its thread and with all others that have lane 0; else those of one lane nest.
    pub lane: u32,
}

impl ProgramText {
    /// The category of the events.
    pub fn category(self) -> &'static str {
        match self {
            ProgramText::Function(..) => "function",
            ProgramText::Name(_) | ProgramText::Number(_) => "user",
        }
    }
}

impl ProgramSpan {
    /// What is unusual about the span, for people.
    pub fn note(&self) -> Option<&'static str> {
        Some(match (self.has_no_end, self.is_cut) {
            (true, (true, _)) => "began earlier, and no end is recorded",
            (true, _) => "no end is recorded",
            (_, (true, true)) => "began earlier and ended later",
            (_, (true, _)) => "began earlier",
            (_, (_, true)) => "ended later",
            _ => return None,
        })
    }
}

impl ProgramEvent {
    /// When it begins and ends.
    pub fn times(&self) -> (u64, u64) {
        match *self {
            ProgramEvent::Span(ProgramSpan { from, to, .. }) => (from, to),
            ProgramEvent::Mark { time, .. }
            | ProgramEvent::Count { time, .. }
            | ProgramEvent::MissingBegin { time, .. } => (time, time),
        }
    }

    pub fn thread(&self) -> u32 {
        match *self {
            ProgramEvent::Span(ProgramSpan { thread, .. })
            | ProgramEvent::Mark { thread, .. }
            | ProgramEvent::Count { thread, .. }
            | ProgramEvent::MissingBegin { thread, .. } => thread,
        }
    }
}
