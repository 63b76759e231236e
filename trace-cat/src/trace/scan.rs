//! Reads every text once from end to end: reports what is damaged, and makes the indexes of times.
//!
//! Threads read the texts in chunks. A chunk within a stretch of text is read from after its first newline on, since an
//! item begins there, whatever precedes it; the chunk before is read up to there.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex};

use log::{debug, info};
use memchr::{memchr, memmem, memrchr};

use super::record_reader::{RecordItem, RecordReader, TextDamage};
use super::record_text::RecordText;
use super::time_index::{IndexBlock, TimeIndex};
use crate::record::columns;
use crate::record::plain_records::{self, MARGIN, PrintedTime, WalkEnd};
use crate::support::diagnostics::{Diagnostics, reason};
use crate::support::progress::Amount;
use crate::support::threads::run_on_threads;

/// The most damages of one text that are reported; the others are counted.
const REPORTED_MAX: usize = 10;
/// The most records of one text that are collected because they name a thread.
const NAME_LINES_MAX: usize = 1 << 18;
/// What the records that name a thread have in common.
const SET_NAME_TEXT: &[u8] = b":01:39:0:";

/// How texts are read.
#[derive(Clone, Copy, Debug)]
pub struct ScanLimits {
    /// The number of threads.
    pub threads: usize,
    /// Bytes of a chunk.
    pub chunk: u64,
    /// Bytes of a thread's buffer.
    pub buffer: usize,
    /// Bytes of text that a block of an index covers.
    pub block: u64,
    /// Records that name a thread are collected.
    pub collects_names: bool,
}

/// Makes the indexes of `texts`, in their order. Reports what is damaged, text by text.
pub fn scan(texts: &[Arc<RecordText>], limits: ScanLimits, diagnostics: &Diagnostics) -> Vec<TimeIndex> {
    let total: u64 = texts.iter().map(|text| text.size(0..text.end())).sum();
    let threads = (total / limits.chunk + 1).min(limits.threads as u64);
    let phase = diagnostics.start_phase("reading", Amount::Bytes(total));
    let work = Mutex::new(chunks(texts, limits.chunk).enumerate());
    let assembly =
        Mutex::new(Assembly { indexes: Vec::new(), waiting: BTreeMap::new(), next: 0, texts, open: None, diagnostics });
    let worker = || {
        let mut buffer = vec![0; limits.buffer];
        loop {
            let next = work.lock().ok().and_then(|mut work| work.next());
            let Some((number, chunk)) = next else { break };
            let text = &texts[chunk.text];
            let result;
            let bytes = chunk.range.end - chunk.range.start;
            (result, buffer) = scan_chunk(text, &chunk, &limits, buffer);
            if let Ok(mut assembly) = assembly.lock() {
                assembly.add(number, chunk, result);
            }
            phase.advance(bytes);
        }
    };
    run_on_threads(threads as usize, worker);
    assembly.into_inner().map(Assembly::finish).unwrap_or_default()
}

/// A range of a text, which one thread reads.
#[derive(Clone, Debug)]
struct ScanChunk {
    /// The index of the text.
    text: usize,
    range: Range<u64>,
    /// It begins a gapless stretch, and so an item.
    begins_stretch: bool,
    /// The end of the stretch.
    stretch_end: u64,
}

/// The chunks of all texts; an empty text has one empty chunk.
fn chunks(texts: &[Arc<RecordText>], size: u64) -> impl Iterator<Item = ScanChunk> {
    texts.iter().enumerate().flat_map(move |(number, text)| {
        let mut at = Some(0);
        std::iter::from_fn(move || {
            let from = at?;
            let Some(stretch) = text.stretch(from) else {
                at = None;
                let empty = ScanChunk { text: number, range: 0..0, begins_stretch: true, stretch_end: 0 };
                return (from == 0).then_some(empty);
            };
            let begins_stretch = from == 0 || stretch.start > from;
            let end = stretch.end.min(stretch.start + size);
            at = Some(end);
            Some(ScanChunk { text: number, range: stretch.start..end, begins_stretch, stretch_end: stretch.end })
        })
    })
}

/// What is in a chunk.
#[derive(Default)]
struct ChunkScan {
    blocks: Vec<IndexBlock>,
    records: u64,
    /// The end of the text that the last block covers.
    edge: u64,
    /// The times of the first and of the last record.
    ends: Option<(u64, u64)>,
    /// The time of a record is less than that of the record before.
    descends: bool,
    lines: u64,
    /// The first damages: place, line number within the chunk, and kind.
    damages: Vec<(u64, u64, TextDamage)>,
    more_damages: u64,
    /// Some bytes are not a record.
    dirty: bool,
    name_lines: Vec<Box<[u8]>>,
    /// The end of the last item.
    end: u64,
    error: Option<io::Error>,
}

