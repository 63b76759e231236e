//! An ELF file: a program, a library or a separate debug file.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use object::elf::{FileHeader64, PF_X, SHN_UNDEF, STT_FUNC, STT_GNU_IFUNC, STT_OBJECT};
use object::read::elf::{ElfFile64, FileHeader as _, ProgramHeader as _, Sym as _};
use object::read::{CompressedData, CompressedFileRange, CompressionFormat};
use object::{Endianness, Object as _, ObjectSection as _, ObjectSegment as _, ReadCache};

use super::symbol_table::{Symbol, SymbolTable};

/// The smallest page of memory.
const PAGE: u64 = 4096;

/// An open file with what its headers say.
#[derive(Debug)]
pub struct ModuleFile {
    pub path: PathBuf,
    file: File,
    length: u64,
    pub endianness: Endianness,
    pub build_id: Option<Vec<u8>>,
    /// The name of the separate debug file, and its check sum.
    pub debug_link: Option<(Vec<u8>, u32)>,
    /// The path of the file that several debug files share, and its build ID.
    pub alternate_link: Option<(Vec<u8>, Vec<u8>)>,
    segments: Vec<LoadSegment>,
    sections: HashMap<Vec<u8>, CompressedFileRange>,
}

/// Part of a file that is loaded.
#[derive(Clone, Copy, Debug)]
struct LoadSegment {
    offset: u64,
    file_size: u64,
    address: u64,
    size: u64,
    is_executable: bool,
}

impl ModuleFile {
    /// Opens a file and reads its headers; `None` if there is none that could be read.
    pub fn open(path: &Path) -> Option<ModuleFile> {
        // A pipe must not make the program wait.
        let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path).ok()?;
        let metadata = file.metadata().ok().filter(|metadata| metadata.is_file())?;
        let cache = ReadCache::new(&file);
        let elf = ElfFile64::<Endianness, _>::parse(&cache).ok()?;
        let sections = elf
            .sections()
            .filter_map(|section| Some((section.name_bytes().ok()?.to_owned(), section.compressed_file_range().ok()?)));
        let sections = sections.collect();
        let segments = elf.segments().map(|segment| {
            let (offset, file_size) = segment.file_range();
            let is_executable = segment.elf_program_header().p_flags(elf.endian()) & PF_X != 0;
            LoadSegment { offset, file_size, address: segment.address(), size: segment.size(), is_executable }
        });
        let segments = segments.collect();
        let owned = |(name, id): (&[u8], &[u8])| (name.to_owned(), id.to_owned());
        let module = ModuleFile {
            path: path.to_owned(),
            length: metadata.len(),
            endianness: elf.elf_header().endian().ok()?,
            build_id: elf.build_id().ok().flatten().map(<[u8]>::to_owned),
            debug_link: elf.gnu_debuglink().ok().flatten().map(|(name, sum)| (name.to_owned(), sum)),
            alternate_link: elf.gnu_debugaltlink().ok().flatten().map(owned),
            segments,
            sections,
            file: file.try_clone().ok()?,
        };
        Some(module)
    }

    /// The address, before the module was moved in memory, of what is at an offset in the file, which is code. Pages that are
    /// mapped begin before their segment.
    pub fn address_of_offset(&self, offset: u64) -> Option<u64> {
        self.segments.iter().filter(|segment| segment.is_executable).find_map(|segment| {
            let begin = segment.offset & !(PAGE - 1);
            let end = segment.offset.checked_add(segment.file_size)?;
            let address = segment.address.wrapping_sub(segment.offset).wrapping_add(offset);
            (begin..end).contains(&offset).then_some(address)
        })
    }

    /// Whether an address, before the module was moved in memory, is in what is loaded.
    pub fn has_address(&self, address: u64) -> bool {
        self.segments.iter().any(|segment| address.checked_sub(segment.address).is_some_and(|at| at < segment.size))
    }

    pub fn has_section(&self, name: &str) -> bool {
        self.sections.get(name.as_bytes()).is_some_and(|range| range.uncompressed_size > 0)
    }

    /// The bytes of a section, decompressed; none if it is absent or damaged.
    pub fn section(&self, name: &str) -> Rc<[u8]> {
        let read = |range: &CompressedFileRange| {
            let bytes = self.bytes(range.offset, range.compressed_size)?;
            if range.format == CompressionFormat::None {
                return Some(bytes);
            }
            let size = range.uncompressed_size;
            let data = CompressedData { format: range.format, data: &bytes, uncompressed_size: size };
            data.decompress().ok().map(Rc::from)
        };
        self.sections.get(name.as_bytes()).and_then(read).unwrap_or_default()
    }

    fn bytes(&self, offset: u64, size: u64) -> Option<Rc<[u8]>> {
        offset.checked_add(size).filter(|end| *end <= self.length)?;
        // A file with a hole may say that it is larger than all memory. The allocation below would end the program.
        Vec::<u8>::new().try_reserve_exact(usize::try_from(size).ok()?).ok()?;
        let mut bytes: Rc<[u8]> = std::iter::repeat_n(0, size as usize).collect();
        self.file.read_exact_at(Rc::get_mut(&mut bytes)?, offset).ok()?;
        Some(bytes)
    }

    /// The check sum that a `.gnu_debuglink` to this file has.
    pub fn check_sum(&self) -> io::Result<u32> {
        let mut hasher = crc32fast::Hasher::new();
        let mut buffer = vec![0; 1 << 16];
        let mut at = 0;
        loop {
            let length = self.file.read_at(&mut buffer, at)?;
            if length == 0 {
                return Ok(hasher.finalize());
            }
            hasher.update(&buffer[..length]);
            at += length as u64;
        }
    }

    /// Its functions and variables: from `.symtab`, or `.dynsym` if it has none.
    pub fn symbols(&self) -> Option<SymbolTable> {
        let cache = ReadCache::new(&self.file);
        let elf = ElfFile64::<Endianness, _>::parse(&cache).ok()?;
        let tables = [elf.elf_symbol_table(), elf.elf_dynamic_symbol_table()];
        let table = tables.into_iter().find(|table| !table.is_empty())?;
        let strings = elf.section_by_index(table.string_section()).ok()?.compressed_file_range().ok()?;
        let strings = self.bytes(strings.offset, strings.compressed_size)?;
        let endian = self.endianness;
        let named = table.iter().filter(|symbol| {
            matches!(symbol.st_type(), STT_FUNC | STT_GNU_IFUNC | STT_OBJECT)
                && symbol.st_shndx(endian) != SHN_UNDEF
                && symbol.st_name(endian) != 0
        });
        let symbols = named.map(|symbol: &<FileHeader64<Endianness> as object::read::elf::FileHeader>::Sym| Symbol {
            address: symbol.st_value(endian),
            size: symbol.st_size(endian),
            name: symbol.st_name(endian),
            is_object: symbol.st_type() == STT_OBJECT,
        });
        Some(SymbolTable::new(symbols.collect(), strings))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_that_is_larger_than_all_memory_is_none() {
        let memory = File::from(rustix::fs::memfd_create("module", rustix::fs::MemfdFlags::CLOEXEC).unwrap());
        let mut module = ModuleFile::open(&std::env::current_exe().unwrap()).unwrap();
        let text = module.sections.get_mut(b".text".as_slice()).unwrap();
        *text = CompressedFileRange::none(Some((0, 1 << 62)));
        memory.set_len(1 << 62).unwrap();
        (module.file, module.length) = (memory, 1 << 62);
        assert!(module.section(".text").is_empty());
    }
}
