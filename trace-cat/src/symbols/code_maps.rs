//! The executable mappings of a program, as its trinfo lists them.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;

use spec::info;

/// What the names of mappings of code that is in no file begin with; the dynamic linkers of runtimes use memory files, too.
const JIT_NAMES: [&str; 5] = ["/memfd:", "[anon", "//anon", "/dev/zero", "/SYSV"];
const DELETED: &str = " (deleted)";

/// The mappings, in the order in which they were recorded.
#[derive(Clone, Debug, Default)]
pub struct CodeMaps(Vec<CodeMap>);

/// A mapping of a file.
#[derive(Clone, Debug)]
pub struct CodeMap {
    pub start: u64,
    pub end: u64,
    /// Where in the file the code at `start` is.
    pub offset: u64,
    /// In hexadecimal digits, as the recorder read it from memory; `None` if it found none.
    pub build_id: Option<String>,
    pub path: PathBuf,
}

/// Where an address in a program's code is.
#[derive(Clone, Copy, Debug)]
pub enum CodeAddress<'a> {
    /// At an offset in a file.
    InFile(&'a CodeMap, u64),
    /// In code that was made while the program ran.
    Generated,
    /// In none of the program's mappings: the recorder reads them now and then, and a library that is opened and closed, or code
    /// that is made and removed, in between is in none.
    Unmapped,
    /// The trace has no mappings of the program.
    Unknown(u64),
}

impl CodeMaps {
    /// Adds the value of a line `map START END OFFSET BUILD-ID PATH`.
    pub fn add(&mut self, value: &[u8]) {
        self.0.extend(CodeMap::parse(value));
    }

    /// The mapping that was recorded first: it is of the program.
    pub fn first(&self) -> Option<&CodeMap> {
        self.0.first()
    }

    /// Where an address is.
    pub fn find(&self, address: u64) -> CodeAddress<'_> {
        // Files that were mapped later may have replaced others.
        match self.0.iter().rfind(|map| (map.start..map.end).contains(&address)) {
            Some(map) if !map.is_generated() => CodeAddress::InFile(map, address - map.start + map.offset),
            Some(_) => CodeAddress::Generated,
            None if self.0.is_empty() => CodeAddress::Unknown(address),
            None => CodeAddress::Unmapped,
        }
    }

    /// The mapping of a file that begins last before an address: a module's data follow its code.
    pub fn module_before(&self, address: u64) -> Option<&CodeMap> {
        let before = self.0.iter().filter(|map| map.start <= address && !map.is_generated());
        before.max_by_key(|map| map.start)
    }
}

impl CodeMap {
    fn parse(value: &[u8]) -> Option<CodeMap> {
        let mut words = value.splitn(5, |&byte| byte == b' ');
        let mut word = || words.next();
        let number = |word: &[u8]| u64::from_str_radix(std::str::from_utf8(word).ok()?.strip_prefix("0x")?, 16).ok();
        let (start, end, offset) = (number(word()?)?, number(word()?)?, number(word()?)?);
        offset.checked_add(end.checked_sub(start)?)?;
        let build_id = String::from_utf8_lossy(word()?).into_owned();
        let path = OsString::from_vec(info::unescape(word().unwrap_or(b"")).collect());
        Some(CodeMap { start, end, offset, build_id: Some(build_id).filter(|id| id != "-"), path: path.into() })
    }

    fn is_generated(&self) -> bool {
        let name = self.path.to_string_lossy();
        name.is_empty() || JIT_NAMES.iter().any(|start| name.starts_with(start))
    }

    /// The last component of the file's path.
    pub fn name(&self) -> String {
        let (path, _) = self.file();
        path.file_name().map_or(path.to_string_lossy(), |name| name.to_string_lossy()).escape_debug().to_string()
    }

    /// The path of the file, and whether the file was deleted or replaced while it was mapped.
    pub fn file(&self) -> (PathBuf, bool) {
        match self.path.to_str().and_then(|path| path.strip_suffix(DELETED)) {
            Some(path) => (path.into(), true),
            None => (self.path.clone(), false),
        }
    }
}

impl CodeAddress<'_> {
    /// `sort+0x1234`, `[jit]`, `[unmapped]`, or the address itself.
    pub fn place(&self) -> String {
        match self {
            CodeAddress::InFile(map, offset) => format!("{}+{offset:#x}", map.name()),
            CodeAddress::Generated => "[jit]".to_owned(),
            CodeAddress::Unmapped => "[unmapped]".to_owned(),
            CodeAddress::Unknown(address) => format!("{address:#x}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_found_in_files_and_in_generated_code() {
        let mut maps = CodeMaps::default();
        assert_eq!(maps.find(0x10).place(), "0x10");
        for line in [
            "0x1000 0x3000 0x500 abc /bin/a\\x20b",
            "0x2000 0x3000 0x0 - /bin/c",
            "0x4000 0x5000 0x0 - ",
            "0x5000 0x6000 0x0 - /memfd:jit\\x20(deleted)",
            "0x6000 0x7000 0x0 0f [vdso]",
            "0x7000 0x8000 0xffffffffffffffff - /overflow",
            "0x8000 0x7000 0x0 - /backwards",
            "0x1000",
            "",
        ] {
            maps.add(line.as_bytes());
        }
        let places = [0x1fff, 0x2010, 0x4000, 0x5000, 0x6004, 0x7000].map(|address| maps.find(address).place());
        assert_eq!(places, ["a b+0x14ff", "c+0x10", "[jit]", "[jit]", "[vdso]+0x4", "[unmapped]"]);
    }
}