/// Reads a chunk through `buffer`, which it gives back.
fn scan_chunk(
    text: &Arc<RecordText>,
    chunk: &ScanChunk,
    limits: &ScanLimits,
    mut buffer: Vec<u8>,
) -> (ChunkScan, Vec<u8>) {
    let mut result = ChunkScan { end: chunk.range.start, ..ChunkScan::default() };
    let start = match chunk.begins_stretch {
        true => Ok(Some(chunk.range.start)),
        false => after_newline(text, chunk.range.start - 1..chunk.range.end - 1, &mut buffer),
    };
    let start = match start {
        Ok(Some(start)) => start,
        Ok(None) => return (result, buffer),
        Err(error) => {
            result.error = Some(error);
            return (result, buffer);
        }
    };
    let mut records = RecordReader::new(text.clone(), start..chunk.stretch_end, buffer).expect_end(chunk.range.end);
    if let Err(error) = result.fill(&mut records, chunk.range.end, limits) {
        result.error = Some(error);
    }
    result.lines = records.lines();
    result.end = records.position;
    (result, records.into_buffer())
}

/// The beginning of the first line that follows a newline in `range`.
fn after_newline(text: &RecordText, range: Range<u64>, buffer: &mut [u8]) -> io::Result<Option<u64>> {
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
    /// Reads items up to the first that follows a newline and begins at `end` or later.
    fn fill(&mut self, records: &mut RecordReader, end: u64, limits: &ScanLimits) -> io::Result<()> {
        let block = limits.block;
        let set_name = limits.collects_names.then(|| memmem::Finder::new(SET_NAME_TEXT));
        let mut last = PrintedTime::FIRST;
        loop {
            let at = records.position;
            if at >= end && records.at_line {
                return Ok(());
            }
            if records.unread().len() < MARGIN {
                records.refill()?;
            }
            let edge = (at / block + 1) * block;
            let bound = edge.min(end).saturating_sub(at) as usize;
            // After `end` only items that begin within a line belong to this chunk.
            let bytes = if at < end { records.unread() } else { &[] };
            let walk = plain_records::walk(bytes, bound.max(1), last);
            if walk.records > 0 {
                let first = records.unread().first_chunk().map_or(PrintedTime::FIRST, PrintedTime::new);
                if let (Some(first), Some(last)) = (first.time(), walk.last.time()) {
                    self.add(at, edge, walk.records as u32, first, last);
                }
                if let Some(set_name) = &set_name {
                    self.collect_names(&records.unread()[..walk.bytes], set_name);
                }
                last = walk.last;
                records.skip(walk.bytes, walk.records);
            }
            match walk.stop {
                WalkEnd::Bound => {}
                // `add` detects the descent as well.
                WalkEnd::Descent => last = PrintedTime::FIRST,
                WalkEnd::NotPlain => {
                    match records.next()? {
                        Some(RecordItem::Record { time }) => {
                            self.add(records.item_start, edge.max(records.item_start + 1), 1, time, time);
                            if let Some(set_name) = &set_name {
                                self.collect_names(records.line(), set_name);
                            }
                            last = records.line().first_chunk().map_or(PrintedTime::FIRST, PrintedTime::new);
                        }
                        Some(RecordItem::Damage(damage)) => self.add_damage(records, damage),
                        None => return Ok(()),
                    };
                }
            }
        }
    }

    /// Adds records that begin at `at` and whose times ascend from `first` to `last`. `edge` is the end of the text that
    /// their block covers.
    fn add(&mut self, at: u64, edge: u64, records: u32, first: u64, last: u64) {
        let before = self.ends.map_or(0, |(_, last)| last);
        self.descends |= first < before;
        self.ends = Some((self.ends.map_or(first, |(first, _)| first), last));
        self.records += u64::from(records);
        match self.blocks.last_mut().filter(|_| at < self.edge) {
            Some(block) => {
                (block.min, block.max) = (block.min.min(first), block.max.max(last));
            }
            None => {
                self.blocks.push(IndexBlock { at, min: first, max: last });
                self.edge = edge;
            }
        }
    }

    /// Collects the records among these, which are complete lines, that name a thread.
    fn collect_names(&mut self, records: &[u8], set_name: &memmem::Finder) {
        for at in set_name.find_iter(records) {
            let start = memrchr(b'\n', &records[..at]).map_or(0, |newline| newline + 1);
            let end = memchr(b'\n', &records[at..]).map_or(records.len(), |length| at + length + 1);
            if columns::sets_name(&records[start..end]) && self.name_lines.len() < NAME_LINES_MAX {
                self.name_lines.push(records[start..end].into());
            }
        }
    }

    fn add_damage(&mut self, records: &RecordReader, damage: TextDamage) {
        self.dirty = true;
        let text = &records.text;
        if is_explained(text, damage) {
            debug!("{}: byte {}: {damage}: a write that was not done", text.path.display(), records.item_start);
        } else if self.damages.len() < REPORTED_MAX {
            self.damages.push((records.item_start, records.line_number, damage));
        } else {
            self.more_damages += 1;
        }
    }
}

