//! `--split`: a file for each process, LWP, object or category.
//!
//! However many there are, one file is open at a time, and what is gathered for all of them is written when it is much.

use std::collections::HashMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use foldhash::fast::RandomState;
use memchr::memchr;
use spec::tables::CATEGORIES;

use crate::calls::object_columns::ObjectColumns;
use crate::calls::pairing::{CallKey, OpenCalls};
use crate::options::SplitBy;
use crate::record::columns;
use crate::support::diagnostics::reason;

/// Bytes that are gathered at most.
const GATHERED: usize = 32 << 20;
/// What a file takes in memory beside its bytes.
const FILE: usize = 256;
/// Calls that may have begun and not ended; when there are more, all are forgotten.
const OPEN_CALLS_MAX: usize = 1 << 18;

/// Writes records into the files that they belong to.
pub struct Splitter {
    what: SplitBy,
    directory: PathBuf,
    objects: ObjectColumns,
    /// The objects of calls that have begun.
    open_calls: OpenCalls<Option<u64>>,
    gathered: HashMap<Option<u64>, Vec<u8>, RandomState>,
    bytes: usize,
    most: usize,
}

impl Splitter {
    /// One that makes its files in `directory`, which is made, or is empty.
    ///
    /// # Errors
    /// What the system says, and that the directory is not empty.
    pub fn new(what: SplitBy, directory: &Path) -> io::Result<Splitter> {
        match fs::create_dir(directory) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            Err(_) if fs::read_dir(directory)?.next().is_some() => {
                return Err(io::Error::new(io::ErrorKind::AlreadyExists, "the directory for --split is not empty"));
            }
            _ => {}
        }
        let directory = directory.to_owned();
        let (objects, open_calls, gathered) = (ObjectColumns::new(), OpenCalls::default(), HashMap::default());
        Ok(Splitter { what, directory, objects, open_calls, gathered, bytes: 0, most: GATHERED })
    }

    /// Adds some lines.
    ///
    /// # Errors
    /// What a file says.
    pub fn push(&mut self, lines: &[u8]) -> io::Result<()> {
        let mut at = 0;
        while let Some(length) = memchr(b'\n', &lines[at..]) {
            let line = &lines[at..=at + length];
            at += line.len();
            let value = self.value(line);
            let file = self.gathered.entry(value).or_insert_with(|| {
                self.bytes += FILE;
                Vec::new()
            });
            file.extend_from_slice(line);
            self.bytes += line.len();
            if self.bytes > self.most {
                self.write()?;
            }
        }
        Ok(())
    }

    /// What the record `line` belongs to.
    fn value(&mut self, line: &[u8]) -> Option<u64> {
        let event = columns::event(line);
        match self.what {
            SplitBy::Pid => Some(u64::from(columns::pid(line))),
            SplitBy::Lwp => Some(u64::from(columns::lwpid(line))),
            SplitBy::Category => Some(u64::from(event.0)),
            SplitBy::Object => {
                let own = self.objects.of(event, line).next();
                match event.2 {
                    1 => {
                        if self.open_calls.len() >= OPEN_CALLS_MAX {
                            self.open_calls = OpenCalls::default();
                        }
                        self.open_calls.begin(CallKey::of(line, event), own);
                        own
                    }
                    2 => {
                        let first = self.open_calls.end(CallKey::of(line, event)).flatten();
                        own.or(first)
                    }
                    _ => own,
                }
            }
        }
    }

    fn name(&self, value: Option<u64>) -> String {
        let Some(number) = value else { return "object.none".to_owned() };
        match self.what {
            SplitBy::Pid => format!("pid.{number:07}"),
            SplitBy::Lwp => format!("lwp.{number:07}"),
            SplitBy::Object => format!("object.{number:#x}"),
            SplitBy::Category => match usize::try_from(number).ok().and_then(|number| CATEGORIES.get(number)) {
                Some(name) => format!("category.{name}"),
                None => format!("category.{number}"),
            },
        }
    }

    /// Writes what is gathered.
    fn write(&mut self) -> io::Result<()> {
        for (value, bytes) in std::mem::take(&mut self.gathered) {
            let name = self.name(value);
            let mut options = OpenOptions::new();
            options.append(true).create(true).custom_flags(libc::O_NOFOLLOW | libc::O_CLOEXEC);
            let written = options.open(self.directory.join(&name)).and_then(|mut file| file.write_all(&bytes));
            written.map_err(|error| io::Error::new(error.kind(), format!("{name}: {}", reason(&error))))?;
        }
        self.bytes = 0;
        Ok(())
    }

    /// Writes the rest.
    ///
    /// # Errors
    /// What a file says.
    pub fn finish(mut self) -> io::Result<()> {
        self.write()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::seeded_random::SeededRandom;
    use std::collections::BTreeMap;

    /// Names the file of a record.
    type FileNamer<'a> = &'a dyn Fn(&str) -> String;

    fn split(what: SplitBy, most: usize, lines: &[String]) -> BTreeMap<String, String> {
        let parent = tempfile::tempdir().unwrap();
        let directory = parent.path().join("split");
        let mut splitter = Splitter { most, ..Splitter::new(what, &directory).unwrap() };
        lines.chunks(7).for_each(|lines| splitter.push(lines.concat().as_bytes()).unwrap());
        splitter.finish().unwrap();
        let files = fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap());
        files.map(|file| (file.file_name().into_string().unwrap(), fs::read_to_string(file.path()).unwrap())).collect()
    }

    #[test]
    fn every_record_is_in_its_file_in_order_however_often_files_are_written() {
        let mut random = SeededRandom::seeded("split", 12);
        for most in [1, 3000, 1 << 20] {
            let mut lines = Vec::new();
            for time in 0..600 {
                let (pid, category, object) = (random.below(3), random.below(16), random.below(5) * 16);
                let lwp = 1_000_000 * pid + random.below(4);
                lines.push(format!(
                    "1795174740:{time:09}:{lwp:07}:{pid:07}:0x7fc5de3f86c0:{category:02}:05:0:{object:#x}:0:0:0:0\n"
                ));
            }
            let field = |line: &str, at: usize| line.split(':').nth(at).unwrap().to_owned();
            let names: [(SplitBy, FileNamer); 4] = [
                (SplitBy::Pid, &|line| format!("pid.{}", field(line, 3))),
                (SplitBy::Lwp, &|line| format!("lwp.{}", field(line, 2))),
                (SplitBy::Category, &|line| {
                    let number: usize = field(line, 5).parse().unwrap();
                    format!("category.{}", CATEGORIES.get(number).map_or(number.to_string(), ToString::to_string))
                }),
                (SplitBy::Object, &|line| match field(line, 5).as_str() {
                    "02" | "04" | "05" | "06" | "09" => format!("object.{}", field(line, 8)),
                    _ => "object.none".to_owned(),
                }),
            ];
            for (what, name) in names {
                let mut expected: BTreeMap<String, String> = BTreeMap::new();
                lines.iter().for_each(|line| *expected.entry(name(line)).or_default() += line);
                assert!(split(what, most, &lines) == expected, "{what:?} {most}");
            }
        }
    }

    #[test]
    fn second_records_are_with_their_first_ones() {
        let line = |lwp: u32, event: &str, a1: &str| {
            format!("1795174740:000000001:{lwp:07}:0000001:0x7fc5de3f86c0:{event}:{a1}:0:0:0:0\n")
        };
        let lines = [
            line(1, "02:02:2", "0"),
            line(1, "02:02:1", "0x10"),
            line(2, "02:02:1", "0x20"),
            line(1, "02:02:1", "0x30"),
            line(1, "02:02:2", "0"),
            line(2, "02:02:2", "0"),
            line(1, "02:02:2", "16"),
        ];
        let files = split(SplitBy::Object, 1 << 20, &lines);
        for (name, places) in
            [("object.none", &[0][..]), ("object.0x10", &[1, 6]), ("object.0x20", &[2, 5]), ("object.0x30", &[3, 4])]
        {
            assert_eq!(files[name], places.iter().map(|&at: &usize| &lines[at][..]).collect::<String>(), "{name}");
        }
    }

    #[test]
    fn what_is_in_a_directory_is_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        assert!(Splitter::new(SplitBy::Pid, directory.path()).is_ok(), "an empty one");
        fs::write(directory.path().join("lwp.0000001"), "mine").unwrap();
        let error = Splitter::new(SplitBy::Pid, directory.path()).err().unwrap();
        assert_eq!(error.to_string(), "the directory for --split is not empty");
    }
}
