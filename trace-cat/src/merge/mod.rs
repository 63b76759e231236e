//! Merges the inputs by printed time, whatever their number and whatever the order within them.
//!
//! Order: by time; at equal times the records of one file keep their order, and between files what is stamped before
//! its call comes before what is stamped after, then the file names decide. This is a rule for choosing between the
//! files' next records, not one for sorting: a record waits for those before it in its file. So a file's runs are put
//! together first, and then the files.
//!
//! Each stream in a merge has a buffer. When there are too many streams for the memory allowed, some of them are merged
//! into a temporary file before, which makes them one stream.

mod spill;
mod stream;
mod tree;

use std::io;
use std::ops::Range;
use std::sync::Arc;

use log::info;

use crate::read::records::{BUFFER_MIN, Records, Trust};
use crate::read::runs::scan;
use crate::read::text::Text;
use crate::say::Say;
pub use stream::Merge;

use spill::Spill;
use stream::{Cursor, Source, Stream, Ties};

/// How much memory merging takes.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes of all streams' buffers together.
    pub buffers: usize,
    /// Bytes of one stream's buffer at most.
    pub buffer: usize,
    /// Streams in one merge at most.
    pub streams: usize,
    /// Bytes that are sorted at a time, where a file is in no order.
    pub chunk: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        const BUFFERS: usize = 64 << 20;
        Limits { buffers: BUFFERS, buffer: 256 << 10, streams: BUFFERS / BUFFER_MIN, chunk: 32 << 20 }
    }
}

/// Some runs that belong together: those of one input, or the one that inputs were merged into.
struct Part {
    text: Arc<Text>,
    runs: Vec<Range<u64>>,
    source: Source,
    trust: Trust,
}

/// Reads every text once to find its runs and tell its damages, and merges all.
///
/// # Errors
/// What a temporary file says. Whatever is wrong with an input is told, and what can be read of it is merged.
pub fn merge(texts: &[Arc<Text>], limits: Limits, say: &Say) -> io::Result<Merge> {
    let mut merging = Merging { limits, say, spill: None };
    let mut parts = Vec::with_capacity(texts.len());
    for (rank, text) in texts.iter().enumerate() {
        parts.extend(merging.part(text, rank as u32)?);
    }
    merging.all(parts)
}

struct Merging<'a> {
    limits: Limits,
    say: &'a Say,
    /// The temporary file that is being filled, once one was needed.
    spill: Option<Spill>,
}

impl Merging<'_> {
    /// A text as a part, or `None` if it holds no record.
    fn part(&mut self, text: &Arc<Text>, rank: u32) -> io::Result<Option<Part>> {
        let limits = self.limits;
        let scan = scan(text, limits.buffer, self.say);
        let trust = if scan.clean { Trust::Checked } else { Trust::None };
        if scan.records == 0 {
            return Ok(None);
        }
        if !scan.shuffled {
            return Ok(Some(Part { text: text.clone(), runs: scan.runs, source: Source::Input(rank), trust }));
        }
        let records = Records::new(text.clone(), 0..scan.end, trust, limits.buffer);
        let say = self.say;
        let spill = self.spill()?;
        let runs = spill::sort(records, rank, limits.chunk, spill, say)?;
        Ok(Some(spilled(spill, runs)?))
    }

    fn spill(&mut self) -> io::Result<&mut Spill> {
        if self.spill.is_none() {
            self.spill = Some(Spill::new()?);
        }
        self.spill.as_mut().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// Merges all parts, in several passes if there are too many streams.
    fn all(&mut self, mut parts: Vec<Part>) -> io::Result<Merge> {
        let streams = |parts: &[Part]| parts.iter().map(|part| part.runs.len()).sum::<usize>();
        if streams(&parts) > self.limits.streams {
            info!("{} runs of {} files are too many at once", streams(&parts), parts.len());
            for part in &mut parts {
                while part.runs.len() > 1 {
                    *part = self.fewer_runs(part)?;
                }
            }
        }
        while parts.len() > self.limits.streams {
            // Each pass has its own file, so that the one before it can go.
            self.spill = None;
            parts = parts.chunks(self.limits.streams).map(|group| self.one_part(group)).collect::<Result<_, _>>()?;
        }
        Ok(self.open(&parts))
    }

    /// Merges the runs of a part in groups.
    fn fewer_runs(&mut self, part: &Part) -> io::Result<Part> {
        let mut runs = Vec::new();
        for group in part.runs.chunks(self.limits.streams) {
            let merge = self.open_runs(part, group, group.len());
            runs.push(self.write(merge)?);
        }
        spilled(self.spill()?, runs)
    }

    /// Merges parts of one run each into one.
    fn one_part(&mut self, parts: &[Part]) -> io::Result<Part> {
        let merge = self.open(parts);
        let run = self.write(merge)?;
        spilled(self.spill()?, vec![run])
    }

    /// Writes a merge to the temporary file as one run.
    fn write(&mut self, mut merge: Merge) -> io::Result<Range<u64>> {
        let say = self.say;
        let spill = self.spill()?;
        let start = spill.at();
        while let Some(line) = merge.line() {
            spill.push(merge.rank(), line)?;
            merge.advance(say);
        }
        Ok(start..spill.at())
    }

    /// Opens parts for one merge.
    fn open(&self, parts: &[Part]) -> Merge {
        let total = parts.iter().map(|part| part.runs.len()).sum();
        // Beyond that the buffers would be smaller than records need, or take more memory than was allowed.
        debug_assert!(total <= self.limits.streams);
        let streams = parts.iter().map(|part| match &part.runs[..] {
            [run] => self.cursor(part, run, total),
            runs => Stream::Merge(Box::new(self.open_runs(part, runs, total))),
        });
        Merge::new(streams.collect(), Ties::StampThenName)
    }

    /// Opens runs of a part, which are among `total` streams that are merged together.
    fn open_runs(&self, part: &Part, runs: &[Range<u64>], total: usize) -> Merge {
        let streams = runs.iter().map(|run| self.cursor(part, run, total)).collect();
        Merge::new(streams, Ties::FileOrder)
    }

    fn cursor(&self, part: &Part, run: &Range<u64>, total: usize) -> Stream {
        let length = usize::try_from(run.end - run.start).unwrap_or(usize::MAX);
        let size = (self.limits.buffers / total.max(1)).min(self.limits.buffer).min(length);
        let records = Records::new(part.text.clone(), run.clone(), part.trust, size);
        Stream::Run(Cursor::new(records, part.source, self.say))
    }
}

/// Runs that were just written, as a part.
fn spilled(spill: &mut Spill, runs: Vec<Range<u64>>) -> io::Result<Part> {
    Ok(Part { text: spill.text()?, runs, source: Source::Marked, trust: Trust::Marked })
}

#[cfg(test)]
mod tests;
