//! The functions of an ELF file whose symbols begin with given texts.
//!
//! Most functions of a program have symbols only in its file, which is read a block at a time. A linker lets names share their ends,
//! so names stand in any order, and one may begin within another: first it is noted where in the names the texts are, then which
//! symbols have their names there.

use core::ffi::CStr;
use core::ptr;

use libc::{Elf64_Ehdr, Elf64_Shdr, Elf64_Sym};

use super::call::Result;
use super::elf::LinkMap;
use super::fd::Fd;
use super::{Errno, path, repeat_if_closed};

/// Bytes that are read at once.
const BLOCK_SIZE: usize = 8192;
/// Places in the names that are noted at most, and the room for them.
const PLACES_MAX: usize = 3 << 14;
const PLACES: usize = 1 << 16;
/// The most texts: each has a bit.
pub const TEXTS_MAX: usize = 32;

const SHT_SYMTAB: u32 = 2;
const SHT_DYNSYM: u32 = 11;
const STT_FUNC: u8 = 2;

/// The memory that a search needs. All zero at the beginning.
pub struct SymbolSearch {
    block: [u8; BLOCK_SIZE],
    /// Places in the names: the offset, and 2^32 times the bits of the texts that are there; 0 for none.
    places: [u64; PLACES],
    count: usize,
}

/// A part of a file.
#[derive(Clone, Copy)]
struct FileSection {
    from: u64,
    size: u64,
}

impl SymbolSearch {
    pub const fn new() -> SymbolSearch {
        SymbolSearch { block: [0; BLOCK_SIZE], places: [0; PLACES], count: 0 }
    }

    /// Gives `take` the value of each function of the file at `path` that has such a symbol, and the bits of the texts with which
    /// the symbol begins. `false` if there were too many names.
    pub fn search(
        &mut self,
        path: &CStr,
        texts: &mut dyn Iterator<Item = &'static [u8]>,
        take: &mut dyn FnMut(usize, u32),
    ) -> Result<bool> {
        let mut wanted: [&[u8]; TEXTS_MAX] = [b""; TEXTS_MAX];
        let count = wanted.iter_mut().zip(texts).map(|(place, text)| *place = text).count();
        let wanted = wanted.get(..count).unwrap_or_default();
        repeat_if_closed(|| self.search_file(&Fd::open_proc(path)?, wanted, take))
    }

    fn search_file(&mut self, file: &Fd, wanted: &[&[u8]], take: &mut dyn FnMut(usize, u32)) -> Result<bool> {
        let header: Elf64_Ehdr = read_struct(file, 0)?;
        if header.e_ident.get(..5) != Some(b"\x7fELF\x02") || usize::from(header.e_shentsize) != size_of::<Elf64_Shdr>()
        {
            return Err(Errno(libc::ENOEXEC));
        }
        let section = |index: u32| -> Result<Elf64_Shdr> {
            read_struct(file, header.e_shoff.wrapping_add(u64::from(index) * size_of::<Elf64_Shdr>() as u64))
        };
        let mut is_complete = true;
        for index in 0..u32::from(header.e_shnum) {
            let symbols = section(index)?;
            if ![SHT_SYMTAB, SHT_DYNSYM].contains(&symbols.sh_type) {
                continue;
            }
            let names = section(symbols.sh_link)?;
            self.note_places(file, FileSection { from: names.sh_offset, size: names.sh_size }, wanted)?;
            is_complete &= self.count < PLACES_MAX;
            if self.count > 0 {
                self.take_symbols(file, FileSection { from: symbols.sh_offset, size: symbols.sh_size }, take)?;
            }
        }
        Ok(is_complete)
    }

    /// Notes where the texts are among the names.
    fn note_places(&mut self, file: &Fd, names: FileSection, wanted: &[&[u8]]) -> Result {
        self.places.fill(0);
        self.count = 0;
        let longest = wanted.iter().map(|text| text.len()).max().unwrap_or(0);
        let mut at = 0;
        while at < names.size && at < u64::from(u32::MAX) {
            let length = file.read_at(&mut self.block, names.from.wrapping_add(at))?;
            let length = length.min((names.size - at).min(BLOCK_SIZE as u64) as usize);
            let is_last = at + length as u64 >= names.size || length <= longest;
            // What is cut off at the end is read again.
            let step = if is_last { length } else { length - longest };
            for place in 0..step {
                let mut bits = 0;
                if let Some(name) = self.block.get(place..length) {
                    for (index, text) in wanted.iter().enumerate() {
                        bits |= u32::from(name.starts_with(text)) << index;
                    }
                }
                if bits != 0 {
                    self.insert(at as u32 + place as u32, bits);
                }
            }
            if is_last {
                break;
            }
            at += step as u64;
        }
        Ok(())
    }

