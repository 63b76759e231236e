//! A record file, read as it grows.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use spec::record::EVENT1_OFFSET;

use super::emitted_records::EmittedRecords;
use super::intake::Intake;
use crate::support::diagnostics::{Diagnostics, reason};
use crate::trace::buffers::leftovers::RegionLeftover;
use crate::trace::file_handle::FileHandle;
use crate::trace::record_reader::{RecordItem, RecordReader, TextDamage};
use crate::trace::record_text::RecordText;

/// Damages of one file that are told.
const REPORTED_MAX: u32 = 10;

/// A file that may grow.
#[derive(Debug)]
pub struct GrowingFile {
    pub path: PathBuf,
    /// `None`: it has not been made.
    pub handle: Option<Arc<FileHandle>>,
    /// The file with what its process left, once that is dead.
    pub rest: Option<Arc<RecordText>>,
    /// Where reading goes on.
    position: u64,
    /// How it began.
    head: Option<[u8; EVENT1_OFFSET]>,
    /// What was printed before it came here.
    pub seen: EmittedRecords,
    /// A running process is known to write it.
    pub owned: bool,
    /// The time of the latest record.
    last: u64,
    /// There is more than was read.
    pub behind: bool,
    told: u32,
}

impl GrowingFile {
    /// The file at `path`, read up to `position`.
    pub fn new(path: PathBuf, handle: Option<Arc<FileHandle>>, position: u64) -> GrowingFile {
        let seen = EmittedRecords::default();
        GrowingFile {
            path,
            handle,
            rest: None,
            position,
            head: None,
            seen,
            owned: false,
            last: 0,
            behind: false,
            told: 0,
        }
    }

    /// The latest time up to which it has been read, if there is more in it.
    pub fn behind(&self) -> Option<u64> {
        self.behind.then_some(self.last)
    }

    /// Whether it is another file than this one.
    pub fn differs(&self, handle: &FileHandle) -> bool {
        self.handle.as_ref().is_some_and(|known| known.identity() != handle.identity())
    }

    /// The file has been made; or made anew, and goes on from its beginning.
    pub fn found(&mut self, handle: FileHandle) {
        if self.differs(&handle) || self.handle.is_none() {
            (self.handle, self.position, self.head) = (Some(Arc::new(handle)), 0, None);
        }
    }

    /// Its process is dead and left this.
    ///
    /// # Errors
    /// What the system says of the file.
    pub fn complete(
        &mut self,
        buffers: &Arc<FileHandle>,
        found: &[RegionLeftover],
        diagnostics: &Diagnostics,
    ) -> io::Result<()> {
        let size = self.handle.as_ref().map_or(Ok(0), |handle| handle.size())?;
        let mut text = RecordText::new(self.path.clone(), self.handle.clone(), size, false);
        text.add_leftovers(buffers, found, diagnostics);
        self.rest = Some(Arc::new(text));
        Ok(())
    }

    /// Whether all has been read that there will ever be; asked after reading.
    pub fn is_done(&self) -> bool {
        self.rest.is_some() && !self.behind
    }

    /// Reads at most `most` bytes of what has come. `last`: nothing will come any more.
    pub fn read(&mut self, most: u64, last: bool, intake: &mut Intake, diagnostics: &Diagnostics) {
        if let Err(error) = self.try_read(most, last, intake, diagnostics) {
            self.behind = false;
            self.tell(reason(&error), diagnostics);
        }
    }

    /// The file has become shorter. It goes on where it was cut, or, if it begins otherwise than before, from its beginning.
    fn cut(&mut self, size: u64) {
        let head = self.read_head();
        self.position = if head.is_some() && head == self.head { size } else { 0 };
        self.head = head;
        log::info!("{}: it was cut, and is read from byte {} on", self.path.display(), self.position);
    }

    /// How the file begins, if there is as much of it.
    fn read_head(&self) -> Option<[u8; EVENT1_OFFSET]> {
        let mut head = [0; EVENT1_OFFSET];
        let length = self.handle.as_ref()?.read_at(&mut head, 0).ok()?;
        (length == head.len()).then_some(head)
    }

    fn try_read(&mut self, most: u64, last: bool, intake: &mut Intake, diagnostics: &Diagnostics) -> io::Result<()> {
        // Where the text that is read begins in the file.
        let (text, base) = match (&self.rest, self.handle.clone()) {
            (Some(rest), _) => (rest.clone(), 0),
            (None, Some(handle)) => {
                let size = handle.size()?;
                if size < self.position {
                    self.cut(size);
                }
                (Arc::new(RecordText::slice(handle, self.position..size)), self.position)
            }
            (None, None) => return Ok(()),
        };
        let range = self.position - base..text.end();
        let stop = range.end.min(range.start.saturating_add(most));
        self.behind = stop < range.end;
        if range.is_empty() {
            return Ok(());
        }
        if self.head.is_none() {
            self.head = self.read_head();
        }
        let ends = (last || self.rest.is_some()) && !self.behind;
        let mut records = RecordReader::new(text, range.start..stop, std::mem::take(&mut intake.buffer));
        loop {
            match records.next()? {
                Some(RecordItem::Record { time }) => {
                    self.last = self.last.max(time);
                    let line = records.line();
                    if !self.seen.take(time, line) {
                        intake.put(time, line);
                    }
                }
                // Perhaps it has not come yet.
                Some(RecordItem::Damage(TextDamage::Torn)) if !ends => break,
                Some(RecordItem::Damage(TextDamage::Nuls(_))) if self.owned && !ends => {
                    self.behind = false;
                    break;
                }
                Some(RecordItem::Damage(TextDamage::Nuls(_))) if records.text().appended() => {}
                Some(RecordItem::Damage(what)) => {
                    let at = base + records.began();
                    self.tell(format_args!("byte {at}: {what}"), diagnostics);
                }
                None => break,
            }
            self.position = base + records.position();
        }
        intake.buffer = records.into_buffer();
        Ok(())
    }

    fn tell(&mut self, what: impl std::fmt::Display, diagnostics: &Diagnostics) {
        self.told = self.told.saturating_add(1);
        if self.told <= REPORTED_MAX {
            diagnostics.report_damage(self.path.display(), what);
        } else if self.told == REPORTED_MAX + 1 {
            diagnostics.report_damage(self.path.display(), "and more");
        }
    }
}
