//! Which descriptors are this library's, so that what a jump or a fork leaves open can be found and closed.
//!
//! Each open file has a *note* with its holder and its number. A jump out of a signal handler leaves the note; the same
//! thread finds it at its next write ([`close_abandoned`]). What other threads have open when the kernel copies the table of
//! descriptors is open in the copy (`copied_files`).
//!
//! A number alone proves nothing: the host may have closed it and got it for a file of its own. So every file is opened
//! with flags that hardly a program gives for a regular file or a directory ([`MARK`]): `O_ASYNC` does nothing there, but the
//! kernel keeps it, and it cannot be set later. And only what this library has opened at some time (`opened_before`) is closed.

use core::ffi::c_int;
use core::ptr;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64};

use super::call::call;
use super::descriptor::{close, control, detach, leads_nowhere, stat};
use super::descriptor_table;
use super::hold::Holder;
use super::opened_before::used_numbers;
use super::standard_numbers;
use super::time::sleep;

/// What all files of this library are opened with.
pub const MARK: c_int = libc::O_ASYNC | libc::O_NONBLOCK;

/// No file is open yet, or any more.
const NONE: i32 = -1;
/// The file is being opened: it may be open by any number.
const OPENING: i32 = -2;
/// The file gets another number, which may be any, in place of `n`: this less `n`.
const MOVING: i32 = -3;

/// The number that a file has for certain.
fn known_number(noted: i32) -> Option<c_int> {
    match noted {
        0.. => Some(noted),
        ..=MOVING => Some(MOVING - noted),
        _ => None,
    }
}

#[derive(Debug)]
#[repr(align(64))]
pub struct Note {
    holder: AtomicU64,
    /// The descriptor, [`NONE`], [`OPENING`], or from [`MOVING`] downwards.
    number: AtomicI32,
    /// How often the note has been used.
    uses: AtomicU32,
    /// The file's inode number; 0 while it is not known.
    inode: AtomicU64,
    /// The number is not the holder's any more ([`Note::disown`]).
    is_disowned: AtomicBool,
    /// The number leads nowhere any more ([`Note::detach`]).
    is_detached: AtomicBool,
}

const NOTES_MAX: usize = 128;
/// Files in use without a note, because more than [`NOTES_MAX`] were.
#[unsafe(link_section = "inherited")]
static UNNOTED: AtomicU32 = AtomicU32::new(0);
#[unsafe(link_section = "inherited.notes")]
static NOTES: [Note; NOTES_MAX] = [const {
    Note {
        holder: AtomicU64::new(0),
        number: AtomicI32::new(NONE),
        uses: AtomicU32::new(0),
        inode: AtomicU64::new(0),
        is_disowned: AtomicBool::new(false),
        is_detached: AtomicBool::new(false),
    }
}; NOTES_MAX];

/// Threads begin their search for a free note at one of so many places, by their LWP ID: so that threads that write at
/// the same time seldom meet, and that few notes are ever used.
pub const PLACES: usize = 16;
/// Bit n: note n has been used. The other notes need not be examined.
#[unsafe(link_section = "inherited")]
static USED: [AtomicU64; NOTES_MAX / 64] = [const { AtomicU64::new(0) }; NOTES_MAX / 64];

/// What [`Note::begin`] returns where no note is free.
pub type NoteOrNone = Option<&'static Note>;

