//! What a row program prints: the records that the trace must have.

use std::fmt;

/// One record that must be there.
#[derive(Clone, Debug)]
pub struct Expectation {
    /// The process and the thread.
    pub pid: u32,
    /// The kernel's thread ID.
    pub lwp: u32,
    /// `pthread_self()`, as it is to be printed.
    pub tid: String,
    /// The C function that was called; `-` for a record without a call.
    pub symbol: String,
    /// The event's name.
    pub event: String,
    /// 0, 1 or 2.
    pub which: u8,
    /// What errno was after the call, by its number.
    pub errno: String,
    /// The five columns, as they are to be printed; `*` for any value and `?` for 0 or 1.
    pub columns: [String; 5],
    /// Whether the record may be missing: in a mode in which the program cannot know.
    pub optional: bool,
}

impl Expectation {
    /// One line without its first word.
    fn parse(words: &[&str]) -> Option<Expectation> {
        let [pid, lwp, tid, symbol, event, which, errno, columns @ ..] = words else { return None };
        Some(Expectation {
            pid: pid.parse().ok()?,
            lwp: lwp.parse().ok()?,
            tid: (*tid).to_owned(),
            symbol: (*symbol).to_owned(),
            event: (*event).to_owned(),
            which: which.parse().ok()?,
            errno: (*errno).to_owned(),
            columns: <[&str; 5]>::try_from(columns).ok()?.map(str::to_owned),
            optional: false,
        })
    }

    /// Whether a column's text is as expected.
    pub fn accepts(&self, column: usize, text: &str) -> bool {
        match self.columns[column].as_str() {
            "*" => true,
            "?" => text == "0" || text == "1",
            expected => text == expected,
        }
    }

    /// The call without what differs from run to run: addresses and, for processes, their IDs.
    fn outline(&self) -> String {
        let steady = |text: &String| if text.starts_with("0x") { "0x".to_owned() } else { text.clone() };
        let columns = match self.event.as_str() {
            "proc_fork" | "proc_begin" => String::new(),
            _ => self.columns.each_ref().map(steady).join(" "),
        };
        format!("{} {} {} {columns} (errno {})", self.symbol, self.event, self.which, self.errno)
    }
}

impl fmt::Display for Expectation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}.{} {} (by {})", self.event, self.which, self.columns.join(" "), self.symbol)
    }
}

/// All that a run of a program printed.
#[derive(Debug, Default)]
pub struct Printed {
    /// In the order of the lines.
    pub expectations: Vec<Expectation>,
    /// Functions that it could not call, because this C library does not have them.
    pub missing: Vec<String>,
}

impl Printed {
    /// # Panics
    /// If there is a line that it does not know, or no expectation at all.
    pub fn parse(text: &str) -> Printed {
        let mut printed = Printed::default();
        for line in text.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            match words.as_slice() {
                ["missing", function] => printed.missing.push((*function).to_owned()),
                ["expect", words @ ..] => match Expectation::parse(words) {
                    Some(expectation) => printed.expectations.push(expectation),
                    None => panic!("a broken expectation: {line}"),
                },
                _ => panic!("neither an expectation nor a missing function: {line}"),
            }
        }
        assert!(!printed.expectations.is_empty(), "the program expects nothing");
        printed
    }

    /// Fails unless another run made the same calls with the same numbers and results, whatever its addresses and
    /// however its threads took turns.
    pub fn assert_same_calls(&self, other: &Printed) {
        let outline = |printed: &Printed| {
            let mut lines: Vec<String> = printed.expectations.iter().map(Expectation::outline).collect();
            lines.sort();
            lines
        };
        let (ours, theirs) = (outline(self), outline(other));
        if let Some((native, traced)) = ours.iter().zip(&theirs).find(|(native, traced)| native != traced) {
            panic!("the program behaves differently under the library\n  native: {native}\n  traced: {traced}");
        }
        assert_eq!(ours.len(), theirs.len(), "the program makes another number of calls under the library");
    }
}
