//! What a shared library requires of the program that loads it, read from the library's ELF file.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::{fs, str};

use object::Endianness;
use object::elf::{self, FileHeader64};
use object::read::elf::{Dyn as _, FileHeader as _, ProgramHeader as _, Sym as _, VersionIndex, VersionTable};

/// A symbol that another library has to have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Import {
    /// It may be missing.
    pub weak: bool,
    /// `GLIBC_2.2.5`.
    pub version: Option<String>,
}

/// A shared library for x86-64.
#[derive(Clone, Debug, Default)]
pub struct Library {
    /// In the notation of linkers: `fork`, `quick_exit@GLIBC_2.10`, `quick_exit@@GLIBC_2.24` for a default version.
    pub exports: BTreeSet<String>,
    pub imports: BTreeMap<String, Import>,
    /// `DT_NEEDED`.
    pub needed: BTreeSet<String>,
    /// Every name of the full symbol table; empty if the library is stripped.
    pub names: BTreeSet<String>,
    /// `DT_FLAGS` and `DT_FLAGS_1`.
    pub flags: [u64; 2],
    /// `DT_RPATH` or `DT_RUNPATH`.
    pub search_path: bool,
    /// Bytes of thread-local storage.
    pub thread_local: u64,
    pub text_relocations: bool,
    pub executable_stack: bool,
    pub writable_code: bool,
}

impl Library {
    /// Reads the file.
    ///
    /// # Panics
    /// If it is not a shared library of this machine's kind.
    pub fn read(path: &Path) -> Library {
        let data = fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        Library::parse(&data).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// The exports of a library, with their addresses; in the notation of [`Library::exports`].
    ///
    /// # Panics
    /// If it is not a shared library of this machine's kind.
    pub fn symbol_addresses(path: &Path) -> BTreeMap<String, u64> {
        let data = fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let read = || {
            let header = FileHeader64::<Endianness>::parse(&*data)?;
            let endian = header.endian()?;
            let sections = header.sections(endian, &*data)?;
            let versions = sections.versions(endian, &*data)?.expect("versions");
            let symbols = sections.symbols(endian, &*data, elf::SHT_DYNSYM)?;
            let mut addresses = BTreeMap::new();
            for (index, symbol) in symbols.enumerate().filter(|(_, symbol)| !symbol.is_undefined(endian)) {
                let name = text(symbol.name(endian, symbols.strings())?);
                let version = versions.version_index(endian, index);
                addresses.insert(name + &suffix(&versions, version)?, symbol.st_value(endian));
            }
            Ok::<_, object::Error>(addresses)
        };
        read().unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    fn parse(data: &[u8]) -> object::read::Result<Library> {
        let header = FileHeader64::<Endianness>::parse(data)?;
        let endian = header.endian()?;
        assert_eq!(header.e_machine(endian), elf::EM_X86_64, "another machine's");
        let sections = header.sections(endian, data)?;
        // Without a header for the stack the kernel makes it executable.
        let mut library = Library { executable_stack: true, ..Library::default() };

        for segment in header.program_headers(endian, data)? {
            let flags = segment.p_flags(endian);
            let executable = flags & elf::PF_X != 0;
            match segment.p_type(endian) {
                elf::PT_TLS => library.thread_local = segment.p_memsz(endian),
                elf::PT_GNU_STACK => library.executable_stack = executable,
                elf::PT_LOAD => library.writable_code |= executable && flags & elf::PF_W != 0,
                _ => {}
            }
        }

        let (entries, link) = sections.dynamic(endian, data)?.expect("a dynamic section");
        let strings = sections.strings(endian, data, link)?;
        for entry in entries {
            let value = entry.d_val(endian);
            match entry.tag32(endian) {
                Some(elf::DT_NEEDED) => {
                    library.needed.insert(text(entry.string(endian, strings)?));
                }
                Some(elf::DT_RPATH | elf::DT_RUNPATH) => library.search_path = true,
                Some(elf::DT_TEXTREL) => library.text_relocations = true,
                Some(elf::DT_FLAGS) => library.flags[0] = value,
                Some(elf::DT_FLAGS_1) => library.flags[1] = value,
                _ => {}
            }
        }
        library.text_relocations |= library.flags[0] & u64::from(elf::DF_TEXTREL) != 0;

        let versions = sections.versions(endian, data)?;
        let symbols = sections.symbols(endian, data, elf::SHT_DYNSYM)?;
        for (index, symbol) in symbols.enumerate() {
            let name = text(symbol.name(endian, symbols.strings())?);
            let index = versions.as_ref().map(|versions| (versions, versions.version_index(endian, index)));
            if symbol.is_undefined(endian) {
                if !name.is_empty() {
                    let version = match index {
                        Some((versions, index)) => versions.version(index)?.map(|version| text(version.name())),
                        None => None,
                    };
                    library.imports.insert(name, Import { weak: symbol.is_weak(), version });
                }
            } else if !symbol.is_local() {
                let suffix = match index {
                    Some((versions, index)) => suffix(versions, index)?,
                    None => String::new(),
                };
                library.exports.insert(name + &suffix);
            }
        }

        let symbols = sections.symbols(endian, data, elf::SHT_SYMTAB)?;
        for symbol in symbols.iter() {
            library.names.insert(text(symbol.name(endian, symbols.strings())?));
        }
        Ok(library)
    }
}

/// A version as it stands behind a symbol's name: `@GLIBC_2.10`, `@@GLIBC_2.24`, or nothing.
fn suffix(versions: &VersionTable<'_, FileHeader64<Endianness>>, index: VersionIndex) -> object::read::Result<String> {
    let separator = if index.is_hidden() { "@" } else { "@@" };
    let version = versions.version(index)?;
    Ok(version.map_or_else(String::new, |version| format!("{separator}{}", text(version.name()))))
}

fn text(bytes: &[u8]) -> String {
    str::from_utf8(bytes).expect("names are ASCII").to_owned()
}
