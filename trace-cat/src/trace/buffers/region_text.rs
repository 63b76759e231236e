//! The text of a region, checked chunk by chunk where it is, since it may be a gigabyte.

use std::fs::File;
use std::io;
use std::ops::Range;

use memchr::{memchr, memrchr};
use spec::record::{RECORD_LEN_MAX, TIME_WIDTH};

use super::slots::read_up_to;
use crate::record::{columns, validation};

/// Bytes of a chunk.
pub const CHUNK_LEN: usize = 256 * 1024;

/// The chunks of `range`, from front to back.
pub fn chunks(range: Range<u64>) -> impl Iterator<Item = Range<u64>> {
    let Range { start, end } = range;
    (start..end).step_by(CHUNK_LEN).map(move |at| at..end.min(at + CHUNK_LEN as u64))
}

/// Whether `range` of the file consists of records, or is empty.
pub fn holds_complete_records(file: &File, range: Range<u64>) -> io::Result<bool> {
    let length = range.end.saturating_sub(range.start);
    let mut buffer = vec![0; length.min(CHUNK_LEN as u64) as usize];
    // `kept` bytes at the front of the buffer are the beginning of a line.
    let (mut at, mut kept) = (range.start, 0);
    while at < range.end {
        let wanted = (buffer.len() - kept).min(usize::try_from(range.end - at).unwrap_or(usize::MAX));
        if read_up_to(file, &mut buffer[kept..kept + wanted], at)? < wanted {
            return Ok(false);
        }
        at += wanted as u64;
        let filled = kept + wanted;
        let lines = memrchr(b'\n', &buffer[..filled]).map_or(0, |last| last + 1);
        if !are_records(&buffer[..lines]) || filled - lines > RECORD_LEN_MAX {
            return Ok(false);
        }
        buffer.copy_within(lines..filled, 0);
        kept = filled - lines;
    }
    Ok(kept == 0)
}

/// Whether `text` consists of records, or is empty.
fn are_records(text: &[u8]) -> bool {
    match text.strip_suffix(b"\n") {
        Some(lines) => lines.split(|&byte| byte == b'\n').all(|line| validation::validate(line).is_ok()),
        None => text.is_empty(),
    }
}

/// The beginning of the first complete record of `range`, which is after its first newline; `None` if there is no newline
/// within the length of a record.
pub fn first_record(file: &File, range: &Range<u64>) -> io::Result<Option<u64>> {
    let mut line = [0; RECORD_LEN_MAX];
    let length = line.len().min(usize::try_from(range.end - range.start).unwrap_or(usize::MAX));
    let length = read_up_to(file, &mut line[..length], range.start)?;
    Ok(memchr(b'\n', &line[..length]).map(|newline| range.start + newline as u64 + 1))
}

/// The time of the record that begins at `at`, nanoseconds since the Epoch; `None` if no record begins there.
pub fn time_at(file: &File, at: u64) -> io::Result<Option<u64>> {
    let mut time = [0; TIME_WIDTH];
    let length = read_up_to(file, &mut time, at)?;
    Ok(columns::time(&time[..length]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::test_trace::record;
    use std::io::Write;

    fn file(text: &[u8]) -> File {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(text).unwrap();
        file
    }

    #[test]
    fn records_are_complete_wherever_the_chunks_end() {
        let lines: String = (0..CHUNK_LEN as u64 / 30).map(|time| record(time, 1, "02:04:0", time)).collect();
        let end = lines.len() as u64;
        assert!(end > 2 * CHUNK_LEN as u64);
        let check = |text: &str, range: Range<u64>| holds_complete_records(&file(text.as_bytes()), range).unwrap();
        assert!(check(&lines, 0..end) && check(&lines, 0..0) && check(&lines, end..end));
        assert!(!check(&lines, 1..end) && !check(&lines, 0..end - 1), "a line is not complete");
        assert!(!check(&lines, 0..end + 1), "the file ends before the range");
        for at in [0, 100, CHUNK_LEN - 1, CHUNK_LEN, CHUNK_LEN + 1, 2 * CHUNK_LEN, lines.len() - 2] {
            let mut bad = lines.clone().into_bytes();
            bad[at] ^= 0x80;
            assert!(!holds_complete_records(&file(&bad), 0..end).unwrap(), "byte {at}");
        }
        let long = format!("{}{}{lines}", record(0, 1, "02:04:0", 0), "1".repeat(2 * CHUNK_LEN));
        assert!(!check(&long, 0..long.len() as u64));
    }

    #[test]
    fn the_first_complete_record_follows_the_first_newline() {
        let text = format!("0:0:0:0\n{}", record(7, 1, "02:04:0", 7));
        let file = file(text.as_bytes());
        let end = text.len() as u64;
        assert_eq!(first_record(&file, &(0..end)).unwrap(), Some(8));
        assert_eq!(first_record(&file, &(8..end)).unwrap(), Some(end));
        assert_eq!(first_record(&file, &(0..7)).unwrap(), None);
        assert_eq!((time_at(&file, 8).unwrap(), time_at(&file, 0).unwrap()), (Some(7), None));
        assert_eq!(time_at(&file, end - 3).unwrap(), None);
    }
}
