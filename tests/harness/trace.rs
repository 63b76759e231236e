//! The records of a trace directory, by event, thread and process.

use std::fs;
use std::path::Path;

use spec::names::FileName;

/// One record: its text, decoded.
#[derive(Clone, Debug)]
pub struct Record {
    /// The line, without its newline.
    pub line: String,
    /// The decoded columns.
    pub fields: spec::Record,
}

impl Record {
    /// The event's name; a number pair where the table has none.
    pub fn name(&self) -> String {
        match self.fields.event() {
            Some(event) => event.name.to_owned(),
            None => format!("{}.{}", self.fields.event1, self.fields.event2),
        }
    }

    /// True if the record is of this event.
    pub fn is(&self, name: &str) -> bool {
        self.fields.event().is_some_and(|event| event.name == name)
    }

    /// The text of the five arguments.
    pub fn arguments(&self) -> [&str; 5] {
        let fields: Vec<&str> = self.line.split(':').skip(8).collect();
        fields.try_into().expect("a record that decodes has five arguments")
    }

    /// The value of the column with this name.
    ///
    /// # Panics
    /// If the event has no such column, so that a misspelt name does not read as 0.
    pub fn get(&self, column: &str) -> u64 {
        let columns = self.fields.kind().map(|form| form.columns).unwrap_or_default();
        let index = columns.iter().position(|found| found.is_some_and(|found| found.name == column));
        let index = index.unwrap_or_else(|| panic!("no column {column:?} in {}", self.line));
        self.fields.arguments[index].bits()
    }

    /// The column `rval`, signed.
    pub fn rval(&self) -> i64 {
        self.get("rval") as i64
    }
}

/// The records of a trace, in the order in which they were read.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// The records.
    pub records: Vec<Record>,
}

impl Trace {
    /// Every record of the `tr.*` files of `directory`, in order of their names.
    ///
    /// # Panics
    /// If a file cannot be read, or has anything but complete records.
    pub fn read(directory: &Path) -> Trace {
        let mut files: Vec<_> = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap()).collect();
        files.sort_by_key(|file| file.file_name());
        let mut trace = Trace::default();
        for file in files {
            if let Some(FileName::Records { .. }) = FileName::parse(file.file_name().as_encoded_bytes()) {
                let path = file.path();
                trace.records.extend(Trace::parse(&path.to_string_lossy(), &fs::read(&path).unwrap()).records);
            }
        }
        trace
    }

    /// The records of `text`, which `source` names in messages.
    ///
    /// # Panics
    /// If a line does not decode, or the last one has no newline.
    pub fn parse(source: &str, text: &[u8]) -> Trace {
        if text.is_empty() {
            return Trace::default();
        }
        let lines = text.strip_suffix(b"\n").unwrap_or_else(|| panic!("{source}: the last line has no end"));
        let mut records = Vec::new();
        for (index, line) in lines.split(|&byte| byte == b'\n').enumerate() {
            let shown = String::from_utf8_lossy(line).into_owned();
            match spec::Record::parse(line) {
                Ok(fields) => records.push(Record { line: shown, fields }),
                Err(fault) => panic!("{source}:{}: {fault}: {shown}", index + 1),
            }
        }
        Trace { records }
    }

    /// The records of this event.
    pub fn of(&self, name: &str) -> Vec<&Record> {
        assert!(spec::EVENTS.iter().any(|event| event.name == name), "no event {name:?}");
        self.records.iter().filter(|record| record.is(name)).collect()
    }

    /// The records of this thread.
    pub fn of_lwp(&self, lwp: u32) -> Vec<&Record> {
        self.records.iter().filter(|record| record.fields.lwpid == lwp).collect()
    }

    /// The records of this process.
    pub fn of_pid(&self, pid: u32) -> Vec<&Record> {
        self.records.iter().filter(|record| record.fields.pid == pid).collect()
    }

    /// The text of all records, as trace-cat prints it.
    pub fn text(&self) -> String {
        self.records.iter().flat_map(|record| [record.line.as_str(), "\n"]).collect()
    }
}
