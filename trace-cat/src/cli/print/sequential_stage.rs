//! What is done with the records in order, by one thread.

use std::io;
use std::path::Path;

use super::concurrent_stage::ConcurrentStage;
use crate::arrange::{Sorter, Splitter};
use crate::filter::LineLimit;
use crate::options::Arrangement;
use crate::output::destination::Output;
use crate::output::{RecordFormatter, TimelineFormatter};
use crate::support::diagnostics::Diagnostics;

/// How records are shown that were not shown before.
pub enum SequentialFormat {
    /// They were, or stay as they are.
    Nothing,
    /// Each for itself.
    PerRecord(Box<dyn RecordFormatter>),
    /// One after the other.
    Timeline(Box<dyn TimelineFormatter>),
}

/// Where records go.
pub struct SequentialStage<'a> {
    few: LineLimit,
    sorter: Option<Sorter>,
    show: FinalSteps<'a>,
    diagnostics: &'a Diagnostics,
}

/// The last steps.
struct FinalSteps<'a> {
    late: SequentialFormat,
    splitter: Option<Splitter>,
    output: Output<'a>,
    piece: Vec<u8>,
}

impl<'a> SequentialStage<'a> {
    /// Opens what records will go to.
    ///
    /// # Errors
    /// What the system says of that.
    pub fn open(
        arrangement: Arrangement,
        path: Option<&Path>,
        diagnostics: &'a Diagnostics,
    ) -> io::Result<SequentialStage<'a>> {
        let Arrangement { sort, split } = arrangement;
        let splitter = split.zip(path).map(|(what, path)| Splitter::new(what, path)).transpose()?;
        let output = Output::open(path.filter(|_| splitter.is_none()), diagnostics)?;
        let show = FinalSteps { late: SequentialFormat::Nothing, splitter, output, piece: Vec::new() };
        Ok(SequentialStage { few: LineLimit::ALL, sorter: Sorter::new(sort), show, diagnostics })
    }

    /// Gets ready for the first record.
    ///
    /// # Errors
    /// What writing says.
    pub fn begin(&mut self, few: LineLimit, late: SequentialFormat, early: &ConcurrentStage) -> io::Result<()> {
        let mut head = Vec::new();
        early.head(&mut head);
        if let SequentialFormat::PerRecord(view) = &late {
            view.head(&mut head);
        }
        (self.few, self.show.late) = (few, late);
        self.show.output.write(&head)
    }

    /// Takes the next lines. `false`: no more are needed.
    ///
    /// # Errors
    /// What writing says.
    pub fn take(&mut self, lines: &[u8]) -> io::Result<bool> {
        let (lines, more) = self.few.cut(lines);
        match &mut self.sorter {
            Some(sorter) => sorter.push(lines)?,
            None => self.show.put(lines)?,
        }
        Ok(more)
    }

    /// There are no more.
    ///
    /// # Errors
    /// What writing says.
    pub fn end(self, early: &mut ConcurrentStage) -> io::Result<()> {
        let SequentialStage { sorter, mut show, diagnostics, .. } = self;
        if let Some(sorter) = sorter {
            sorter.finish(&mut |lines| show.put(lines), diagnostics)?;
        }
        show.end(early)
    }
}

impl FinalSteps<'_> {
    fn put(&mut self, lines: &[u8]) -> io::Result<()> {
        if let Some(splitter) = &mut self.splitter {
            return splitter.push(lines);
        }
        let FinalSteps { late, output, piece, .. } = self;
        let lines = match late {
            SequentialFormat::Nothing => return output.write(lines),
            _ => lines.split_inclusive(|&byte| byte == b'\n'),
        };
        piece.clear();
        match late {
            SequentialFormat::Nothing => {}
            SequentialFormat::PerRecord(view) => lines.for_each(|line| view.record(line, piece)),
            SequentialFormat::Timeline(view) => lines.for_each(|line| view.record(line, piece)),
        }
        output.write(piece)
    }

    fn end(mut self, early: &mut ConcurrentStage) -> io::Result<()> {
        self.splitter.map_or(Ok(()), Splitter::finish)?;
        self.piece.clear();
        early.end(&mut self.piece);
        if let SequentialFormat::Timeline(view) = &mut self.late {
            view.end(&mut self.piece);
        }
        self.output.write(&self.piece)?;
        self.output.finish()
    }
}
