//! Temporary files, for inputs that cannot be merged as they are.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::ops::Range;
use std::sync::Arc;

use log::info;

use crate::support::diagnostics::{Diagnostics, reason};
use crate::support::progress::Amount;
use crate::support::temporary_files::temporary_file_error;
use crate::trace::file_handle::FileHandle;
use crate::trace::record_reader::{RecordItem, RecordReader};
use crate::trace::record_text::RecordText;

/// A temporary file. It has no name, so it goes when the program ends, however that happens.
pub struct TemporaryText {
    file: BufWriter<File>,
    handle: Arc<FileHandle>,
    at: u64,
}

impl TemporaryText {
    /// An empty one in the directory for temporary files (`TMPDIR`).
    ///
    /// # Errors
    /// What the system says.
    pub fn new() -> io::Result<TemporaryText> {
        let file = tempfile::tempfile().map_err(temporary_file_error)?;
        let name = std::env::temp_dir().join("(temporary file of trace-cat)");
        let handle = Arc::new(FileHandle::unnamed(name, file.try_clone().map_err(temporary_file_error)?));
        Ok(TemporaryText { file: BufWriter::with_capacity(256 * 1024, file), handle, at: 0 })
    }

    /// Where the next bytes go.
    pub fn at(&self) -> u64 {
        self.at
    }

    /// Adds some lines.
    ///
    /// # Errors
    /// What writing says.
    pub fn push(&mut self, lines: &[u8]) -> io::Result<()> {
        self.file.write_all(lines).map_err(temporary_file_error)?;
        self.at += lines.len() as u64;
        Ok(())
    }

    /// What was added from `start` on, as a text.
    ///
    /// # Errors
    /// What writing says.
    pub fn text(&mut self, start: u64) -> io::Result<Arc<RecordText>> {
        self.file.flush().map_err(temporary_file_error)?;
        Ok(Arc::new(RecordText::slice(self.handle.clone(), start..self.at)))
    }
}

/// Sorts the records of `range` of `text` by time, as many at a time as `chunk` bytes hold, and appends them to `spill`,
/// one such chunk behind the other. Records of the same time keep their order.
///
/// # Errors
/// What writing says. What reading says is told.
pub fn sort(
    text: &Arc<RecordText>,
    range: Range<u64>,
    chunk: usize,
    spill: &mut TemporaryText,
    diagnostics: &Diagnostics,
) -> io::Result<()> {
    let mut records = RecordReader::new(text.clone(), range.clone(), vec![0; 256 * 1024]);
    let mut bytes: Vec<u8> = Vec::new();
    let mut index: Vec<(u64, u32, u32)> = Vec::new();
    let mut chunks = 0;
    let phase = diagnostics.start_phase("sorting a file in no order", Amount::Bytes(text.size(range)));
    loop {
        let item = records.next().unwrap_or_else(|error| {
            diagnostics.report_damage(text.path().display(), reason(&error));
            None
        });
        let line = records.line();
        let full = bytes.len() + line.len() > chunk.min(u32::MAX as usize);
        if !index.is_empty() && (item.is_none() || full) {
            // The place breaks ties, which keeps equal times in order.
            index.sort_unstable();
            for &(_, at, length) in &index {
                spill.push(&bytes[at as usize..][..length as usize])?;
            }
            chunks += 1;
            phase.advance(bytes.len() as u64);
            bytes.clear();
            index.clear();
        }
        match item {
            Some(RecordItem::Record { time }) => {
                index.push((time, bytes.len() as u32, line.len() as u32));
                bytes.extend_from_slice(line);
            }
            Some(RecordItem::Damage(_)) => {}
            None => break,
        }
    }
    info!("{}: sorted in a temporary file, {chunks} parts", text.path().display());
    Ok(())
}