    fn take_symbols(&mut self, file: &Fd, symbols: FileSection, take: &mut dyn FnMut(usize, u32)) -> Result {
        const SIZE: usize = size_of::<Elf64_Sym>();
        let mut at = 0;
        while at < symbols.size {
            let room = self.block.get_mut(..BLOCK_SIZE / SIZE * SIZE).unwrap_or_default();
            let length = file.read_at(room, symbols.from.wrapping_add(at))?.min((symbols.size - at) as usize);
            if length < SIZE {
                break;
            }
            for index in 0..length / SIZE {
                let Some(bytes) = self.block.get(index * SIZE..(index + 1) * SIZE) else { break };
                // SAFETY: so many bytes are there; any bytes are a symbol.
                let symbol: Elf64_Sym = unsafe { ptr::read_unaligned(bytes.as_ptr().cast()) };
                let bits = self.bits_at(symbol.st_name);
                if bits != 0 && symbol.st_info & 15 == STT_FUNC && symbol.st_shndx != 0 {
                    take(symbol.st_value as usize, bits);
                }
            }
            at += (length / SIZE * SIZE) as u64;
        }
        Ok(())
    }

    fn insert(&mut self, offset: u32, bits: u32) {
        if self.count < PLACES_MAX
            && let Some(place) = self.place(offset).and_then(|place| self.places.get_mut(place))
        {
            *place = u64::from(bits) << 32 | u64::from(offset);
            self.count += 1;
        }
    }

    fn bits_at(&self, offset: u32) -> u32 {
        self.place(offset).and_then(|place| self.places.get(place)).map_or(0, |found| (*found >> 32) as u32)
    }

    /// Where an offset is noted, or would be.
    fn place(&self, offset: u32) -> Option<usize> {
        let start = (offset.wrapping_mul(0x9e37_79b1) >> 16) as usize;
        let places = (0..PLACES).map(|step| (start + step) % PLACES);
        places.into_iter().find(|place| {
            let found = self.places.get(*place).copied().unwrap_or(0);
            found == 0 || found as u32 == offset
        })
    }
}

/// The object whose entry the dynamic linker has at an address, unless that is 0.
///
/// # Safety
/// The object must not be closed.
pub unsafe fn object_at(address: usize) -> Option<&'static LinkMap> {
    // SAFETY: the caller's.
    unsafe { ptr::with_exposed_provenance::<LinkMap>(address).as_ref() }
}

/// What the addresses of an object's file count from.
pub fn base_of(object: &LinkMap) -> usize {
    object.base
}

/// An address within an object.
pub fn address_in(object: &LinkMap) -> usize {
    object.dynamic as usize
}

/// The same for an object whose file cannot be read, by what it exports.
pub fn exported_functions(object: &LinkMap, text: &[u8], take: &mut dyn FnMut(usize)) {
    let Some(tables) = object.tables() else { return };
    // SAFETY: the tables are the loaded object's, as the System V ABI and the GNU toolchain document them.
    let mut take = |index: u32| unsafe {
        let symbol = &*tables.symbols.add(index as usize);
        let name = CStr::from_ptr(tables.strings.add(symbol.st_name as usize)).to_bytes();
        if symbol.st_shndx != 0 && symbol.st_info & 15 == STT_FUNC && name.starts_with(text) {
            take(symbol.st_value as usize);
        }
    };
    // SAFETY: as above.
    unsafe {
        if !tables.gnu_hash.is_null() {
            let table = tables.gnu_hash;
            let (buckets, first, words) = (*table, *table.add(1), *table.add(2));
            let bucket_at = table.add(4 + 2 * words as usize);
            let chain_at = bucket_at.add(buckets as usize);
            for bucket in 0..buckets {
                let mut index = *bucket_at.add(bucket as usize);
                while index >= first && index != 0 {
                    take(index);
                    if *chain_at.add((index - first) as usize) & 1 == 1 {
                        break;
                    }
                    index += 1;
                }
            }
        } else if !tables.hash.is_null() {
            (1..*tables.hash.add(1)).for_each(take);
        }
    }
}

/// The path of an object's file, in `buffer`.
pub fn file_of<'a>(object: &LinkMap, buffer: &'a mut [u8; path::PATH_MAX]) -> &'a CStr {
    match object.path() {
        // The program.
        b"" => c"/proc/self/exe",
        name => path::join(buffer, &[name]),
    }
}

fn read_struct<T: Copy>(file: &Fd, at: u64) -> Result<T> {
    let mut bytes = [0; 64];
    let length = file.read_at(bytes.get_mut(..size_of::<T>()).unwrap_or_default(), at)?;
    if length < size_of::<T>() {
        return Err(Errno(libc::ENOEXEC));
    }
    // SAFETY: the types that are read consist of numbers and have at most 64 bytes.
    Ok(unsafe { ptr::read_unaligned(bytes.as_ptr().cast()) })
}
