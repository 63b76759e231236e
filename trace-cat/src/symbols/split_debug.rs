//! Debug information that is in files of its own (`-gsplit-dwarf`): `.dwo` beside the objects, or all in one `.dwp`.

use std::cell::OnceCell;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gimli::{Dwarf, DwarfPackage, DwoId, Reader as _, SectionId, Unit};

use super::dwarf_sections::{DwarfReader, section_reader};
use super::module_file::ModuleFile;

/// The split files of a module.
pub struct SplitFiles {
    /// The module, or its separate debug file.
    path: PathBuf,
    package: OnceCell<Option<DwarfPackage<DwarfReader>>>,
}

impl SplitFiles {
    pub fn new(module: &ModuleFile) -> SplitFiles {
        SplitFiles { path: module.path.clone(), package: OnceCell::new() }
    }

    /// What a skeleton unit of a module stands for.
    pub fn of_unit(&self, parent: &Dwarf<DwarfReader>, unit: &Unit<DwarfReader>) -> Option<Arc<Dwarf<DwarfReader>>> {
        let id = unit.dwo_id?;
        let name = parent.attr_string(unit, unit.dwo_name().ok()??).ok()?;
        self.load(parent, id, unit.comp_dir.as_ref(), Some(&name))
    }

    /// The unit with an ID: from the package, or else from the file that was made with the object, where it was or beside the module.
    pub fn load(
        &self,
        parent: &Dwarf<DwarfReader>,
        id: DwoId,
        directory: Option<&DwarfReader>,
        name: Option<&DwarfReader>,
    ) -> Option<Arc<Dwarf<DwarfReader>>> {
        if let Some(package) = self.package.get_or_init(|| self.open_package())
            && let Ok(Some(dwarf)) = package.find_cu(id, parent)
        {
            return Some(shared(dwarf));
        }
        let path = |bytes: &DwarfReader| Some(PathBuf::from(OsStr::from_bytes(&bytes.to_slice().ok()?)));
        let (directory, name) = (directory.and_then(path).unwrap_or_default(), name.and_then(path)?);
        let beside = self.path.parent().unwrap_or(Path::new(""));
        let paths = [directory.join(&name), beside.join(&name), beside.join(name.file_name()?)];
        paths.iter().find_map(|path| open_object(path, parent, id)).map(shared)
    }

    /// `PROGRAM.dwp`, also where the program's debug file is `PROGRAM.debug`.
    fn open_package(&self) -> Option<DwarfPackage<DwarfReader>> {
        let mut appended = self.path.clone().into_os_string();
        appended.push(".dwp");
        let paths = [PathBuf::from(appended), self.path.with_extension("dwp")];
        paths.iter().find_map(|path| {
            let file = ModuleFile::open(path)?;
            let section = |id: SectionId| Ok::<_, gimli::Error>(section_reader(&file, id.dwo_name()));
            DwarfPackage::load(section, section_reader(&file, None)).ok()
        })
    }
}

/// A `.dwo`, if it is that of an ID.
fn open_object(path: &Path, parent: &Dwarf<DwarfReader>, id: DwoId) -> Option<Dwarf<DwarfReader>> {
    let file = ModuleFile::open(path)?;
    let section = |id: SectionId| Ok::<_, gimli::Error>(section_reader(&file, id.dwo_name()));
    let mut dwarf = Dwarf::load(section).ok()?;
    dwarf.make_dwo(parent);
    // Units of types may come first.
    let mut headers = dwarf.units();
    while let Some(header) = headers.next().ok()? {
        if dwarf.unit(header).is_ok_and(|unit| unit.dwo_id == Some(id)) {
            return Some(dwarf);
        }
    }
    None
}

#[expect(clippy::arc_with_non_send_sync, reason = "addr2line wants one; everything stays in this thread")]
fn shared(dwarf: Dwarf<DwarfReader>) -> Arc<Dwarf<DwarfReader>> {
    Arc::new(dwarf)
}
