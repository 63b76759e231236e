//! The trace directory: where it is, whose names are in it, and which clock its processes share.

use core::ffi::CStr;

use spec::buffer::{Owner, PAGE, SLOT_PATH_MAX};
use spec::info;
use spec::names::{FileName, PROCESS_MASK};

use crate::file::{DIRECTORY_MAX, Path, rename_old};
use crate::process;
use crate::say::{Cause, reason, say};
use crate::stage::{Settled, Stage};
use crate::sys::{self, Errno, Fd};
use crate::{buffers, clock, identity, trinfo};

/// A path: as the environment has it (`WANTED`), or absolute and without a slash at its end.
struct Directory {
    text: [u8; DIRECTORY_MAX],
    length: usize,
}

static WANTED: Settled<Directory> = Settled::new(Directory { text: [0; DIRECTORY_MAX], length: 0 });
static DIRECTORY: Settled<Directory> = Settled::new(Directory { text: [0; DIRECTORY_MAX], length: 0 });
/// The directory is resolved, in this process or in one that it was forked from.
static RESOLVED: Stage = Stage::new();
/// The clock's offset is settled, in this process or in one that it was forked from.
static CLOCK: Stage = Stage::new();
/// Memory for paths and file contents, so that no hook needs it on its stack.
static SCRATCH: Settled<Scratch> =
    Settled::new(Scratch { path: [0; SLOT_PATH_MAX], other: [0; SLOT_PATH_MAX], text: [0; 8192] });

/// The path of this process's trbuf.
static BUFFERS_PATH: Settled<[u8; SLOT_PATH_MAX]> = Settled::new([0; SLOT_PATH_MAX]);

struct Scratch {
    path: [u8; SLOT_PATH_MAX],
    other: [u8; SLOT_PATH_MAX],
    text: [u8; 8192],
}

/// The directory, once it is resolved.
pub fn path() -> &'static [u8] {
    let directory = DIRECTORY.get();
    directory.text.get(..directory.length).unwrap_or(b"")
}

/// In a forked child: what another thread of the parent was about to settle is open again.
pub fn forget() {
    RESOLVED.reset_unless_done();
    CLOCK.reset_unless_done();
}

/// Notes what `THR_TRACE_DIR` says: the program may write over its environment before its first record.
///
/// Within the first awakening, before anybody else looks.
pub fn want(directory: &[u8]) {
    // SAFETY: as said; read by `resolve`, after the awakening.
    let wanted = unsafe { WANTED.get_mut() };
    // One that is too long is cut, which `resolve` sees by its length.
    wanted.length = directory.len();
    wanted.text.iter_mut().zip(directory).for_each(|(place, &byte)| *place = byte);
}

/// Makes this process's files in the trace directory. Within the stage [`process::Process::files`].
///
/// Failure is told once on stderr and ends all recording in this process.
pub fn prepare() -> bool {
    let prepared = RESOLVED.run(resolve) && claim();
    if !prepared {
        process::stop();
    }
    prepared
}

/// Finds the directory's absolute path, once, so that a later chdir does not matter.
fn resolve() -> bool {
    // SAFETY: within the stage RESOLVED; read by those who have passed it.
    let directory = unsafe { DIRECTORY.get_mut() };
    let wanted = WANTED.get();
    let Some(wanted) = wanted.text.get(..wanted.length) else {
        return refuse(&wanted.text, Errno(libc::ENAMETOOLONG));
    };
    let mut length = 0;
    if wanted.first() != Some(&b'/') {
        match sys::working_directory(&mut directory.text) {
            Ok(found) => length = found,
            Err(errno) => return refuse(wanted, errno),
        }
    }
    let slash: &[u8] = if length == 0 || wanted.is_empty() { b"" } else { b"/" };
    for &byte in slash.iter().chain(wanted) {
        match directory.text.get_mut(length) {
            Some(place) => *place = byte,
            None => return refuse(wanted, Errno(libc::ENAMETOOLONG)),
        }
        length += 1;
    }
    while length > 1 && directory.text.get(length - 1) == Some(&b'/') {
        length -= 1;
    }
    directory.length = length;
    true
}

fn refuse(directory: &[u8], errno: Errno) -> bool {
    say(Cause::Directory, &[b"cannot write a trace to '", directory, b"': ", reason(errno), b"; nothing is recorded"]);
    false
}

/// Appends `/nsINODE` to the directory: a living process of another PID namespace has our names there.
fn move_to_namespace(inode: u64, scratch: &mut Scratch) -> sys::Result {
    // SAFETY: within the stage `files`, before anybody has used a path of this process.
    let directory = unsafe { DIRECTORY.get_mut() };
    let mut number = itoa::Buffer::new();
    for &byte in b"/ns".iter().chain(number.format(inode).as_bytes()) {
        *directory.text.get_mut(directory.length).ok_or(Errno(libc::ENAMETOOLONG))? = byte;
        directory.length += 1;
    }
    let target = Path::join(&mut scratch.path, &[path()]);
    match sys::make_directory(target, 0o700) {
        Ok(()) | Err(Errno(libc::EEXIST)) => {}
        Err(errno) => return Err(errno),
    }
    say(Cause::Namespace, &[b"a process of another PID namespace has this one's number; its trace goes to ", path()]);
    Ok(())
}

