//! What is done with the records in order, by one thread.

use std::io;
use std::path::Path;

use super::concurrent_stage::Early;
use crate::arrange::{Sorter, Splitter};
use crate::filter::Few;
use crate::options::Arrangement;
use crate::output::destination::Output;
use crate::output::{Each, View};
use crate::support::diagnostics::Diagnostics;

/// How records are shown that were not shown before.
pub enum Late {
    /// They were, or stay as they are.
    Nothing,
    /// Each for itself.
    Each(Box<dyn Each>),
    /// One after the other.
    InOrder(Box<dyn View>),
}

/// Where records go.
pub struct Sink<'a> {
    few: Few,
    sorter: Option<Sorter>,
    show: Show<'a>,
    diagnostics: &'a Diagnostics,
}

/// The last steps.
struct Show<'a> {
    late: Late,
    splitter: Option<Splitter>,
    output: Output<'a>,
    piece: Vec<u8>,
}

impl<'a> Sink<'a> {
    /// Opens what records will go to.
    ///
    /// # Errors
    /// What the system says of that.
    pub fn open(arrangement: Arrangement, path: Option<&Path>, diagnostics: &'a Diagnostics) -> io::Result<Sink<'a>> {
        let Arrangement { sort, split } = arrangement;
        let splitter = split.zip(path).map(|(what, path)| Splitter::new(what, path)).transpose()?;
        let output = Output::open(path.filter(|_| splitter.is_none()), diagnostics)?;
        let show = Show { late: Late::Nothing, splitter, output, piece: Vec::new() };
        Ok(Sink { few: Few::ALL, sorter: Sorter::new(sort), show, diagnostics })
    }

    /// Gets ready for the first record.
    ///
    /// # Errors
    /// What writing says.
    pub fn begin(&mut self, few: Few, late: Late, early: &Early) -> io::Result<()> {
        let mut head = Vec::new();
        early.head(&mut head);
        if let Late::Each(view) = &late {
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
    pub fn end(self, early: &mut Early) -> io::Result<()> {
        let Sink { sorter, mut show, diagnostics, .. } = self;
        if let Some(sorter) = sorter {
            sorter.finish(&mut |lines| show.put(lines), diagnostics)?;
        }
        show.end(early)
    }
}

impl Show<'_> {
    fn put(&mut self, lines: &[u8]) -> io::Result<()> {
        if let Some(splitter) = &mut self.splitter {
            return splitter.push(lines);
        }
        let Show { late, output, piece, .. } = self;
        let lines = match late {
            Late::Nothing => return output.write(lines),
            _ => lines.split_inclusive(|&byte| byte == b'\n'),
        };
        piece.clear();
        match late {
            Late::Nothing => {}
            Late::Each(view) => lines.for_each(|line| view.record(line, piece)),
            Late::InOrder(view) => lines.for_each(|line| view.record(line, piece)),
        }
        output.write(piece)
    }

    fn end(mut self, early: &mut Early) -> io::Result<()> {
        self.splitter.map_or(Ok(()), Splitter::finish)?;
        self.piece.clear();
        early.end(&mut self.piece);
        if let Late::InOrder(view) = &mut self.late {
            view.end(&mut self.piece);
        }
        self.output.write(&self.piece)?;
        self.output.finish()
    }
}
