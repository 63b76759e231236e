//! The owner of this process's names in the trace directory: whoever made the trbuf of that name.

use core::ffi::CStr;
use core::sync::atomic::Ordering::Relaxed;

use spec::buffer::{Owner, PAGE};
use spec::info;
use spec::names::{FileName, PROCESS_MASK};

use super::directory::{self, Scratch};
use super::{earlier_files, identity, recorded_parent, shared_clock, spare_trbufs, user_directory};
use crate::process_state::{self, GENERATIONS, PLACES, PROCESS, WorkingProcess, of_process};
use crate::sys::path::{self, PATH_MAX};
use crate::sys::{self, Errno, Fd, FileIdentity, Result, SetOnce, set_owner_of_new_files, user_id};

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
    /// This process, which has left its claim by a jump and begins it anew.
    OurselvesUnfinished,
    /// None any more, and nothing has the trbuf's name.
    Gone,
}

/// How often a name is claimed that something has.
const ATTEMPTS: u32 = 4;
/// How often a blank trbuf is looked at that somebody has open, and for how many nanoseconds each time: half a second at least.
const LOOKS: u32 = 500;
const LOOK: i64 = 1_000_000;

static SCRATCH: [SetOnce<Scratch>; PLACES] = [const { SetOnce::new(Scratch::new()) }; PLACES];
/// The trbufs that this process has made or taken over, by generation.
static TRBUFS: [[ClaimedFile; GENERATIONS]; PLACES] = [const { [const { ClaimedFile::new() }; GENERATIONS] }; PLACES];

struct ClaimedFile {
    identity: SetOnce<FileIdentity>,
    path: SetOnce<[u8; PATH_MAX]>,
}

impl ClaimedFile {
    const fn new() -> ClaimedFile {
        ClaimedFile {
            identity: SetOnce::new(FileIdentity { device: 0, inode: 0, owner: 0 }),
            path: SetOnce::new([0; PATH_MAX]),
        }
    }
}

fn trbuf(generation: usize) -> &'static ClaimedFile {
    trbuf_of(WorkingProcess::current(), generation)
}

fn trbuf_of(process: WorkingProcess, generation: usize) -> &'static ClaimedFile {
    process_state::of_generation(of_process(&TRBUFS, process), generation)
}

/// # Safety
/// One thread of the process at a time may use it.
unsafe fn scratch_of(process: WorkingProcess) -> &'static mut Scratch {
    // SAFETY: the caller's.
    unsafe { of_process(&SCRATCH, process).get_mut() }
}

/// Takes this process's names in the directory, or in a subdirectory for its user or its PID namespace. `EEXIST` if another,
/// living process has them there too; `ECHILD` in a child of `process` that returns into this.
///
/// # Safety
/// One thread of the process may call this, before any other uses a path of this generation of its files.
pub unsafe fn claim(generation: usize, process: WorkingProcess) -> Result<ClaimedTrbuf> {
    // SAFETY: the caller's.
    unsafe {
        let scratch = scratch_of(process);
        if generation == 0 {
            process.check()?;
            spare_trbufs::find_keeper(&mut scratch.path);
            if user_directory::enter_at_first(user_id(), scratch, process) {
                set_owner_of_new_files(user_id());
            } else if let Some(owner) = user_directory::owner(scratch) {
                // A signal handler has forked this process while its parent became another user: it is root still.
                set_owner_of_new_files(owner);
            }
        }
        let mut claimed = try_claim(generation, scratch, process)?;
        if claimed.is_none() {
            directory::move_to_namespace(identity::pid_namespace(), &mut scratch.path, process)?;
            user_directory::forget();
            claimed = try_claim(generation, scratch, process)?;
        }
        process.check()?;
        let own = trbuf_of(process, generation);
        trbuf_path(own.path.get_mut(), process);
        let (trbuf, identity) = claimed.ok_or(Errno(libc::EEXIST))?;
        *own.identity.get_mut() = identity;
        Ok(trbuf)
    }
}

