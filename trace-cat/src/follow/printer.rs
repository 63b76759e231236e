//! What becomes of records, one after the other: all of them go to the journal, those that are wanted are shown.

use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::path::PathBuf;

use crate::filter::StreamingFilter;
use crate::options::{OutputFormat, Printing, Selection, TimePoint};
use crate::output;
use crate::output::Formatter;
use crate::output::destination::Output;
use crate::record::columns;
use crate::support::diagnostics::Diagnostics;
use crate::support::error::Error;

/// Bytes that are written at a time when much comes.
const CHUNK_LEN: usize = 1 << 20;

/// Where records go.
pub struct Printer<'a> {
    journal: Option<(Output<'a>, String)>,
    /// What is still to be written to it.
    kept: Vec<u8>,
    output: Output<'a>,
    out: Vec<u8>,
    stream: StreamingFilter,
    /// What the stream has just let through.
    wanted: Vec<u8>,
    since: Option<TimePoint>,
    until: Option<TimePoint>,
    /// What they mean, once a record has come.
    times: Option<Range<u64>>,
    /// How many records may still be shown.
    left: u64,
    tail: Option<LastLines>,
    shown: Formatter,
    format: OutputFormat,
}

/// The last lines of what there was at first.
struct LastLines {
    most: u64,
    lines: VecDeque<Box<[u8]>>,
}

