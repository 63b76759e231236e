//! Which number a file has: it may get another one, and the host may take the one that it has.

use core::ffi::c_int;

use super::call::{Errno, Result, call};
use super::descriptor::{close, leads_nowhere};
use super::fd::Fd;
use super::file_notes::{Note, PLACES};
use super::host_numbers;
use super::open_files;
use super::opened_before;

impl Fd {
    /// The same file by a number that the host's next files do not get ([`Fd::keep_apart`]). `EBADF` if the host has taken
    /// the number that it had.
    pub(super) fn kept_apart(mut self) -> Result<Fd> {
        if self.keep_apart() { Ok(self) } else { self.unless_replaced() }
    }

    /// The same, or `EBADF` if the host has taken its number.
    pub(super) fn unless_replaced(self) -> Result<Fd> {
        if self.was_replaced() {
            self.forget();
            return Err(Errno(libc::EBADF));
        }
        Ok(self)
    }

    /// Gives the descriptor a number that the host's next files do not get: the kernel gives them the lowest free one. A
    /// host thread that closes descriptors that are not its own then does not meet ours by the number of its next file;
    /// nor do two threads of ours, which have different notes and so begin at different numbers.
    ///
    /// The kernel's table does not grow for that: to let it grow takes milliseconds in a process of several threads.
    ///
    /// Returns whether it has got another number: then the host had not taken the one before.
    pub fn keep_apart(&mut self) -> bool {
        let least = open_files::table_size(self.number) - PLACES as c_int;
        let place = self.note.map(Note::place).filter(|_| self.number < least);
        place.is_some_and(|place| self.move_to(least + place, false).is_ok())
    }

    /// Whether the number now is that of a file of the host's.
    pub fn was_replaced(&self) -> bool {
        self.is_disowned() || !open_files::is_marked(self.number)
    }

    /// Whether the number is certainly that of a file of the host's.
    pub fn is_hosts(&self) -> bool {
        open_files::is_foreign(self.number)
    }

    /// Leaves the number to the host, whose it has become; or closes it where it leads nowhere, in a forked child.
    pub fn forget(self) {
        self.close_if_detached();
        Note::end(self.note);
        core::mem::forget(self);
    }

    fn close_if_detached(&self) {
        if let Some(note) = self.note.filter(|_| !self.is_disowned()) {
            note.close_if_detached(self.number);
        }
    }

    pub(super) fn note_number(&self) {
        opened_before::add_number(self.number);
        if let Some(note) = self.note {
            note.set_number(self.number);
        }
    }

    /// Changes the number to one from `least` on; unless it has to be, only if the host changes none at this moment.
    pub(super) fn move_to(&mut self, least: c_int, has_to_be: bool) -> Result {
        let before = self.number;
        let lwp = self.note.map_or(0, Note::lwp);
        if let Some(note) = self.note {
            note.set_moving(before);
        }
        // The host may have taken the number before it was noted.
        let moved = if self.was_replaced() || !has_to_be && host_numbers::is_announced(lwp) {
            Err(Errno(libc::EBADF))
        } else {
            self.duplicate(least)
        };
        if let Ok(moved) = moved {
            self.number = moved;
            // The host may have taken the number just now.
            if !self.is_disowned() && self.is_still_at(before) {
                close(before);
            }
        }
        opened_before::add_number(self.number);
        if let Some(note) = self.note
            && !note.end_moving(before, self.number)
            && moved.is_ok()
            && note.lwp() == lwp
        {
            // A handler has closed the other number, and could not know this one. In a child that shares the table it is the parent's.
            note.close_unless_replaced(self.number);
        }
        moved.map(drop)
    }

    /// Another number of the file, from `least` on. `EBADF` if the host has taken the one that it has.
    fn duplicate(&self, mut least: c_int) -> Result<c_int> {
        let lwp = self.note.map_or(0, Note::lwp);
        loop {
            let arguments = [self.for_call(), libc::F_DUPFD_CLOEXEC as usize, least as usize];
            // SAFETY: no memory is involved.
            let duplicate = unsafe { call(libc::SYS_fcntl, arguments) };
            // The process may have no such number.
            let or_too_many = |errno| if errno == Errno(libc::EINVAL) { Errno(libc::EMFILE) } else { errno };
            let duplicate = duplicate.map_err(or_too_many)? as c_int;
            let is_file = self.is_still_at(duplicate);
            if is_file && !host_numbers::is_avoided(duplicate, lwp) {
                return Ok(duplicate);
            }
            close(duplicate);
            if !is_file {
                // It was the host's.
                return Err(Errno(libc::EBADF));
            }
            least = duplicate + 1;
        }
    }

    /// Whether a number that it has had is not one of the host's now.
    pub(super) fn is_still_at(&self, number: c_int) -> bool {
        open_files::is_marked(number) || self.note.is_some_and(Note::is_detached) && leads_nowhere(number)
    }
}
