//! The clock that all processes of a trace directory share: the offset from `CLOCK_MONOTONIC` to the Epoch.
//!
//! The file `trclock` has an entry for each boot: two lines, the boot ID and the offset. Entries are only appended, each
//! by one write, and the first one of a boot counts. So two processes that begin at once agree, whoever dies in between,
//! and an offset never changes while a process uses it.
//!
//! The offset is that of the initial time namespace. Each process corrects it by the shift of its own
//! (`clock::set_namespace_shift`).

use core::sync::atomic::AtomicBool;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use spec::info;
use spec::names::FileName;

use super::directory::{self, Scratch};
use super::identity::{self, UNKNOWN_BOOT};
use crate::clock;
use crate::process_state::WorkingProcess;
use crate::sys::diagnostics::{Warning, errno_text, warn};
use crate::sys::{Fd, Once, Result, SetOnce, path};

#[unsafe(link_section = "inherited")]
static SHARING: Once = Once::new();
/// The offset is set, in this process or in one that it was forked from.
static OFFSET_SET: AtomicBool = AtomicBool::new(false);
/// The boot in which that was.
static BOOT_ID: SetOnce<[u8; 36]> = SetOnce::new(UNKNOWN_BOOT);

/// Uses the offset that this process had before an exec, which may have moved it to another time namespace.
pub(super) fn keep(offset: i64) {
    follow_time_namespace();
    set(offset, identity::boot_id());
}

fn set(offset: i64, boot_id: [u8; 36]) {
    clock::set_shared_offset(offset);
    // SAFETY: one thread at a time calls this, once in a process and its forked children, and nobody reads it before.
    unsafe { *BOOT_ID.get_mut() = boot_id };
    // ORDERING: Release pairs with the Acquire in `follow_time_namespace`.
    OFFSET_SET.store(true, Release);
}

/// Adopts the directory's offset, or makes ours the directory's. To be called by one thread at a time.
///
/// A forked child has its parent's offset, but may be in another time namespace.
pub(super) fn share(scratch: &mut Scratch) {
    let process = WorkingProcess::current();
    follow_time_namespace();
    SHARING.run(|| {
        if OFFSET_SET.load(Relaxed) {
            return true;
        }
        let (ours, boot_id) = (clock::measure_offset(), identity::boot_id());
        // Without the file this process has a clock of its own; what it records is complete nevertheless.
        let shared = adopt_or_append(scratch, &boot_id, ours);
        // A child that was forked meanwhile may have set it.
        if !process.is_current() {
            return false;
        }
        if let Err(errno) = shared
            && errno.is_foreign_file()
        {
            // Somebody else's, which may say anything.
            let clock_path = path::trace_file(&mut scratch.path, directory::path(), FileName::Clock);
            warn(Warning::Clock, &[b"'", clock_path.to_bytes(), b"' is not used: ", errno_text(errno)]);
        }
        set(shared.unwrap_or(ours), boot_id);
        true
    });
}

/// Lets [`share`] begin anew though the thread `lwp` is at it ([`Once::give_up`]).
pub fn give_up(lwp: u32) {
    SHARING.give_up(lwp);
}

/// Makes the offset of this process that of the directory to which it has moved, if that has none.
pub(super) fn hand_on(scratch: &mut Scratch) {
    if OFFSET_SET.load(Acquire) {
        // Without it, programs that are executed later have a clock of their own.
        let _ = adopt_or_append(scratch, &identity::boot_id(), clock::shared_offset());
    }
}

/// Corrects the clock by the time namespace that this process is in now, as far as that is known.
///
/// A process that was restored in another boot goes on with the times of its own: its namespace continues them.
pub fn follow_time_namespace() {
    if OFFSET_SET.load(Acquire) && *BOOT_ID.get() != identity::boot_id() {
        return;
    }
    if let Some(shifts) = identity::clock_shifts() {
        clock::set_namespace_shift(shifts.monotonic);
    }
}

