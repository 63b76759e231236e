//! The identity of the process. Its PID is not enough: PIDs are reused, and every container has a PID 7.

use core::ffi::CStr;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize};

use spec::buffer::Owner;
use spec::info::ClockShifts;

use crate::clock;
use crate::config::CONFIG;
use crate::process_state::{self, PROCESS, WorkingProcess};
use crate::sys::path::{self, PATH_MAX};
use crate::sys::{self, Once, SetOnce, decimal, stat_field};

static BOOT_ID: SetOnce<[u8; 36]> = SetOnce::new(UNKNOWN_BOOT);
/// The boot ID has been read, in this process or in one that it was forked from.
static BOOT_ID_READ: Once = Once::new();

/// What stands for the ID of a boot that is not known.
pub const UNKNOWN_BOOT: [u8; 36] = [b'0'; 36];

/// The boot ID; zeros if /proc does not have it.
pub fn boot_id() -> [u8; 36] {
    if !BOOT_ID_READ.is_done() {
        BOOT_ID_READ.run(|| {
            let mut text = [0; 36];
            if sys::read_proc(c"/proc/sys/kernel/random/boot_id", &mut text) == Ok(text.len()) {
                // SAFETY: within BOOT_ID_READ, which all readers have passed.
                unsafe { *BOOT_ID.get_mut() = text };
            }
            true
        });
    }
    *BOOT_ID.get()
}

/// Lets what is read once be read anew though the thread `lwp` is at it ([`Once::give_up`]).
pub fn give_up(lwp: u32) {
    BOOT_ID_READ.give_up(lwp);
}

/// The value in `word`, which `read` fills at the first call: it stays the same as long as the process lives.
fn once_per_process(word: &AtomicU64, read: impl Fn() -> u64) -> u64 {
    match word.load(Relaxed) {
        0 => {
            let process = WorkingProcess::current();
            let value = read();
            // In a child that was forked meanwhile it is the parent's.
            if process.is_current() {
                word.store(value, Relaxed);
            }
            value
        }
        value => value,
    }
}

/// The inode of the PID namespace; 0 if /proc does not have it.
pub fn pid_namespace() -> u64 {
    once_per_process(&PROCESS.pid_namespace, || {
        let mut text = [0; 64];
        // The link reads `pid:[4026531836]`.
        let length = path::read_link(c"/proc/self/ns/pid", &mut text).unwrap_or(0);
        leading_number(text.get(5..length).unwrap_or(b""))
    })
}

/// How far the clocks of this process's time namespace are ahead. `None` if that is not known: without /proc, on a kernel
/// without time namespaces, and after an `unshare` that concerns children only.
pub fn clock_shifts() -> Option<ClockShifts> {
    if clock::is_in_initial_namespace() {
        return Some(ClockShifts::default());
    }
    // The namespace that was asked about last, in this process or in one that it was forked from, and its shifts, which
    // do not change while it has processes.
    static ASKED: AtomicU64 = AtomicU64::new(0);
    static MONOTONIC: AtomicI64 = AtomicI64::new(0);
    static BOOTTIME: AtomicI64 = AtomicI64::new(0);
    let inode_at = |path: &CStr| {
        let mut link = [0; 64];
        let length = path::read_link(path, &mut link).ok()?;
        // The links read `time:[4026531834]`.
        Some(leading_number(link.get(..length)?.rsplit(|&byte| byte == b'[').next().unwrap_or(b"")))
    };
    let own = inode_at(c"/proc/self/ns/time")?;
    if own == ASKED.load(Acquire) {
        return Some(ClockShifts { monotonic: MONOTONIC.load(Relaxed), boottime: BOOTTIME.load(Relaxed) });
    }
    let mut text = [0; 128];
    let length = sys::read_proc(c"/proc/self/timens_offsets", &mut text).ok()?;
    // The file is about the namespace of this process's children.
    let is_own = own == inode_at(c"/proc/self/ns/time_for_children")?;
    let shifts = is_own.then(|| ClockShifts::parse(text.get(..length).unwrap_or(b""))).flatten()?;
    MONOTONIC.store(shifts.monotonic, Relaxed);
    BOOTTIME.store(shifts.boottime, Relaxed);
    // ORDERING: Release pairs with the Acquire above. Only a process with one thread can change its namespace.
    ASKED.store(own, Release);
    Some(shifts)
}

