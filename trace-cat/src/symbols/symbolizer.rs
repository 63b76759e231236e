//! Names of code, each looked up once.

use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::aliases::Aliases;
use super::code_maps::{CodeAddress, CodeMap, CodeMaps};
use super::debug_files;
use super::debug_info::{CodeFrame, DebugInfo};
use super::demangle::demangled;
use super::module_file::ModuleFile;
use super::name_pattern::NamePattern;
use super::symbol_table::SymbolTable;
use crate::support::visible_text::visible_bytes;

/// Where distributions put separate debug files.
const DEBUG_DIRECTORY: &str = "/usr/lib/debug";

/// Functions that do not name a site unless nothing else does: what the headers of C++, the libraries of Rust, those that have
/// locks, and InnoDB's locks put between the program and the call.
const LIBRARY_FUNCTIONS: [&str; 26] = [
    "execute_native_thread_routine",
    "std::*",
    "__gthread*",
    "__gnu_cxx::*",
    "__gthrw*",
    "core::*",
    "alloc::*",
    "<std::*",
    "<core::*",
    "parking_lot::*",
    "parking_lot_core::*",
    "<parking_lot::*",
    "<parking_lot_core::*",
    "lock_api::*",
    "<lock_api::*",
    "crossbeam_channel::*",
    "<crossbeam_channel::*",
    "crossbeam_utils::*",
    "<crossbeam_utils::*",
    "tokio::loom::*",
    "absl::*",
    "tbb::*",
    "srw_mutex_impl<*",
    "srw_lock_impl<*",
    "ssux_lock_impl<*",
    "ssux_lock::*",
];

/// Where the sources of these functions are: the headers of C++, and the libraries of Rust.
const LIBRARY_SOURCES: [&str; 2] = ["/include/c++/", "/rustc/"];

/// The beginnings of the names of libraries whose functions name no site unless nothing else does.
const RUNTIME_LIBRARIES: [&str; 7] =
    ["libc.so.", "libc-2.", "libpthread", "libstdc++.so", "libc++", "libabsl_", "libtbb"];

/// The names of the code of all recorded programs.
pub struct Symbolizer {
    debug_directories: Vec<PathBuf>,
    skipped: Vec<NamePattern>,
    pub aliases: Aliases,
    modules: RefCell<HashMap<ModuleKey, Rc<Module>>>,
    nameless: RefCell<BTreeMap<PathBuf, NameLack>>,
}

/// Why code of a file has no names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameLack {
    /// The file is not what was recorded, because its build ID differs.
    Changed,
    /// There is no such file, or it cannot be read.
    Absent,
    /// It has neither debug information nor a table of all its symbols.
    Stripped,
}

/// The path and the build ID.
type ModuleKey = (PathBuf, Option<String>);

/// A file that was mapped; each part is read when it is first needed.
#[derive(Default)]
struct Module {
    /// `None` if there is none, or another one than was recorded.
    file: Option<ModuleFile>,
    separate: OnceCell<Option<ModuleFile>>,
    debug: OnceCell<Option<DebugInfo>>,
    symbols: OnceCell<Option<SymbolTable>>,
    /// By offset in the file.
    frames: RefCell<HashMap<u64, Rc<[CodeFrame]>>>,
}

impl Symbolizer {
    /// Names with separate debug files from these directories, or the usual one. `skip` has patterns of functions that
    /// name no site.
    pub fn new(mut debug_directories: Vec<PathBuf>, skip: &[String]) -> Symbolizer {
        debug_directories.push(DEBUG_DIRECTORY.into());
        let skipped = LIBRARY_FUNCTIONS.into_iter().chain(skip.iter().map(String::as_str)).map(NamePattern::new);
        Symbolizer {
            debug_directories,
            skipped: skipped.collect(),
            aliases: Aliases::default(),
            modules: RefCell::default(),
            nameless: RefCell::default(),
        }
    }

