//! Reads texts once from end to end, several at a time: tells what in them is damaged, and finds where which times are.
//!
//! Texts are read in chunks, which begin behind a newline: there an item begins, whatever stands before.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::Mutex;

use log::{debug, info};
use memchr::memchr;

use super::record_reader::{RecordItem, RecordReader, TextDamage};
use super::record_text::RecordText;
use super::time_index::{IndexBlock, TimeIndex};
use crate::record::plain_records;
use crate::record::plain_records::{MARGIN, PrintedTime, WalkEnd};
use crate::support::diagnostics::{Diagnostics, reason};
use crate::support::progress::Amount;
use crate::support::threads::run_on_threads;

/// Damages of one file that are told; more are only counted.
const REPORTED_MAX: usize = 10;

/// How texts are read.
#[derive(Clone, Copy, Debug)]
pub struct ScanLimits {
    /// Threads that read.
    pub threads: usize,
    /// Bytes that one reads at a time.
    pub chunk: u64,
    /// Bytes of a buffer.
    pub buffer: usize,
    /// Bytes of a text that a block of its index is for.
    pub block: u64,
}

/// The indexes of `texts`, in their order. What is damaged is told, text by text.
pub fn scan(texts: &[Arc<RecordText>], pace: ScanLimits, diagnostics: &Diagnostics) -> Vec<TimeIndex> {
    let total: u64 = texts.iter().map(|text| text.size(0..text.end())).sum();
    let threads = (total / pace.chunk + 1).min(pace.threads as u64);
    let phase = diagnostics.start_phase("reading", Amount::Bytes(total));
    let work = Mutex::new(chunks(texts, pace.chunk).enumerate());
    let done =
        Mutex::new(Assembly { indexes: Vec::new(), waiting: BTreeMap::new(), next: 0, texts, open: None, diagnostics });
    let worker = || {
        let mut buffer = vec![0; pace.buffer];
        loop {
            let next = work.lock().ok().and_then(|mut work| work.next());
            let Some((number, chunk)) = next else { break };
            let text = &texts[chunk.text];
            let part;
            let bytes = chunk.range.end - chunk.range.start;
            (part, buffer) = read(text, &chunk, pace.block, buffer);
            if let Ok(mut done) = done.lock() {
                done.add(number, chunk, part);
            }
            phase.advance(bytes);
        }
    };
    run_on_threads(threads as usize, worker);
    done.into_inner().map(Assembly::finish).unwrap_or_default()
}

/// Some bytes of a text.
#[derive(Clone, Debug)]
struct ScanChunk {
    text: usize,
    range: Range<u64>,
    /// It is where a gapless stretch begins, and so an item.
    first: bool,
    /// The stretch ends there.
    stretch: u64,
}

/// All bytes of all texts; a text without any has one chunk all the same.
fn chunks(texts: &[Arc<RecordText>], size: u64) -> impl Iterator<Item = ScanChunk> {
    texts.iter().enumerate().flat_map(move |(number, text)| {
        let mut at = Some(0);
        std::iter::from_fn(move || {
            let from = at?;
            let Some(stretch) = text.stretch(from) else {
                at = None;
                let nothing = ScanChunk { text: number, range: 0..0, first: true, stretch: 0 };
                return (from == 0).then_some(nothing);
            };
            let first = from == 0 || stretch.start > from;
            let end = stretch.end.min(stretch.start + size);
            at = Some(end);
            Some(ScanChunk { text: number, range: stretch.start..end, first, stretch: stretch.end })
        })
    })
}

/// What reading a chunk told.
#[derive(Default)]
struct ChunkScan {
    blocks: Vec<IndexBlock>,
    /// Where the block that is open ends.
    edge: u64,
    /// The first and the last record's times.
    ends: Option<(u64, u64)>,
    /// Within it, times descend.
    descends: bool,
    lines: u64,
    damages: Vec<(u64, u64, TextDamage)>,
    more_damages: u64,
    /// Something was no record.
    dirty: bool,
    end: u64,
    error: Option<io::Error>,
}

