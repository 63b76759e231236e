//! What is open in a copy of the table of descriptors: the kernel makes one for a forked child, and for a thread that leaves the
//! table of the others.
//!
//! It copies a child's table a little before the memory, and other threads go on while a thread leaves them. So a note may be
//! gone when the descriptor is not, and all numbers are examined that this library has ever had. They are few, because
//! numbers are used again.

use core::ffi::c_int;

use super::descriptor::{close, open_numbers};
use super::descriptor_table;
use super::file_notes::{Note, used_notes};
use super::hold::Holder;
use super::left_files::close_abandoned;
use super::open_files::{forget_unnoted, has_unnoted, marked_inode};
use super::opened_before::{self, used_numbers};
use super::standard_numbers;

/// In a forked child, which has this thread alone: closes what the parent's other threads had open. If a signal handler
/// forked, the thread goes on with what the handler interrupted, and closes its descriptor itself. Until then the
/// descriptor leads nowhere ([`Note::detach`]): the file is the parent's, which goes on as well.
/// `lwp` was the forking thread's, 0 if that is not known, and `here` is where the stack is; with `None` nothing of the thread goes on in
/// the child.
///
/// Where the child uses its parent's table, as may be known, nothing is closed, because all that is open there is the parent's.
pub fn close_inherited(lwp: u32, new_lwp: u32, here: Option<usize>, has_parents_table: Option<bool>) {
    let is_live_holder = |holder: Holder| match (here, lwp) {
        (None, _) => false,
        (Some(here), 0) => holder.is_interrupted_at(here),
        (Some(here), _) => holder.lwp() == lwp && !holder.is_abandoned(lwp, here),
    };
    let is_live = |note: &Note| note.holder().is_some_and(is_live_holder);
    // Before its first record the forking thread has no slot that shows which one it was, but the note does.
    let interrupted =
        || used_notes().filter_map(Note::holder).find(|holder| is_live_holder(*holder)).map_or(0, Holder::lwp);
    let is_parents = descriptor_table::is_parents(if lwp == 0 { interrupted() } else { lwp }, has_parents_table);
    standard_numbers::forget_inherited(is_live_holder, new_lwp, !is_parents);
    if !is_parents {
        close_copies(&is_live, Note::detach);
    }
    for note in used_notes() {
        match note.holder().filter(|_| is_live(note)) {
            None => note.forget(),
            Some(holder) => {
                note.hand_on(holder.of_thread(new_lwp));
                if is_parents {
                    note.disown();
                }
            }
        }
    }
    forget_unnoted();
}

/// Calls `leave`, by which the thread `lwp`, the calling one with its stack at `here`, leaves the table of the other threads if
/// it returns `true`: what they have open it closes in its own. What a signal handler has interrupted in this thread fails with
/// `EBADF`, and is closed before: nobody would close it in the other table.
pub fn leave_table(lwp: u32, here: usize, leave: impl FnOnce() -> bool) {
    close_abandoned(lwp, Some(here));
    let is_own = |note: &Note| note.lwp() == lwp;
    for note in used_notes().filter(|note| is_own(note)) {
        note.disown_if(|_| true);
    }
    if leave() {
        close_copies(&is_own, |_, _| {});
        standard_numbers::close_copies(lwp);
    }
}

/// Closes files of this library in a table that has been copied and that this thread alone uses. Those that `is_live` says of
/// stay open, for this thread: they are given to `prepare` with their notes.
fn close_copies(is_live: &dyn Fn(&Note) -> bool, prepare: impl Fn(&Note, c_int)) {
    // First: whoever has opened a file before the table was copied, and not noted its number yet, is still opening it.
    let is_incomplete = has_unnoted() || used_notes().any(Note::is_opening);
    // What was being opened may be a file that is not known yet.
    let is_unknown = |note: &Note| note.holder().is_some() && note.inode() == 0;
    let may_be_unknown = has_unnoted() || used_notes().any(is_unknown);
    // The memory of the notes may have been copied a little later than that of the known files.
    let is_noted = |inode: u64| used_notes().any(|note| note.inode() == inode);
    let is_known = |inode: u64| may_be_unknown || opened_before::has_opened(inode) || is_noted(inode);
    let is_ours = |number: c_int| marked_inode(number).is_some_and(is_known);
    for note in used_notes().filter(|note| is_live(note)) {
        if let Some(number) = note.known_number().filter(|number| is_ours(*number)) {
            prepare(note, number);
        }
    }
    let is_kept = |number: c_int| used_notes().any(|note| is_live(note) && note.may_have(number));
    let close_if_ours = |number: c_int| {
        if is_ours(number) && !is_kept(number) {
            close(number);
        }
    };
    used_numbers().for_each(close_if_ours);
    if is_incomplete {
        open_numbers().for_each(close_if_ours);
    }
}
