//! The sections of a file that have DWARF.

use std::rc::Rc;

use gimli::{EndianRcSlice, RunTimeEndian};
use object::Endianness;

use super::module_file::ModuleFile;

/// The bytes of a section.
pub type DwarfReader = EndianRcSlice<RunTimeEndian>;

/// A section of a file; empty if it has no name or is not there.
pub fn section_reader(file: &ModuleFile, name: Option<&str>) -> DwarfReader {
    let endian = match file.endianness {
        Endianness::Little => RunTimeEndian::Little,
        Endianness::Big => RunTimeEndian::Big,
    };
    DwarfReader::new(name.map_or_else(Rc::default, |name| file.section(name)), endian)
}