fn trbuf_path(buffer: &mut [u8; PATH_MAX], process: WorkingProcess) -> &CStr {
    path::trace_file(buffer, directory::path(), FileName::Buffers(process.id() & PROCESS_MASK))
}

/// Takes the names; `None` if another, living process has them.
fn try_claim(
    generation: usize,
    scratch: &mut Scratch,
    process: WorkingProcess,
) -> Result<Option<(ClaimedTrbuf, FileIdentity)>> {
    let mut path = trbuf_path(&mut scratch.path, process);
    process.check()?;
    // If so, a jump has left this before it was noted which file got the name, if one did.
    let was_naming = PROCESS.is_naming_trbuf.swap(1, Relaxed);
    // OBSERVABLE: the first file that is made; the process that makes it owns the names.
    let mut created = match spare_trbufs::take(path, &mut scratch.other_path, process) {
        Some(taken) => note_unfinished(taken, process),
        None => {
            PROCESS.is_naming_trbuf.store(was_naming, Relaxed);
            create(path, process)
        }
    };
    for _ in 0..ATTEMPTS {
        if created.as_ref().err() != Some(&Errno(libc::EEXIST)) {
            break;
        }
        match find_holder(path, &mut scratch.text, was_naming != 0, process)? {
            NamesHolder::OurselvesBeforeExec(owner) => {
                let (fd, identity, _) = Fd::open_trusted(path, libc::O_RDWR)?;
                process.check()?;
                shared_clock::keep(owner.realtime_offset);
                return Ok(Some((ClaimedTrbuf::TakenOver(fd, owner), identity)));
            }
            NamesHolder::Alive => return Ok(None),
            NamesHolder::Dead(start) => {
                earlier_files::rename_all(process, start, true, scratch)?;
                process.check()?;
                PROCESS.has_renamed_earlier.store(1, Relaxed);
                trbuf_path(&mut scratch.path, process);
            }
            NamesHolder::OurselvesUnfinished => {
                process.check()?;
                let _ = path::unlink(path);
            }
            NamesHolder::Gone => {}
        }
        path = path::in_buffer(&scratch.path);
        created = create(path, process);
    }
    // What has our names after a claim that was left may be our own.
    if created.is_ok() && PROCESS.has_renamed_earlier.load(Relaxed) == 0 {
        if let Err(errno) = rename_files_of_ended(process, scratch) {
            let path = trbuf_path(&mut scratch.path, process);
            process.check()?;
            let _ = path::unlink(path);
            return Err(errno);
        }
        process.check()?;
        PROCESS.has_renamed_earlier.store(1, Relaxed);
    }
    let (fd, identity) = created?;
    process.check()?;
    shared_clock::share(scratch);
    let owner = identity::owner();
    if generation == 0 && PROCESS.unrecorded_parent.load(Relaxed) == 0 {
        let parent = recorded_parent::find(&owner, scratch);
        process.check()?;
        PROCESS.unrecorded_parent.store(parent, Relaxed);
    }
    Ok(Some((ClaimedTrbuf::New(fd, owner), identity)))
}

/// Makes the trbuf. One that the host has closed at once is removed: the next attempt would take it for another process's.
fn create(path: &CStr, process: WorkingProcess) -> Result<(Fd, FileIdentity)> {
    process.check()?;
    let was_naming = PROCESS.is_naming_trbuf.swap(1, Relaxed);
    let created = Fd::create(path, libc::O_RDWR).and_then(|made| note_unfinished(made, process));
    if let Err(errno) = created
        && process.is_current()
    {
        if errno == Errno(libc::EBADF) {
            let _ = path::unlink(path);
        }
        PROCESS.is_naming_trbuf.store(was_naming, Relaxed);
    }
    created
}

