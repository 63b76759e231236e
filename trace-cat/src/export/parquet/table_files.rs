//! The files of a table. A thread of its own encodes and writes them.
//!
//! A file has another name until it is complete, since what is incomplete cannot be read at all: its directory of columns is at its end.

use std::collections::HashMap;
use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{self, SyncSender};
use std::thread::{self, JoinHandle};

use ::parquet::errors::ParquetError;
use ::parquet::file::writer::SerializedFileWriter;
use tempfile::TempPath;

use super::columns;
use super::row_group::RowGroup;
use super::texts::SharedTexts;

/// Where a file goes.
#[derive(Debug)]
pub enum Target {
    /// A pipe or the standard output, or something else that has no end.
    Stream(File),
    /// A file of this name, instead of the one that there may be.
    Replaced(PathBuf),
    /// A file of this name, which nothing has.
    New(PathBuf),
}

/// The number of a file.
pub type FileNumber = usize;

enum Message {
    Open(FileNumber, Target),
    Rows(FileNumber, RowGroup),
    Close(FileNumber),
}

/// The files, which a thread writes.
#[derive(Debug)]
pub struct TableFiles {
    sender: Option<SyncSender<Message>>,
    thread: Option<JoinHandle<io::Result<()>>>,
}

/// What the thread has.
struct FileWriter {
    texts: SharedTexts,
    open: HashMap<FileNumber, OpenFile>,
    /// Complete ones, which have no names yet.
    complete: Vec<NamelessFile>,
}

struct OpenFile {
    writer: SerializedFileWriter<File>,
    name: Option<(TempPath, PathBuf, bool)>,
}

struct NamelessFile {
    temporary: TempPath,
    name: PathBuf,
    replaces: bool,
}

impl TableFiles {
    /// The files of a table with these texts.
    ///
    /// # Errors
    /// The failure to start a thread.
    pub fn new(texts: SharedTexts) -> io::Result<TableFiles> {
        let (sender, messages) = mpsc::sync_channel(1);
        let thread = thread::Builder::new().name("parquet".to_owned()).spawn(move || {
            let mut writer = FileWriter { texts, open: HashMap::new(), complete: Vec::new() };
            for message in messages {
                match message {
                    Message::Open(number, target) => writer.open(number, target)?,
                    Message::Rows(number, rows) => writer.write(number, rows)?,
                    Message::Close(number) => writer.close(number)?,
                }
            }
            writer.finish()
        })?;
        Ok(TableFiles { sender: Some(sender), thread: Some(thread) })
    }

    /// Opens a file.
    ///
    /// # Errors
    /// Any earlier failure.
    pub fn open(&mut self, number: FileNumber, target: Target) -> io::Result<()> {
        self.send(Message::Open(number, target))
    }

    /// Writes rows to a file that is open.
    ///
    /// # Errors
    /// Any earlier failure.
    pub fn write(&mut self, number: FileNumber, mut rows: RowGroup) -> io::Result<()> {
        rows.divide();
        if rows.len() == 0 { Ok(()) } else { self.send(Message::Rows(number, rows)) }
    }

    /// Completes a file.
    ///
    /// # Errors
    /// Any earlier failure.
    pub fn close(&mut self, number: FileNumber) -> io::Result<()> {
        self.send(Message::Close(number))
    }

    /// Completes all files and gives them their names.
    ///
    /// # Errors
    /// Any failure; then none of the files that were incomplete has a name.
    pub fn finish(mut self) -> io::Result<()> {
        self.join()
    }

    fn send(&mut self, message: Message) -> io::Result<()> {
        match self.sender.as_ref().map(|sender| sender.send(message)) {
            Some(Ok(())) => Ok(()),
            // The thread has ended by a failure.
            _ => self.join().and(Err(io::Error::other("the file's writer has ended"))),
        }
    }

    fn join(&mut self) -> io::Result<()> {
        self.sender = None;
        let Some(thread) = self.thread.take() else { return Ok(()) };
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

impl FileWriter {
    fn open(&mut self, number: FileNumber, target: Target) -> io::Result<()> {
        let (file, name) = match target {
            Target::Stream(file) => (file, None),
            Target::Replaced(path) => {
                // A link stays: the file that it leads to is replaced.
                let path = path.canonicalize().unwrap_or(path);
                let (file, temporary) = incomplete_file(directory_of(&path))?;
                (file, Some((temporary, path, true)))
            }
            Target::New(path) => {
                let directory = directory_of(&path);
                fs::create_dir_all(directory)?;
                refuse_existing(&path)?;
                let (file, temporary) = incomplete_file(directory)?;
                (file, Some((temporary, path, false)))
            }
        };
        let (schema, properties) = (columns::schema(), columns::properties());
        let (schema, properties) = (Arc::new(schema.map_err(to_io)?), Arc::new(properties.map_err(to_io)?));
        let writer = SerializedFileWriter::new(file, schema, properties).map_err(to_io)?;
        self.open.insert(number, OpenFile { writer, name });
        Ok(())
    }

    fn write(&mut self, number: FileNumber, rows: RowGroup) -> io::Result<()> {
        let Some(file) = self.open.get_mut(&number) else { return Ok(()) };
        rows.write(&mut file.writer, &self.texts).map_err(to_io)
    }

    fn close(&mut self, number: FileNumber) -> io::Result<()> {
        let Some(OpenFile { writer, name }) = self.open.remove(&number) else { return Ok(()) };
        writer.close().map_err(to_io)?;
        let nameless = name.map(|(temporary, name, replaces)| NamelessFile { temporary, name, replaces });
        self.complete.extend(nameless);
        Ok(())
    }

    fn finish(mut self) -> io::Result<()> {
        let numbers: Vec<FileNumber> = self.open.keys().copied().collect();
        numbers.into_iter().try_for_each(|number| self.close(number))?;
        for NamelessFile { temporary, name, replaces } in self.complete {
            match replaces {
                true => temporary.persist(name)?,
                false => temporary.persist_noclobber(name)?,
            }
        }
        Ok(())
    }
}

/// Fails if there is a file of this name.
fn refuse_existing(path: &Path) -> io::Result<()> {
    match path.symlink_metadata() {
        Ok(_) => {
            let what = format!("{} exists: the trace is in the table already; remove it first", path.display());
            Err(io::Error::new(io::ErrorKind::AlreadyExists, what))
        }
        Err(_) => Ok(()),
    }
}

fn directory_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// A file that is removed unless it gets its name. Readers of directories leave out what begins with a dot.
fn incomplete_file(directory: &Path) -> io::Result<(File, TempPath)> {
    let permissions = Permissions::from_mode(0o666);
    let file = tempfile::Builder::new().prefix(".incomplete.").permissions(permissions).tempfile_in(directory)?;
    Ok(file.into_parts())
}

/// The failure of a file, of which the crate has made an error of its own.
fn to_io(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(source) => match source.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(source) => io::Error::other(source),
        },
        error => io::Error::other(error),
    }
}
