//! The functions and lines of addresses, from DWARF.

use std::cell::OnceCell;
use std::rc::Rc;
use std::sync::Arc;

use addr2line::{Context, LookupContinuation, LookupResult};
use gimli::{Dwarf, SectionId, UnitOffset};

use super::demangle::demangled;
use super::dwarf_sections::{DwarfReader, section_reader};
use super::function_scopes::FunctionScopes;
use super::module_file::ModuleFile;
use super::split_debug::SplitFiles;
use super::variable_types::VariableTypes;

/// The most functions that were inlined into each other.
const FRAMES_MAX: usize = 256;

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
    context: Context<DwarfReader>,
    dwarf: Arc<Dwarf<DwarfReader>>,
    split: SplitFiles,
    scopes: FunctionScopes,
    /// Read when the first is needed.
    variables: OnceCell<VariableTypes>,
}

impl DebugInfo {
    /// Whether a file has DWARF.
    pub fn is_in(file: &ModuleFile) -> bool {
        file.has_section(".debug_info")
    }

    /// Reads it, with the file that several debug files share.
    pub fn load(file: &ModuleFile, alternate: Option<&ModuleFile>) -> Option<DebugInfo> {
        let reader = |file: &ModuleFile, id: SectionId| -> Result<DwarfReader, gimli::Error> {
            // They may be as long as all others together, and nothing here asks for them.
            let is_unused = matches!(id, SectionId::DebugLoc | SectionId::DebugLocLists | SectionId::DebugMacro);
            Ok(section_reader(file, Some(id.name()).filter(|_| !is_unused)))
        };
        let mut dwarf = Dwarf::load(|id| reader(file, id)).ok()?;
        if let Some(alternate) = alternate {
            dwarf.load_sup(|id| reader(alternate, id)).ok()?;
        }
        #[expect(clippy::arc_with_non_send_sync, reason = "addr2line wants one; everything stays in this thread")]
        let dwarf = Arc::new(dwarf);
        let context = Context::from_arc_dwarf(dwarf.clone()).ok()?;
        Some(DebugInfo {
            context,
            dwarf,
            split: SplitFiles::new(file),
            scopes: FunctionScopes::default(),
            variables: OnceCell::new(),
        })
    }

    /// The functions that an address is in, the innermost inlined one first; none if unknown.
    pub fn frames(&self, address: u64) -> Vec<CodeFrame> {
        let mut frames = Vec::new();
        let Ok(mut found) = self.looked_up(self.context.find_frames(address)) else { return frames };
        while let Ok(Some(frame)) = found.next() {
            let name = frame.function.as_ref().and_then(|name| {
                let name = name.raw_name().ok()?;
                let is_complete = name.starts_with("_Z") || name.starts_with("_R");
                let scope = frame.dw_die_offset.filter(|_| !is_complete).map(|function| self.scope(address, function));
                Some(scope.as_deref().unwrap_or_default().to_owned() + &demangled(&name))
            });
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

    /// The result of a lookup, for which split files may be needed.
    fn looked_up<L: LookupContinuation<Buf = DwarfReader>>(&self, mut lookup: LookupResult<L>) -> L::Output {
        loop {
            lookup = match lookup {
                LookupResult::Output(found) => return found,
                LookupResult::Load { load, continuation } => {
                    let (directory, name) = (load.comp_dir.as_ref(), load.path.as_ref());
                    continuation.resume(self.split.load(&load.parent, load.dwo_id, directory, name))
                }
            };
        }
    }

    /// The namespaces and classes of a function that an address is in.
    fn scope(&self, address: u64, function: UnitOffset) -> Rc<str> {
        let unit = self.looked_up(self.context.find_dwarf_and_unit(address));
        unit.map(|unit| self.scopes.scope(unit, function)).unwrap_or_default()
    }

    /// See [`VariableTypes::part`].
    pub fn part_of_variable(&self, address: u64, offset: u64, size: u64) -> Option<String> {
        let variables = self.variables.get_or_init(|| VariableTypes::read(&self.dwarf, &self.split));
        variables.part(address, offset, size)
    }
}