    /// `function file:line` of a call that returns to an address, else `function module+0xoffset`, else what
    /// [`CodeAddress::place`] returns.
    pub fn call_name(&self, address: CodeAddress) -> String {
        self.name(address, &self.call_frames(address))
    }

    /// The same for a function that begins at an address.
    pub fn function_name(&self, address: CodeAddress) -> String {
        self.name(address, &self.frames(address, 0))
    }

    /// The function that begins at an address, without its file; `None` if it is one of a library that runs the program's own.
    pub fn routine_name(&self, address: CodeAddress) -> Option<String> {
        let frames = self.frames(address, 0);
        frames.last().filter(|frame| !self.is_skipped(frame)).map(|frame| frame.function.clone())
    }

    /// The function of the file that begins at an address, or that a call which returns there is in.
    pub fn symbol(&self, address: CodeAddress, is_return: bool) -> Option<String> {
        self.frames(address, is_return.into()).last().map(|frame| frame.function.clone())
    }

    /// The functions that a call which returns to an address is in, the innermost inlined one first.
    pub fn call_frames(&self, address: CodeAddress) -> Rc<[CodeFrame]> {
        // The instruction behind the call may belong to another line or to another function.
        self.frames(address, 1)
    }

    /// The static variable at an address in the memory of a program at a time, and the part of it, not larger than `size`, that is
    /// there: `queue_lock`, `table.locks[3]`, `table+0x18`.
    pub fn variable_name(&self, maps: &CodeMaps, (address, time): (u64, u64), size: u64) -> Option<String> {
        let map = maps.module_before(address, time)?;
        self.module(map).variable_name(map, address, size, &self.debug_directories)
    }

    /// Whether an address was in the memory of a module at a time, which has its code, its constants and its static variables.
    pub fn is_static(&self, maps: &CodeMaps, address: u64, time: u64) -> bool {
        maps.module_before(address, time).is_some_and(|map| self.module(map).file_address(map, address).is_some())
    }

    /// The files of which code was looked up and has no name. C libraries count only if they have changed: their functions
    /// name few sites.
    pub fn nameless_files(&self) -> Vec<(PathBuf, NameLack)> {
        self.nameless.borrow().iter().map(|(path, lack)| (path.clone(), *lack)).collect()
    }

    /// The name, as [`call_name`](Symbolizer::call_name) has it, of the first function in a stack that names a site, the innermost
    /// first: one outside the libraries of C and C++, and outside of what is skipped. Else it is that of the innermost.
    pub fn site_name(&self, stack: &[CodeAddress]) -> String {
        for address in stack.iter().filter(|address| !is_in_runtime_library(address)) {
            let frames = self.call_frames(*address);
            let frame = frames.iter().find(|frame| !self.is_skipped(frame));
            if frame.is_some() || frames.is_empty() {
                return self.frame_name(*address, frame);
            }
        }
        stack.first().map_or(String::new(), |address| self.call_name(*address))
    }

    /// Names as [`call_name`](Symbolizer::call_name) has them, of all functions that a call which returns to an address is in.
    pub fn frame_names(&self, address: CodeAddress) -> Vec<String> {
        let frames = self.call_frames(address);
        if frames.is_empty() {
            return vec![address.place()];
        }
        frames.iter().map(|frame| self.frame_name(address, Some(frame))).collect()
    }

    fn name(&self, address: CodeAddress, frames: &[CodeFrame]) -> String {
        self.frame_name(address, frames.iter().find(|frame| !self.is_skipped(frame)).or(frames.last()))
    }

    fn frame_name(&self, address: CodeAddress, frame: Option<&CodeFrame>) -> String {
        let path = if let CodeAddress::InFile(map, _) = address { map.file().0 } else { PathBuf::new() };
        let module = path.to_string_lossy();
        let offset = if let CodeAddress::InFile(_, offset) = address { Some((&*module, offset)) } else { None };
        let line = frame.and_then(|frame| Some((frame.file.as_deref()?, frame.line?)));
        if let Some(alias) = self.aliases.of_site(frame.map(|frame| frame.function.as_str()), line, offset) {
            return alias.to_owned();
        }
        let Some(frame) = frame else { return address.place() };
        match (line, offset) {
            (Some((file, line)), _) => format!("{} {}:{line}", frame.function, short_path(file)),
            (None, Some((module, offset))) => format!("{} {}+{offset:#x}", frame.function, short_path(module)),
            (None, None) => frame.function.clone(),
        }
    }

