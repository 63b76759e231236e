//! Traces made up for tests.

use std::fs;
use std::mem::offset_of;
use std::ops::Range;
use std::path::PathBuf;

use spec::buffer::{Header, MAGIC, REGION_AT, Region, SLOT_OWNED, SLOT_SIZE, SLOTS_AT, SlotHeader, VERSION, pack};

use crate::merge::{Limits, merge};
use crate::read::handle::Descriptors;
use crate::read::inputs;
use crate::say::tests::recorded;

/// A record of process 1 and LWP `lwp` at `time` nanoseconds, whose event stands as `02:04:0` in it.
pub fn record(time: u64, lwp: u32, event: &str, a1: u64) -> String {
    format!(
        "{:010}:{:09}:{lwp:07}:0000001:0x7fc5de3f86c0:{event}:{a1}:0:0:0:0\n",
        time / 1_000_000_000,
        time % 1_000_000_000
    )
}

/// A trace directory, removed when it goes out of scope.
pub struct Trace {
    directory: tempfile::TempDir,
}

impl Trace {
    pub fn new() -> Trace {
        Trace { directory: tempfile::tempdir().unwrap() }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Writes a file.
    pub fn file(&self, name: &str, bytes: impl AsRef<[u8]>) -> &Trace {
        fs::write(self.path(name), bytes).unwrap();
        self
    }

    /// Merges these files, or the whole directory if there are none; returns output and messages, in which the
    /// directory's path is left out.
    pub fn cat_with(&self, names: &[&str], limits: Limits, descriptors: usize) -> (String, String) {
        let mut paths: Vec<PathBuf> = names.iter().map(|name| self.path(name)).collect();
        if paths.is_empty() {
            paths.push(self.path(""));
        }
        let (say, messages) = recorded();
        let inputs = inputs::collect(&paths, &Descriptors::new(descriptors), &say);
        let mut merge = merge(&inputs.texts, limits, &say).unwrap();
        let mut out = Vec::new();
        while let Some(line) = merge.line() {
            out.extend_from_slice(line);
            merge.advance(&say);
        }
        let directory = format!("{}/", self.directory.path().display());
        (String::from_utf8_lossy(&out).into_owned(), messages.text().replace(&directory, ""))
    }

    pub fn cat(&self, names: &[&str]) -> (String, String) {
        self.cat_with(names, Limits::default(), 1000)
    }
}

/// A trbuf as a process leaves it.
#[derive(Clone)]
pub struct Image(pub Vec<u8>);

impl Image {
    /// One without slots, of process 1 in an earlier boot.
    pub fn new() -> Image {
        let mut image = Image(vec![0; SLOTS_AT]);
        image.put(0, &MAGIC);
        image.put(offset_of!(Header, version), &VERSION.to_le_bytes());
        image.put(offset_of!(Header, pid), &1u32.to_le_bytes());
        image
    }

    fn put(&mut self, at: usize, bytes: &[u8]) {
        self.0[at..at + bytes.len()].copy_from_slice(bytes);
    }

    /// Adds a slot of LWP `lwp` and returns its number.
    pub fn slot(&mut self, lwp: u32) -> usize {
        let at = self.0.len();
        self.0.resize(at + SLOT_SIZE, 0);
        self.put(at + offset_of!(SlotHeader, state), &SLOT_OWNED.to_le_bytes());
        self.put(at + offset_of!(SlotHeader, lwp), &lwp.to_le_bytes());
        (at - SLOTS_AT) / SLOT_SIZE
    }

    /// Fills a region: all of its text, which part of that is not in the file, and which is on its way to a place there.
    pub fn region(
        &mut self,
        slot: usize,
        region: usize,
        text: &str,
        filled: Range<usize>,
        pending: Option<(u64, Range<usize>)>,
    ) {
        let slot_at = SLOTS_AT + slot * SLOT_SIZE;
        self.put(slot_at + REGION_AT[region], text.as_bytes());
        let at = slot_at + offset_of!(SlotHeader, regions) + region * size_of::<Region>();
        let word = |range: Range<usize>| pack(range.start as u32..range.end as u32).to_le_bytes();
        self.put(at + offset_of!(Region, filled), &word(filled));
        let (place, range) = pending.unwrap_or_default();
        self.put(at + offset_of!(Region, pending), &word(range));
        self.put(at + offset_of!(Region, pending_at), &place.to_le_bytes());
    }
}
