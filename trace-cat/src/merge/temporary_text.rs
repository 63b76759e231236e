//! Texts in a temporary file, for inputs that cannot be merged as they are.

use std::env;
use std::io;
use std::ops::Range;
use std::sync::Arc;

use log::info;

use crate::support::diagnostics::{Diagnostics, reason};
use crate::support::external_sort::SortBuffer;
use crate::support::progress::Amount;
use crate::support::temporary_files::{TemporaryFile, temporary_file_error};
use crate::trace::file_handle::FileHandle;
use crate::trace::record_reader::{RecordItem, RecordReader};
use crate::trace::record_text::RecordText;

/// Bytes that are read at a time.
const READ_BUFFER: usize = 256 << 10;

/// Texts in one temporary file, one behind the other.
pub struct TemporaryText {
    file: TemporaryFile,
    handle: Arc<FileHandle>,
    /// Where the current text starts.
    start: u64,
}

impl TemporaryText {
    pub fn new() -> io::Result<TemporaryText> {
        let file = TemporaryFile::new()?;
        let name = env::temp_dir().join("(temporary file of trace-cat)");
        let handle = FileHandle::unnamed(name, file.file().try_clone().map_err(temporary_file_error)?);
        Ok(TemporaryText { file, handle: Arc::new(handle), start: 0 })
    }

    /// Appends lines to the current text.
    pub fn push(&mut self, lines: &[u8]) -> io::Result<()> {
        self.file.push(lines)
    }

    /// Appends the records of `range` of `text` to the current text, sorted by time within runs of at most `run` bytes.
    /// Records of the same time keep their order. What cannot be read is reported and left out.
    ///
    /// The runs are not merged here: the merge of all inputs takes them as they are.
    pub fn push_sorted(
        &mut self,
        text: &Arc<RecordText>,
        range: Range<u64>,
        run: usize,
        diagnostics: &Diagnostics,
    ) -> io::Result<()> {
        let mut records = RecordReader::new(text.clone(), range.clone(), vec![0; READ_BUFFER]);
        let mut buffer = SortBuffer::new(run);
        let mut runs = 0;
        let phase = diagnostics.start_phase("sorting a file in no order", Amount::Bytes(text.size(range)));
        loop {
            let item = records.next().unwrap_or_else(|error| {
                diagnostics.report_damage(text.path.display(), reason(&error));
                None
            });
            if item.is_none() || !buffer.has_room(records.line().len()) {
                phase.advance(buffer.length() as u64);
                buffer.drain(&mut |line| self.file.push(line))?;
                runs += 1;
            }
            match item {
                Some(RecordItem::Record { time }) => buffer.push(time, records.line()),
                Some(RecordItem::Damage(_)) => {}
                None => break,
            }
        }
        info!("{}: {runs} sorted runs in a temporary file", text.path.display());
        Ok(())
    }

    /// Ends the current text and returns it.
    pub fn end_text(&mut self) -> io::Result<Arc<RecordText>> {
        self.file.flush()?;
        let range = self.start..self.file.length;
        self.start = range.end;
        Ok(Arc::new(RecordText::slice(self.handle.clone(), range)))
    }
}