    fn is_skipped(&self, frame: &CodeFrame) -> bool {
        // Debug information has only the last part of some names.
        let is_in_library = |file: &str| LIBRARY_SOURCES.iter().any(|source| file.contains(source));
        frame.file.as_deref().is_some_and(is_in_library)
            || self.skipped.iter().any(|pattern| pattern.matches(&frame.function))
    }

    fn frames(&self, address: CodeAddress, before: u64) -> Rc<[CodeFrame]> {
        let CodeAddress::InFile(map, offset) = address else { return Rc::default() };
        let (module, offset) = (self.module(map), offset.saturating_sub(before));
        if let Some(known) = module.frames.borrow().get(&offset) {
            return known.clone();
        }
        let frames: Rc<[CodeFrame]> = module.find_frames(offset, &self.debug_directories).into();
        // The kernel's own code is in no file.
        if frames.is_empty()
            && map.path.is_absolute()
            && !is_in_runtime_library(&address)
            && let Some(lack) = module.lack_of_names(&self.debug_directories)
        {
            self.nameless.borrow_mut().entry(map.file().0).or_insert(lack);
        }
        module.frames.borrow_mut().insert(offset, frames.clone());
        frames
    }

    fn module(&self, map: &CodeMap) -> Rc<Module> {
        let key = (map.path.clone(), map.build_id.clone());
        if let Some(known) = self.modules.borrow().get(&key) {
            return known.clone();
        }
        let (path, is_deleted) = map.file();
        let file = ModuleFile::open(&path);
        let recorded = map.build_id.as_deref();
        let is_same = |file: &ModuleFile| match (recorded, &file.build_id) {
            (Some(recorded), found) => found.as_ref().is_some_and(|id| is_build_id(id, recorded)),
            (None, _) => !is_deleted,
        };
        if file.as_ref().is_some_and(|file| !is_same(file)) && !is_deleted {
            self.nameless.borrow_mut().insert(path, NameLack::Changed);
        }
        let module = Rc::new(Module { file: file.filter(is_same), ..Module::default() });
        self.modules.borrow_mut().insert(key, module.clone());
        module
    }
}

impl Module {
    fn find_frames(&self, offset: u64, directories: &[PathBuf]) -> Vec<CodeFrame> {
        let Some(address) = self.file.as_ref().and_then(|file| file.address_of_offset(offset)) else {
            return Vec::new();
        };
        let mut frames = self.debug(directories).map_or(Vec::new(), |debug| debug.frames(address));
        if frames.last().is_none_or(|frame| frame.function.is_empty())
            && let Some((name, _)) = self.symbols(directories).and_then(|symbols| symbols.find(address, false))
        {
            let outermost = frames.pop().unwrap_or_default();
            frames.push(CodeFrame { function: demangled(&name), ..outermost });
        }
        frames.retain(|frame| !frame.function.is_empty());
        frames
    }

    fn variable_name(&self, map: &CodeMap, address: u64, size: u64, directories: &[PathBuf]) -> Option<String> {
        let address = self.file_address(map, address)?;
        let (name, symbol) = self.symbols(directories)?.find(address, true)?;
        let offset = address - symbol.address;
        let mut name = demangled(without_suffix(&name));
        if offset > 0 || symbol.size > size {
            let part = self.debug(directories).and_then(|debug| debug.part_of_variable(symbol.address, offset, size));
            let or_offset = || if offset > 0 { format!("+{offset:#x}") } else { String::new() };
            name += &part.unwrap_or_else(or_offset);
        }
        Some(name)
    }

