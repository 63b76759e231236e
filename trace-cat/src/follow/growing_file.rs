//! A record file that is read as it grows.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use spec::record::EVENT1_OFFSET;

use super::emitted_records::EmittedRecords;
use super::reorder_window::Intake;
use crate::record::columns;
use crate::support::diagnostics::{Diagnostics, reason};
use crate::trace::buffers::leftovers::LeftoverPlaces;
use crate::trace::file_handle::FileHandle;
use crate::trace::record_reader::{RecordItem, RecordReader, TextDamage};
use crate::trace::record_text::RecordText;

/// How many damages of one file are reported.
const REPORTED_MAX: u32 = 10;

/// After how many rounds without new text a file is closed.
const IDLE_ROUNDS_MAX: u32 = 100;

/// A file that may grow.
#[derive(Debug, Default)]
pub struct GrowingFile {
    pub path: PathBuf,
    /// `None` if the file does not exist yet.
    pub handle: Option<Arc<FileHandle>>,
    /// The file completed by what its process left, once the process is dead.
    pub completed: Option<Arc<RecordText>>,
    /// Where reading goes on.
    position: u64,
    /// The file's first bytes.
    head: Option<[u8; EVENT1_OFFSET]>,
    /// Records that were emitted from a buffer before they were in the file.
    pub emitted: EmittedRecords,
    /// A running process writes it.
    pub owned: bool,
    /// Up to where that process has written it or is writing it, by its trbuf.
    pub end: u64,
    /// The time of the latest record.
    latest: u64,
    /// It may have been written since it was read.
    pub is_written: bool,
    /// How many rounds in a row did not have to read it.
    idle_rounds: u32,
    /// The kernel reports it when the file is written.
    pub is_reported: bool,
    /// The file holds more than was read.
    pub behind: bool,
    /// There may be text that was not read: reading waits for text that the process is writing, or for other files.
    pub has_unread: bool,
    reports: u32,
}

impl GrowingFile {
    /// The file at `path`, read up to `position`.
    pub fn new(path: PathBuf, handle: Option<Arc<FileHandle>>, position: u64) -> GrowingFile {
        GrowingFile { path, handle, position, is_written: true, ..GrowingFile::default() }
    }

    /// The time up to which it has been read, if it holds more.
    pub fn behind(&self) -> Option<u64> {
        self.behind.then_some(self.latest)
    }

    /// Whether the file is another one than `handle`.
    pub fn differs(&self, handle: &FileHandle) -> bool {
        self.handle.as_ref().is_some_and(|known| known.identity != handle.identity)
    }

    /// The file has been made. If another one was read until now, reading begins anew.
    pub fn set_handle(&mut self, handle: FileHandle) {
        if self.differs(&handle) || self.handle.is_none() {
            (self.handle, self.position, self.head) = (Some(Arc::new(handle)), 0, None);
            self.is_written = true;
        }
    }

    /// Whether a round has to read it.
    pub fn is_due(&self) -> bool {
        self.is_written
            || self.behind
            || self.completed.is_some()
            || self.owned && (self.has_unread || self.position < self.end || !self.is_reported)
    }

    /// Closes a file that has not been due for long, if it is reported when it is written again: directories keep the files of
    /// all processes that have ended. One that was written a moment ago may be removed together with its last records.
    pub fn close_if_idle(&mut self) {
        self.idle_rounds = if self.is_due() { 0 } else { self.idle_rounds.saturating_add(1) };
        if self.idle_rounds == IDLE_ROUNDS_MAX
            && self.is_reported
            && !(self.owned || self.behind || self.has_unread)
            && let Some(handle) = self.handle.as_mut().and_then(Arc::get_mut)
        {
            handle.close();
        }
    }

    /// Completes the file by the leftovers of its process, which is dead.
    pub fn complete(
        &mut self,
        buffers: &Arc<FileHandle>,
        leftovers: &[LeftoverPlaces],
        diagnostics: &Diagnostics,
    ) -> io::Result<()> {
        let size = self.handle.as_ref().map_or(Ok(0), |handle| handle.size())?;
        let mut text = RecordText::new(self.path.clone(), self.handle.clone(), size, false);
        text.add_leftovers(buffers, leftovers, diagnostics);
        self.completed = Some(Arc::new(text));
        Ok(())
    }