impl Note {
    /// Notes that the thread `lwp`, with its stack at `place`, is about to open a file with this inode number (0 if that
    /// is not known).
    pub fn begin(lwp: u32, place: usize, inode: u64) -> NoteOrNone {
        let new = Holder::new(lwp, place).word();
        let notes = || (0..NOTES_MAX).map(|index| (lwp as usize % PLACES + index) % NOTES_MAX);
        // ORDERING: SeqCst, and so the count of the files without a note: see `file_size`.
        let take = |&index: &usize| {
            let (word, bit) = (&USED[index / 64 % USED.len()], 1 << (index % 64));
            if word.load(Relaxed) & bit == 0 {
                word.fetch_or(bit, SeqCst);
            }
            NOTES[index % NOTES_MAX].holder.compare_exchange(0, new, SeqCst, Relaxed).is_ok()
        };
        // Whether a thread has gone is asked only if no note is free: the answer takes system calls.
        let reclaim = |&index: &usize| {
            let note = &NOTES[index % NOTES_MAX];
            let holder = Holder::from_word(note.holder.load(Relaxed));
            let is_gone = |holder: Holder| holder.lwp() != lwp && holder.is_abandoned(lwp, place);
            holder.is_none_or(|holder| is_gone(holder) && note.reclaim(&is_gone))
        };
        let free = notes().find(take).or_else(|| notes().find(|index| reclaim(index) && take(index)));
        if let Some(note) = free.map(|index| &NOTES[index % NOTES_MAX]) {
            note.count_use();
            note.inode.store(inode, Relaxed);
            note.is_disowned.store(false, Relaxed);
            note.is_detached.store(false, Relaxed);
            // ORDERING: Release; a child that finds the file open finds this, or the number.
            note.number.store(OPENING, Release);
            return Some(note);
        }
        UNNOTED.fetch_add(1, SeqCst);
        None
    }

    /// To be called by the holder.
    fn count_use(&self) {
        // Nobody else changes it: no addition that other threads could not interrupt, which takes longer.
        self.uses.store(self.uses.load(Relaxed).wrapping_add(1), Relaxed);
    }

    /// Closes what the holder, which has left it, may have open, and frees the note. `false` if that cannot be told from
    /// what other threads are opening at this moment. `is_left` says of which other holders nothing goes on.
    fn reclaim(&self, is_left: &dyn Fn(Holder) -> bool) -> bool {
        let word = self.holder.load(Relaxed);
        let number = self.number.load(Acquire);
        if let Some(number) = known_number(number) {
            self.close_if_detached(number);
        }
        let closed = match number {
            NONE => true,
            // In a table that another process uses, too, what nobody has noted here may be that one's.
            ..=OPENING if !descriptor_table::may_be_shared() => self.close_orphans(used_numbers(), is_left),
            number => self.close_orphans(known_number(number).into_iter(), is_left),
        };
        if closed {
            self.number.store(NONE, Relaxed);
            return self.holder.compare_exchange(word, 0, Release, Relaxed).is_ok();
        }
        false
    }

    /// Closes those of these numbers that are files of this library which no other note has.
    fn close_orphans(&self, numbers: impl Iterator<Item = c_int>, is_left: &dyn Fn(Holder) -> bool) -> bool {
        // A number that another thread is about to note looks like an orphan. If nothing has been opened between two
        // looks at the notes, and nothing is being opened, it is one; and until it is closed nobody else can get it.
        let is_orphan = |number: c_int, inode: u64| {
            self.others().all(|other| {
                let known = other.inode.load(Relaxed);
                match other.number.load(Acquire) {
                    ..=OPENING => {
                        known != 0 && known != inode
                            || Holder::from_word(other.holder.load(Relaxed)).is_none_or(is_left)
                    }
                    noted => noted != number,
                }
            })
        };
        let wanted = self.inode.load(Relaxed);
        let mut certain = true;
        for number in numbers {
            let uses = uses();
            let Some(inode) = marked_inode(number).filter(|inode| wanted == 0 || wanted == *inode) else { continue };
            if self.others().any(|other| other.known_number() == Some(number)) {
                // The other one's may be a number of another table.
                certain &= !descriptor_table::may_differ();
                continue;
            }
            if is_orphan(number, inode) && uses == self::uses() && UNNOTED.load(Acquire) == 0 {
                close(number);
            } else {
                certain = false;
            }
        }
        certain
    }

