//! `-F ctf`: a directory in the Common Trace Format 1.8, which babeltrace2, LTTng's tools and Trace Compass read.
//!
//! ```text
//! DIR/metadata   describes clock, packets and events in TSDL, the format's language
//! DIR/stream     the events, in packets
//! ```
//!
//! All records are in one stream: readers keep the order of a stream, also where times are equal. The files have other names
//! until they are complete, and `metadata`, by which readers recognise a trace, gets its name last.

mod clock;
mod event_classes;
mod packet;

use std::fs::Permissions;
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use spec::event_numbers::TRACE_LOST;
use tempfile::NamedTempFile;

use crate::record::columns;
use crate::record::fields::{self, Fields};
use crate::support::output_directory;
use crate::trace::file_names::FileGroup;
use clock::StreamClock;
use event_classes::EventClasses;
use packet::Packet;

/// What the metadata begin with.
const HEAD: &str = include_str!("head.tsdl");
/// What follows the clock and precedes the events.
const STREAM: &str = include_str!("stream.tsdl");

/// Writes records into a new directory.
pub struct CtfWriter {
    directory: PathBuf,
    groups: Vec<FileGroup>,
    file: NamedTempFile,
    classes: EventClasses,
    event: Vec<u8>,
    /// Since the first record.
    stream: Option<(StreamClock, Packet)>,
}

impl CtfWriter {
    /// A writer of records from `groups` of files, which makes `directory` unless there is an empty one.
    ///
    /// # Errors
    /// The failure to make the directory or a file in it, and that it is not empty.
    pub fn new(directory: &Path, groups: Vec<FileGroup>) -> io::Result<CtfWriter> {
        output_directory::make_empty(directory, "-F ctf")?;
        let (file, directory) = (incomplete_file(directory)?, directory.to_owned());
        let (classes, event, stream) = (EventClasses::default(), Vec::new(), None);
        Ok(CtfWriter { directory, groups, file, classes, event, stream })
    }

    /// Writes the records `lines`, which are in the order of time.
    pub fn push(&mut self, lines: &[u8]) -> io::Result<()> {
        // The file changed after it was checked: a line that is not a record is left out.
        columns::lines(lines).filter_map(Fields::new).try_for_each(|fields| self.push_record(&fields))
    }

    fn push_record(&mut self, fields: &Fields) -> io::Result<()> {
        let (clock, packet) = self.stream.get_or_insert_with(|| {
            let clock = StreamClock::of(&self.groups, fields.time());
            let packet = Packet::first(fields.time() - clock.offset);
            (clock, packet)
        });
        let time = fields.time().wrapping_sub(clock.offset);
        let lost = if fields.event() == TRACE_LOST { fields::bits(fields.argument(0)) } else { 0 };
        if !packet.has_room(time, lost) {
            self.file.write_all(packet.finished())?;
            packet.clear();
        }
        self.event.clear();
        self.classes.append(fields, time as u32, &mut self.event)?;
        packet.push(time, lost, &self.event);
        Ok(())
    }

    /// Completes the files after the last record.
    pub fn finish(mut self) -> io::Result<()> {
        let (clock, mut packet) = self.stream.unwrap_or_else(|| (StreamClock::default(), Packet::first(0)));
        self.file.write_all(packet.finished())?;
        let mut metadata = incomplete_file(&self.directory)?;
        for text in [HEAD, &clock.metadata(), STREAM, &self.classes.metadata] {
            metadata.write_all(text.as_bytes())?;
        }
        self.file.persist(self.directory.join("stream"))?;
        metadata.persist(self.directory.join("metadata"))?;
        Ok(())
    }
}

/// A file that is removed unless it gets its name.
fn incomplete_file(directory: &Path) -> io::Result<NamedTempFile> {
    let permissions = Permissions::from_mode(0o666);
    tempfile::Builder::new().prefix(".incomplete.").permissions(permissions).tempfile_in(directory)
}
