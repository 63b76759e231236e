//! `--split`: a file for each process, LWP, object or category.
//!
//! One file is open at a time, however many there are: the lines of all files stay in memory until they take much.

use std::collections::HashMap;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use foldhash::fast::RandomState;
use spec::tables::CATEGORIES;

use crate::calls::object_columns::ObjectColumns;
use crate::calls::pairing::{CallKey, OPEN_CALLS_MAX, OpenCalls};
use crate::options::SplitBy;
use crate::record::call_stack::{StackOwners, is_stack};
use crate::record::columns;
use crate::support::diagnostics::reason;
use crate::support::output_directory;

/// Bytes of lines that are in memory at most.
const MEMORY: usize = 32 << 20;
/// Bytes of memory for each file beside its lines.
const FILE_MEMORY: usize = 256;

/// Writes records into the files that they belong to.
pub struct Splitter {
    by: SplitBy,
    directory: PathBuf,
    object_columns: ObjectColumns,
    /// The objects that entry records name.
    open_calls: OpenCalls<Option<u64>>,
    /// The values of the latest records.
    owners: StackOwners<Option<u64>>,
    /// Lines that are not written yet, by the value that names their file.
    lines: HashMap<Option<u64>, Vec<u8>, RandomState>,
    /// Bytes of memory that `lines` takes, and the most that it may take.
    bytes: usize,
    memory: usize,
}

impl Splitter {
    /// A splitter that makes its files in `directory`, which it makes unless there is an empty directory.
    ///
    /// # Errors
    /// The failure to make the directory, and that it is not empty.
    pub fn new(by: SplitBy, directory: &Path) -> io::Result<Splitter> {
        output_directory::make_empty(directory, "--split")?;
        Ok(Splitter {
            by,
            directory: directory.to_owned(),
            object_columns: ObjectColumns::new(),
            open_calls: OpenCalls::default(),
            owners: StackOwners::default(),
            lines: HashMap::default(),
            bytes: 0,
            memory: MEMORY,
        })
    }

    pub fn push(&mut self, lines: &[u8]) -> io::Result<()> {
        for line in columns::lines(lines) {
            let value = self.value(line);
            let lines_of_file = self.lines.entry(value).or_insert_with(|| {
                self.bytes += FILE_MEMORY;
                Vec::new()
            });
            lines_of_file.extend_from_slice(line);
            self.bytes += line.len();
            if self.bytes > self.memory {
                self.write()?;
            }
        }
        Ok(())
    }

    /// The value by which the record `line` is split: a stack has that of its record.
    fn value(&mut self, line: &[u8]) -> Option<u64> {
        if !is_stack(line) {
            let value = self.value_of_record(line);
            self.owners.add(line, value);
            return value;
        }
        self.owners.find(line).unwrap_or_else(|| self.value_of_record(line))
    }

    fn value_of_record(&mut self, line: &[u8]) -> Option<u64> {
        let event = columns::event(line);
        match self.by {
            SplitBy::Pid => Some(u64::from(columns::pid(line))),
            SplitBy::Lwp => Some(u64::from(columns::lwpid(line))),
            SplitBy::Category => Some(u64::from(event.0)),
            SplitBy::Object => {
                let object = self.object_columns.of(event, line).next();
                match event.2 {
                    1 => {
                        if self.open_calls.len() >= OPEN_CALLS_MAX {
                            self.open_calls = OpenCalls::default();
                        }
                        self.open_calls.begin(CallKey::of(line, event), object);
                        object
                    }
                    2 => {
                        let object_of_entry = self.open_calls.end(CallKey::of(line, event)).flatten();
                        object.or(object_of_entry)
                    }
                    _ => object,
                }
            }
        }
    }

    fn file_name(&self, value: Option<u64>) -> String {
        let Some(number) = value else { return "object.none".to_owned() };
        match self.by {
            SplitBy::Pid => format!("pid.{number:07}"),
            SplitBy::Lwp => format!("lwp.{number:07}"),
            SplitBy::Object => format!("object.{number:#x}"),
            SplitBy::Category => match usize::try_from(number).ok().and_then(|number| CATEGORIES.get(number)) {
                Some(name) => format!("category.{name}"),
                None => format!("category.{number}"),
            },
        }
    }

    /// Writes the lines that are in memory.
    pub fn write(&mut self) -> io::Result<()> {
        for (value, lines) in std::mem::take(&mut self.lines) {
            let name = self.file_name(value);
            let mut options = OpenOptions::new();
            options.append(true).create(true).custom_flags(libc::O_NOFOLLOW | libc::O_CLOEXEC);
            let result = options.open(self.directory.join(&name)).and_then(|mut file| file.write_all(&lines));
            result.map_err(|error| io::Error::new(error.kind(), format!("{name}: {}", reason(&error))))?;
        }
        self.bytes = 0;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::seeded_random::SeededRandom;
    use crate::trace::file_names::is_split_name;
    use std::collections::BTreeMap;
    use std::fs;

    /// Names the file of a record.
    type FileNamer<'a> = &'a dyn Fn(&str) -> String;

    fn split(by: SplitBy, memory: usize, lines: &[String]) -> BTreeMap<String, String> {
        let parent = tempfile::tempdir().unwrap();
        let directory = parent.path().join("split");
        let mut splitter = Splitter { memory, ..Splitter::new(by, &directory).unwrap() };
        lines.chunks(7).for_each(|lines| splitter.push(lines.concat().as_bytes()).unwrap());
        splitter.write().unwrap();
        let files = fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap());
        files.map(|file| (file.file_name().into_string().unwrap(), fs::read_to_string(file.path()).unwrap())).collect()
    }

    #[test]
    fn every_record_is_in_its_file_in_order_however_often_files_are_written() {
        let mut random = SeededRandom::seeded("split", 12);
        for memory in [1, 3000, 1 << 20] {
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
            for (by, name) in names {
                let mut expected: BTreeMap<String, String> = BTreeMap::new();
                lines.iter().for_each(|line| *expected.entry(name(line)).or_default() += line);
                assert!(split(by, memory, &lines) == expected, "{by:?} {memory}");
            }
        }
    }

    #[test]
    fn return_records_are_in_the_files_of_their_entry_records() {
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
        assert!(files.keys().all(|name| is_split_name(Path::new(name))));
        for (name, places) in
            [("object.none", &[0][..]), ("object.0x10", &[1, 6]), ("object.0x20", &[2, 5]), ("object.0x30", &[3, 4])]
        {
            assert_eq!(files[name], places.iter().map(|&at: &usize| &lines[at][..]).collect::<String>(), "{name}");
        }
    }

    #[test]
    fn files_that_are_in_a_directory_are_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        assert!(Splitter::new(SplitBy::Pid, directory.path()).is_ok(), "an empty directory");
        fs::write(directory.path().join("lwp.0000001"), "mine").unwrap();
        let error = Splitter::new(SplitBy::Pid, directory.path()).err().unwrap();
        assert_eq!(error.to_string(), "the directory for --split is not empty");
    }
}