    /// The notes of other files that may be open.
    pub(super) fn others(&self) -> impl Iterator<Item = &'static Note> {
        used_notes().filter(|note| !ptr::eq(*note, self) && note.holder.load(Acquire) != 0)
    }

    /// The thread that has it.
    pub fn lwp(&self) -> u32 {
        Holder::from_word(self.holder.load(Relaxed)).map_or(0, Holder::lwp)
    }

    /// A number below [`PLACES`] that few other notes have at a time, and none as long as no more are in use.
    pub fn place(&'static self) -> c_int {
        (ptr::from_ref(self).addr() - NOTES.as_ptr().addr()) as c_int / size_of::<Note>() as c_int % PLACES as c_int
    }

    /// Notes which file it is, once it is known.
    pub fn set_inode(&self, inode: u64) {
        self.inode.store(inode, Relaxed);
    }

    /// Notes the number of the opened file.
    pub fn set_number(&self, number: c_int) {
        // ORDERING: Release; whoever sees the number finds it among the used ones.
        self.number.store(number, Release);
    }

    /// Notes that the file may get another number than `number`, which it has until then.
    pub fn set_moving(&self, number: c_int) {
        self.count_use();
        // ORDERING: SeqCst: see `host_numbers`.
        self.number.store(MOVING - number, SeqCst);
    }

    /// The number that the file has for certain, also one that it is about to give up.
    pub(super) fn known_number(&self) -> Option<c_int> {
        known_number(self.number.load(Acquire))
    }

    /// Whether the file is being opened, or moved, so that it may have a number that is not noted.
    pub(super) fn is_opening(&self) -> bool {
        self.holder.load(Acquire) != 0 && self.number.load(Acquire) <= OPENING
    }

    /// Whether the file is open by this number or, as far as the note shows, may be.
    pub(super) fn may_have(&self, number: c_int) -> bool {
        match self.number.load(Acquire) {
            ..=OPENING => true,
            noted => noted == number,
        }
    }

    /// The holder.
    pub(super) fn holder(&self) -> Option<Holder> {
        Holder::from_word(self.holder.load(Acquire))
    }

    /// The file's inode number; 0 while it is not known.
    pub(super) fn inode(&self) -> u64 {
        self.inode.load(Relaxed)
    }

    /// Makes `holder` the one that has it, in a forked child.
    pub(super) fn hand_on(&self, holder: Holder) {
        self.holder.store(holder.word(), Relaxed);
    }

    /// Lets the holder go on without its file, which is open for others or not at all: whatever it does with it from now on
    /// fails with `EBADF`, and it closes nothing.
    pub(super) fn disown(&self) {
        self.is_disowned.store(true, Relaxed);
        self.number.store(NONE, Relaxed);
    }

    pub fn is_disowned(&self) -> bool {
        self.is_disowned.load(Relaxed)
    }

    /// Lets the number, which is the file's, lead nowhere ([`detach`]): what the holder does with it fails with `EBADF`.
    pub(super) fn detach(&self, number: c_int) {
        self.is_detached.store(true, Relaxed);
        detach(number);
    }

    /// Whether the number leads nowhere, as far as this library knows.
    pub fn is_detached(&self) -> bool {
        self.is_detached.load(Relaxed)
    }

    /// Closes the number if it leads nowhere: nobody else has opened a file by it since.
    pub(super) fn close_if_detached(&self, number: c_int) {
        if self.is_detached() && leads_nowhere(number) {
            self.is_detached.store(false, Relaxed);
            close(number);
        }
    }

    /// Forgets the file, in a forked child.
    pub(super) fn forget(&self) {
        self.number.store(NONE, Relaxed);
        self.holder.store(0, Relaxed);
    }

    /// Frees the note: the file is closed, or was not opened.
    pub fn end(note: NoteOrNone) {
        match note {
            Some(note) => {
                note.number.store(NONE, Relaxed);
                note.holder.store(0, Release);
            }
            None => {
                UNNOTED.fetch_sub(1, Release);
            }
        }
    }
}

/// The notes that have been used.
pub(super) fn used_notes() -> impl Iterator<Item = &'static Note> {
    // ORDERING: SeqCst, as the holders.
    USED.iter().enumerate().flat_map(|(word, bits)| {
        core::iter::successors(Some(bits.load(SeqCst)), |bits| Some(bits & bits.wrapping_sub(1)))
            .take_while(|bits| *bits != 0)
            .map(move |bits| &NOTES[(64 * word + bits.trailing_zeros() as usize) % NOTES_MAX])
    })
}