/// Reads a chunk.
fn read(text: &Arc<RecordText>, chunk: &ScanChunk, block: u64, mut buffer: Vec<u8>) -> (ChunkScan, Vec<u8>) {
    let mut part = ChunkScan { end: chunk.range.start, ..ChunkScan::default() };
    let start = match chunk.first {
        true => Ok(Some(chunk.range.start)),
        false => behind_newline(text, chunk.range.start - 1..chunk.range.end - 1, &mut buffer),
    };
    let start = match start {
        Ok(Some(start)) => start,
        Ok(None) => return (part, buffer),
        Err(error) => {
            part.error = Some(error);
            return (part, buffer);
        }
    };
    let mut records = RecordReader::new(text.clone(), start..chunk.stretch, buffer).expect(chunk.range.end);
    if let Err(error) = part.fill(&mut records, chunk.range.end, block) {
        part.error = Some(error);
    }
    part.lines = records.lines();
    part.end = records.position();
    (part, records.into_buffer())
}

/// Where the first line begins whose newline before it is in `range`.
fn behind_newline(text: &RecordText, range: Range<u64>, buffer: &mut [u8]) -> io::Result<Option<u64>> {
    let mut at = range.start;
    // Most lines are short.
    let mut size = buffer.len().min(1024);
    while at < range.end {
        let length = text.read_at(&mut buffer[..size], at)?;
        if let Some(newline) = memchr(b'\n', &buffer[..length]) {
            let start = at + newline as u64 + 1;
            return Ok((start <= range.end).then_some(start));
        }
        if length == 0 {
            break;
        }
        at += length as u64;
        size = buffer.len();
    }
    Ok(None)
}

impl ChunkScan {
    /// Reads records up to the first item behind a newline that begins at `end` or later.
    fn fill(&mut self, records: &mut RecordReader, end: u64, block: u64) -> io::Result<()> {
        let mut last = PrintedTime::FIRST;
        loop {
            let at = records.position();
            if at >= end && records.at_line() {
                return Ok(());
            }
            if records.unread().len() < MARGIN {
                records.refill()?;
            }
            let edge = (at / block + 1) * block;
            let bound = edge.min(end).saturating_sub(at) as usize;
            // Behind the end only an item counts that begins within a line.
            let bytes = if at < end { records.unread() } else { &[] };
            let walk = plain_records::walk(bytes, bound.max(1), last);
            if walk.records > 0 {
                let first = records.unread().first_chunk().map_or(PrintedTime::FIRST, PrintedTime::new);
                if let (Some(first), Some(last)) = (first.time(), walk.last.time()) {
                    self.add(at, edge, walk.records as u32, first, last);
                }
                last = walk.last;
                records.skip(walk.bytes, walk.records);
            }
            match walk.stop {
                WalkEnd::Bound => {}
                // `add` sees that too.
                WalkEnd::Descent => last = PrintedTime::FIRST,
                WalkEnd::Odd => {
                    match records.next()? {
                        Some(RecordItem::Record { time }) => {
                            self.add(records.began(), edge.max(records.began() + 1), 1, time, time);
                            last = records.line().first_chunk().map_or(PrintedTime::FIRST, PrintedTime::new);
                        }
                        Some(RecordItem::Damage(what)) => self.damage(records, what),
                        None => return Ok(()),
                    };
                }
            }
        }
    }

    /// Adds records that begin at `at`, whose times ascend from `first` to `last`.
    fn add(&mut self, at: u64, edge: u64, records: u32, first: u64, last: u64) {
        let before = self.ends.map_or(0, |(_, last)| last);
        self.descends |= first < before;
        self.ends = Some((self.ends.map_or(first, |(first, _)| first), last));
        match self.blocks.last_mut().filter(|_| at < self.edge) {
            Some(block) => {
                (block.min, block.max) = (block.min.min(first), block.max.max(last));
                block.records += records;
            }
            None => {
                self.blocks.push(IndexBlock { at, min: first, max: last, records });
                self.edge = edge;
            }
        }
    }

