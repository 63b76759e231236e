//! Which file a row goes to.

use std::collections::HashMap;
use std::io;
use std::path::PathBuf;

use foldhash::fast::RandomState;
use spec::record::NANOS_PER_SECOND;

use super::row::{Row, TextId};
use super::row_group::{ROWS, RowGroup};
use super::table_files::{FileNumber, TableFiles, Target};
use super::texts::TextNumbers;

/// The most rows that are in memory before they are written, of all partitions.
const WAITING_MAX: usize = 2 * ROWS;
/// The most files that are open at a time.
const OPEN_MAX: usize = 64;
const HOUR: u64 = 3600 * NANOS_PER_SECOND;

/// Where the table goes.
pub enum TablePlace {
    File(Target),
    /// A directory for each host, with one for each hour.
    Partitions(PathBuf),
}

/// Divides rows among files.
pub struct Partitions {
    files: TableFiles,
    /// `None` if there is one file.
    directory: Option<PathBuf>,
    open: HashMap<Partition, OpenPartition, RandomState>,
    /// How many rows they have that are not written.
    waiting: usize,
    next_file: FileNumber,
    /// How many files each partition has had.
    counts: HashMap<Partition, u32, RandomState>,
    /// The time of the first record, by which files of several traces have different names.
    start: u64,
}

/// The host and the hours since the Epoch.
type Partition = (TextId, u64);

#[derive(Debug)]
struct OpenPartition {
    file: FileNumber,
    rows: RowGroup,
}

impl Partitions {
    /// A table whose first record is of the time `start`.
    ///
    /// # Errors
    /// Any failure of a file.
    pub fn new(place: TablePlace, start: u64, texts: &TextNumbers) -> io::Result<Partitions> {
        let mut files = TableFiles::new(texts.texts.clone())?;
        let (mut open, mut directory) = (HashMap::default(), None);
        match place {
            TablePlace::File(target) => {
                files.open(0, target)?;
                open.insert((0, 0), OpenPartition { file: 0, rows: RowGroup::default() });
            }
            TablePlace::Partitions(path) => {
                std::fs::create_dir_all(&path)?;
                directory = Some(path);
            }
        }
        Ok(Partitions { files, directory, open, waiting: 0, next_file: 1, counts: HashMap::default(), start })
    }

    /// Adds a row. `host` returns the text of a number.
    ///
    /// # Errors
    /// Any failure of a file.
    pub fn push(&mut self, row: &Row, texts: &TextNumbers) -> io::Result<()> {
        let partition = if self.directory.is_some() { (row.process.host, row.time / HOUR) } else { (0, 0) };
        if !self.open.contains_key(&partition) {
            self.open(partition, texts)?;
        }
        let Some(open) = self.open.get_mut(&partition) else { return Ok(()) };
        open.rows.push(row);
        self.waiting += 1;
        if open.rows.len() >= ROWS {
            self.write(partition)?;
        } else if self.waiting >= WAITING_MAX
            && let Some(largest) = self.open.iter().max_by_key(|(_, open)| open.rows.len()).map(|(key, _)| *key)
        {
            self.write(largest)?;
        }
        Ok(())
    }

    /// Writes what is left, and completes the files.
    ///
    /// # Errors
    /// Any failure of a file.
    pub fn finish(mut self) -> io::Result<()> {
        let mut partitions: Vec<Partition> = self.open.keys().copied().collect();
        partitions.sort_unstable();
        partitions.into_iter().try_for_each(|partition| self.write(partition))?;
        self.files.finish()
    }

    fn write(&mut self, partition: Partition) -> io::Result<()> {
        let Some(open) = self.open.get_mut(&partition) else { return Ok(()) };
        let rows = std::mem::take(&mut open.rows);
        self.waiting -= rows.len();
        self.files.write(open.file, rows)
    }

    fn open(&mut self, partition: Partition, texts: &TextNumbers) -> io::Result<()> {
        if self.open.len() >= OPEN_MAX
            && let Some(oldest) = self.open.keys().min_by_key(|(host, hour)| (*hour, *host)).copied()
        {
            self.write(oldest)?;
            if let Some(closed) = self.open.remove(&oldest) {
                self.files.close(closed.file)?;
            }
        }
        let Some(directory) = &self.directory else { return Ok(()) };
        let (file, count) = (self.next_file, self.counts.entry(partition).or_default());
        let number = if *count == 0 { String::new() } else { format!("-{count}") };
        *count += 1;
        self.next_file += 1;
        let host = partition_value(&texts.text(partition.0));
        let path = directory.join(format!("host={host}")).join(format!("hour={}", hour_name(partition.1)));
        self.files.open(file, Target::New(path.join(format!("{}{number}.parquet", self.start))))?;
        self.open.insert(partition, OpenPartition { file, rows: RowGroup::default() });
        Ok(())
    }
}

/// A value in the name of a directory: bytes that have a meaning there are escaped as Hive does it, which readers of partitions undo.
fn partition_value(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let escape = |byte: u8| if is_plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    text.bytes().map(escape).collect()
}

/// The hour, in UTC, of so many hours since the Epoch: `2026-11-23T04`.
fn hour_name(hours: u64) -> String {
    let (days, hour) = (hours / 24, hours % 24);
    let (year, month, day) = date(days);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}")
}

/// Year, month and day of so many days since the Epoch, by the calendar that counts days from 1 March, 400 years at a time.
fn date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hours_have_dates_in_their_names() {
        for (seconds, expected) in [
            (0, "1970-01-01T00"),
            (951_782_400, "2000-02-29T00"),
            (1_795_408_200, "2026-11-23T04"),
            (4_107_542_399, "2100-02-28T23"),
            (4_107_542_400, "2100-03-01T00"),
        ] {
            assert_eq!(hour_name(seconds / 3600), expected);
        }
    }

    #[test]
    fn names_of_hosts_name_one_directory() {
        assert_eq!(partition_value("db-1.example_x"), "db-1.example_x");
        assert_eq!(partition_value("../a=b c"), "..%2Fa%3Db%20c");
    }
}
