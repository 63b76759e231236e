//! Trbufs for children in a sandbox.
//!
//! A program that changes its root, moves to another mount namespace or forbids itself to open files may fork children that
//! can open nothing of the trace. So before that the process makes a few trbufs, sparse and blank, and maps them. A child that
//! can make no trbuf claims one of these, and records in it only: what it would have written to files stays there.
//!
//! One more page is mapped, where the records of those are counted who find none. What is in this shared memory is for readers
//! of the trace: no process acts on it but for taking what nobody has claimed.

use core::ptr::{NonNull, null_mut};
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU64};

use spec::buffer::{PAGE, SLOTS_OFFSET, SPARE_WORDS_OFFSET, SpareWords};
use spec::names::{FileName, PROCESS_MASK, SANDBOX_SPARES, pid_of_spare};

use super::directory::{self, Scratch};
use super::spare_trbufs::has_keeper;
use super::{identity, shared_clock};
use crate::config::CONFIG;
use crate::process_state::{self, PROCESS};
use crate::sys::diagnostics::{Warning, errno_text, warn};
use crate::sys::path::{self, PATH_MAX};
use crate::sys::{Errno, Fd, Hold, SetOnce, parent_id, reserve_limit, unmap};

/// A trbuf that nobody had claimed when this process last tried; a null address if there is none here.
struct Spare {
    base: AtomicPtr<u8>,
    number: AtomicU8,
}

/// How many trbufs are made, unless memory is short.
const COUNT: usize = 15;
/// How many by a process that was forked from a recorded one which lives, as a server's for one connection: it seldom has children, and
/// nobody can remove what it has made.
const COUNT_OF_FORKED: usize = 3;
/// Bytes of slots that each has at most, unless two need more; and how many slots at most.
const SLOTS_SIZE: usize = 6 << 20;
const SLOTS_MAX: usize = 32;

static SPARES: [Spare; COUNT] = [const { Spare { base: AtomicPtr::new(null_mut()), number: AtomicU8::new(0) } }; COUNT];
/// The page of counts; null until this process, or one that it was forked from, has made it.
static PAGE_OF_COUNTS: Spare = Spare { base: AtomicPtr::new(null_mut()), number: AtomicU8::new(0) };
/// The directory where they are, and how their maker sees it, device and inode; and the maker's PID namespace, 0 if unknown. A
/// process may go on in a subdirectory.
static PATH: SetOnce<[u8; PATH_MAX]> = SetOnce::new([0; PATH_MAX]);
static DIRECTORY: [AtomicU64; 2] = [AtomicU64::new(0), AtomicU64::new(0)];
static NAMESPACE: AtomicU64 = AtomicU64::new(0);
/// The number by which the maker's files are known.
static MAKER: AtomicU64 = AtomicU64::new(0);
/// This process, or one that it was forked from, has been given another ID than the kernel shows it.
static IS_RENUMBERED: AtomicBool = AtomicBool::new(false);

static SCRATCH: SetOnce<Scratch> = SetOnce::new(Scratch::new());
/// The right to use it.
static WORKING: Hold = Hold::new();

/// A trbuf that is this process's from now on.
pub struct ClaimedSpare {
    pub base: NonNull<u8>,
    pub slots: usize,
}

/// How many slots each has.
fn slots() -> usize {
    (SLOTS_SIZE / CONFIG.get().layout.slot_size()).clamp(2, SLOTS_MAX)
}

fn size() -> usize {
    SLOTS_OFFSET + slots() * CONFIG.get().layout.slot_size()
}

