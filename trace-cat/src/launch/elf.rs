//! Reads from an ELF file how it is loaded. Only headers and the dynamic symbols are read, however large the file is.

use std::fs::File;

use object::elf::{self, FileHeader32, FileHeader64};
use object::read::elf::{Dyn as _, FileHeader, ProgramHeader as _, Sym as _};
use object::{Endianness, FileKind, ReadCache, ReadRef};

/// The machine that a file is for: `e_machine`, and whether addresses have 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Machine {
    number: u16,
    wide: bool,
}

impl std::fmt::Display for Machine {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        let name = match self.number {
            elf::EM_X86_64 if !self.wide => return f.write_str("x32"),
            elf::EM_X86_64 => "x86-64",
            elf::EM_386 => "i386",
            elf::EM_AARCH64 => "aarch64",
            elf::EM_ARM => "arm",
            elf::EM_RISCV => "riscv",
            elf::EM_PPC64 => "ppc64",
            elf::EM_S390 => "s390",
            elf::EM_MIPS => "mips",
            elf::EM_LOONGARCH => "loongarch",
            number => return write!(f, "machine {number} (see elf.h)"),
        };
        write!(f, "{name}, {}-bit", if self.wide { 64 } else { 32 })
    }
}

/// An executable or a library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Elf {
    /// The machine that it is for.
    pub machine: Machine,
    /// The dynamic linker that it names; `None` if it is linked statically.
    pub interpreter: Option<Vec<u8>>,
    /// The libraries that it needs (`DT_NEEDED`).
    pub needed: Vec<Vec<u8>>,
    /// The functions and variables that it takes from them; none if it has no section headers.
    pub imports: Vec<Vec<u8>>,
    /// Go's linker has made it.
    pub is_go: bool,
}

/// Reads the headers and the imports of `file`; `None` if it is not ELF or is damaged.
pub fn read(file: File) -> Option<Elf> {
    let data = ReadCache::new(file);
    match FileKind::parse(&data).ok()? {
        FileKind::Elf32 => parse::<FileHeader32<Endianness>, _>(&data, false),
        FileKind::Elf64 => parse::<FileHeader64<Endianness>, _>(&data, true),
        _ => None,
    }
}

fn parse<'a, Header, R>(data: R, wide: bool) -> Option<Elf>
where
    Header: FileHeader<Endian = Endianness>,
    R: ReadRef<'a>,
{
    let header = Header::parse(data).ok()?;
    let endian = header.endian().ok()?;
    let machine = Machine { number: header.e_machine(endian), wide };
    let segments = header.program_headers(endian, data).ok()?;
    let interpreter = segments.iter().find_map(|segment| segment.interpreter(endian, data).ok()?);
    let dynamic = segments.iter().find_map(|segment| segment.dynamic(endian, data).ok()?).unwrap_or_default();
    let interpreter = interpreter.map(<[u8]>::to_owned);
    let sections = header.sections(endian, data).unwrap_or_default();
    let is_go = sections.section_by_name(endian, b".go.buildinfo").is_some();
    let mut program = Elf { machine, interpreter, needed: Vec::new(), imports: Vec::new(), is_go };
    if let Ok(symbols) = sections.symbols(endian, data, elf::SHT_DYNSYM) {
        let imported = symbols.iter().filter(|symbol| symbol.is_undefined(endian));
        let names = imported.filter_map(|symbol| symbol.name(endian, symbols.strings()).ok());
        program.imports = names.map(<[u8]>::to_owned).collect();
    }
    let value = |entry: &Header::Dyn| -> u64 { entry.d_val(endian).into() };
    let strings = dynamic.iter().find(|entry| entry.tag32(endian) == Some(elf::DT_STRTAB)).map(value);
    // The string table's address is converted to an offset in the file.
    let strings = strings.and_then(|address| {
        segments.iter().filter(|segment| segment.p_type(endian) == elf::PT_LOAD).find_map(|segment| {
            let (start, size): (u64, u64) = (segment.p_vaddr(endian).into(), segment.p_filesz(endian).into());
            let offset: u64 = segment.p_offset(endian).into();
            let inside = address.checked_sub(start)?;
            (inside < size).then(|| offset.checked_add(inside)).flatten()
        })
    });
    let Some(strings) = strings else { return Some(program) };
    for entry in dynamic.iter().filter(|entry| entry.tag32(endian) == Some(elf::DT_NEEDED)) {
        let start = strings.checked_add(value(entry))?;
        // No file name is longer.
        let end = start.checked_add(4096)?;
        program.needed.extend(data.read_bytes_at_until(start..end, 0).ok().map(<[u8]>::to_owned));
    }
    Some(program)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::seeded_random::SeededRandom;
    use std::fs;
    use std::io::{Seek as _, Write as _};

    #[test]
    fn this_programs_linker_and_libraries_are_read() {
        let elf = read(File::open("/proc/self/exe").unwrap()).unwrap();
        assert!(elf.interpreter.unwrap().windows(3).any(|bytes| bytes == b"/ld"));
        assert!(elf.needed.iter().any(|name| name.starts_with(b"libc.so")), "{:?}", elf.needed);
        assert!(elf.imports.iter().any(|name| name == b"pthread_create"), "{:?}", elf.imports);
        assert!(elf.machine.to_string().contains("-bit"));
    }

    #[test]
    fn a_damaged_elf_file_does_not_make_the_reader_panic() {
        let original = fs::read("/bin/sh").unwrap();
        let mut random = SeededRandom::seeded("elf", 11);
        for _ in 0..2000 {
            let mut bytes = original[..4096.min(original.len())].to_vec();
            for _ in 0..1 + random.below(8) {
                let at = random.below(1024.min(bytes.len()));
                bytes[at] = random.next() as u8;
            }
            bytes.truncate(random.below(bytes.len() + 1));
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(&bytes).unwrap();
            file.rewind().unwrap();
            read(file);
        }
    }
}
