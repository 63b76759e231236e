//! Holes in a record file: ranges that a thread took, and died before it noted so in its region. Such a range is a run of
//! NUL bytes that is exactly as long as the text in the region. (See `spec::buffer`: between steps 1 and 2.)

use std::collections::HashMap;
use std::fs::File;
use std::io;

use memchr::memchr;

use crate::trace::buffers::slots::read_up_to;

/// Bytes that are read at a time.
const CHUNK_LEN: usize = 256 * 1024;

/// The holes of a file that may be filled: their places, by their length.
#[derive(Debug, Default)]
pub struct Holes(HashMap<u64, Vec<u64>>);

impl Holes {
    /// Finds holes in the first `size` bytes, at most one for each of `lengths`.
    pub fn find(file: &File, size: u64, lengths: impl Iterator<Item = u64>) -> io::Result<Holes> {
        let mut wanted: HashMap<u64, usize> = HashMap::new();
        lengths.for_each(|length| *wanted.entry(length).or_default() += 1);
        let mut holes = Holes::default();
        if wanted.is_empty() || size == 0 {
            return Ok(holes);
        }
        let mut add = |start: u64, end: u64| {
            if let Some(count) = wanted.get_mut(&(end - start)).filter(|count| **count > 0) {
                *count -= 1;
                holes.0.entry(end - start).or_default().push(start);
            }
        };
        let mut buffer = vec![0; CHUNK_LEN];
        // The beginning of the hole that the bytes before `at` end with.
        let mut hole = None;
        let mut at = 0;
        while at < size {
            let length = read_up_to(file, &mut buffer, at)?;
            let chunk = &buffer[..length.min(usize::try_from(size - at).unwrap_or(usize::MAX))];
            if chunk.is_empty() {
                break;
            }
            let mut done = 0;
            while done < chunk.len() {
                let unchecked = &chunk[done..];
                let next = match hole {
                    None => memchr(0, unchecked),
                    Some(_) => unchecked.iter().position(|&byte| byte != 0),
                };
                let Some(offset) = next else { break };
                done += offset;
                match hole.take() {
                    None => hole = Some(at + done as u64),
                    Some(start) => add(start, at + done as u64),
                }
            }
            at += chunk.len() as u64;
        }
        holes.0.values_mut().for_each(|places| places.reverse());
        Ok(holes)
    }

    /// Takes the first hole of this length.
    pub fn take(&mut self, length: u64) -> Option<u64> {
        self.0.get_mut(&length)?.pop()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn holes_are_found_by_their_length_across_chunks() {
        let mut file = tempfile::tempfile().unwrap();
        let mut text = vec![b'x'; CHUNK_LEN + 100];
        for hole in [3..5, 7..10, 20..22, CHUNK_LEN - 3..CHUNK_LEN + 4, CHUNK_LEN + 90..CHUNK_LEN + 100] {
            text[hole].fill(0);
        }
        file.write_all(&text).unwrap();
        let find = |lengths: &[u64]| Holes::find(&file, text.len() as u64, lengths.iter().copied()).unwrap();
        let mut holes = find(&[2, 7, 5, 2, 2, 10]);
        assert_eq!([holes.take(2), holes.take(2), holes.take(2)], [Some(3), Some(20), None]);
        assert_eq!([holes.take(7), holes.take(5), holes.take(3)], [Some(CHUNK_LEN as u64 - 3), None, None]);
        // NUL bytes at the end of the file are no hole: nobody wrote after them.
        assert_eq!(holes.take(10), None);
        let mut holes = find(&[2]);
        assert_eq!([holes.take(2), holes.take(2)], [Some(3), None]);
    }
}