/// Makes the trbufs, unless this process has some. The directory must have been resolved.
pub fn make() {
    if !PAGE_OF_COUNTS.base.load(Relaxed).is_null() || !WORKING.take() {
        return;
    }
    // SAFETY: WORKING excludes all others.
    let scratch = unsafe { SCRATCH.get_mut() };
    // SAFETY: as above, and nobody reads it before there is a page.
    let directory = path::join(unsafe { PATH.get_mut() }, &[directory::path()]);
    if let Ok(stat) = path::stat(directory) {
        let mut numbers = SANDBOX_SPARES;
        let page = make_next(&mut scratch.path, &mut numbers, PAGE);
        if let Some((page, number)) = page {
            // Children cannot read its file.
            shared_clock::share(scratch);
            DIRECTORY.iter().zip([stat.st_dev, stat.st_ino]).for_each(|(word, value)| word.store(value, Relaxed));
            NAMESPACE.store(identity::pid_namespace(), Relaxed);
            let _ = identity::boot_id();
            MAKER.store(process_state::id().into(), Relaxed);
            PROCESS.has_made_spares.store(1, Relaxed);
            let count = if has_keeper() { COUNT_OF_FORKED } else { COUNT };
            for spare in SPARES.iter().take(count.min(reserve_limit() / size())) {
                let Some((base, number)) = make_next(&mut scratch.path, &mut numbers, size()) else { break };
                spare.number.store(number, Relaxed);
                spare.base.store(base, Release);
            }
            PAGE_OF_COUNTS.number.store(number, Relaxed);
            PAGE_OF_COUNTS.base.store(page, Release);
        }
    }
    WORKING.release();
}

fn path_of(buffer: &mut [u8; PATH_MAX], maker: u32, number: u8) -> &core::ffi::CStr {
    let directory = path::in_buffer(PATH.get()).to_bytes();
    path::trace_file(buffer, directory, FileName::Spare { process: maker & PROCESS_MASK, number })
}

/// Makes and maps a file with the next free one of `numbers`, sparse but for its first page.
fn make_next(
    buffer: &mut [u8; PATH_MAX],
    numbers: &mut impl Iterator<Item = u8>,
    size: usize,
) -> Option<(*mut u8, u8)> {
    for number in numbers {
        let path = path_of(buffer, process_state::id(), number);
        let fd = match Fd::create(path, libc::O_RDWR) {
            Ok((fd, _)) => fd,
            // Another process's: of another PID namespace, or one that was killed.
            Err(Errno(libc::EEXIST)) => continue,
            Err(_) => return None,
        };
        let mapped = fd.reserve(0, PAGE as u64).and_then(|()| fd.truncate(size as u64)).and_then(|()| fd.map(0, size));
        return match mapped {
            Ok(base) => Some((base, number)),
            Err(_) => {
                let _ = path::unlink(path);
                None
            }
        };
    }
    None
}

fn words(base: *mut u8, offset: usize) -> &'static SpareWords {
    // SAFETY: the callers' mappings, whose first page is there; every pattern of bytes is valid.
    unsafe { &*base.wrapping_add(offset).cast::<SpareWords>() }
}

/// Takes a trbuf from the common ones, for good.
fn take(spare: &Spare) -> Option<NonNull<u8>> {
    let base = NonNull::new(spare.base.swap(null_mut(), Acquire))?;
    // OBSERVABLE: it is this process's.
    let claimed = words(base.as_ptr(), SPARE_WORDS_OFFSET).claimed.compare_exchange(0, 1, AcqRel, Relaxed).is_ok();
    if !claimed {
        // Another process's: it is none of this one's business.
        // SAFETY: a mapping of this module's, which nobody else in this process has got.
        unsafe { unmap(base.as_ptr(), size()) };
    }
    claimed.then_some(base)
}

/// Why this process can make no files, as far as that shows without trying: the directory is not where it was. The name may
/// lead to another one in a new root.
pub fn hindrance() -> Option<Errno> {
    if PAGE_OF_COUNTS.base.load(Acquire).is_null() {
        return None;
    }
    match path::stat(path::in_buffer(PATH.get())) {
        Ok(stat) if [stat.st_dev, stat.st_ino] == DIRECTORY.each_ref().map(|word| word.load(Relaxed)) => None,
        Ok(_) => Some(Errno(libc::ENOENT)),
        Err(errno) => Some(errno),
    }
}

