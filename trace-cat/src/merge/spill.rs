//! Temporary files of sorted records, for traces that cannot be merged in one go.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::ops::Range;
use std::sync::Arc;

use log::info;

use super::stream::mark;
use crate::read::handle::Handle;
use crate::read::records::{Item, MARK_WIDTH, Records};
use crate::read::text::Text;
use crate::say::{Say, reason};

/// A temporary file. It has no name, so it goes when the program ends, however that happens.
pub struct Spill {
    file: BufWriter<File>,
    handle: Arc<Handle>,
    at: u64,
}

impl Spill {
    /// An empty one in the directory for temporary files (`TMPDIR`).
    pub fn new() -> io::Result<Spill> {
        let file = tempfile::tempfile()?;
        let name = std::env::temp_dir().join("(temporary file of trace-cat)");
        let handle = Arc::new(Handle::unnamed(name, file.try_clone()?));
        Ok(Spill { file: BufWriter::with_capacity(256 * 1024, file), handle, at: 0 })
    }

    /// Where the next record goes.
    pub fn at(&self) -> u64 {
        self.at
    }

    /// Adds a record, marked with the rank of its input.
    pub fn push(&mut self, rank: u32, line: &[u8]) -> io::Result<()> {
        self.file.write_all(&mark(rank))?;
        self.file.write_all(line)?;
        self.at += (MARK_WIDTH + line.len()) as u64;
        Ok(())
    }

    /// All that has been added so far, as a text.
    pub fn text(&mut self) -> io::Result<Arc<Text>> {
        self.file.flush()?;
        Ok(Arc::new(Text::new(self.handle.path().to_owned(), Some(self.handle.clone()), self.at, false)))
    }
}

/// Sorts all of `records` by time, as many at a time as `chunk` bytes hold, and appends them to `spill` as a run for
/// each such chunk. Records of the same time keep their order.
///
/// # Errors
/// What writing says. What is wrong with the input is told.
pub fn sort(
    mut records: Records,
    rank: u32,
    chunk: usize,
    spill: &mut Spill,
    say: &Say,
) -> io::Result<Vec<Range<u64>>> {
    let mut bytes: Vec<u8> = Vec::with_capacity(chunk);
    let mut index: Vec<(u64, u32, u32)> = Vec::new();
    let mut runs = Vec::new();
    loop {
        let item = records.next().unwrap_or_else(|error| {
            say.damage(records.text().path().display(), reason(&error));
            None
        });
        let line = records.line();
        let full = bytes.len() + line.len() > chunk.min(u32::MAX as usize);
        if !index.is_empty() && (item.is_none() || full) {
            // The place breaks ties, which keeps equal times in order.
            index.sort_unstable();
            let start = spill.at();
            for &(_, at, length) in &index {
                spill.push(rank, &bytes[at as usize..][..length as usize])?;
            }
            runs.push(start..spill.at());
            bytes.clear();
            index.clear();
        }
        match item {
            Some(Item::Record { time }) => {
                index.push((time, bytes.len() as u32, line.len() as u32));
                bytes.extend_from_slice(line);
            }
            Some(Item::Damage(_)) => {}
            None => break,
        }
    }
    info!("{}: sorted into {} runs in a temporary file", records.text().path().display(), runs.len());
    Ok(runs)
}
