//! The executable mappings of a program, as its trinfo lists them.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;

use spec::info;
use spec::record::NANOS_PER_SECOND;

use crate::support::visible_text::visible_bytes;

/// What the names of mappings of code that is in no file begin with; the dynamic linkers of runtimes use memory files, too.
const JIT_NAMES: [&str; 5] = ["/memfd:", "[anon", "//anon", "/dev/zero", "/SYSV"];
/// The place of code that was made while the program ran.
const GENERATED: &str = "[jit]";
const DELETED: &str = " (deleted)";

/// The mappings, in the order in which they were recorded.
#[derive(Clone, Debug)]
pub struct CodeMaps {
    maps: Vec<HeldMap>,
    /// From when on the lines that follow hold, and the same of those before: when the reading began that ends now.
    time: u64,
    reading_from: u64,
    /// From when on libraries were closed that no line shows.
    partial_from: u64,
    /// A mapping has ended, or the lines are incomplete.
    has_changes: bool,
}

/// A mapping, and when it was there as far as readings of the mappings show it.
#[derive(Clone, Debug)]
struct HeldMap {
    map: CodeMap,
    from: u64,
    until: u64,
    /// When the reading began that did not have it any more: another one may be there since.
    gone_from: u64,
    /// It was closed, and may have been opened again.
    was_closed: bool,
}

/// In which mapping an address was at a time.
#[derive(Clone, Copy, Debug)]
enum AddressHolder<'a> {
    None,
    One(&'a CodeMap),
    /// In this one or the other one, which came after it; or in one that no line shows.
    Either(&'a CodeMap, Option<&'a CodeMap>),
}

/// A mapping of a file.
#[derive(Clone, Debug)]
pub struct CodeMap {
    pub start: u64,
    pub end: u64,
    /// Where in the file the code at `start` is.
    pub offset: u64,
    /// In hexadecimal digits, as the recorder read it from memory; `None` if it found none.
    pub build_id: Option<String>,
    pub path: PathBuf,
}

/// Where an address in a program's code is.
#[derive(Clone, Copy, Debug)]
pub enum CodeAddress<'a> {
    /// At an offset in a file.
    InFile(&'a CodeMap, u64),
    /// In one of two mappings, the other of which came after this one, or in this one or one that no line shows: nothing says
    /// which was there at the time.
    InEither(&'a CodeMap, Option<&'a CodeMap>, u64),
    /// In code that was made while the program ran.
    Generated,
    /// In none of the program's mappings at that time: the recorder reads them now and then, and code that is made and removed in
    /// between is in none, nor is a library that libc itself opens and closes.
    Unmapped,
    /// The trace has no mappings of the program.
    Unknown(u64),
}

impl Default for CodeMaps {
    fn default() -> CodeMaps {
        CodeMaps { maps: Vec::new(), time: 0, reading_from: 0, partial_from: u64::MAX, has_changes: false }
    }
}

impl CodeMaps {
    /// Takes a line of trinfo, if it is one of these: `map START END OFFSET BUILD-ID PATH`, `unmap START END`,
    /// `maps SECONDS:NANOSECONDS` before those that hold from then on (that of new ones is from when a reading began, that of those
    /// that are gone from when it ended), and `maps_partial SECONDS:NANOSECONDS`. The times of records
    /// are ahead of those by `shift`.
    ///
    /// A trinfo of an earlier version has no times: its mappings are there all the time, the last ones before others.
    pub fn add_line(&mut self, key: &[u8], value: &[u8], shift: i64) {
        let time = || Some(parse_time(value)?.saturating_add_signed(shift));
        self.has_changes |= matches!(key, b"unmap" | b"maps_partial");
        match key {
            b"map" => CodeMap::parse(value).into_iter().for_each(|map| self.begin_map(map)),
            b"unmap" => self.end_map(value),
            b"maps" => (self.reading_from, self.time) = (self.time, time().unwrap_or(self.time)),
            b"maps_partial" => self.partial_from = time().unwrap_or(0).min(self.partial_from),
            _ => {}
        }
    }

    fn begin_map(&mut self, map: CodeMap) {
        // A library that was closed and is there again: what was there in between would have shown.
        let overlaps = |held: &&mut HeldMap| held.map.start < map.end && map.start < held.map.end;
        if let Some(last) = self.maps.iter_mut().rfind(overlaps)
            && (last.map.start, last.map.end) == (map.start, map.end)
            && last.until != u64::MAX
            && last.map.is_same_code(&map)
        {
            (last.until, last.gone_from) = (u64::MAX, u64::MAX);
            return;
        }
        self.maps.push(HeldMap { map, from: self.time, until: u64::MAX, gone_from: u64::MAX, was_closed: false });
    }