/// Lets this process, which cannot make files because of `cause`, record in a trbuf that was made before, if there is one
/// left; and be counted if there is none. `None` also if none have been made: then it is not [`process_state::sandboxed`].
pub fn claim(cause: Errno) -> Option<ClaimedSpare> {
    let page = PAGE_OF_COUNTS.base.load(Acquire);
    if page.is_null() {
        return None;
    }
    PROCESS.sandboxed.store(cause.0 as u32, Relaxed);
    let claimed = SPARES.iter().find_map(|spare| take(spare).map(|base| (base, spare.number.load(Relaxed))));
    let Some((base, number)) = claimed else {
        words(page, 0).processes.fetch_add(1, Relaxed);
        return None;
    };
    if !knows_own_id() {
        IS_RENUMBERED.store(true, Relaxed);
        let number = FileName::number_of_spare(MAKER.load(Relaxed) as u32, number);
        PROCESS.recorded_id.store(pid_of_spare(number), Relaxed);
    }
    Some(ClaimedSpare { base, slots: slots() })
}

/// Whether the kernel shows this process the ID by which its maker's PID namespace knows it.
fn knows_own_id() -> bool {
    let (own, makers) = (identity::pid_namespace(), NAMESPACE.load(Relaxed));
    if PROCESS.has_made_spares.load(Relaxed) != 0 {
        return true;
    }
    if own != 0 && makers != 0 {
        return own == makers;
    }
    let parent = parent_id();
    let is_same = if process_state::may_renumber() {
        // Its parent has another ID, or none, in another namespace. Or it has ended: that is not known here.
        parent == PROCESS.unrecorded_parent.load(Relaxed)
    } else {
        // An inlined system call makes the first process of a namespace, or one whose parent is outside.
        process_state::id() != 1 && parent != 0
    };
    is_same && !IS_RENUMBERED.load(Relaxed)
}

/// Counts records of a process without a trbuf, or of a thread without a slot. `since`: the time of the first, nanoseconds
/// since the Epoch.
pub fn count_losses(records: u32, cause: Errno, since: u64) {
    let page = PAGE_OF_COUNTS.base.load(Acquire);
    if !page.is_null() {
        let words = words(page, 0);
        let _ = words.since.compare_exchange(0, since, Relaxed, Relaxed);
        words.cause.store(cause.0 as u32, Relaxed);
        words.lost.fetch_add(records.into(), Relaxed);
    }
}

/// Lets this process, which forbids itself more and more, have nothing of the others'.
pub fn give_up() {
    for spare in &SPARES {
        let base = spare.base.swap(null_mut(), Relaxed);
        if !base.is_null() {
            // SAFETY: a mapping of this module's, which nobody else in this process has got.
            unsafe { unmap(base, size()) };
        }
    }
}

/// Reports on stderr that the program which this process executes will not find the directory, if that is so. What it finds by
/// its name may be another one.
pub fn report_before_exec() {
    if let Some(errno) = hindrance() {
        let reason = errno_text(errno);
        let what: &[u8] = b"' from here, where another program is executed: ";
        warn(Warning::Directory, &[b"cannot write a trace to '", directory::path(), what, reason]);
    }
}

/// Removes what this process has made and nobody has claimed; `true` if it has made anything and can remove it.
pub fn remove_all() -> bool {
    if PROCESS.has_made_spares.load(Relaxed) == 0 || hindrance().is_some() || !WORKING.take() {
        return false;
    }
    // SAFETY: WORKING excludes all others.
    let scratch = unsafe { SCRATCH.get_mut() };
    let maker = MAKER.load(Relaxed) as u32;
    for spare in &SPARES {
        if let Some(base) = take(spare) {
            let _ = path::unlink(path_of(&mut scratch.path, maker, spare.number.load(Relaxed)));
            // SAFETY: as in `give_up`.
            unsafe { unmap(base.as_ptr(), size()) };
        }
    }
    let page = PAGE_OF_COUNTS.base.swap(null_mut(), Relaxed);
    if !page.is_null() {
        let has_losses = words(page, 0).lost.load(Relaxed) != 0;
        // SAFETY: as above.
        unsafe { unmap(page, PAGE) };
        let path = path_of(&mut scratch.path, maker, PAGE_OF_COUNTS.number.load(Relaxed));
        let has_no_writer = || Fd::open_trusted(path, libc::O_RDONLY).and_then(|(fd, ..)| fd.has_no_writer());
        // A child that lives may still count there.
        if !has_losses && has_no_writer() == Ok(true) {
            let _ = path::unlink(path);
        }
    }
    PROCESS.has_made_spares.store(0, Relaxed);
    WORKING.release();
    true
}
