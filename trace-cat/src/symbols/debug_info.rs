//! The functions and lines of addresses, from DWARF.

use addr2line::Context;
use gimli::{EndianRcSlice, RunTimeEndian, SectionId};
use object::Endianness;

use super::demangle::demangled;
use super::module_file::ModuleFile;

type Reader = EndianRcSlice<RunTimeEndian>;

/// A function that an address is in, by itself or because a call of it was inlined there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CodeFrame {
    /// Its name; empty if unknown.
    pub function: String,
    /// The path of its source, as the compiler wrote it.
    pub file: Option<String>,
    pub line: Option<u32>,
}

/// The DWARF of a module.
pub struct DebugInfo {
    context: Context<Reader>,
}

impl DebugInfo {
    /// Whether a file has DWARF.
    pub fn is_in(file: &ModuleFile) -> bool {
        file.has_section(".debug_info")
    }

    /// Reads it, with the file that several debug files share.
    pub fn load(file: &ModuleFile, alternate: Option<&ModuleFile>) -> Option<DebugInfo> {
        let reader = |file: &ModuleFile, id: SectionId| -> Result<Reader, gimli::Error> {
            let endian = match file.endianness {
                Endianness::Little => RunTimeEndian::Little,
                Endianness::Big => RunTimeEndian::Big,
            };
            Ok(Reader::new(file.section(id.name()), endian))
        };
        let mut dwarf = gimli::Dwarf::load(|id| reader(file, id)).ok()?;
        if let Some(alternate) = alternate {
            dwarf.load_sup(|id| reader(alternate, id)).ok()?;
        }
        Some(DebugInfo { context: Context::from_dwarf(dwarf).ok()? })
    }

    /// The functions that an address is in, the innermost inlined one first; none if unknown.
    pub fn frames(&self, address: u64) -> Vec<CodeFrame> {
        let mut frames = Vec::new();
        let Ok(mut found) = self.context.find_frames(address).skip_all_loads() else { return frames };
        while let Ok(Some(frame)) = found.next() {
            let name = frame.function.as_ref().and_then(|name| Some(demangled(&name.raw_name().ok()?)));
            frames.push(CodeFrame {
                function: name.unwrap_or_default(),
                file: frame.location.as_ref().and_then(|location| location.file).map(str::to_owned),
                line: frame.location.and_then(|location| location.line).filter(|line| *line > 0),
            });
            // Damage can make a circle.
            if frames.len() == FRAMES_MAX {
                break;
            }
        }
        frames
    }
}

/// The most functions that were inlined into each other.
const FRAMES_MAX: usize = 256;