    /// Ends the mapping with these addresses that was there first.
    fn end_map(&mut self, value: &[u8]) {
        let mut words = value.split(|&byte| byte == b' ').map(parse_hex);
        let (Some(Some(start)), Some(Some(end))) = (words.next(), words.next()) else { return };
        let is_ended = |held: &&mut HeldMap| (held.map.start, held.map.end, held.until) == (start, end, u64::MAX);
        if let Some(held) = self.maps.iter_mut().find(is_ended) {
            (held.until, held.gone_from, held.was_closed) = (self.time, self.reading_from, true);
        }
    }

    /// The mapping that was recorded first: it is of the program.
    pub fn first(&self) -> Option<&CodeMap> {
        self.maps.first().map(|held| &held.map)
    }

    /// Whether what is at an address may depend on the time.
    pub fn has_changes(&self) -> bool {
        self.has_changes
    }

    /// Since when what an address is in at a time has been the same.
    pub fn unchanged_since(&self, address: u64, time: u64) -> u64 {
        if !self.has_changes {
            return 0;
        }
        let identities = self.identities(address);
        let place = identities.partition_point(|(from, _)| *from <= time);
        identities.get(place.wrapping_sub(1)).map_or(0, |(from, _)| *from)
    }

    /// Where an address was at a time.
    pub fn find(&self, address: u64, time: u64) -> CodeAddress<'_> {
        match self.holder(address, time) {
            AddressHolder::None if self.maps.is_empty() => CodeAddress::Unknown(address),
            AddressHolder::None => CodeAddress::Unmapped,
            AddressHolder::One(map) if map.is_generated() => CodeAddress::Generated,
            AddressHolder::One(map) => CodeAddress::InFile(map, address - map.start + map.offset),
            AddressHolder::Either(map, other) => CodeAddress::InEither(map, other, address),
        }
    }

    fn holder(&self, address: u64, time: u64) -> AddressHolder<'_> {
        let having = || self.maps.iter().filter(|held| (held.map.start..held.map.end).contains(&address));
        let differs = |other: &HeldMap, held: &HeldMap| !other.map.is_same_code(&held.map);
        // Files that were mapped later may have replaced others of the same reading.
        let held = having().rfind(|held| (held.from..held.until).contains(&time));
        // A reading shows what was mapped since the one before.
        let next = having().filter(|held| held.from > time).min_by_key(|held| held.from);
        if time >= self.partial_from
            && having().any(|other| other.was_closed || other.from >= self.partial_from)
            && let Some(known) = held.or(next).or(having().next_back())
        {
            return AddressHolder::Either(&known.map, None);
        }
        let Some(held) = held else { return next.map_or(AddressHolder::None, |next| AddressHolder::One(&next.map)) };
        // While a reading goes on, the one may have replaced the other.
        let is_earlier = |other: &&HeldMap| {
            (other.from..other.until).contains(&time) && other.from < held.from && differs(other, held)
        };
        if let Some(earlier) = having().rfind(is_earlier) {
            return AddressHolder::Either(&earlier.map, Some(&held.map));
        }
        // And between two readings, or behind the one.
        let may_be_next = |next: &&HeldMap| held.until > next.from || time >= held.gone_from;
        match next.filter(|next| may_be_next(next) && differs(next, held)) {
            Some(next) => AddressHolder::Either(&held.map, Some(&next.map)),
            None => AddressHolder::One(&held.map),
        }
    }

    /// A number of what an address was in at a time, which is another one for other code.
    fn identity(&self, address: u64, time: u64) -> u64 {
        let number = |map: &CodeMap| {
            let same = self.maps.iter().position(|other| other.map.is_same_code(map));
            same.map_or(0, |place| place as u64 + 1)
        };
        match self.holder(address, time) {
            // A running program's trinfo does not have it yet: what comes behind another library is another one.
            AddressHolder::None => u64::MAX - self.maps.iter().filter(|held| held.until <= time).count() as u64,
            AddressHolder::One(map) => number(map),
            AddressHolder::Either(map, other) => number(map) << 32 | other.map_or(u64::from(u32::MAX), number),
        }
    }

    /// From each time on at which what an address is in may change, a number of what it is in then, which is another one for other
    /// code. The first time is 0.
    pub fn identities(&self, address: u64) -> Vec<(u64, u64)> {
        let having = self.maps.iter().filter(|held| (held.map.start..held.map.end).contains(&address));
        let mut times: Vec<u64> = having.flat_map(|held| [held.from, held.gone_from, held.until]).collect();
        times.extend([0, self.partial_from]);
        times.retain(|time| *time != u64::MAX);
        times.sort_unstable();
        times.dedup();
        let mut identities: Vec<(u64, u64)> =
            times.into_iter().map(|time| (time, self.identity(address, time))).collect();
        identities.dedup_by_key(|(_, identity)| *identity);
        identities
    }

    /// The times at which what is at some address may change.
    pub fn change_times(&self) -> impl Iterator<Item = u64> {
        let times = self.maps.iter().flat_map(|held| [held.from, held.gone_from, held.until]);
        times.chain([self.partial_from]).filter(|time| *time != u64::MAX)
    }

    /// The times at which there may be another module in the place of the one before an address ([`module_before`](Self::module_before)),
    /// in their order.
    pub fn changes_of_module_before(&self, address: u64, time: u64) -> Vec<u64> {
        let module = self.module_before(address, time).filter(|_| self.has_changes);
        module.map_or_else(Vec::new, |map| self.identities(map.start).into_iter().map(|(time, _)| time).collect())
    }

    /// The mapping of a file that begins last before an address at a time: a module's data follow its code.
    pub fn module_before(&self, address: u64, time: u64) -> Option<&CodeMap> {
        let before = self.maps.iter().filter(|held| {
            let holds = held.map.start <= address && !held.map.is_generated();
            holds && !matches!(self.holder(held.map.start, time), AddressHolder::None)
        });
        let last = before.map(|held| held.map.start).max()?;
        match self.holder(last, time) {
            AddressHolder::One(map) if !map.is_generated() => Some(map),
            _ => None,
        }
    }
}