    /// Whether reading has reached the end of a file that does not grow any more.
    pub fn is_done(&self) -> bool {
        self.completed.is_some() && !self.behind
    }

    /// Reads at most `limit` bytes of the new text. `last`: this is the last reading.
    pub fn read(&mut self, limit: u64, last: bool, intake: &mut Intake, diagnostics: &Diagnostics) {
        self.is_written = false;
        if let Err(error) = self.try_read(limit, last, intake, diagnostics) {
            self.behind = false;
            self.report(reason(&error), diagnostics);
        }
    }

    /// The file has become shorter. Reading goes on at its end, or at its beginning if the first bytes are not the same.
    fn continue_truncated(&mut self, size: u64) {
        let head = self.read_head();
        self.position = if head.is_some() && head == self.head { size } else { 0 };
        self.head = head;
        log::info!("{}: it was truncated, and is read from byte {} on", self.path.display(), self.position);
    }

    /// The file's first bytes, if it is long enough.
    fn read_head(&self) -> Option<[u8; EVENT1_OFFSET]> {
        let mut head = [0; EVENT1_OFFSET];
        let length = self.handle.as_ref()?.read_at(&mut head, 0).ok()?;
        (length == head.len()).then_some(head)
    }

    fn try_read(&mut self, limit: u64, last: bool, intake: &mut Intake, diagnostics: &Diagnostics) -> io::Result<()> {
        // `base` is where the text begins in the file.
        let (text, base) = match (&self.completed, self.handle.clone()) {
            (Some(completed), _) => (completed.clone(), 0),
            // It was read to its end, and is no longer at its path.
            (None, Some(handle)) if handle.is_lost() => return Ok(()),
            (None, Some(handle)) => {
                let size = handle.size()?;
                if size < self.position {
                    self.continue_truncated(size);
                }
                (Arc::new(RecordText::slice(handle, self.position..size)), self.position)
            }
            (None, None) => return Ok(()),
        };
        let range = self.position - base..text.end();
        let stop = range.end.min(range.start.saturating_add(limit));
        self.behind = stop < range.end;
        self.has_unread = false;
        if range.is_empty() {
            return Ok(());
        }
        if self.head.is_none() {
            self.head = self.read_head();
        }
        // What a running process has not finished writing is no damage: its trbuf completes it.
        let ends = (self.completed.is_some() || last && !self.owned) && !self.behind;
        let mut records = RecordReader::new(text, range.start..stop, std::mem::take(&mut intake.buffer));
        loop {
            if records.skip_lines(|text| intake.unneeded(text, &self.emitted)) {
                self.latest = self.latest.max(columns::time(records.line()).unwrap_or(0));
                self.position = base + records.position;
            }
            match records.next()? {
                Some(RecordItem::Record { time }) => {
                    self.latest = self.latest.max(time);
                    let line = records.line();
                    if !self.emitted.take(time, line) && intake.unneeded(line, &self.emitted) == 0 {
                        intake.window.push(time, line);
                    }
                }
                // The line may be in the middle of being written.
                Some(RecordItem::Damage(TextDamage::Torn)) if !ends => {
                    self.has_unread = true;
                    break;
                }
                Some(RecordItem::Damage(TextDamage::Nuls(_))) if self.owned && !ends => {
                    (self.behind, self.has_unread) = (false, true);
                    break;
                }
                Some(RecordItem::Damage(TextDamage::Nuls(_))) if records.text.has_appended_text => {}
                Some(RecordItem::Damage(what)) => {
                    let offset = base + records.item_start;
                    self.report(format_args!("byte {offset}: {what}"), diagnostics);
                }
                None => break,
            }
            self.position = base + records.position;
        }
        intake.buffer = records.into_buffer();
        Ok(())
    }

    fn report(&mut self, what: impl std::fmt::Display, diagnostics: &Diagnostics) {
        if self.latest == 0 && self.reports > 0 {
            // Without a record the file is probably no trace.
            return;
        }
        self.reports = self.reports.saturating_add(1);
        if self.reports <= REPORTED_MAX {
            diagnostics.report_damage(self.path.display(), what);
        } else if self.reports == REPORTED_MAX + 1 {
            diagnostics.report_damage(self.path.display(), "and more");
        }
    }
}