/// Notes which file this process's new trbuf is, so that it is recognised if a jump leaves what follows.
fn note_unfinished(made: (Fd, FileIdentity), process: WorkingProcess) -> Result<(Fd, FileIdentity)> {
    process.check()?;
    let [device, inode] = &PROCESS.unfinished_trbuf;
    device.store(made.1.device, Relaxed);
    inode.store(made.1.inode, Relaxed);
    PROCESS.is_naming_trbuf.store(0, Relaxed);
    Ok(made)
}

/// Whether this process has made a trbuf, whatever has become of it.
pub fn has_unfinished_trbuf() -> bool {
    PROCESS.unfinished_trbuf[1].load(Relaxed) != 0
}

/// Renames the files of an earlier process with this number that has ended in order: it has left no trbuf, but the others.
#[inline(never)]
fn rename_files_of_ended(process: WorkingProcess, scratch: &mut Scratch) -> Result {
    let name = FileName::Info(process.id() & PROCESS_MASK);
    let info = path::trace_file(&mut scratch.path, directory::path(), name);
    // Mostly there is none, and to ask for that takes half of the time.
    if path::is_unused(info) {
        return Ok(());
    }
    let start = match Fd::open_trusted(info, libc::O_RDONLY) {
        Ok((file, ..)) => {
            let length = file.read_at(&mut scratch.text, 0)?;
            info::number(scratch.text.get(..length).unwrap_or(b""), "start").unwrap_or(0) as u64
        }
        // Something that is no trinfo of ours has its name.
        Err(errno) if errno.is_foreign_file() => 0,
        Err(Errno(libc::EBADF)) => return Err(Errno(libc::EBADF)),
        Err(_) => return Ok(()),
    };
    earlier_files::rename_all(process, start, false, scratch)
}

/// Finds the process that made the trbuf at `path`; this one, if it `was_naming` a trbuf and that is still blank. `page` is
/// overwritten.
///
/// Who has a blank one open is about to write to it; or it is a child of this process, which a signal handler has forked when
/// this was about to make the file: the child has made it in its place, and closes it when it finds that it is a child.
// Not inlined, as what else is seldom needed here, because a first record is made on the host's stack.
#[cold]
#[inline(never)]
fn find_holder(path: &CStr, page: &mut [u8], was_naming: bool, process: WorkingProcess) -> Result<NamesHolder> {
    for _ in 0..LOOKS {
        if let Some(holder) = look_for_holder(path, page, was_naming, process)? {
            return Ok(holder);
        }
        sys::sleep(LOOK);
    }
    Ok(NamesHolder::Alive)
}

/// As [`find_holder`]; `None` as long as somebody has a blank file open.
fn look_for_holder(
    path: &CStr,
    page: &mut [u8],
    was_naming: bool,
    process: WorkingProcess,
) -> Result<Option<NamesHolder>> {
    let (fd, identity) = match Fd::open_trusted(path, libc::O_RDONLY) {
        Ok((fd, identity, _)) => (fd, identity),
        Err(Errno(libc::ENOENT)) => return Ok(Some(NamesHolder::Gone)),
        Err(errno) => return Err(errno),
    };
    if has_unfinished_trbuf()
        && PROCESS.unfinished_trbuf.each_ref().map(|word| word.load(Relaxed)) == [identity.device, identity.inode]
    {
        return Ok(Some(NamesHolder::OurselvesUnfinished));
    }
    let length = fd.read_at(page.get_mut(..PAGE).unwrap_or_default(), 0)?;
    let owner = Owner::parse(page.get(..length).unwrap_or(b""));
    let is_blank = page.iter().take(length).all(|&byte| byte == 0);
    if is_blank && was_naming {
        return Ok(Some(NamesHolder::OurselvesUnfinished));
    }
    if let Ok(owner) = &owner
        && owner.pid == process_state::id()
    {
        identity::adopt_start(owner.start_time);
    }
    let ourselves = identity::owner();
    process.check()?;
    if let Ok(owner) = owner {
        if ourselves.start_time != 0 && owner.is_same_process(&ourselves) {
            return Ok(Some(NamesHolder::OurselvesBeforeExec(owner)));
        }
        // The PID is ours now, so the process that had it in this namespace is dead, as are all of other boots.
        if owner.boot_id != ourselves.boot_id || owner.pid_namespace == ourselves.pid_namespace {
            return Ok(Some(NamesHolder::Dead(owner.start_time)));
        }
    }
    match fd.has_no_writer() {
        Ok(true) => {}
        // The host has closed it: nothing is known.
        Err(Errno(libc::EBADF)) => return Err(Errno(libc::EBADF)),
        Ok(false) if is_blank => return Ok(None),
        // Where leases cannot be relied on, the process of the other namespace is taken for alive.
        _ => return Ok(Some(NamesHolder::Alive)),
    }
    if is_blank {
        process.check()?;
        // Whoever made it did not get as far as to record. Another child that a handler has forked may make it once more at any moment: it
        // is not renamed with an earlier process's files, which are looked for when the name is taken.
        let _ = path::unlink(path);
        return Ok(Some(NamesHolder::Gone));
    }
    Ok(Some(NamesHolder::Dead(owner.map_or(0, |owner| owner.start_time))))
}