/// How many files have been opened with a note.
fn uses() -> u32 {
    used_notes().fold(0, |sum, note| sum.wrapping_add(note.uses.load(Acquire)))
}

/// Whether a descriptor is one that this library has opened.
pub fn is_marked(number: c_int) -> bool {
    control(number, libc::F_GETFL) & MARK == MARK && control(number, libc::F_GETFD) & libc::FD_CLOEXEC != 0
}

/// Whether a descriptor is open and none of this library's.
pub fn is_foreign(number: c_int) -> bool {
    // SAFETY: no memory is involved.
    let flags = unsafe { call(libc::SYS_fcntl, [number as usize, libc::F_GETFL as usize]) };
    flags.is_ok_and(|flags| flags as c_int & MARK != MARK)
}

/// The inode number of the file behind a descriptor if it is this library's.
pub(super) fn marked_inode(number: c_int) -> Option<u64> {
    if !is_marked(number) {
        return None;
    }
    let stat = stat(number).ok()?;
    matches!(stat.st_mode & libc::S_IFMT, libc::S_IFREG | libc::S_IFDIR).then_some(stat.st_ino)
}

/// Closes what the thread `lwp` left open by jumping out of a signal handler. `here` is where its stack is; with `None` the
/// thread is about to end, and nothing of it goes on.
pub fn close_abandoned(lwp: u32, here: Option<usize>) {
    let is_left = |holder: Holder| holder.lwp() == lwp && here.is_none_or(|here| holder.is_abandoned(lwp, here));
    for note in used_notes() {
        if Holder::from_word(note.holder.load(Relaxed)).is_some_and(is_left) {
            note.reclaim(&is_left);
        }
    }
    standard_numbers::close_abandoned(is_left);
}

/// Waits, up to a second, until no file is open that another thread has open now, so that each write that it was about to
/// make is done. What the calling thread `lwp` at `here` was about to write when a signal handler interrupted it fails
/// with `EBADF`: the handler would wait for ever ([`detach`]).
pub fn finish_writes(lwp: u32, here: usize) {
    close_abandoned(lwp, Some(here));
    let mut patience = 10_000;
    let mut wait_until = |is_done: &dyn Fn() -> bool| {
        while !is_done() && patience != 0 {
            patience -= 1;
            sleep(100_000);
        }
    };
    for note in used_notes() {
        let (uses, holder) = (note.uses.load(Acquire), note.holder.load(SeqCst));
        if holder == 0 {
            continue;
        }
        if note.lwp() != lwp {
            wait_until(&|| note.holder.load(Acquire) != holder || note.uses.load(Acquire) != uses);
            continue;
        }
        if let Some(number) = known_number(note.number.load(Relaxed))
            && is_marked(number)
            && control(number, libc::F_GETFL) & libc::O_ACCMODE != libc::O_RDONLY
        {
            note.detach(number);
        }
    }
    wait_until(&|| UNNOTED.load(SeqCst) == 0);
}

/// Whether a number that `is_meant` is that of a file which a thread has open for whom `is_asked`; or may become that of one,
/// if `opening` ones count.
pub fn may_be_open(is_meant: impl Fn(c_int) -> bool, is_asked: impl Fn(u32) -> bool, opening: bool) -> bool {
    used_notes().any(|note| {
        // ORDERING: SeqCst: see `host_numbers`.
        let noted = note.number.load(SeqCst);
        let is_here = |number: c_int| is_meant(number) && (!descriptor_table::may_differ() || is_marked(number));
        let is_concerned = known_number(noted).is_some_and(is_here) || noted < 0 && opening;
        is_concerned && note.holder.load(SeqCst) != 0 && is_asked(note.lwp())
    })
}

/// Whether files are open without a note.
pub fn has_unnoted() -> bool {
    UNNOTED.load(SeqCst) != 0
}

/// Forgets files without a note, in a forked child.
pub(super) fn forget_unnoted() {
    UNNOTED.store(0, Relaxed);
}
