//! The steps that one thread does with the records in order.

use std::io;
use std::path::PathBuf;

use super::concurrent_stage::ConcurrentStage;
use crate::arrange::{Sorter, Splitter};
use crate::filter::LineLimit;
use crate::options::{Arrangement, OutputFormat, Printing};
use crate::output::destination::Output;
use crate::output::{self, CtfWriter, Formatter};
use crate::record::call_stack::with_stacks_in_place;
use crate::record::columns;
use crate::support::diagnostics::Diagnostics;

/// A directory of files into which the records go, instead of an output.
enum RecordFiles {
    Split(Box<Splitter>),
    Ctf(Box<CtfWriter>),
}

/// Limits, sorts, formats and writes the records.
pub struct SequentialStage<'a> {
    limit: LineLimit,
    sorter: Option<Sorter>,
    /// Formats the records that the merging threads left unchanged.
    formatter: Formatter,
    files: Option<RecordFiles>,
    output: Output<'a>,
    text: Vec<u8>,
    diagnostics: &'a Diagnostics,
}

impl<'a> SequentialStage<'a> {
    /// Opens the output for the records of `paths`.
    pub fn open(
        arrangement: Arrangement,
        printing: &Printing,
        paths: &[PathBuf],
        diagnostics: &'a Diagnostics,
    ) -> io::Result<SequentialStage<'a>> {
        let Arrangement { sort, split } = arrangement;
        let path = printing.output.as_deref();
        let files = match (path, split) {
            (Some(path), Some(what)) => Some(RecordFiles::Split(Box::new(Splitter::new(what, path)?))),
            (Some(path), None) if printing.format == OutputFormat::Ctf => {
                Some(RecordFiles::Ctf(Box::new(CtfWriter::new(path, output::file_groups(paths))?)))
            }
            _ => None,
        };
        let output = Output::open_paged(path.filter(|_| files.is_none()), !printing.no_pager, diagnostics)?;
        let (limit, sorter, formatter) = (LineLimit::ALL, Sorter::new(sort), Formatter::Raw);
        Ok(SequentialStage { limit, sorter, formatter, files, output, text: Vec::new(), diagnostics })
    }

    /// Writes the text before the first record.
    pub fn begin(&mut self, limit: LineLimit, formatter: Formatter, concurrent: &ConcurrentStage) -> io::Result<()> {
        let mut head = Vec::new();
        concurrent.head(&mut head);
        if let Formatter::PerRecord(formatter) = &formatter {
            formatter.head(&mut head);
        }
        (self.limit, self.formatter) = (limit, formatter);
        self.output.write(&head)
    }

    /// Takes the next lines. Returns `false` if no more are needed.
    pub fn take(&mut self, lines: &[u8]) -> io::Result<bool> {
        let (lines, more) = self.limit.apply(lines);
        match &mut self.sorter {
            Some(sorter) => sorter.push(&with_stacks_in_place(&lines))?,
            None if matches!(self.formatter, Formatter::Timeline(_)) => self.put(&with_stacks_in_place(&lines))?,
            None => self.put(&lines)?,
        }
        let is_complete = matches!(&self.formatter, Formatter::Timeline(formatter) if formatter.is_complete());
        Ok(more && !is_complete)
    }

    /// Formats and writes lines in their final order.
    fn put(&mut self, lines: &[u8]) -> io::Result<()> {
        match &mut self.files {
            Some(RecordFiles::Split(splitter)) => return splitter.push(lines),
            Some(RecordFiles::Ctf(writer)) => return writer.push(lines),
            None => {}
        }
        let text = &mut self.text;
        text.clear();
        match &mut self.formatter {
            Formatter::Raw => return self.output.write(lines),
            Formatter::PerRecord(formatter) => columns::lines(lines).for_each(|line| formatter.record(line, text)),
            Formatter::Timeline(formatter) => columns::lines(lines).for_each(|line| formatter.record(line, text)),
        }
        self.output.write(text)
    }

    /// Finishes the output after the last record.
    pub fn end(mut self, concurrent: &mut ConcurrentStage) -> io::Result<()> {
        if let Some(sorter) = self.sorter.take() {
            let diagnostics = self.diagnostics;
            sorter.finish(&mut |lines| self.put(lines), diagnostics)?;
        }
        match self.files.take() {
            Some(RecordFiles::Split(mut splitter)) => splitter.write()?,
            Some(RecordFiles::Ctf(writer)) => writer.finish()?,
            None => {}
        }
        self.text.clear();
        concurrent.end(&mut self.text);
        if let Formatter::Timeline(formatter) = &mut self.formatter {
            formatter.end(&mut self.text);
        }
        self.output.write(&self.text)
    }
}