/// Whether the trbuf of this generation is certainly not any more where it was made.
pub fn is_trbuf_removed(generation: usize) -> bool {
    let trbuf = trbuf(generation);
    trbuf.identity.get().is_gone_from(path::in_buffer(trbuf.path.get()))
}

pub fn open_trbuf(generation: usize) -> Result<Fd> {
    let trbuf = trbuf(generation);
    let path = path::in_buffer(trbuf.path.get());
    Fd::open_known(path, libc::O_RDWR, *trbuf.identity.get(), false, sys::thread_id()).map(|(fd, _)| fd)
}

/// The user to whom the trbuf of a generation of files belonged when it was claimed.
pub fn owner_of_files(generation: usize) -> u32 {
    trbuf(generation).identity.get().owner
}

/// Moves to the subdirectory for the user `uid`, for whom this thread works; `true` if this process has moved.
///
/// # Safety
/// As [`give_up_trbuf`].
pub unsafe fn move_to_user(uid: u32, process: WorkingProcess) -> bool {
    // SAFETY: the caller's.
    unsafe { user_directory::enter(uid, true, scratch_of(process), process) }
}

/// Removes the trbuf of the files that this process has left, all of which has been written, and what children have left beside it.
///
/// # Safety
/// As [`give_up_trbuf`].
pub unsafe fn remove_first_trbuf() {
    let own = path::in_buffer(trbuf(0).path.get());
    let _ = path::unlink(own);
    let (directory, _) = path::split(own.to_bytes());
    // SAFETY: the caller's.
    let scratch = unsafe { scratch_of(WorkingProcess::current()) };
    spare_trbufs::remove_all(directory.strip_suffix(b"/").unwrap_or(directory), &mut scratch.path);
}

/// Removes the new trbuf of a generation, of which nothing has become: the next attempt would take it for another process's.
pub fn abandon_trbuf(generation: usize) {
    let _ = path::unlink(path::in_buffer(trbuf(generation).path.get()));
}

/// Removes this process's trbuf, all of which has been written; or leaves it to the next child if it `is_blank`.
///
/// # Safety
/// One thread at a time may call this or [`remove_spares`], after the names were claimed.
pub unsafe fn give_up_trbuf(is_blank: bool) {
    let own = path::in_buffer(trbuf(process_state::generation()).path.get());
    // SAFETY: the caller's.
    if !(is_blank && spare_trbufs::leave(own, unsafe { scratch_of(WorkingProcess::current()) })) {
        let _ = path::unlink(own);
    }
}

/// Removes the trbufs that children have left, if this process keeps them or their keeper is gone.
///
/// # Safety
/// As [`give_up_trbuf`].
pub unsafe fn remove_spares() {
    // SAFETY: the caller's.
    spare_trbufs::remove_all(directory::path(), unsafe { &mut scratch_of(WorkingProcess::current()).path });
}