/// Takes this process's names: makes its trbuf, or takes over the one it made before an exec.
fn claim() -> bool {
    // SAFETY: within the stage `files`, which one thread of the process runs.
    let scratch = unsafe { SCRATCH.get_mut() };
    let mut result = try_claim(scratch);
    if result == Ok(Claim::Taken) {
        result = move_to_namespace(identity::pid_namespace(), scratch).and_then(|()| try_claim(scratch));
    }
    match result {
        Ok(Claim::Ours) => {
            // SAFETY: within the stage `files`; read by those who have passed it.
            Path::build(unsafe { BUFFERS_PATH.get_mut() }, path(), FileName::Buffers(process::id() & PROCESS_MASK));
            trinfo::write(trinfo::Moment::FirstRecord);
            true
        }
        Ok(Claim::Taken) => refuse(path(), Errno(libc::EEXIST)),
        Err(errno) => refuse(path(), errno),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Claim {
    Ours,
    /// A living process that is not we holds the names.
    Taken,
}

fn try_claim(scratch: &mut Scratch) -> sys::Result<Claim> {
    let pid = process::id();
    let flags = libc::O_RDWR | libc::O_CREAT | libc::O_EXCL | libc::O_NOFOLLOW;
    // OBSERVABLE: the first thing that is made; whoever makes it owns the names.
    let path = Path::build(&mut scratch.path, path(), FileName::Buffers(pid & PROCESS_MASK));
    let mut fd = Fd::open(path, flags, 0o600);
    if fd.as_ref().err() == Some(&Errno(libc::EEXIST)) {
        match find_owner(path, &mut scratch.text)? {
            Holder::OurselvesBeforeExec(owner) => {
                let fd = Fd::open(path, libc::O_RDWR | libc::O_NOFOLLOW, 0)?;
                CLOCK.run(|| {
                    clock::set_offset(owner.realtime_offset);
                    true
                });
                buffers::take_over(&fd, fd.stat()?.st_size as u64, owner.layout)?;
                return Ok(Claim::Ours);
            }
            Holder::Alive => return Ok(Claim::Taken),
            Holder::Dead(start) => {
                set_aside(pid, start, true, scratch)?;
                let path = Path::build(&mut scratch.path, self::path(), FileName::Buffers(pid & PROCESS_MASK));
                fd = Fd::open(path, flags, 0o600);
            }
        }
    } else if fd.is_ok() {
        // A clean exit leaves no trbuf, but the other files.
        let info = Path::build(&mut scratch.path, self::path(), FileName::Info(pid & PROCESS_MASK));
        if let Ok(file) = Fd::open(info, libc::O_RDONLY | libc::O_NOFOLLOW, 0) {
            let length = file.read_at(&mut scratch.text, 0).unwrap_or(0);
            let start = info::number(scratch.text.get(..length).unwrap_or(b""), "start").unwrap_or(0);
            set_aside(pid, start as u64, false, scratch)?;
        }
    }
    let fd = fd?;
    CLOCK.run(|| {
        share_clock(scratch);
        true
    });
    let mut owner = identity::owner();
    owner.realtime_offset = clock::offset();
    if fd.stat()?.st_mode & 0o777 != 0o600 {
        fd.set_mode(0o600)?;
    }
    buffers::make(&fd, &owner)?;
    Ok(Claim::Ours)
}

enum Holder {
    OurselvesBeforeExec(Owner),
    Alive,
    /// Nobody; the one who made it started at this time.
    Dead(u64),
}

/// Whose trbuf is there.
fn find_owner(path: &CStr, page: &mut [u8]) -> sys::Result<Holder> {
    let fd = Fd::open(path, libc::O_RDONLY | libc::O_NOFOLLOW, 0)?;
    if fd.stat()?.st_uid != sys::user_id() {
        return Err(Errno(libc::EACCES));
    }
    let length = fd.read_at(page.get_mut(..PAGE).unwrap_or_default(), 0)?;
    let owner = Owner::parse(page.get(..length).unwrap_or(b""));
    let ourselves = identity::owner();
    if let Ok(owner) = owner {
        if ourselves.start_time != 0
            && (Owner { realtime_offset: ourselves.realtime_offset, layout: ourselves.layout, ..owner }) == ourselves
        {
            return Ok(Holder::OurselvesBeforeExec(owner));
        }
        // The PID is ours now; so whoever had it in this namespace has gone, as has everybody of another boot.
        if owner.boot_id != ourselves.boot_id || owner.pid_namespace == ourselves.pid_namespace {
            return Ok(Holder::Dead(owner.start_time));
        }
    }
    let start = owner.map_or(0, |owner| owner.start_time);
    // Where there are no leases to rely on, the other namespace's process is taken for alive.
    Ok(if fd.has_no_writer() == Ok(true) { Holder::Dead(start) } else { Holder::Alive })
}

/// Opens this process's trbuf again.
pub fn open_buffers() -> sys::Result<Fd> {
    Fd::open(Path::of(BUFFERS_PATH.get()), libc::O_RDWR | libc::O_NOFOLLOW, 0)
}

/// Removes this process's trbuf, all of which has been written.
pub fn remove_buffers() {
    let _ = sys::unlink(Path::of(BUFFERS_PATH.get()));
}

/// Renames all files of the earlier process with our number; its trbuf too unless the one that is there is ours.
fn set_aside(pid: u32, start: u64, buffers_too: bool, scratch: &mut Scratch) -> sys::Result {
    let mut number = itoa::Buffer::new();
    let start = number.format(start).as_bytes();
    let wanted = pid & PROCESS_MASK;
    let fd = Fd::open(Path::join(&mut scratch.path, &[path()]), libc::O_RDONLY | libc::O_DIRECTORY, 0)?;
    loop {
        let length = fd.directory_entries(&mut scratch.text)?;
        if length == 0 {
            return Ok(());
        }
        let mut entries = scratch.text.get(..length).unwrap_or(b"");
        // struct linux_dirent64: inode, offset (8 bytes each), length of the entry (2), type (1), name.
        while let Some(size) = entries.get(16..18).map(|size| usize::from(u16::from_le_bytes([size[0], size[1]]))) {
            let Some((entry, rest)) = entries.split_at_checked(size).filter(|_| size > 19) else { break };
            entries = rest;
            let name = CStr::from_bytes_until_nul(entry.get(19..).unwrap_or(b"")).unwrap_or(c"").to_bytes();
            let earlier = match FileName::parse(name) {
                Some(FileName::Records { process, .. } | FileName::Info(process)) => process == wanted,
                Some(FileName::Buffers(process)) => process == wanted && buffers_too,
                _ => false,
            };
            if earlier {
                let from = Path::join(&mut scratch.path, &[path(), b"/", name]);
                let directory = Path::join(&mut scratch.other, &[path(), b"/"]).to_bytes();
                rename_old(from, directory, start, name)?;
            }
        }
    }
}

/// Adopts the directory's clock offset, or puts ours there.
///
/// An offset of another boot, or one that is more than a second away from what we measure (the wall clock has been
/// stepped), is replaced: processes that begin from now on share the new one.
fn share_clock(scratch: &mut Scratch) {
    const STEP: i64 = 1_000_000_000;
    let ours = clock::measure_offset();
    clock::set_offset(ours);
    let boot_id = identity::boot_id();
    for _ in 0..3 {
        let clock_path = Path::build(&mut scratch.path, path(), FileName::Clock);
        let there = Fd::open(clock_path, libc::O_RDONLY | libc::O_NOFOLLOW, 0);
        if let Ok(file) = &there {
            let length = file.read_at(&mut scratch.text, 0).unwrap_or(0);
            let text = scratch.text.get(..length).unwrap_or(b"");
            let same_boot = info::value(text, "boot_id") == Some(&boot_id[..]);
            match info::number(text, "offset") {
                Some(theirs) if same_boot && theirs.abs_diff(ours) <= STEP as u64 => return clock::set_offset(theirs),
                _ => {}
            }
        }
        // Written under a name of its own first, so that nobody sees half of it.
        let mut number = itoa::Buffer::new();
        let pid = number.format(process::id()).as_bytes();
        let new = Path::join(&mut scratch.other, &[path(), b"/trclock.", pid]);
        let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL | libc::O_NOFOLLOW;
        let Ok(file) = Fd::open(new, flags, 0o600) else { return };
        let mut number = itoa::Buffer::new();
        let pieces: [&[u8]; 5] = [b"boot_id ", &boot_id, b"\noffset ", number.format(ours).as_bytes(), b"\n"];
        let written = file.set_mode(0o600).and_then(|()| pieces.iter().try_for_each(|piece| file.write(piece)));
        // OBSERVABLE: the clock is there at once and whole, and the first one to put it there wins.
        let linked = match written {
            Ok(()) if there.is_ok() => sys::replace(new, clock_path),
            Ok(()) => sys::link(new, clock_path),
            Err(errno) => Err(errno),
        };
        let _ = sys::unlink(new);
        if linked != Err(Errno(libc::EEXIST)) {
            return;
        }
    }
}
