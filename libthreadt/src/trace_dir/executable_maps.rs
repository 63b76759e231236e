//! The executable mappings in trinfo: they show which file an address in a record belongs to.
//!
//! They are read from `/proc/self/maps`, because the linker's own list may change during a walk. The build IDs are read
//! through `/proc/self/mem`, where reading a mapping that goes away fails, and does not kill.
//!
//! Libraries come and go, and the address of a closed one is soon another one's. So a reading writes what is new and what is
//! gone, with the times from which that holds: new mappings were there before it, and those that are gone not after it.
//!
//! Forked children mostly have their parent's mappings, and many children live for less time than all this takes. So the
//! lines are kept, and a child whose executable mappings have the same size as its parent's takes them over. Who forks asks for
//! the size, which takes a third less than in the child.

use core::ops::Range;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed};

use spec::hex_digit;
use spec::info::escape;

use super::build_id::{BUILD_ID_MAX, build_id};
use super::info_file::{InfoWriter, hex_number, time_text};
use super::met_code;
use super::present_lines::PresentLines;
use crate::clock;
use crate::process_state::PROCESS;
use crate::sys::{self, Fd, SetOnce};

static PRESENT_LINES: SetOnce<PresentLines> = SetOnce::new(PresentLines::new());
static TEXT: SetOnce<[u8; 8192]> = SetOnce::new([0; 8192]);

/// The lines that trinfo has, one behind the other, for forked children.
static KEPT_LINES: SetOnce<[u8; 16 * 1024]> = SetOnce::new([0; 16 * 1024]);
/// How long they are, together; more than there is room for if some are not kept.
static KEPT_LENGTH: AtomicUsize = AtomicUsize::new(0);
/// The size of all executable mappings, KiB, when they were last read; 0 if unknown, or while they are read.
#[unsafe(link_section = "inherited")]
static SIZE_AT_LAST_READ: AtomicU64 = AtomicU64::new(0);

/// How often the mappings are read because libraries are closed: readings must not take the program's time for ever.
const READINGS_MAX: u32 = 4096;
/// How often they were.
static READINGS: AtomicU32 = AtomicU32::new(0);
/// After how many bytes of lines no more is read then: they must not fill the disk.
const BYTES_MAX: usize = 1 << 22;

/// Since when libraries are missing in the readings, a reading of the clock; 0 if none is.
static MISSING_SINCE: AtomicU64 = AtomicU64::new(0);
/// trinfo has that time.
static IS_PARTIAL_WRITTEN: AtomicBool = AtomicBool::new(false);

/// Writes the lines of all mappings, to a trinfo that has none.
pub fn write_all(writer: &mut InfoWriter) {
    if let Some(lines) = KEPT_LINES.get().get(..KEPT_LENGTH.load(Relaxed))
        && (PROCESS.parent_has_looked.load(Relaxed) != 0 || has_size_of_last_read())
    {
        PROCESS.has_parents_maps.store(1, Relaxed);
        return writer.raw(lines);
    }
    // SAFETY: the one writer of trinfo calls this.
    unsafe { PRESENT_LINES.get_mut() }.count = 0;
    READINGS.store(0, Relaxed);
    MISSING_SINCE.store(0, Relaxed);
    IS_PARTIAL_WRITTEN.store(false, Relaxed);
    KEPT_LENGTH.store(0, Relaxed);
    write_new(writer);
}

/// Whether there may be something to write, so that at the process's end [`write_new`] is to be called.
pub fn may_have_changed() -> bool {
    PROCESS.has_parents_maps.load(Relaxed) == 0 || !has_size_of_last_read()
}

/// Before and after a library is closed: as [`write_new`], unless that was done too often.
pub fn write_at_close(writer: &mut InfoWriter) {
    let readings = READINGS.load(Relaxed);
    // SAFETY: the one writer of trinfo calls this.
    if readings < READINGS_MAX && unsafe { has_room() } {
        READINGS.store(readings + 1, Relaxed);
        write_new(writer);
    } else {
        note_missing_reading();
        write_partial(writer);
    }
}

/// Whether further readings may be written, and only what is new in them.
///
/// # Safety
/// Only the one writer of trinfo may call this.
unsafe fn has_room() -> bool {
    // SAFETY: the caller's.
    KEPT_LENGTH.load(Relaxed) < BYTES_MAX && !unsafe { PRESENT_LINES.get_mut() }.is_full()
}

/// A library is closed, and that is in no reading.
pub fn note_missing_reading() {
    miss_from(clock::now_fenced());
}

fn miss_from(time: u64) {
    // ORDERING: Relaxed; the first time counts, and who writes it sees one of them.
    _ = MISSING_SINCE.compare_exchange(0, time.max(1), Relaxed, Relaxed);
}

/// Whether libraries are missing in the readings, so that further ones are of no use.
pub fn is_partial() -> bool {
    MISSING_SINCE.load(Relaxed) != 0
}

