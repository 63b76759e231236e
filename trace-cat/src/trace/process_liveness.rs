//! Whether the process that a trbuf belongs to still runs.
//!
//! The process ID cannot decide: it may be of another namespace, or reused. A lease can: the kernel grants a read lease
//! only while nobody has the file open or mapped for writing, and the recorder keeps its trbuf mapped as long as its
//! process lives. On file systems where leases mean something else, `/proc` decides.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use log::debug;
use spec::buffer::Owner;
use spec::file_systems::has_reliable_leases;

use crate::support::monotonic_clock::is_start_time;

/// Whether the owner of the trbuf `file` runs; `None` if that cannot be known.
pub fn owner_is_alive(file: &File, owner: &Owner) -> Option<bool> {
    let has_writer = has_writer(file);
    debug!("process {}: whether its trbuf has a writer, by a lease: {has_writer:?}", owner.pid);
    has_writer.or_else(|| runs(owner))
}

/// Whether the owner of the trbuf `file` has ended for good; `None` if that cannot be known.
///
/// During an exec nobody has the trbuf mapped, and yet the process lives and will map it again. So the owner has ended only
/// if `/proc` does not show it either.
pub fn owner_is_gone(file: &File, owner: &Owner) -> Option<bool> {
    match has_writer(file) {
        Some(true) => Some(false),
        Some(false) => Some(runs(owner) != Some(true)),
        None => runs(owner).map(|runs| !runs),
    }
}

/// Whether anybody has `file`, which is open for reading only, open or mapped for writing; `None` if that cannot be known.
pub fn has_writer(file: &File) -> Option<bool> {
    if is_on_reliable_file_system(file) { lease_is_refused(file) } else { None }
}

/// Whether the file system of `file` refuses a lease whenever there is a writer.
fn is_on_reliable_file_system(file: &File) -> bool {
    // SAFETY: statfs consists of integers, for which all bytes zero is a valid value.
    let mut system: libc::statfs = unsafe { std::mem::zeroed() };
    // SAFETY: the descriptor is open, and fstatfs writes one statfs to the place it is given.
    let known = unsafe { libc::fstatfs(file.as_raw_fd(), &mut system) } == 0;
    known && has_reliable_leases(system.f_type as u32)
}

/// Whether the kernel refuses a read lease because `file` has a writer; `None` if it refuses for another reason.
fn lease_is_refused(file: &File) -> Option<bool> {
    let descriptor = file.as_raw_fd();
    // The kernel sends SIGIO if somebody opens the file for writing while the lease is held. Ignored, it does not end this
    // process.
    // SAFETY: signal takes no pointer to memory, and with SIG_IGN installs no handler.
    unsafe { libc::signal(libc::SIGIO, libc::SIG_IGN) };
    // SAFETY: the descriptor is open, and F_SETLEASE takes an integer.
    if unsafe { libc::fcntl(descriptor, libc::F_SETLEASE, libc::F_RDLCK) } == 0 {
        // SAFETY: as above.
        unsafe { libc::fcntl(descriptor, libc::F_SETLEASE, libc::F_UNLCK) };
        return Some(false);
    }
    (io::Error::last_os_error().raw_os_error() == Some(libc::EAGAIN)).then_some(true)
}

/// Whether `/proc` shows the owner: the same process ID in the same namespace, started at the same time, and no zombie;
/// `None` if `/proc` cannot show it.
fn runs(owner: &Owner) -> Option<bool> {
    let boot = fs::read("/proc/sys/kernel/random/boot_id").ok()?;
    if boot.trim_ascii() != owner.boot_id {
        return Some(false);
    }
    if fs::metadata("/proc/self/ns/pid").ok()?.ino() != owner.pid_namespace {
        return id_of_inner(owner).map(|_| true);
    }
    let process = Path::new("/proc").join(owner.pid.to_string());
    match fs::read(process.join("stat")) {
        Ok(stat) => is_alive(&process, &stat, owner),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Some(false),
        Err(_) => None,
    }
}

/// The process ID of the owner as this process sees it; `None` if it is of a namespace that is not within this one's.
pub fn id_here(owner: &Owner) -> Option<u32> {
    match fs::metadata("/proc/self/ns/pid") {
        Ok(own) if own.ino() != owner.pid_namespace => id_of_inner(owner),
        _ => Some(owner.pid),
    }
}

/// The number under which `/proc` shows the owner, a process of a namespace within this process's.
fn id_of_inner(owner: &Owner) -> Option<u32> {
    fs::read_dir("/proc").ok()?.flatten().find_map(|entry| {
        let process = entry.path();
        let status = fs::read_to_string(process.join("status")).ok()?;
        let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
        let number: u32 = numbers.split_whitespace().next_back()?.parse().ok()?;
        let namespace = fs::metadata(process.join("ns/pid")).ok()?.ino();
        let is_same = number == owner.pid && namespace == owner.pid_namespace;
        let is_owner = is_same && is_alive(&process, &fs::read(process.join("stat")).ok()?, owner)?;
        is_owner.then(|| entry.file_name().to_str()?.parse().ok())?
    })
}