    /// The address, before the module was moved in memory, of what is at another one; `None` if that is not in the module.
    fn file_address(&self, map: &CodeMap, address: u64) -> Option<u64> {
        let file = self.file.as_ref()?;
        let moved_by = map.start.wrapping_sub(file.address_of_offset(map.offset)?);
        Some(address.wrapping_sub(moved_by)).filter(|address| file.has_address(*address))
    }

    /// Why functions of the file may have no names.
    fn lack_of_names(&self, directories: &[PathBuf]) -> Option<NameLack> {
        let Some(file) = &self.file else { return Some(NameLack::Absent) };
        let has_names = self.file_with_dwarf(directories).is_some() || file.has_section(".symtab");
        (!has_names).then_some(NameLack::Stripped)
    }

    fn debug(&self, directories: &[PathBuf]) -> Option<&DebugInfo> {
        let load = || {
            let file = self.file_with_dwarf(directories)?;
            DebugInfo::load(file, debug_files::find_alternate(file, directories).as_ref())
        };
        self.debug.get_or_init(load).as_ref()
    }

    /// The separate debug file, if the file has no DWARF.
    fn separate(&self, directories: &[PathBuf]) -> Option<&ModuleFile> {
        let file = self.file.as_ref().filter(|file| !DebugInfo::is_in(file))?;
        self.separate.get_or_init(|| debug_files::find(file, directories)).as_ref()
    }

    fn file_with_dwarf(&self, directories: &[PathBuf]) -> Option<&ModuleFile> {
        self.file.as_ref().filter(|file| DebugInfo::is_in(file)).or_else(|| self.separate(directories))
    }

    fn symbols(&self, directories: &[PathBuf]) -> Option<&SymbolTable> {
        let load = || {
            let separate = self.separate(directories).and_then(ModuleFile::symbols);
            separate.or_else(|| self.file.as_ref()?.symbols())
        };
        self.symbols.get_or_init(load).as_ref()
    }
}

/// The name of a static variable without what compilers append to tell it apart from others: that of a function has a number
/// (`lock.0`), and optimisation of the whole program adds `.lto_priv.0` or `.llvm.123`.
fn without_suffix(name: &str) -> &str {
    let name = name.split(".lto_priv.").next().unwrap_or(name);
    let name = name.split(".llvm.").next().unwrap_or(name);
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match name.rsplit_once('.') {
        Some((name, number)) if is_number(number) && !name.is_empty() => name,
        _ => name,
    }
}

/// Whether an address is in a library that calls traced functions for programs.
fn is_in_runtime_library(address: &CodeAddress) -> bool {
    let CodeAddress::InFile(map, _) = address else { return false };
    let name = map.path.file_name().unwrap_or_default().as_encoded_bytes();
    RUNTIME_LIBRARIES.iter().any(|library| name.starts_with(library.as_bytes()))
}

/// Whether a build ID is the recorded one, of which the recorder keeps the first 32 bytes.
fn is_build_id(id: &[u8], recorded: &str) -> bool {
    let digits: String = id.iter().take(32).map(|byte| format!("{byte:02x}")).collect();
    digits == recorded
}

/// The last component of a path.
fn short_path(path: &str) -> String {
    visible_bytes(Path::new(path).file_name().unwrap_or(path.as_ref()).as_encoded_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_have_the_names_of_their_source() {
        for (symbol, name) in [
            ("lock", "lock"),
            ("lock.0", "lock"),
            ("lock.1234", "lock"),
            ("lock.lto_priv.0", "lock"),
            ("lock.0.lto_priv.0.lto_priv.1", "lock"),
            ("lock.3.llvm.99887766", "lock"),
            // Clang names the function.
            ("work.lock", "work.lock"),
            ("work.lock.5", "work.lock"),
            (".0", ".0"),
            ("lock.", "lock."),
        ] {
            assert_eq!(without_suffix(symbol), name, "{symbol}");
        }
    }
}