/// Writes a line `maps_partial SECONDS:NANOSECONDS` once, if libraries are missing from that time on.
fn write_partial(writer: &mut InfoWriter) {
    let since = MISSING_SINCE.load(Relaxed);
    if since != 0 && !IS_PARTIAL_WRITTEN.swap(true, Relaxed) {
        KeptLines { writer, time: Some(since) }.begin_group(b"maps_partial ");
    }
}

/// Whether the mappings were read since the code is there that was on a stack at a time, or are not to be read any more.
pub fn is_met(address: u64, time: u64) -> bool {
    let is_known = met_code::is_known(address);
    if met_code::may_read() {
        return is_known == Some(true);
    }
    if is_known == Some(false) {
        miss_from(time);
    }
    true
}

/// Code of no module was on a stack at a time, a reading of the clock: as [`write_new`], so that trinfo has its mapping, and what was
/// there before only until then. What has no executable mapping is no code, and not looked for again.
pub fn write_met(writer: &mut InfoWriter, address: u64, time: u64) {
    // SAFETY: the one writer of trinfo calls this.
    if !unsafe { has_room() } {
        return met_code::end_readings();
    }
    write_reading(writer, Some((address, time)));
    // SAFETY: the one writer of trinfo calls this.
    let range = unsafe { PRESENT_LINES.get_mut() }.range_of(address);
    let page = address & !0xfff;
    met_code::note(range.unwrap_or(page..page.saturating_add(0x1000)));
}

/// Lets the next reader of the mappings not rely on the last reading.
pub fn forget_size() {
    SIZE_AT_LAST_READ.store(0, Relaxed);
}

/// Whether the executable mappings have the size that they had when this process, or the one that it was forked from, last
/// read them.
pub fn has_size_of_last_read() -> bool {
    let size = SIZE_AT_LAST_READ.load(Relaxed);
    // SAFETY: the one writer of trinfo calls this.
    size != 0 && executable_size(unsafe { TEXT.get_mut() }) == Some(size)
}

/// The size of all executable mappings, KiB. `text` is overwritten.
fn executable_size(text: &mut [u8]) -> Option<u64> {
    sys::executable_size().or_else(|| executable_size_in_status(text))
}

/// The same from a file that takes the kernel longer to write: it divides the size between the program and its libraries.
fn executable_size_in_status(text: &mut [u8]) -> Option<u64> {
    let length = sys::read_proc(c"/proc/self/status", text).ok()?;
    let mut lines = text.get(..length)?.split(|&byte| byte == b'\n');
    let mut size_of = |key| lines.find_map(|line| line.strip_prefix(key)).and_then(kibibytes);
    // In the order of the file.
    Some(size_of(&b"VmExe:"[..])? + size_of(&b"VmLib:"[..])?)
}

/// The number in `     1234 kB`.
fn kibibytes(value: &[u8]) -> Option<u64> {
    let digits = value.trim_ascii().strip_suffix(b" kB")?;
    core::str::from_utf8(digits).ok()?.parse().ok()
}

/// Writes a `map START END OFFSET BUILD-ID PATH` line for each executable mapping that trinfo does not have, and an
/// `unmap START END` line for each that is gone, behind lines `maps SECONDS:NANOSECONDS`.
pub fn write_new(writer: &mut InfoWriter) {
    write_reading(writer, None);
}

/// As [`write_new`]; `met` is an address with code and a time at which it was there.
fn write_reading(writer: &mut InfoWriter, met: Option<(u64, u64)>) {
    PROCESS.has_parents_maps.store(0, Relaxed);
    SIZE_AT_LAST_READ.store(0, Relaxed);
    write_partial(writer);
    // SAFETY: the one writer of trinfo calls this.
    let (present, text) = unsafe { (PRESENT_LINES.get_mut(), TEXT.get_mut()) };
    // Before the mappings: what is mapped in between will make a difference.
    let size = executable_size(text);
    let began = clock::now_fenced();
    let mut lines = KeptLines { writer, time: Some(began) };
    let Ok(maps) = Fd::open_proc(c"/proc/self/maps") else { return };
    let memory = Fd::open_proc(c"/proc/self/mem").ok();
    present.begin_reading();
    // Where the object that the line belongs to begins.
    let mut begin = 0;
    let mut length = 0;
    let mut is_complete = false;
    while let Some(room) = text.get_mut(length..)
        && let Ok(more) = maps.read(room)
    {
        if more == 0 {
            is_complete = length == 0;
            break;
        }
        length += more;
        let mut start = 0;
        while let Some(line) = text.get(start..length)
            && let Some(end) = line.iter().position(|&byte| byte == b'\n')
        {
            let line = line.get(..end).unwrap_or_default();
            if let Some(mapping) = MapsLine::parse(line) {
                if mapping.offset == 0 {
                    begin = mapping.start;
                }
                if mapping.executable && present.is_new(line, mapping.start..mapping.end) {
                    if let Some((address, time)) = met
                        && (mapping.start..mapping.end).contains(&address)
                    {
                        present.remove_replaced(address, |range| {
                            // The reading before it, and its end.
                            [time; 2].into_iter().for_each(|time| lines.begin_group_at(time));
                            lines.unmap(range);
                        });
                        lines.time = Some(began);
                    }
                    lines.begin_group(b"maps ");
                    mapping.write(&mut lines, memory.as_ref(), begin);
                }
            }
            start += end + 1;
        }
        text.copy_within(start..length, 0);
        length -= start;
    }
    if is_complete {
        let mut ended = Some(clock::now_fenced());
        present.remove_gone(|range| {
            // When the reading began, and when it ended.
            lines.begin_group(b"maps ");
            ended.take().into_iter().for_each(|time| lines.begin_group_at(time));
            lines.unmap(range);
        });
        SIZE_AT_LAST_READ.store(size.unwrap_or(0), Relaxed);
    }
}

