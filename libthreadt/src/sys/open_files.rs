//! Which descriptors are this library's, so that what a jump or a fork leaves open can be found and closed.
//!
//! Each open file has a *note* with its holder and its number. A jump out of a signal handler leaves the note; the same
//! thread finds it at its next write (`left_files`). What other threads have open when the kernel copies the table of
//! descriptors is open in the copy (`copied_files`).
//!
//! A number alone proves nothing: the host may have closed it and got it for a file of its own. So every file is opened
//! with flags that hardly a program gives for a regular file or a directory ([`MARK`]): `O_ASYNC` does nothing there, but the
//! kernel keeps it, and it cannot be set later. And only what this library has opened at some time (`opened_before`) is closed.

use core::ffi::c_int;
use core::sync::atomic::AtomicBool;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

use super::call::call;
use super::descriptor::{close, control, is_open, stat};
use super::descriptor_table;
use super::file_notes::{
    NONE, NOTES, NOTES_MAX, Note, NoteOrNone, OPENING, PLACES, UNNOTED, USED, known_number, used_notes,
};
use super::hold::Holder;
use super::opened_before::{greatest_number, has_opened, used_numbers};
use super::process::marker_exists;
use super::time::sleep;

/// What all files of this library are opened with.
pub const MARK: c_int = libc::O_ASYNC | libc::O_NONBLOCK;

/// A thread has left an open file by a jump, in this process or in one that it was forked from.
static ARE_LEFT: AtomicBool = AtomicBool::new(false);

/// Whether threads of this program leave writes by jumps out of signal handlers, as far as was seen.
pub fn are_left() -> bool {
    ARE_LEFT.load(Relaxed)
}

impl Note {
    /// Notes that the thread `lwp`, with its stack at `place`, is about to open a file with this inode number (0 if that
    /// is not known).
    pub fn begin(lwp: u32, place: usize, inode: u64) -> NoteOrNone {
        let me = Holder::new(lwp, place);
        let notes = || (0..NOTES_MAX).map(|index| (lwp as usize % PLACES + index) % NOTES_MAX);
        // ORDERING: SeqCst, and so the count of the files without a note: see `file_size`.
        let take = |&index: &usize| {
            let (word, bit) = (&USED[index / 64 % USED.len()], 1 << (index % 64));
            if word.load(Relaxed) & bit == 0 {
                word.fetch_or(bit, SeqCst);
            }
            NOTES[index % NOTES_MAX].holder.compare_exchange(0, me.word(), SeqCst, Relaxed).is_ok()
        };
        // Whether a thread has gone is asked only if no note is free: the answer takes system calls.
        let reclaim = |&index: &usize| {
            let note = &NOTES[index % NOTES_MAX];
            let holder = Holder::from_word(note.holder.load(Relaxed));
            let is_gone = |holder: Holder| holder.lwp() != lwp && holder.is_abandoned(lwp, place);
            holder.is_none_or(|holder| is_gone(holder) && note.take_over(holder, me) && note.reclaim(&is_gone))
        };
        let free = notes().find(take).or_else(|| notes().find(|index| reclaim(index) && take(index)));
        if let Some(note) = free.map(|index| &NOTES[index % NOTES_MAX]) {
            note.count_use();
            note.inode.store(inode, Relaxed);
            note.is_disowned.store(false, Relaxed);
            note.is_detached.store(false, Relaxed);
            note.suspended_by.store(0, Relaxed);
            note.is_left_behind.store(false, Relaxed);
            // ORDERING: Release; a child that finds the file open finds this, or the number.
            note.number.store(OPENING, Release);
            return Some(note);
        }
        UNNOTED.fetch_add(1, SeqCst);
        None
    }

