//! The owner of this process's names in the trace directory: whoever made the trbuf of that name.

use core::ffi::CStr;
use core::sync::atomic::Ordering::Relaxed;

use spec::buffer::{Owner, PAGE, SLOT_PATH_MAX};
use spec::info;
use spec::names::{FileName, PROCESS_MASK};

use super::directory::{self, Scratch};
use super::{earlier_files, identity, recorded_parent, shared_clock};
use crate::process_state::{self, PROCESS};
use crate::sys::{self, Errno, Fd, Result, SetOnce, path};

pub enum ClaimedTrbuf {
    /// A new and empty one.
    New(Fd, Owner),
    /// The one that this process made before an exec.
    TakenOver(Fd, Owner),
}

/// The process that owns our names.
enum NamesHolder {
    OurselvesBeforeExec(Owner),
    Alive,
    /// None any more; the one that made the trbuf began at this time.
    Dead(u64),
}

static SCRATCH: SetOnce<Scratch> =
    SetOnce::new(Scratch { path: [0; SLOT_PATH_MAX], other_path: [0; SLOT_PATH_MAX], text: [0; 8192] });
static TRBUF_PATH: SetOnce<[u8; SLOT_PATH_MAX]> = SetOnce::new([0; SLOT_PATH_MAX]);

/// Takes this process's names in the directory, or in a subdirectory for its PID namespace. `EEXIST` if another, living
/// process has them there too.
///
/// # Safety
/// One thread of the process may call this, before any other uses a path of the trace directory.
pub unsafe fn claim() -> Result<ClaimedTrbuf> {
    // SAFETY: the caller's.
    unsafe {
        let scratch = SCRATCH.get_mut();
        let mut claimed = try_claim(scratch)?;
        if claimed.is_none() {
            directory::move_to_namespace(identity::pid_namespace(), &mut scratch.path)?;
            claimed = try_claim(scratch)?;
        }
        trbuf_path(TRBUF_PATH.get_mut());
        claimed.ok_or(Errno(libc::EEXIST))
    }
}

fn trbuf_path(buffer: &mut [u8; SLOT_PATH_MAX]) -> &CStr {
    path::trace_file(buffer, directory::path(), FileName::Buffers(process_state::id() & PROCESS_MASK))
}

/// Takes the names; `None` if another, living process has them.
fn try_claim(scratch: &mut Scratch) -> Result<Option<ClaimedTrbuf>> {
    let pid = process_state::id();
    let flags = libc::O_RDWR | libc::O_CREAT | libc::O_EXCL | libc::O_NOFOLLOW;
    // OBSERVABLE: the first file that is made; the process that makes it owns the names.
    let path = trbuf_path(&mut scratch.path);
    let mut fd = Fd::open(path, flags, 0o600);
    if fd.as_ref().err() == Some(&Errno(libc::EEXIST)) {
        match find_holder(path, &mut scratch.text)? {
            NamesHolder::OurselvesBeforeExec(owner) => {
                let fd = Fd::open(path, libc::O_RDWR | libc::O_NOFOLLOW, 0)?;
                shared_clock::keep(owner.realtime_offset);
                return Ok(Some(ClaimedTrbuf::TakenOver(fd, owner)));
            }
            NamesHolder::Alive => return Ok(None),
            NamesHolder::Dead(start) => {
                earlier_files::rename_all(pid, start, true, scratch)?;
                fd = Fd::open(trbuf_path(&mut scratch.path), flags, 0o600);
            }
        }
    } else if fd.is_ok() {
        // A clean exit leaves no trbuf, but the other files.
        let info = path::trace_file(&mut scratch.path, directory::path(), FileName::Info(pid & PROCESS_MASK));
        if let Ok(file) = Fd::open(info, libc::O_RDONLY | libc::O_NOFOLLOW, 0) {
            let length = file.read_at(&mut scratch.text, 0).unwrap_or(0);
            let start = info::number(scratch.text.get(..length).unwrap_or(b""), "start").unwrap_or(0);
            earlier_files::rename_all(pid, start as u64, false, scratch)?;
        }
    }
    let fd = fd?;
    shared_clock::share(scratch);
    if fd.stat()?.st_mode & 0o777 != 0o600 {
        fd.set_mode(0o600)?;
    }
    let owner = identity::owner();
    if PROCESS.unrecorded_parent.load(Relaxed) == 0 {
        PROCESS.unrecorded_parent.store(recorded_parent::find(&owner, scratch), Relaxed);
    }
    Ok(Some(ClaimedTrbuf::New(fd, owner)))
}

/// Finds the process that made the trbuf at `path`. `page` is overwritten.
fn find_holder(path: &CStr, page: &mut [u8]) -> Result<NamesHolder> {
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
            return Ok(NamesHolder::OurselvesBeforeExec(owner));
        }
        // The PID is ours now, so the process that had it in this namespace is dead, as are all of other boots.
        if owner.boot_id != ourselves.boot_id || owner.pid_namespace == ourselves.pid_namespace {
            return Ok(NamesHolder::Dead(owner.start_time));
        }
    }
    let start = owner.map_or(0, |owner| owner.start_time);
    // Where leases cannot be relied on, the process of the other namespace is taken for alive.
    Ok(if fd.has_no_writer() == Ok(true) { NamesHolder::Dead(start) } else { NamesHolder::Alive })
}

pub fn open_trbuf() -> Result<Fd> {
    Fd::open(path::in_buffer(TRBUF_PATH.get()), libc::O_RDWR | libc::O_NOFOLLOW, 0)
}

/// Removes this process's trbuf, all of which has been written.
pub fn remove_trbuf() {
    let _ = path::unlink(path::in_buffer(TRBUF_PATH.get()));
}
