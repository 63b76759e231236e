//! Finds libthreadt.so.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::{env, io};

use super::elf::{self, Elf};
use super::refusal::{OWN_FAILURE, Refusal};
use crate::support::diagnostics::reason;

/// The library's file name.
pub const NAME: &str = "libthreadt.so";

/// Where it may be, relative to trace-cat's own directory: as in a build directory, and as packages install it.
const PLACES: [&str; 5] = [".", "../lib", "../lib64", "../lib/x86_64-linux-gnu", "../lib/threadt"];

/// The library's absolute path and its ELF headers: of the `requested` one, or of the one that is installed with trace-cat.
pub fn find(requested: Option<&Path>) -> Result<(PathBuf, Elf), Refusal> {
    let path = match requested {
        Some(path) => path.canonicalize().map_err(|error| Refusal::own_failure(path, reason(&error)))?,
        None => installed_with(&own_directory()?)?,
    };
    if path.as_os_str().as_bytes().iter().any(|byte| b" :$".contains(byte)) {
        return Err(Refusal::own_failure(&path, "LD_PRELOAD cannot name a path with a space, a colon or a dollar"));
    }
    let file = File::open(&path).map_err(|error| Refusal::own_failure(&path, reason(&error)))?;
    let Some(elf) = elf::read(file) else { return Err(Refusal::own_failure(&path, "is no library")) };
    Ok((path, elf))
}

/// `FILE.so` or `FILE.so:PARAMETERS` with the absolute path of the file, which has to be a library.
pub fn absolute_handler(given: &OsStr) -> Result<OsString, Refusal> {
    let mut parts = given.as_bytes().splitn(2, |&byte| byte == b':');
    let (path, _) = find(Some(Path::new(OsStr::from_bytes(parts.next().unwrap_or_default()))))?;
    let mut handler = path.into_os_string();
    if let Some(parameters) = parts.next() {
        handler.push(":");
        handler.push(OsStr::from_bytes(parameters));
    }
    Ok(handler)
}

fn own_directory() -> Result<PathBuf, Refusal> {
    let own = env::current_exe().and_then(|path| path.canonicalize());
    let own = own.map_err(|error: io::Error| Refusal::own_failure(Path::new("/proc/self/exe"), reason(&error)))?;
    Ok(own.parent().unwrap_or(Path::new("/")).to_owned())
}

fn installed_with(directory: &Path) -> Result<PathBuf, Refusal> {
    let library = PLACES.iter().find_map(|place| directory.join(place).join(NAME).canonicalize().ok());
    library.ok_or_else(|| {
        let places = PLACES[1..].join(", ");
        let what = format_args!(
            "{NAME} is neither in {} nor beside it in {places}; --library or THREADT_LIBRARY names it",
            directory.display()
        );
        Refusal::new(OWN_FAILURE, what)
    })
}

/// Whether an item of LD_PRELOAD is libthreadt, in whatever directory.
pub fn is_named_by(item: &[u8]) -> bool {
    Path::new(OsStr::from_bytes(item)).file_name() == Some(OsStr::new(NAME))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn the_library_is_found_in_each_place() {
        for place in PLACES {
            let directory = tempfile::tempdir().unwrap();
            let root = directory.path().canonicalize().unwrap();
            let own = root.join("bin");
            fs::create_dir(&own).unwrap();
            fs::create_dir_all(own.join(place)).unwrap();
            assert!(installed_with(&own).unwrap_err().message.starts_with("libthreadt.so is neither in "));
            fs::write(own.join(place).join(NAME), "").unwrap();
            assert!(installed_with(&own).unwrap().starts_with(&root), "{place}");
        }
    }

    #[test]
    fn a_file_that_cannot_be_preloaded_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let spaced = directory.path().join("a b.so");
        assert!(find(Some(&spaced)).unwrap_err().message.ends_with("No such file or directory"));
        fs::copy("/proc/self/exe", &spaced).unwrap();
        assert!(find(Some(&spaced)).unwrap_err().message.contains("LD_PRELOAD cannot name"));
        let text = directory.path().join("text.so");
        fs::write(&text, "INPUT(-lc)").unwrap();
        let refusal = find(Some(&text)).unwrap_err();
        assert!(refusal.status == 125 && refusal.message.ends_with("text.so: is no library"));
    }
}
