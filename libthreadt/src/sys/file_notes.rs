//! Notes of the files that this library has open: each has its holder and its number.

use core::ffi::c_int;
use core::ptr;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, AtomicUsize};

use super::descriptor::{close, detach, leads_nowhere};
use super::hold::Holder;

/// No file is open yet, or any more.
pub(super) const NONE: i32 = -1;
/// The file is being opened: it may be open by any number.
pub(super) const OPENING: i32 = -2;
/// The file gets another number, which may be any, in place of `n`: this less `n`.
pub(super) const MOVING: i32 = -3;

/// The number that a file has for certain.
pub(super) fn known_number(noted: i32) -> Option<c_int> {
    match noted {
        0.. => Some(noted),
        ..=MOVING => Some(MOVING - noted),
        _ => None,
    }
}

#[derive(Debug)]
#[repr(align(64))]
pub struct Note {
    pub(super) holder: AtomicU64,
    /// The descriptor, [`NONE`], [`OPENING`], or from [`MOVING`] downwards.
    pub(super) number: AtomicI32,
    /// How often the note has been used.
    pub(super) uses: AtomicU32,
    /// The file's inode number; 0 while it is not known.
    pub(super) inode: AtomicU64,
    /// The number is not the holder's any more ([`Note::disown`]).
    pub(super) is_disowned: AtomicBool,
    /// The number leads nowhere any more ([`Note::detach`]).
    pub(super) is_detached: AtomicBool,
    /// Where the stack is of a call, in a handler that has interrupted the holder's work with the file, that closes descriptors or gives
    /// them to the program; 0 if there is none.
    pub(super) suspended_by: AtomicUsize,
    /// The holder has ended without closing what it had left (`left_files`).
    pub(super) is_left_behind: AtomicBool,
}

pub(super) const NOTES_MAX: usize = 128;
/// Files in use without a note, because more than [`NOTES_MAX`] were.
#[unsafe(link_section = "inherited")]
pub(super) static UNNOTED: AtomicU32 = AtomicU32::new(0);
#[unsafe(link_section = "inherited.notes")]
pub(super) static NOTES: [Note; NOTES_MAX] = [const {
    Note {
        holder: AtomicU64::new(0),
        number: AtomicI32::new(NONE),
        uses: AtomicU32::new(0),
        inode: AtomicU64::new(0),
        is_disowned: AtomicBool::new(false),
        is_detached: AtomicBool::new(false),
        suspended_by: AtomicUsize::new(0),
        is_left_behind: AtomicBool::new(false),
    }
}; NOTES_MAX];

/// Threads begin their search for a free note at one of so many places, by their LWP ID: so that threads that write at
/// the same time seldom meet, and that few notes are ever used.
pub const PLACES: usize = 16;
/// Bit n: note n has been used. The other notes need not be examined.
#[unsafe(link_section = "inherited")]
pub(super) static USED: [AtomicU64; NOTES_MAX / 64] = [const { AtomicU64::new(0) }; NOTES_MAX / 64];

/// What [`Note::begin`] returns where no note is free.
pub type NoteOrNone = Option<&'static Note>;

impl Note {
    /// To be called by the holder.
    pub(super) fn count_use(&self) {
        // Nobody else changes it: no addition that other threads could not interrupt, which takes longer.
        // ORDERING: Release; who sees it sees the holder.
        self.uses.store(self.uses.load(Relaxed).wrapping_add(1), Release);
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
        (self.index() % PLACES) as c_int
    }

    /// Which of the notes it is.
    pub(super) fn index(&'static self) -> usize {
        (ptr::from_ref(self).addr() - NOTES.as_ptr().addr()) / size_of::<Note>()
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

    /// Notes the number that the file has, or has kept, after [`Note::set_moving`] with the number `before`. `false` if it has been taken
    /// from the holder meanwhile: the note leads to it no more.
    pub(super) fn end_moving(&self, before: c_int, number: c_int) -> bool {
        // ORDERING: Release, as in `set_number`.
        self.number.compare_exchange(MOVING - before, number, Release, Relaxed).is_ok()
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

    /// Notes that the holder does not go on before the call whose stack is at `place` has returned: nobody waits for it.
    pub(super) fn suspend(&self, place: usize) {
        let _ = self.suspended_by.compare_exchange(0, place, SeqCst, Relaxed);
    }

    /// The call is about to return. One that has interrupted it has left the note as it was.
    pub(super) fn resume(&self, place: usize) {
        let _ = self.suspended_by.compare_exchange(place, 0, SeqCst, Relaxed);
    }

    pub(super) fn is_suspended(&self) -> bool {
        self.suspended_by.load(SeqCst) != 0
    }

    /// Lets others close what the holder, which is about to end, has left.
    pub(super) fn leave_behind(&self) {
        // ORDERING: Release pairs with the Acquire in `adopt`: the holder does nothing with the note afterwards.
        self.is_left_behind.store(true, Release);
    }

    /// Makes `heir` the holder if the last one has left the note behind; `false` if it has not, or another heir was quicker.
    pub(super) fn adopt(&self, heir: Holder) -> bool {
        let before = self.holder();
        self.is_left_behind()
            && self.is_left_behind.swap(false, Acquire)
            && before.is_some_and(|before| self.take_over(before, heir))
    }

    /// Makes `heir` the holder in place of one that has gone. Only one can close what that has left: the next thread may take the note as
    /// soon as it is free.
    pub(super) fn take_over(&self, gone: Holder, heir: Holder) -> bool {
        self.is_left_behind.store(false, Relaxed);
        self.holder.compare_exchange(gone.word(), heir.word(), Acquire, Relaxed).is_ok()
    }

    pub(super) fn is_left_behind(&self) -> bool {
        self.is_left_behind.load(Relaxed)
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