/// Whether these bytes, which are not a record, are no loss: their writer is still writing them, or it died after it had taken
/// the range of the file and before it wrote there, and its records are in the trbuf.
fn is_explained(text: &RecordText, damage: TextDamage) -> bool {
    match damage {
        TextDamage::Torn => text.is_growing,
        TextDamage::Nuls(_) => text.is_growing || text.has_appended_text,
        _ => false,
    }
}

/// Puts the results of chunks, which arrive in any order, together in the order of the texts.
struct Assembly<'a> {
    indexes: Vec<TimeIndex>,
    /// Chunks that arrived before chunk `next`.
    waiting: BTreeMap<usize, (ScanChunk, ChunkScan)>,
    next: usize,
    texts: &'a [Arc<RecordText>],
    open: Option<TextScan>,
    diagnostics: &'a Diagnostics,
}

/// What is in the chunks of a text so far.
#[derive(Default)]
struct TextScan {
    /// The index of the text.
    text: usize,
    blocks: Vec<IndexBlock>,
    records: u64,
    /// The time of the last record.
    last: u64,
    descends: bool,
    dirty: bool,
    lines: u64,
    name_lines: Vec<Box<[u8]>>,
    end: u64,
    /// The first damages, with their places, which wait for a record: a file without one is no trace.
    waiting: Vec<(String, TextDamage)>,
    reported: usize,
    unreported: u64,
    /// Reading failed; what follows is left out.
    failed: bool,
}

impl Assembly<'_> {
    fn add(&mut self, number: usize, chunk: ScanChunk, result: ChunkScan) {
        self.waiting.insert(number, (chunk, result));
        while let Some((chunk, result)) = self.waiting.remove(&self.next) {
            self.next += 1;
            if self.open.as_ref().is_none_or(|open| open.text != chunk.text) {
                self.close();
                self.open = Some(TextScan { text: chunk.text, ..TextScan::default() });
            }
            let text = &self.texts[chunk.text];
            if let Some(open) = &mut self.open {
                open.add(text, result, self.diagnostics);
            }
        }
    }

    fn close(&mut self) {
        let Some(mut scanned) = self.open.take() else { return };
        let text = &self.texts[scanned.text];
        let path = text.path.display();
        let damages = (scanned.reported + scanned.waiting.len()) as u64 + scanned.unreported;
        if scanned.blocks.is_empty()
            && damages > 1
            && let Some((place, damage)) = scanned.waiting.first()
        {
            self.diagnostics.report_damage(place, format_args!("{damage}; the file has no record"));
        } else {
            scanned.report_waiting(self.diagnostics);
            if scanned.unreported > 0 {
                self.diagnostics.report_damage(&path, format_args!("{} more places like these", scanned.unreported));
            }
        }
        let clean = !scanned.dirty && !text.is_growing;
        let mut index = TimeIndex::new(scanned.blocks, scanned.end, !scanned.descends, clean);
        (index.records, index.name_lines) = (scanned.records, scanned.name_lines);
        let (records, runs) = (index.records, index.runs().count());
        info!("{path}: {records} records in {runs} runs of blocks, {damages} damages");
        self.indexes.push(index);
    }

    fn finish(mut self) -> Vec<TimeIndex> {
        self.close();
        self.indexes
    }
}

impl TextScan {
    fn add(&mut self, text: &RecordText, mut chunk: ChunkScan, diagnostics: &Diagnostics) {
        if self.failed {
            return;
        }
        if let Some((first, last)) = chunk.ends {
            self.descends |= chunk.descends || first < self.last;
            self.last = last;
        }
        self.blocks.append(&mut chunk.blocks);
        self.records += chunk.records;
        let more = NAME_LINES_MAX.saturating_sub(self.name_lines.len());
        self.name_lines.extend(chunk.name_lines.into_iter().take(more));
        self.dirty |= chunk.dirty;
        for (at, line, damage) in chunk.damages {
            if self.reported + self.waiting.len() < REPORTED_MAX {
                self.waiting.push((text.describe_place(at, self.lines + line), damage));
            } else {
                self.unreported += 1;
            }
        }
        if !self.blocks.is_empty() {
            self.report_waiting(diagnostics);
        }
        self.unreported += chunk.more_damages;
        self.lines += chunk.lines;
        self.end = self.end.max(chunk.end);
        if let Some(error) = chunk.error {
            diagnostics.report_damage(text.path.display(), reason(&error));
            (self.failed, self.dirty) = (true, true);
        }
    }

    fn report_waiting(&mut self, diagnostics: &Diagnostics) {
        self.reported += self.waiting.len();
        self.waiting.drain(..).for_each(|(place, damage)| diagnostics.report_damage(place, damage));
    }
}

#[cfg(test)]
#[path = "scan_tests.rs"]
mod tests;