    fn damage(&mut self, records: &RecordReader, what: TextDamage) {
        self.dirty = true;
        let text = records.text();
        if explained(text, what) {
            debug!("{}: byte {}: {what}: a write that was not done", text.path().display(), records.began());
        } else if self.damages.len() < REPORTED_MAX {
            self.damages.push((records.began(), records.line_number(), what));
        } else {
            self.more_damages += 1;
        }
    }
}

/// Whether it is no loss that these bytes are no record: their writer is still at it, or died between taking the
/// place and writing, in which case the records are in its trbuf.
fn explained(text: &RecordText, what: TextDamage) -> bool {
    match what {
        TextDamage::Torn => text.growing(),
        TextDamage::Nuls(_) => text.growing() || text.appended(),
        _ => false,
    }
}

/// Parts that are put together in order, in whichever order they are done.
struct Assembly<'a> {
    indexes: Vec<TimeIndex>,
    waiting: BTreeMap<usize, (ScanChunk, ChunkScan)>,
    next: usize,
    texts: &'a [Arc<RecordText>],
    open: Option<TextScan>,
    diagnostics: &'a Diagnostics,
}

/// What is known of a text so far.
#[derive(Default)]
struct TextScan {
    text: usize,
    blocks: Vec<IndexBlock>,
    last: u64,
    descends: bool,
    dirty: bool,
    lines: u64,
    end: u64,
    told: usize,
    untold: u64,
    failed: bool,
}

impl Assembly<'_> {
    fn add(&mut self, number: usize, chunk: ScanChunk, part: ChunkScan) {
        self.waiting.insert(number, (chunk, part));
        while let Some((chunk, part)) = self.waiting.remove(&self.next) {
            self.next += 1;
            if self.open.as_ref().is_none_or(|whole| whole.text != chunk.text) {
                self.close();
                self.open = Some(TextScan { text: chunk.text, ..TextScan::default() });
            }
            let text = &self.texts[chunk.text];
            if let Some(whole) = &mut self.open {
                whole.add(text, part, self.diagnostics);
            }
        }
    }

    fn close(&mut self) {
        let Some(whole) = self.open.take() else { return };
        let text = &self.texts[whole.text];
        let path = text.path().display();
        if whole.untold > 0 {
            self.diagnostics.report_damage(&path, format_args!("{} more places like these", whole.untold));
        }
        let damages = whole.told as u64 + whole.untold;
        let clean = !whole.dirty && !text.growing();
        let index = TimeIndex::new(whole.blocks, whole.end, !whole.descends, clean);
        let records: u64 = index.blocks().iter().map(|block| u64::from(block.records)).sum();
        info!("{path}: {records} records in {} runs of blocks, {damages} damages", index.runs().count());
        self.indexes.push(index);
    }

    fn finish(mut self) -> Vec<TimeIndex> {
        self.close();
        self.indexes
    }
}

impl TextScan {
    fn add(&mut self, text: &RecordText, mut part: ChunkScan, diagnostics: &Diagnostics) {
        if self.failed {
            return;
        }
        if let Some((first, last)) = part.ends {
            self.descends |= part.descends || first < self.last;
            self.last = last;
        }
        self.blocks.append(&mut part.blocks);
        self.dirty |= part.dirty;
        for (at, line, what) in part.damages {
            if self.told < REPORTED_MAX {
                self.told += 1;
                diagnostics.report_damage(text.describe_place(at, self.lines + line), what);
            } else {
                self.untold += 1;
            }
        }
        self.untold += part.more_damages;
        self.lines += part.lines;
        self.end = self.end.max(part.end);
        if let Some(error) = part.error {
            diagnostics.report_damage(text.path().display(), reason(&error));
            (self.failed, self.dirty) = (true, true);
        }
    }
}

#[cfg(test)]
#[path = "scan_tests.rs"]
mod tests;