    /// Closes what the holder, which has left it, may have open, and frees the note. `false` if that cannot be told from
    /// what other threads are opening at this moment. `is_left` says of which other holders nothing goes on.
    pub(super) fn reclaim(&self, is_left: &dyn Fn(Holder) -> bool) -> bool {
        if !are_left() {
            ARE_LEFT.store(true, Relaxed);
        }
        let word = self.holder.load(Relaxed);
        let number = self.number.load(Acquire);
        if let Some(number) = known_number(number) {
            self.close_if_detached(number);
        }
        let closed = match number {
            NONE => true,
            // In a table that another process uses, too, what nobody has noted here may be that one's.
            ..=OPENING if !descriptor_table::may_be_shared() => match self.inode() {
                0 => self.close_orphans(used_numbers(), is_left),
                _ => self.close_orphans(possible_numbers(), is_left),
            },
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
        // A number that another thread is about to note looks like an orphan. If nothing that may be this file has been opened between two
        // looks at the notes, and nothing is being opened, it is one; and until it is closed nobody else can get it.
        let is_over = |holder: Holder| is_left(holder) || !marker_exists(holder.lwp());
        let is_over = |note: &Note| note.is_left_behind() || note.holder().is_none_or(is_over);
        // Who has left the closing of a file by a jump has noted what is another file's number by now.
        let has_another = |other: &Note, inode: u64| ![0, inode].contains(&other.inode());
        let is_orphan = |number: c_int, inode: u64| {
            self.others().all(|other| match other.number.load(Acquire) {
                _ if has_another(other, inode) => true,
                ..=OPENING => is_over(other),
                noted => noted != number,
            })
        };
        let wanted = self.inode.load(Relaxed);
        let mut certain = true;
        for number in numbers {
            let openings = openings(wanted);
            // A program may give its own files such flags. Where it is not known which file was being opened it may be none.
            let may_be_it = |inode: &u64| if wanted == 0 { has_opened(*inode) } else { wanted == *inode };
            let Some(inode) = marked_inode(number).filter(may_be_it) else { continue };
            if self.others().any(|other| other.known_number() == Some(number) && !has_another(other, inode)) {
                // The other one's may be a number of another table.
                certain &= !descriptor_table::may_differ();
                continue;
            }
            if is_orphan(number, inode) && openings == self::openings(wanted) && UNNOTED.load(Acquire) == 0 {
                close(number);
            } else {
                certain = false;
            }
        }
        certain
    }

    /// Closes the file, if its number is known and `is_meant`, and takes it from the holder, a thread that a handler has interrupted.
    pub(super) fn disown_if(&self, is_meant: impl Fn(c_int) -> bool) {
        if let Some(number) = self.known_number().filter(|number| is_meant(*number)) {
            self.disown();
            self.close_unless_replaced(number);
        }
    }

    /// Closes the number, which was that of the file. The program may have closed it, and it or another thread have got the number.
    pub(super) fn close_unless_replaced(&self, number: c_int) {
        if is_marked(number) && self.others().all(|other| other.known_number() != Some(number)) {
            close(number);
        }
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

/// A number that differs when a file has been opened with a note since: one that may have this inode number, where that is not 0.
fn openings(inode: u64) -> u64 {
    let may_be_it = |note: &&Note| {
        let known = note.inode.load(Relaxed);
        inode == 0 || known == 0 || known == inode
    };
    // Which notes these are may change, too.
    used_notes().filter(may_be_it).fold(0, |all: u64, note| {
        let word = (core::ptr::from_ref(note).addr() as u64) << 32 | u64::from(note.uses.load(Acquire));
        (all ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    })
}

/// How large the kernel's table is at least where there is a descriptor `number`. From 128 on the sizes are powers of two.
pub fn table_size(number: c_int) -> c_int {
    (number as u32 + 1).max(64).next_power_of_two() as c_int
}

/// The numbers that a file may have which the kernel has just opened by the least that was free, or which was just kept apart: also one that
/// this library has not had before.
fn possible_numbers() -> impl Iterator<Item = c_int> {
    /// Of a program with more open files those above are not looked at.
    const NUMBERS_MAX: c_int = 8192;
    let table = table_size(greatest_number());
    (0..NUMBERS_MAX).take_while(move |number| *number < table || is_open(*number))
}

/// Whether a descriptor is one that this library has opened.
pub fn is_marked(number: c_int) -> bool {
    control(number, libc::F_GETFL) & MARK == MARK && control(number, libc::F_GETFD) & libc::FD_CLOEXEC != 0
}

/// Whether a descriptor is open and, as far as can be told, that of a file which this library has opened, or is just opening.
pub fn is_ours(number: c_int) -> bool {
    let is_opening = |note: &Note| note.is_opening() && note.inode() == 0;
    marked_inode(number).is_some_and(|inode| has_opened(inode) || used_notes().any(is_opening))
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

/// Waits, up to a second, until no file is open that another thread has open now, so that each write that it was about to
/// make is done. What the calling thread `lwp` was about to write when a signal handler interrupted it fails with `EBADF`: the
/// handler would wait for ever ([`detach`]).
pub(super) fn wait_for_writes(lwp: u32) {
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
            let is_closed = || note.holder.load(Acquire) != holder || note.uses.load(Acquire) != uses;
            // A handler has interrupted its holder, too, and waits for others.
            wait_until(&|| is_closed() || note.is_detached() || note.is_disowned());
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

/// Calls `change`, which closes descriptors or gives them to the program, where nobody waits for a file that the thread `lwp`, the calling
/// one with its stack at `place`, has open meanwhile: a signal handler has interrupted it, and the file is closed only when that returns. If
/// `is_meant` says so of its number, it is closed now, and what was to be written is written to the file when it is open once more: the
/// number may be the program's then.
pub fn while_suspended<T>(lwp: u32, place: usize, is_meant: impl Fn(c_int) -> bool, change: impl FnOnce() -> T) -> T {
    let own = || used_notes().filter(|note| note.lwp() == lwp);
    for note in own() {
        note.suspend(place);
        note.disown_if(&is_meant);
    }
    let result = change();
    own().for_each(|note| note.resume(place));
    result
}

/// Whether a number that `is_meant` is that of a file which a thread has open for whom `is_asked`; or may become that of one,
/// if `opening` ones count.
pub fn may_be_open(is_meant: impl Fn(c_int) -> bool, is_asked: impl Fn(u32) -> bool, opening: bool) -> bool {
    used_notes().any(|note| {
        // ORDERING: SeqCst: see `host_numbers`.
        let noted = note.number.load(SeqCst);
        let is_here = |number: c_int| is_meant(number) && (!descriptor_table::may_differ() || is_marked(number));
        let is_concerned = known_number(noted).is_some_and(is_here) || noted < 0 && opening;
        is_concerned && note.holder.load(SeqCst) != 0 && !note.is_suspended() && is_asked(note.lwp())
    })
}

/// Which files have been opened, so that later ones are known: how often each note has been used, modulo 256.
pub struct Openings([u8; NOTES_MAX]);

impl Openings {
    /// Those so far.
    ///
    /// A thread that closes a number afterwards finds who has got that meanwhile: the kernel's table of descriptors has a lock, so that what an
    /// opener has written before it got the number is visible to who has closed that.
    #[inline]
    pub fn so_far() -> Openings {
        let mut uses = [0; NOTES_MAX];
        used_notes().for_each(|note| uses[note.index() % NOTES_MAX] = note.uses.load(Acquire) as u8);
        Openings(uses)
    }

    /// The notes of later files that are open, or are being opened.
    fn later(&self) -> impl Iterator<Item = &'static Note> {
        used_notes().filter(|note| self.is_later(note) && note.holder.load(SeqCst) != 0)
    }

    fn is_later(&self, note: &'static Note) -> bool {
        note.uses.load(Acquire) as u8 != self.0[note.index() % NOTES_MAX]
    }

    /// Whether a later file is open, or may be.
    #[inline]
    pub fn has_later(&self) -> bool {
        self.later().next().is_some() || has_unnoted()
    }

    /// Whether another thread than `lwp` has a later file, but none later than `end`, by this number, or, if `opening`, is about to get one by
    /// whatever number.
    pub fn later_may_have(&self, end: &Openings, number: c_int, lwp: u32, opening: bool) -> bool {
        let is_meant = |note: &&'static Note| !end.is_later(note) && note.lwp() != lwp && !note.is_suspended();
        self.later().filter(is_meant).any(|note| {
            let noted = note.number.load(SeqCst);
            known_number(noted) == Some(number) || noted < 0 && opening
        })
    }
}

/// Whether just one file is noted with this number, which has it still, and none is being opened that may get it.
pub fn is_kept(number: c_int) -> bool {
    let before = openings(0);
    let is_noted = |note: &&Note| {
        let noted = note.number.load(SeqCst);
        note.holder.load(SeqCst) != 0 && (noted < 0 || noted == number)
    };
    let mut noted = used_notes().filter(is_noted);
    let is_noted_once = noted.next().is_some_and(|note| note.number.load(SeqCst) == number) && noted.next().is_none();
    is_noted_once && !descriptor_table::may_be_shared() && is_marked(number) && !has_unnoted() && openings(0) == before
}

/// Whether files are open without a note.
pub fn has_unnoted() -> bool {
    UNNOTED.load(SeqCst) != 0
}

/// Forgets files without a note, in a forked child.
pub(super) fn forget_unnoted() {
    UNNOTED.store(0, Relaxed);
}
