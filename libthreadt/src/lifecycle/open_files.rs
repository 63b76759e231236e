//! The program changes something that concerns the files which this library has open at that moment: how large files may be
//! (RLIMIT_FSIZE), or what a descriptor's number stands for.

use core::ffi::{c_int, c_long};

use crate::first_use::is_recording;
use crate::process_state::{is_initialised, is_vfork_child};
use crate::sys::errno::{errno, set_errno};
use crate::sys::host_numbers::{self, Numbers, are_held, may_be_ours, wait_for_files_at, while_held, with_numbers};
use crate::sys::standard_numbers::{is_placeholder, is_standard, note_closing};
use crate::sys::{
    Openings, descriptor_table, file_size, finish_writes, is_foreign, is_only_thread, leave_table, stack, thread_id,
};

/// Changes the limit to `limit` bytes by `call_next`, in such a way that no write of this library goes beyond it: the
/// signal would be the host's.
pub fn change_file_size_limit(limit: u64, call_next: impl FnOnce() -> c_long) -> c_long {
    let is_concerned = is_concerned();
    file_size::begin_change(if is_concerned { limit } else { u64::MAX });
    if is_concerned {
        finish_writes(thread_id(), stack::stack_pointer());
    }
    let result = call_next();
    file_size::end_change();
    result
}

/// Gives the program the descriptor `number` by `call_next`, in such a way that it does not replace one of this library.
/// `is_busy` says whether that failed because somebody was just opening a file with this number.
pub fn replace_descriptor(number: c_int, call_next: impl Fn() -> c_long, is_busy: impl Fn(&c_long) -> bool) -> c_long {
    change_descriptors(concerned(number), call_next, is_busy)
}

/// Closes the descriptor `number` by `call_next`, unless it is one of this library: then the call fails as for any other that
/// the program has not opened.
///
/// What the program has closed before may become a number of this library between the look and the call. Then this thread, which is the only
/// one of the program that uses such a number natively, opens nothing by it before the file's owner has seen that it is gone.
#[inline]
pub fn close_descriptor(number: c_int, call_next: impl Fn() -> c_long) -> c_long {
    note_closed(Numbers::one(number));
    and_look_again(number, || if may_be_ours(number) { close_awaited(number, &call_next) } else { call_next() })
}

/// These numbers are about to be closed, or are closed, which other threads' calls may need that have begun when they were open (`reopen_within`).
#[inline]
fn note_closed(numbers: Numbers) {
    if are_held(numbers) && may_concern() {
        host_numbers::note_closed(numbers);
    }
}

#[cold]
#[inline(never)]
fn close_awaited(number: c_int, call_next: impl Fn() -> c_long) -> c_long {
    change_descriptors(concerned(number), || closing(number, &call_next), |_| false)
}

/// Closes `number` by `call_next`, or gives it to another file. It may take any time where the number is the program's.
pub fn change_within(number: c_int, call_next: impl Fn() -> c_long) -> c_long {
    let is_announced = not_owned(number) || is_standard(number) && is_placeholder(number);
    let numbers = is_announced.then(|| Numbers::one(number));
    and_look_again(number, || {
        let result = change_descriptors(numbers, || closing(number, &call_next), |_| false);
        // Not before: it may have waited for long with the number open.
        if are_held(Numbers::one(number)) && not_owned(number) {
            note_closed(Numbers::one(number));
        }
        result
    })
}

/// Gives `number` to another file by `call_next`, which needs it until it returns: also if it is the program's before, and another thread
/// closes it meanwhile. What closes the number itself may wait for long after that, and nobody must wait for it.
pub fn reopen_within(number: c_int, call_next: impl Fn() -> c_long) -> c_long {
    let change = || change_within(number, &call_next);
    if number >= 0 && may_concern() { while_held(number, thread_id(), change) } else { change() }
}

/// Makes a call that may close `number`. A file that is begun meanwhile may have the number then, if it is the program's no more.
#[inline]
fn and_look_again(number: c_int, call: impl FnOnce() -> c_long) -> c_long {
    let before = Openings::so_far();
    let result = call();
    // Whose file was closed has a note of it until it sees that.
    if number >= 0 && before.has_later() {
        wait_for_later(&before, number);
    }
    result
}

#[cold]
#[inline(never)]
fn wait_for_later(before: &Openings, number: c_int) {
    if is_concerned() {
        wait_for_files_at(number, before, thread_id(), stack::stack_pointer());
    }
}

/// The number, if a change of it may concern this library. Of the standard ones also what looks like the program's: it may be held for a
/// moment while a file is being opened, and is free for that when it has been closed.
fn concerned(number: c_int) -> Option<Numbers> {
    (is_standard(number) || not_owned(number)).then_some(Numbers::one(number))
}

/// Closes the descriptors from `least` on, or some of them, by `call_next`; none of this library.
pub fn close_descriptors_from(least: c_int, call_next: impl Fn() -> c_long) -> c_long {
    let numbers = Numbers::from(least.max(0));
    note_closed(numbers);
    change_descriptors(Some(numbers), || closing(least.max(0), &call_next), |_| false)
}

/// Gives the thread a table of descriptors of its own by `call_next`, which returns 0 if it does, and leaves none of this library
/// there. It may close those from `closed_from` on, too.
pub fn leave_descriptor_table(closed_from: Option<c_int>, call_next: impl Fn() -> c_long) -> c_long {
    let call_next = || closed_from.map_or_else(&call_next, |least| closing(least, &call_next));
    // A child that has just been forked finds first what it has inherited.
    if !is_recording() || is_vfork_child() {
        return call_next();
    }
    if !is_only_thread() {
        descriptor_table::note_leaving();
    }
    let mut result = 0;
    leave_table(thread_id(), stack::stack_pointer(), || {
        result = call_next();
        result == 0
    });
    result
}

/// Closes descriptors, `least` or from there on, by `call_next`.
fn closing(least: c_int, call_next: impl Fn() -> c_long) -> c_long {
    if !is_standard(least) {
        return call_next();
    }
    // Again when it is done: a thread may have found them open in between.
    note_closing();
    let result = call_next();
    note_closing();
    result
}

/// Whether the number is not one that the program has open. Nothing of this library gets such a number before it is closed.
fn not_owned(number: c_int) -> bool {
    number >= 0 && !is_foreign(number)
}

/// Makes a call that closes these descriptors or gives them to the program, while none is this library's.
fn change_descriptors(
    numbers: Option<Numbers>,
    call_next: impl Fn() -> c_long,
    is_busy: impl Fn(&c_long) -> bool,
) -> c_long {
    // A repetition that succeeds leaves errno as the first call would have.
    let before = errno();
    let call_again = || {
        set_errno(before);
        call_next()
    };
    match numbers.filter(|_| may_concern()) {
        Some(numbers) => with_numbers(numbers, thread_id(), call_again, is_busy),
        None => call_next(),
    }
}

/// Whether what descriptors stand for may concern this library's files, or the parent's of a child that shares its table.
fn may_concern() -> bool {
    is_concerned() || is_initialised() && descriptor_table::may_be_shared()
}

/// Whether the process's own files are concerned. A vfork child's limits are its own, though it shares the memory, and so are its
/// descriptors, unless it was made by `clone` with CLONE_FILES; and it writes nothing meanwhile.
fn is_concerned() -> bool {
    is_initialised() && !is_vfork_child()
}