impl CodeMap {
    fn parse(value: &[u8]) -> Option<CodeMap> {
        let mut words = value.splitn(5, |&byte| byte == b' ');
        let mut word = || words.next();
        let (start, end, offset) = (parse_hex(word()?)?, parse_hex(word()?)?, parse_hex(word()?)?);
        offset.checked_add(end.checked_sub(start)?)?;
        let build_id = String::from_utf8_lossy(word()?).into_owned();
        let path = OsString::from_vec(info::unescape(word().unwrap_or(b"")).collect());
        Some(CodeMap { start, end, offset, build_id: Some(build_id).filter(|id| id != "-"), path: path.into() })
    }

    /// Whether the same address is the same code in both.
    fn is_same_code(&self, other: &CodeMap) -> bool {
        let origin = |map: &CodeMap| map.start.wrapping_sub(map.offset);
        // A file that is deleted is the same one.
        let is_same_file =
            || (origin(self), self.file().0, &self.build_id) == (origin(other), other.file().0, &other.build_id);
        if self.is_generated() { other.is_generated() } else { !other.is_generated() && is_same_file() }
    }

    fn is_generated(&self) -> bool {
        let name = self.path.to_string_lossy();
        name.is_empty() || JIT_NAMES.iter().any(|start| name.starts_with(start))
    }

    /// `sort+0x1234` or `[jit]`.
    fn place(&self, address: u64) -> String {
        if self.is_generated() {
            return GENERATED.to_owned();
        }
        format!("{}+{:#x}", self.name(), address.wrapping_sub(self.start).wrapping_add(self.offset))
    }

    /// The last component of the file's path.
    pub fn name(&self) -> String {
        let (path, _) = self.file();
        visible_bytes(path.file_name().unwrap_or(path.as_os_str()).as_encoded_bytes())
    }

    /// The path of the file, and whether the file was deleted or replaced while it was mapped.
    pub fn file(&self) -> (PathBuf, bool) {
        match self.path.to_str().and_then(|path| path.strip_suffix(DELETED)) {
            Some(path) => (path.into(), true),
            None => (self.path.clone(), false),
        }
    }
}

impl CodeAddress<'_> {
    /// `sort+0x1234`, `a.so+0x1234 or b.so+0x1234`, `a.so+0x1234 or another library`, `[jit]`, `[unmapped]`, or the address itself.
    pub fn place(&self) -> String {
        match self {
            CodeAddress::InFile(map, offset) => format!("{}+{offset:#x}", map.name()),
            CodeAddress::InEither(map, other, address) => {
                let first = map.place(*address);
                match other.map(|other| other.place(*address)) {
                    None => format!("{first} or another library"),
                    Some(second) if second == first => format!("{first} or another {second}"),
                    Some(second) => format!("{first} or {second}"),
                }
            }
            CodeAddress::Generated => GENERATED.to_owned(),
            CodeAddress::Unmapped => "[unmapped]".to_owned(),
            CodeAddress::Unknown(address) => format!("{address:#x}"),
        }
    }
}

/// The number in `0x12ab`.
fn parse_hex(word: &[u8]) -> Option<u64> {
    u64::from_str_radix(std::str::from_utf8(word).ok()?.strip_prefix("0x")?, 16).ok()
}

/// The nanoseconds in `SECONDS:NANOSECONDS`.
fn parse_time(value: &[u8]) -> Option<u64> {
    let (seconds, nanoseconds) = std::str::from_utf8(value).ok()?.split_once(':')?;
    seconds.parse::<u64>().ok()?.checked_mul(NANOS_PER_SECOND)?.checked_add(nanoseconds.parse().ok()?)
}

#[cfg(test)]
#[path = "code_maps_tests.rs"]
mod tests;