/// The offset of this boot in the directory's file, to which `ours` is appended if there is none.
fn adopt_or_append(scratch: &mut Scratch, boot_id: &[u8; 36], ours: i64) -> Result<i64> {
    let path = path::trace_file(&mut scratch.path, directory::path(), FileName::Clock);
    let (file, ..) = Fd::open_shared(path, libc::O_RDWR | libc::O_APPEND)?;
    let state = read(&file, scratch, boot_id, ours)?;
    if let Some(offset) = state.offset {
        return Ok(offset);
    }
    // The last write was incomplete.
    let separator: &[u8] = if state.ends_in_line { b"\n" } else { b"" };
    let mut number = itoa::Buffer::new();
    let slices = [separator, b"boot_id ", boot_id, b"\noffset ", number.format(ours).as_bytes(), b"\n"];
    // OBSERVABLE: the complete entry appears at once; another process's may appear before it.
    file.write(path::join(&mut scratch.other_path, &slices).to_bytes())?;
    Ok(read(&file, scratch, boot_id, ours)?.offset.unwrap_or(ours))
}

/// What the file has.
struct ClockFile {
    /// The offset of this boot.
    offset: Option<i64>,
    /// The file ends within a line.
    ends_in_line: bool,
}

fn read(file: &Fd, scratch: &mut Scratch, boot_id: &[u8; 36], ours: i64) -> Result<ClockFile> {
    /// More is not of this library's making.
    const LONGEST: u64 = 1 << 20;
    let (mut at, mut ends_in_line) = (0, false);
    while at < LONGEST {
        let length = file.read_at(&mut scratch.text, at)?;
        let text = scratch.text.get(..length).unwrap_or(b"");
        if let Some(offset) = offset_in(text, boot_id, ours) {
            return Ok(ClockFile { offset: Some(offset), ends_in_line: false });
        }
        ends_in_line = text.last().is_some_and(|&byte| byte != b'\n');
        // The next bytes begin with the last entry of these, which may be incomplete.
        match text.windows(ENTRY.len()).rposition(|window| window == ENTRY) {
            Some(last @ 1..) if length == scratch.text.len() => at += last as u64,
            _ => break,
        }
    }
    Ok(ClockFile { offset: None, ends_in_line })
}

/// What each entry but the first begins with.
const ENTRY: &[u8] = b"\nboot_id ";

/// The offset of the first complete entry of a boot. If the boot is not known, of the first entry that may be of this
/// boot, because it is at most a second away from ours.
fn offset_in(text: &[u8], boot_id: &[u8; 36], ours: i64) -> Option<i64> {
    const SECOND: u64 = 1_000_000_000;
    let complete = text.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
    let mut entry_boot: &[u8] = b"";
    info::lines(text.get(..complete).unwrap_or(b"")).find_map(|(key, value)| {
        match key {
            b"boot_id" => entry_boot = value,
            b"offset" => {
                let offset = core::str::from_utf8(value).ok()?.parse().ok()?;
                let is_ours = entry_boot == boot_id && boot_id != &UNKNOWN_BOOT;
                let may_be_ours = boot_id == &UNKNOWN_BOOT && ours.abs_diff(offset) <= SECOND;
                return (is_ours || may_be_ours).then_some(offset);
            }
            _ => {}
        }
        None
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOOT: &[u8; 36] = b"11111111-2222-3333-4444-555555555555";
    const OTHER: &str = "99999999-2222-3333-4444-555555555555";

    #[test]
    fn the_first_entry_of_a_boot_counts() {
        let ours = std::str::from_utf8(BOOT).unwrap();
        let text = format!("boot_id {OTHER}\noffset 5\nboot_id {ours}\noffset -7\n\nboot_id {ours}\noffset 9\n");
        assert_eq!(offset_in(text.as_bytes(), BOOT, 0), Some(-7));
        let text = format!("boot_id {OTHER}\noffset 5\nboot_id {ours}\noffset -7");
        assert_eq!(offset_in(text.as_bytes(), BOOT, 0), None, "the last line is incomplete");
        let text = format!("boot_id {ours}\noffset x\nboot_id {OTHER}\noffset 5\nboot_ioffset 3\n");
        assert_eq!(offset_in(text.as_bytes(), BOOT, 0), None);
        assert_eq!(offset_in(b"", BOOT, 0), None);
    }

    #[test]
    fn an_unknown_boot_has_the_offset_that_is_near() {
        let text =
            format!("boot_id {OTHER}\noffset 5000000000\nboot_id {OTHER}\noffset 70\nboot_id {OTHER}\noffset 71\n");
        assert_eq!(offset_in(text.as_bytes(), &UNKNOWN_BOOT, 1_000_000_000), Some(70));
        assert_eq!(offset_in(text.as_bytes(), &UNKNOWN_BOOT, 9_000_000_000), None);
    }
}
