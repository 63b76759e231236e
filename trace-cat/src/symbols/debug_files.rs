//! Separate debug files, where gdb searches for them too.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::debug_info::DebugInfo;
use super::module_file::ModuleFile;

/// The debug file of a module.
pub fn find(module: &ModuleFile, directories: &[PathBuf]) -> Option<ModuleFile> {
    let with_dwarf = |path: PathBuf| ModuleFile::open(&path).filter(DebugInfo::is_in);
    if let Some(id) = &module.build_id {
        let mut paths = directories.iter().filter_map(|directory| path_of_build_id(directory, id));
        let found = paths.find_map(|path| with_dwarf(path).filter(|file| file.build_id.as_ref() == Some(id)));
        if found.is_some() {
            return found;
        }
    }
    let (name, sum) = module.debug_link.as_ref()?;
    let name = Path::new(OsStr::from_bytes(name)).file_name()?;
    // Where the links of the module's path lead to, too.
    let directory = module.path.parent()?;
    let real = directory.canonicalize().unwrap_or(directory.to_owned());
    let beside = [directory.join(name), directory.join(".debug").join(name)].into_iter();
    let below = directories.iter().flat_map(|root| {
        let path = real.strip_prefix("/").unwrap_or(&real);
        [root.join(path).join(name), root.join(name)]
    });
    beside.chain(below).find_map(|path| {
        with_dwarf(path).filter(|file| match (&module.build_id, &file.build_id) {
            (Some(id), Some(other)) => id == other,
            _ => file.check_sum().is_ok_and(|found| found == *sum),
        })
    })
}

/// The file that a debug file shares with others (`dwz -m`).
pub fn find_alternate(file: &ModuleFile, directories: &[PathBuf]) -> Option<ModuleFile> {
    let (path, id) = file.alternate_link.as_ref()?;
    let path = file.path.parent()?.join(OsStr::from_bytes(path));
    let others = directories.iter().filter_map(|directory| path_of_build_id(directory, id));
    let mut found = std::iter::once(path).chain(others).filter_map(|path| ModuleFile::open(&path));
    found.find(|other| other.build_id.as_ref() == Some(id))
}

/// `DIRECTORY/.build-id/12/3456.debug`.
fn path_of_build_id(directory: &Path, id: &[u8]) -> Option<PathBuf> {
    let (first, others) = id.split_first().filter(|(_, others)| !others.is_empty())?;
    let others: String = others.iter().map(|byte| format!("{byte:02x}")).collect();
    Some(directory.join(".build-id").join(format!("{first:02x}")).join(others + ".debug"))
}
