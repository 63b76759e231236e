//! Files that are known by device and inode number, so that none is read twice under two paths.
//!
//! A number is a file's only as long as the file exists. File systems give the number of a removed file to the next one: the
//! record file of a short process often gets that of another process's trbuf. So a number stands for a file only together
//! with the path that leads to it.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::path::{Path, PathBuf};

use super::file_handle::{FileIdentity, leads_to};

/// Such files.
#[derive(Debug, Default)]
pub struct KnownFiles {
    paths: HashMap<FileIdentity, PathBuf>,
}

impl KnownFiles {
    /// Whether an existing file, whatever its path, is known.
    pub fn has(&self, identity: FileIdentity) -> bool {
        self.paths.get(&identity).is_some_and(|known| leads_to(known, identity))
    }

    /// Whether the existing file at `path` is known, by this path or by another one.
    pub fn has_at(&self, identity: FileIdentity, path: &Path) -> bool {
        self.paths.get(&identity).is_some_and(|known| known == path) || self.has(identity)
    }

    /// Adds the existing file at `path`; `false` if it is known.
    pub fn insert(&mut self, identity: FileIdentity, path: &Path) -> bool {
        if self.has_at(identity, path) {
            return false;
        }
        self.paths.insert(identity, path.to_owned());
        true
    }

    /// Forgets a file that is no longer at `path`. Another file that has got its number stays known.
    pub fn forget(&mut self, identity: FileIdentity, path: &Path) {
        if let Entry::Occupied(known) = self.paths.entry(identity)
            && known.get() == path
        {
            known.remove();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn a_number_is_known_only_with_its_file() {
        let directory = tempfile::tempdir().unwrap();
        let [first, link, second] = ["first", "link", "second"].map(|name| directory.path().join(name));
        fs::write(&first, "").unwrap();
        fs::hard_link(&first, &link).unwrap();
        let metadata = fs::metadata(&first).unwrap();
        let identity = (metadata.dev(), metadata.ino());
        let mut files = KnownFiles::default();
        assert!(!files.has(identity) && files.insert(identity, &first));
        assert!(!files.insert(identity, &first) && !files.insert(identity, &link), "it is the same file");
        // The first file is removed, and the second one gets its number.
        fs::remove_file(&link).unwrap();
        fs::rename(&first, &second).unwrap();
        assert!(!files.has(identity) && !files.has_at(identity, &second) && files.insert(identity, &second));
        files.forget(identity, &first);
        assert!(files.has(identity) && files.has_at(identity, &second));
        files.forget(identity, &second);
        assert!(!files.has(identity) && files.insert(identity, &second));
    }
}