/// Whether the process of `/proc/PID`, whose `stat` this is, was started when the owner was and has a thread.
fn is_alive(process: &Path, stat: &[u8], owner: &Owner) -> Option<bool> {
    Some(is_start_time(start_time(stat)?, owner.start_time) && (!has_ended(stat) || has_live_thread(process)))
}

/// Whether the process of `/proc/PID`, whose first thread has ended, has a thread that has not.
fn has_live_thread(process: &Path) -> bool {
    let Ok(threads) = fs::read_dir(process.join("task")) else { return false };
    threads.flatten().any(|thread| fs::read(thread.path().join("stat")).is_ok_and(|stat| !has_ended(&stat)))
}

/// Whether the text of `/proc/PID/stat` shows a zombie or a dead process.
fn has_ended(stat: &[u8]) -> bool {
    let name_end = stat.iter().rposition(|&byte| byte == b')').map_or(0, |at| at + 1);
    matches!(stat[name_end..].trim_ascii_start().first(), Some(b'Z' | b'X' | b'x'))
}

/// The start time in the text of `/proc/PID/stat`, clock ticks since boot of this time namespace.
fn start_time(stat: &[u8]) -> Option<u64> {
    // The command's name in parentheses may itself hold spaces and parentheses; the 22nd field is the 20th after it.
    let name_end = stat.iter().rposition(|&byte| byte == b')')? + 1;
    let field = stat[name_end..].split(u8::is_ascii_whitespace).filter(|field| !field.is_empty()).nth(19)?;
    std::str::from_utf8(field).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::trbuf_image::wait_for_writers;
    use std::fs::OpenOptions;

    /// This process as the owner of a trbuf.
    fn this_process() -> Owner {
        let stat = fs::read("/proc/self/stat").unwrap();
        Owner {
            pid: std::process::id(),
            pid_namespace: fs::metadata("/proc/self/ns/pid").unwrap().ino(),
            start_time: start_time(&stat).unwrap(),
            boot_id: fs::read("/proc/sys/kernel/random/boot_id").unwrap().trim_ascii().try_into().unwrap(),
            realtime_offset: 0,
            layout: spec::buffer::SlotLayout::BUFFERS,
        }
    }

    #[test]
    fn a_file_that_is_open_for_writing_has_a_living_owner() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("trbuf.0000001");
        let writer = OpenOptions::new().create(true).append(true).open(&path).unwrap();
        let reader = File::open(&path).unwrap();
        if !is_on_reliable_file_system(&reader) {
            println!("the file system of {} has no leases to test", path.display());
            return;
        }
        assert_eq!(lease_is_refused(&reader), Some(true));
        drop(writer);
        wait_for_writers(&path);
        assert_eq!(lease_is_refused(&reader), Some(false));
        assert_eq!(owner_is_alive(&reader, &this_process()), Some(false));
        assert_eq!(owner_is_gone(&reader, &this_process()), Some(false), "it may be executing another program");
        assert_eq!(owner_is_gone(&reader, &Owner { start_time: 1, ..this_process() }), Some(true));
    }

    #[test]
    fn a_zombie_does_not_run() {
        let mut child = std::process::Command::new("cat").stdin(std::process::Stdio::piped()).spawn().unwrap();
        let stat = || fs::read(format!("/proc/{}/stat", child.id())).unwrap();
        let owner = Owner { pid: child.id(), start_time: start_time(&stat()).unwrap(), ..this_process() };
        assert_eq!(runs(&owner), Some(true));
        // Closing its input ends it; it stays a zombie until `wait`.
        drop(child.stdin.take());
        while !has_ended(&fs::read(format!("/proc/{}/stat", child.id())).unwrap()) {
            std::thread::yield_now();
        }
        assert_eq!(runs(&owner), Some(false));
        child.wait().unwrap();
    }

    #[test]
    fn proc_shows_the_owner_by_boot_and_start_time() {
        let owner = this_process();
        assert_eq!(runs(&owner), Some(true));
        assert_eq!(runs(&Owner { start_time: owner.start_time + 2, ..owner }), Some(false));
        assert_eq!(runs(&Owner { boot_id: [b'0'; 36], ..owner }), Some(false));
        assert_eq!(runs(&Owner { pid_namespace: 1, ..owner }), None);
        assert_eq!(runs(&Owner { pid: 9_999_999, ..owner }), Some(false));
    }

    #[test]
    fn a_command_name_may_look_like_fields() {
        let tail = (3..=22).map(|field| format!(" {field}")).collect::<String>();
        assert_eq!(start_time(format!("7 (a) b (c 1){tail} 23\n").as_bytes()), Some(22));
        for text in ["", "7 (a)", "7 (a) 1 2 3", ") x x x x x x x x x x x x x x x x x x x -"] {
            assert_eq!(start_time(text.as_bytes()), None);
        }
    }
}
