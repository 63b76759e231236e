//! The steps that one thread does with the records in order.

use std::io;
use std::path::Path;

use super::concurrent_stage::ConcurrentStage;
use crate::arrange::{Sorter, Splitter};
use crate::filter::LineLimit;
use crate::options::Arrangement;
use crate::output::destination::Output;
use crate::output::{RecordFormatter, TimelineFormatter};
use crate::support::diagnostics::Diagnostics;

/// How records are formatted that the merging threads left unchanged.
pub enum SequentialFormat {
    /// Not at all.
    Unchanged,
    /// Each record by itself.
    PerRecord(Box<dyn RecordFormatter>),
    /// One record after the other.
    Timeline(Box<dyn TimelineFormatter>),
}

/// Limits, sorts, formats and writes the records.
pub struct SequentialStage<'a> {
    limit: LineLimit,
    sorter: Option<Sorter>,
    last: FinalSteps<'a>,
    diagnostics: &'a Diagnostics,
}

/// The last steps.
struct FinalSteps<'a> {
    format: SequentialFormat,
    splitter: Option<Splitter>,
    output: Output<'a>,
    text: Vec<u8>,
}

impl<'a> SequentialStage<'a> {
    /// Opens the output.
    pub fn open(
        arrangement: Arrangement,
        path: Option<&Path>,
        diagnostics: &'a Diagnostics,
    ) -> io::Result<SequentialStage<'a>> {
        let Arrangement { sort, split } = arrangement;
        let splitter = split.zip(path).map(|(what, path)| Splitter::new(what, path)).transpose()?;
        let output = Output::open(path.filter(|_| splitter.is_none()), diagnostics)?;
        let last = FinalSteps { format: SequentialFormat::Unchanged, splitter, output, text: Vec::new() };
        Ok(SequentialStage { limit: LineLimit::ALL, sorter: Sorter::new(sort), last, diagnostics })
    }

    /// Writes the text before the first record.
    pub fn begin(
        &mut self,
        limit: LineLimit,
        format: SequentialFormat,
        concurrent: &ConcurrentStage,
    ) -> io::Result<()> {
        let mut head = Vec::new();
        concurrent.head(&mut head);
        if let SequentialFormat::PerRecord(formatter) = &format {
            formatter.head(&mut head);
        }
        (self.limit, self.last.format) = (limit, format);
        self.last.output.write(&head)
    }

    /// Takes the next lines. Returns `false` if no more are needed.
    pub fn take(&mut self, lines: &[u8]) -> io::Result<bool> {
        let (lines, more) = self.limit.cut(lines);
        match &mut self.sorter {
            Some(sorter) => sorter.push(lines)?,
            None => self.last.put(lines)?,
        }
        Ok(more)
    }

    /// Finishes the output after the last record.
    pub fn end(self, concurrent: &mut ConcurrentStage) -> io::Result<()> {
        let SequentialStage { sorter, mut last, diagnostics, .. } = self;
        if let Some(sorter) = sorter {
            sorter.finish(&mut |lines| last.put(lines), diagnostics)?;
        }
        last.end(concurrent)
    }
}

impl FinalSteps<'_> {
    fn put(&mut self, lines: &[u8]) -> io::Result<()> {
        if let Some(splitter) = &mut self.splitter {
            return splitter.push(lines);
        }
        let FinalSteps { format, output, text, .. } = self;
        let lines = match format {
            SequentialFormat::Unchanged => return output.write(lines),
            _ => lines.split_inclusive(|&byte| byte == b'\n'),
        };
        text.clear();
        match format {
            SequentialFormat::Unchanged => {}
            SequentialFormat::PerRecord(formatter) => lines.for_each(|line| formatter.record(line, text)),
            SequentialFormat::Timeline(formatter) => lines.for_each(|line| formatter.record(line, text)),
        }
        output.write(text)
    }

    fn end(mut self, concurrent: &mut ConcurrentStage) -> io::Result<()> {
        self.splitter.as_mut().map_or(Ok(()), Splitter::write)?;
        self.text.clear();
        concurrent.end(&mut self.text);
        if let SequentialFormat::Timeline(formatter) = &mut self.format {
            formatter.end(&mut self.text);
        }
        self.output.write(&self.text)?;
        self.output.finish()
    }
}