/// Writes lines to trinfo and keeps them.
struct KeptLines<'a> {
    writer: &'a mut InfoWriter,
    /// From when on the lines that follow hold, a reading of the clock; `None` if that has been written.
    time: Option<u64>,
}

impl KeptLines<'_> {
    /// Writes the key and the time before the first line for which it holds.
    fn begin_group(&mut self, key: &[u8]) {
        if let Some(reading) = self.time.take() {
            self.raw(key);
            time_text(clock::since_epoch(reading), b':').for_each(|byte| self.raw(&[byte]));
            self.raw(b"\n");
        }
    }

    /// Writes the time from which the lines that follow hold.
    fn begin_group_at(&mut self, reading: u64) {
        self.time = Some(reading);
        self.begin_group(b"maps ");
    }

    /// Writes that a mapping is gone.
    fn unmap(&mut self, range: Range<u64>) {
        self.raw(b"unmap ");
        self.hex(range.start);
        self.raw(b" ");
        self.hex(range.end);
        self.raw(b"\n");
        met_code::forget(range.start);
    }

    fn hex(&mut self, number: u64) {
        hex_number(number).for_each(|digit| self.raw(&[digit]));
    }

    fn raw(&mut self, bytes: &[u8]) {
        self.writer.raw(bytes);
        let length = KEPT_LENGTH.load(Relaxed);
        // SAFETY: the one writer of trinfo calls this.
        if let Some(room) = unsafe { KEPT_LINES.get_mut() }.get_mut(length..length.saturating_add(bytes.len())) {
            room.copy_from_slice(bytes);
        }
        KEPT_LENGTH.store(length.saturating_add(bytes.len()), Relaxed);
    }

    fn escaped(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.raw(escape(byte).as_bytes()));
    }
}

/// A line of `/proc/self/maps`.
#[derive(Debug, PartialEq, Eq)]
struct MapsLine<'a> {
    start: u64,
    end: u64,
    offset: u64,
    executable: bool,
    path: &'a [u8],
}

impl<'a> MapsLine<'a> {
    /// Parses `start-end rwxp offset dev inode path`.
    fn parse(line: &'a [u8]) -> Option<MapsLine<'a>> {
        let mut fields = line.splitn(6, |&byte| byte == b' ');
        let mut range = fields.next()?.splitn(2, |&byte| byte == b'-');
        let rights = fields.next()?;
        let offset = hex(fields.next()?)?;
        let path = fields.nth(2).unwrap_or(b"");
        Some(MapsLine {
            start: hex(range.next()?)?,
            end: hex(range.next()?)?,
            offset,
            executable: rights.get(2) == Some(&b'x'),
            path: path.trim_ascii_start(),
        })
    }

    fn write(&self, writer: &mut KeptLines<'_>, memory: Option<&Fd>, begin: u64) {
        writer.raw(b"map ");
        for number in [self.start, self.end, self.offset] {
            writer.hex(number);
            writer.raw(b" ");
        }
        let mut id = [0; BUILD_ID_MAX];
        match memory.and_then(|memory| build_id(memory, begin, &mut id)) {
            Some(length) => id.iter().take(length).for_each(|&byte| {
                writer.raw(&[hex_digit(u32::from(byte >> 4)), hex_digit(u32::from(byte))]);
            }),
            None => writer.raw(b"-"),
        }
        writer.raw(b" ");
        writer.escaped(self.path);
        writer.raw(b"\n");
    }
}

fn hex(digits: &[u8]) -> Option<u64> {
    u64::from_str_radix(core::str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_maps_are_parsed() {
        let line = b"7f3b0c228000-7f3b0c37d000 r-xp 00026000 fe:00 1322  /usr/lib/a b.so";
        let mapping = MapsLine::parse(line).unwrap();
        assert_eq!(mapping.path, b"/usr/lib/a b.so");
        assert_eq!((mapping.start, mapping.offset, mapping.executable), (0x7f3b_0c22_8000, 0x26000, true));
        let anonymous = MapsLine::parse(b"00400000-00401000 rw-p 00000000 00:00 0 ").unwrap();
        assert_eq!((anonymous.path, anonymous.executable), (&b""[..], false));
        assert!(MapsLine::parse(b"nonsense").is_none());
    }
}