/// See [`arguments_at`].
static ARGUMENTS_AT: AtomicUsize = AtomicUsize::new(0);

/// When this process began, in clock ticks since boot of the initial time namespace; 0 if /proc does not have it. An exec does not
/// change it, though it may lead to another namespace.
pub fn start() -> u64 {
    once_per_process(&PROCESS.start_time, || {
        let mut text = [0; 512];
        let line = read_stat(c"/proc/self/stat", &mut text);
        let arguments = field(line, ARGUMENTS) as usize;
        // Mostly it is the parent's, whose page the kernel would copy.
        if ARGUMENTS_AT.load(Relaxed) != arguments {
            ARGUMENTS_AT.store(arguments, Relaxed);
        }
        match field(line, START) {
            0 => 0,
            shown => clock_shifts().unwrap_or_default().initial_start_time(shown),
        }
    })
}

/// The program has put its command line elsewhere.
pub fn forget_arguments() {
    ARGUMENTS_AT.store(0, Relaxed);
}

/// Where this process's command line begins in its memory, once [`start`] has been asked for; 0 if that is not known.
pub fn arguments_at() -> usize {
    ARGUMENTS_AT.load(Relaxed)
}

/// Takes the start time that was `recorded` for a process with this one's ID, if that is this one, before an exec perhaps.
pub fn adopt_start(recorded: u64) {
    // In a time namespace it may be known to two ticks only.
    if start() != recorded && is_start_in(c"/proc/self/stat", recorded) {
        PROCESS.start_time.store(recorded, Relaxed);
    }
}

/// Whether the process `pid` began at the time that was `recorded`. `buffer` is overwritten.
pub fn is_start_of(pid: u32, recorded: u64, buffer: &mut [u8; PATH_MAX]) -> bool {
    let path = path::join(buffer, &[b"/proc/", itoa::Buffer::new().format(pid).as_bytes(), b"/stat"]);
    is_start_in(path, recorded)
}

fn is_start_in(path: &CStr, recorded: u64) -> bool {
    let shown = field(read_stat(path, &mut [0; 512]), START);
    shown != 0 && clock_shifts().unwrap_or_default().is_start_time(shown, recorded)
}

/// The beginning of a `stat` file, which is one line.
fn read_stat<'a>(path: &CStr, text: &'a mut [u8; 512]) -> &'a [u8] {
    let length = sys::read_proc(path, text).unwrap_or(0);
    text.get(..length).unwrap_or(b"")
}

/// Fields of a `stat` line (proc_pid_stat(5)).
const START: usize = 22;
const ARGUMENTS: usize = 48;

/// A field of a `stat` line, from the fourth on, as a number.
fn field(line: &[u8], number: usize) -> u64 {
    stat_field(line, number).map_or(0, leading_number)
}

/// The leading digits of a text as a number.
fn leading_number(text: &[u8]) -> u64 {
    decimal(text.iter().take_while(|byte| byte.is_ascii_digit()))
}

pub fn owner() -> Owner {
    Owner {
        pid: process_state::id(),
        pid_namespace: pid_namespace(),
        start_time: start(),
        boot_id: boot_id(),
        realtime_offset: clock::shared_offset(),
        layout: CONFIG.get().layout,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_and_spaces_does_not_matter() {
        let line = b"7 (a) b (c) S 1 7 7 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 8765 1 2 3";
        assert_eq!([START, START + 2].map(|number| field(line, number)), [8765, 2]);
        assert_eq!(field(b"", START), 0);
    }

    #[test]
    fn this_process_is_known() {
        let is_start_of = |pid, recorded| is_start_of(pid, recorded, &mut [0; PATH_MAX]);
        let own = std::process::id();
        assert!(is_start_of(own, start()) && !is_start_of(own, start() + 2) && !is_start_of(u32::MAX, 0));
        assert!(start() > 0 && pid_namespace() > 0 && arguments_at() > 0);
        assert_ne!(boot_id(), UNKNOWN_BOOT);
    }
}