impl<'a> Printer<'a> {
    /// `paths` are those that are read.
    ///
    /// # Errors
    /// What the system says of the journal or the standard output.
    pub fn new(
        printing: &Printing,
        selection: &Selection,
        paths: &[PathBuf],
        diagnostics: &'a Diagnostics,
    ) -> Result<Printer<'a>, Error> {
        let open = |path: Option<&PathBuf>, name: &str| {
            Output::open(path.map(PathBuf::as_path), diagnostics).map_err(|error| Error::new(name, error))
        };
        let journal = printing.output.as_ref().map(|path| {
            let name = path.display().to_string();
            Ok((open(Some(path), &name)?, name))
        });
        let shown = output::open(&Printing { output: None, ..printing.clone() }, paths);
        let mut printer = Printer {
            journal: journal.transpose()?,
            kept: Vec::new(),
            output: open(None, OUTPUT)?,
            out: Vec::new(),
            stream: StreamingFilter::new(selection),
            wanted: Vec::new(),
            since: selection.since,
            until: selection.until,
            times: None,
            left: selection.head.unwrap_or(u64::MAX),
            tail: selection.tail.map(|most| LastLines { most, lines: VecDeque::new() }),
            shown,
            format: printing.format,
        };
        if let Formatter::PerRecord(view) = &printer.shown {
            view.head(&mut printer.out);
            printer.mark(0, false);
        }
        Ok(printer)
    }

    /// Takes the next record, which is `late` if it should have come before others.
    ///
    /// # Errors
    /// What writing says.
    pub fn put(&mut self, line: &[u8], late: bool) -> Result<(), Error> {
        if self.journal.is_some() {
            self.kept.extend_from_slice(line);
        }
        let (since, until) = (self.since, self.until);
        self.times.get_or_insert_with(|| {
            let time = columns::time(line).unwrap_or(0);
            since.map_or(0, |since| since.resolve(time))..until.map_or(u64::MAX, |until| until.resolve(time))
        });
        let mut wanted = std::mem::take(&mut self.wanted);
        self.stream.push(line, &mut wanted);
        self.select(&wanted, late);
        wanted.clear();
        self.wanted = wanted;
        if self.out.len() > CHUNK_LEN || self.kept.len() > CHUNK_LEN { self.write() } else { Ok(()) }
    }

    /// Shows what of `lines` lies in the times that are wanted, if more is wanted.
    fn select(&mut self, lines: &[u8], late: bool) {
        for line in lines.split_inclusive(|&byte| byte == b'\n') {
            let time = columns::time(line).unwrap_or(0);
            if self.times.as_ref().is_some_and(|times| !times.contains(&time)) {
                continue;
            }
            match &mut self.tail {
                Some(tail) => {
                    tail.lines.push_back(line.into());
                    if tail.lines.len() as u64 > tail.most {
                        tail.lines.pop_front();
                    }
                }
                None if self.left > 0 => {
                    self.left -= 1;
                    self.show(line, late);
                }
                None => {}
            }
        }
    }

    fn show(&mut self, line: &[u8], late: bool) {
        let start = self.out.len();
        match &mut self.shown {
            Formatter::Raw => self.out.extend_from_slice(line),
            Formatter::PerRecord(view) => view.record(line, &mut self.out),
            Formatter::Timeline(view) if late => {
                // On a line of its own, apart from what is going on.
                view.pause(&mut self.out);
                view.record(line, &mut self.out);
                view.pause(&mut self.out);
            }
            Formatter::Timeline(view) => view.record(line, &mut self.out),
        }
        self.mark(start, late);
    }

    /// Marks what is shown from `start` on, if anything is.
    fn mark(&mut self, start: usize, late: bool) {
        let (end, mark): (&[u8], &[u8]) = match (self.format, late) {
            (OutputFormat::Csv, _) if start == 0 && self.out.starts_with(b"time,") => (b"\n", b",late\n"),
            (OutputFormat::Csv, false) => (b"\n", b",0\n"),
            (OutputFormat::Csv, true) => (b"\n", b",1\n"),
            (OutputFormat::Json, true) => (b"}\n", b",\"late\":true}\n"),
            (OutputFormat::Text, true) => (b"\n", b"  late\n"),
            _ => return,
        };
        if self.out.len() > start && self.out.ends_with(end) {
            self.out.truncate(self.out.len() - end.len());
            self.out.extend_from_slice(mark);
        }
    }

    /// What there was at first has come: what comes from now on is shown as it comes.
    pub fn caught_up(&mut self) {
        if let Some(tail) = self.tail.take() {
            for line in tail.lines.iter().take(usize::try_from(self.left).unwrap_or(usize::MAX)) {
                self.show(line, false);
            }
            self.left = self.left.saturating_sub(tail.lines.len() as u64);
        }
    }

    /// Shows all that has come.
    ///
    /// # Errors
    /// What writing says.
    pub fn flush(&mut self) -> Result<(), Error> {
        if let Formatter::Timeline(view) = &mut self.shown {
            view.pause(&mut self.out);
        }
        self.write()
    }

    fn write(&mut self) -> Result<(), Error> {
        if let Some((journal, name)) = &mut self.journal
            && !self.kept.is_empty()
        {
            journal.write(&self.kept).map_err(|error| Error::new(name.clone(), error))?;
            self.kept.clear();
        }
        if !self.out.is_empty() {
            self.output.write(&self.out).map_err(failed)?;
            self.out.clear();
        }
        Ok(())
    }

    /// Whether nothing will be shown of what is made at `now` or later.
    pub fn is_done(&self, now: u64) -> bool {
        self.left == 0 || self.times.as_ref().is_some_and(|times| now >= times.end)
    }

    /// There will be no more.
    ///
    /// # Errors
    /// What writing says.
    pub fn end(mut self) -> Result<(), Error> {
        let mut rest = std::mem::take(&mut self.wanted);
        self.stream.end(&mut rest);
        self.select(&rest, false);
        if let Formatter::Timeline(view) = &mut self.shown {
            view.end(&mut self.out);
        }
        self.write()?;
        self.output.finish().map_err(failed)?;
        self.journal.map_or(Ok(()), |(journal, name)| journal.finish().map_err(|error| Error::new(name, error)))
    }
}

const OUTPUT: &str = "standard output";

fn failed(error: io::Error) -> Error {
    Error::new(OUTPUT, error)
}
