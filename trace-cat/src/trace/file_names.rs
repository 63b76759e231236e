//! Whose a file is, as its name tells.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use spec::names::FileName;

/// A process's files: the directory, what stands before their names (`old.` and so on, or nothing), and its number.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProcessFiles {
    /// Where they are; empty for the working directory.
    pub directory: PathBuf,
    /// `old.<start>.` with its dots, or nothing.
    pub prefix: Vec<u8>,
    /// The seven least significant hex digits of the process ID.
    pub number: u32,
}

impl ProcessFiles {
    /// Where the process's file `name` is.
    pub fn path(&self, name: FileName) -> PathBuf {
        let (text, length) = name.text();
        let name = [&self.prefix, &text[..length]].concat();
        self.directory.join(OsStr::from_bytes(&name))
    }
}

/// Splits `old.<start>.` or `old.<start>-<number>.` off the file name, if it is there, and says what the rest is.
pub fn split_name(path: &Path) -> (&[u8], Option<FileName>) {
    let name = path.file_name().unwrap_or_default().as_bytes();
    let prefix = name.strip_prefix(b"old.").map_or(0, |rest| {
        let digits = rest.iter().position(|byte| !byte.is_ascii_digit() && *byte != b'-').unwrap_or(rest.len());
        if rest.get(digits) == Some(&b'.') { 4 + digits + 1 } else { 0 }
    });
    (&name[..prefix], FileName::parse(&name[prefix..]))
}
