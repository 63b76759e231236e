//! The names of the program's own events: a record has an ID, and trinfo has its text, in a line `name ID TEXT`.
//!
//! An ID is a hash of the text, so it means the same in all processes.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use spec::info;
use spec::names::FileName;

use super::file_handle::read_info;
use super::file_names::FileGroup;

/// The name of the column with an ID.
pub const COLUMN: &str = "name_id";

/// A running process may have written more names after this time.
const REFRESH: Duration = Duration::from_millis(100);
/// The most names that are kept.
const NAMES_MAX: usize = 1 << 20;

/// The texts that were asked for, and those beside them.
#[derive(Debug, Default)]
pub struct InternedNames {
    groups: Vec<FileGroup>,
    known: RwLock<KnownNames>,
}

#[derive(Debug, Default)]
struct KnownNames {
    texts: HashMap<u64, Arc<str>>,
    /// When the trinfo of each process was read.
    read: HashMap<u32, Instant>,
}

impl InternedNames {
    /// The names in the files of `groups`, which are read when they are needed.
    pub fn new(groups: Vec<FileGroup>) -> InternedNames {
        InternedNames { groups, known: RwLock::default() }
    }

    /// The text of an ID in a record of the process `pid`.
    pub fn text(&self, pid: u32, id: u64) -> Option<Arc<str>> {
        let find = |known: &KnownNames| known.texts.get(&id).cloned();
        let is_recent = |known: &KnownNames| known.read.get(&pid).is_some_and(|read| read.elapsed() < REFRESH);
        {
            let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
            if let Some(text) = find(&known) {
                return Some(text);
            }
            if is_recent(&known) {
                return None;
            }
        }
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if !is_recent(&known) {
            known.read.insert(pid, Instant::now());
            for process in self.groups.iter().filter_map(|group| group.process(pid)) {
                known.add(&read_info(&process.path(FileName::Info(process.number))).unwrap_or_default());
            }
        }
        find(&known)
    }
}

impl KnownNames {
    /// Adds the names in the text of a trinfo.
    fn add(&mut self, text: &[u8]) {
        for (id, text) in info::interned_names(text) {
            if self.texts.len() < NAMES_MAX {
                let text: Vec<u8> = text.collect();
                self.texts.insert(id, String::from_utf8_lossy(&text).into());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn names_are_found_in_the_trinfo_of_their_process_when_they_are_asked_for() {
        let directory = tempfile::tempdir().unwrap();
        let path = |pid: u32| directory.path().join(format!("trinfo.{pid:07x}"));
        let names = InternedNames::new(vec![directory.path().to_owned().into()]);
        assert_eq!(names.text(7, 16), None);
        fs::write(path(7), "format 1\nname 0x10 queue\\x20lock\nname 0x1\nname x y\nname 0x11 \\xff\n").unwrap();
        fs::write(path(8), "name 0x12 other\n").unwrap();
        std::thread::sleep(REFRESH);
        let text = |pid, id| names.text(pid, id).map(|text| text.to_string());
        assert_eq!(text(7, 16).as_deref(), Some("queue lock"));
        assert_eq!(text(7, 17).as_deref(), Some("\u{fffd}"));
        // The same ID is the same text in another process; an unknown one is not searched for in all of them.
        assert_eq!((text(9, 16).as_deref(), text(7, 18), text(7, 1)), (Some("queue lock"), None, None));
        assert_eq!((text(8, 18).as_deref(), text(7, 18).as_deref()), (Some("other"), Some("other")));
    }
}
