//! Whether the process that a trbuf belongs to still runs.
//!
//! A process ID does not tell: it may be another namespace's, or reused. A lease does: the kernel grants one for
//! reading only while nobody has the file open or mapped for writing, and the recorder keeps its trbuf mapped as long
//! as it lives. On file systems where leases mean something else, `/proc` has to answer.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;

use log::debug;
use spec::buffer::Owner;

/// File systems (`f_type` of statfs) that answer for themselves, for a server, or for the file on top, when they are
/// asked for a lease: overlayfs, NFS, CIFS, SMB2, FUSE, 9p, Ceph.
const NO_LEASES: [u32; 7] = [0x794c_7630, 0x6969, 0xff53_4d42, 0xfe53_4d42, 0x6573_5546, 0x0102_1997, 0x00c3_6400];

/// Whether the owner of the trbuf `file` runs; `None` if nothing can tell.
pub fn alive(file: &File, owner: &Owner) -> Option<bool> {
    let answer = if leases_tell(file) { somebody_writes(file) } else { None };
    debug!("process {}: a lease says {answer:?}", owner.pid);
    answer.or_else(|| runs(owner))
}

fn leases_tell(file: &File) -> bool {
    // SAFETY: all bytes zero is a valid statfs.
    let mut system: libc::statfs = unsafe { std::mem::zeroed() };
    // SAFETY: the descriptor is open, and fstatfs writes one statfs to the place it is given.
    let known = unsafe { libc::fstatfs(file.as_raw_fd(), &mut system) } == 0;
    known && !NO_LEASES.contains(&(system.f_type as u32))
}

/// Whether anybody has `file` open or mapped for writing; `None` if the kernel does not say.
fn somebody_writes(file: &File) -> Option<bool> {
    let descriptor = file.as_raw_fd();
    // A writer who comes while the lease is held makes the kernel send SIGIO, which would end this process.
    // SAFETY: ignoring a signal installs no code.
    unsafe { libc::signal(libc::SIGIO, libc::SIG_IGN) };
    // SAFETY: fcntl takes no pointer here.
    if unsafe { libc::fcntl(descriptor, libc::F_SETLEASE, libc::F_RDLCK) } == 0 {
        // SAFETY: as above.
        unsafe { libc::fcntl(descriptor, libc::F_SETLEASE, libc::F_UNLCK) };
        return Some(false);
    }
    (io::Error::last_os_error().raw_os_error() == Some(libc::EAGAIN)).then_some(true)
}

/// Whether `/proc` shows the owner: the same process ID in the same namespace, started at the same time.
fn runs(owner: &Owner) -> Option<bool> {
    let boot = fs::read("/proc/sys/kernel/random/boot_id").ok()?;
    if boot.trim_ascii() != owner.boot_id {
        return Some(false);
    }
    if fs::metadata("/proc/self/ns/pid").ok()?.ino() != owner.pid_namespace {
        return None;
    }
    match fs::read(format!("/proc/{}/stat", owner.pid)) {
        Ok(stat) => Some(start(&stat)? == owner.start),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Some(false),
        Err(_) => None,
    }
}

/// The start time from `/proc/PID/stat`, clock ticks since boot.
fn start(stat: &[u8]) -> Option<u64> {
    // The command in parentheses may itself hold spaces and parentheses; the 22nd field is the 20th behind it.
    let behind = stat.iter().rposition(|&byte| byte == b')')? + 1;
    let field = stat[behind..].split(u8::is_ascii_whitespace).filter(|field| !field.is_empty()).nth(19)?;
    std::str::from_utf8(field).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::OpenOptions;

    /// This process, as a trbuf's header would say it.
    fn this_process() -> Owner {
        let stat = fs::read("/proc/self/stat").unwrap();
        Owner {
            pid: std::process::id(),
            pid_namespace: fs::metadata("/proc/self/ns/pid").unwrap().ino(),
            start: start(&stat).unwrap(),
            boot_id: fs::read("/proc/sys/kernel/random/boot_id").unwrap().trim_ascii().try_into().unwrap(),
            offset: 0,
        }
    }

    #[test]
    fn a_file_that_is_open_for_writing_has_a_living_owner() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("trbuf.0000001");
        let writer = OpenOptions::new().create(true).append(true).open(&path).unwrap();
        let reader = File::open(&path).unwrap();
        if !leases_tell(&reader) {
            println!("the file system of {} has no leases to test", path.display());
            return;
        }
        assert_eq!(somebody_writes(&reader), Some(true));
        drop(writer);
        assert_eq!(somebody_writes(&reader), Some(false));
        assert_eq!(alive(&reader, &this_process()), Some(false));
    }

    #[test]
    fn proc_tells_by_boot_and_start() {
        let owner = this_process();
        assert_eq!(runs(&owner), Some(true));
        assert_eq!(runs(&Owner { start: owner.start + 1, ..owner }), Some(false));
        assert_eq!(runs(&Owner { boot_id: [b'0'; 36], ..owner }), Some(false));
        assert_eq!(runs(&Owner { pid_namespace: 1, ..owner }), None);
        assert_eq!(runs(&Owner { pid: 9_999_999, ..owner }), Some(false));
    }

    #[test]
    fn a_command_may_look_like_fields() {
        let tail = (3..=22).map(|field| format!(" {field}")).collect::<String>();
        assert_eq!(start(format!("7 (a) b (c 1){tail} 23\n").as_bytes()), Some(22));
        for text in ["", "7 (a)", "7 (a) 1 2 3", ") x x x x x x x x x x x x x x x x x x x -"] {
            assert_eq!(start(text.as_bytes()), None);
        }
    }
}
