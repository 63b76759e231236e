//! The slot of the calling thread: the address in the library's thread-local variable.

use core::ptr::{NonNull, null_mut};
use core::sync::atomic::{AtomicPtr, Ordering::Relaxed};

use super::slot::Slot;
use super::slot_control::SlotControl;
use crate::sys::{thread_id, thread_word};

/// The slot that this thread appends to; `None` if it has none, or may make no system calls, or where another task may have its
/// memory ([`own`]).
#[inline(always)]
pub fn current() -> Option<Slot> {
    thread_word::address().map(slot_at)
}

/// As [`current`], also where another task has this thread's memory; `None` in that task.
#[inline(always)]
pub fn own() -> Option<Slot> {
    current().or_else(own_of_shared)
}

#[cold]
#[inline(never)]
fn own_of_shared() -> Option<Slot> {
    let is_usable = thread_word::is_shared() && !thread_word::is_muted() && !thread_word::is_handling();
    slot_of_any_thread().filter(|slot| is_usable && is_owner(*slot))
}

/// Whether the caller is another task, which has the memory of the thread whose slot this is.
pub fn is_other_task() -> bool {
    thread_word::is_shared() && slot_of_any_thread().is_some_and(|slot| !is_owner(slot))
}

/// Of the tasks that share the variable only one is the thread that has claimed the slot.
fn is_owner(slot: Slot) -> bool {
    slot.lwp.load(Relaxed) == thread_id()
}

/// The slot of this thread, also if it may make no system calls.
pub fn slot_of_any_thread() -> Option<Slot> {
    thread_word::address_in_any_thread().map(slot_at)
}

#[inline(always)]
fn slot_at(control: NonNull<u8>) -> Slot {
    // SAFETY: `set_current` or `set_aside` has stored the control of a slot.
    unsafe { Slot::at(control.cast::<SlotControl>()) }
}

/// Makes `new` this thread's slot if its slot is still `old`: `false` if a signal handler has given it another one.
pub fn replace_current(old: Option<Slot>, new: Slot) -> bool {
    thread_word::replace_address(old.map(|slot| slot.control().cast()), new.control().cast())
}

pub fn set_current(slot: Option<Slot>) {
    thread_word::set_address(slot.map(|slot| slot.control().cast()));
}

/// The control of the slot that the thread of a forked child has had as its parent's.
#[unsafe(link_section = "inherited")]
static SET_ASIDE: AtomicPtr<u8> = AtomicPtr::new(null_mut());

/// Takes the parent's slot from the thread of a forked child, before the child forgets it.
pub fn set_aside() {
    if let Some(slot) = current() {
        SET_ASIDE.store(slot.control().cast().as_ptr(), Relaxed);
        set_current(None);
    }
}

/// The slot that was [`set_aside`].
pub fn that_was_set_aside() -> Option<Slot> {
    NonNull::new(SET_ASIDE.load(Relaxed)).map(slot_at)
}

/// The child has forgotten it.
pub fn forget_set_aside() {
    // What is not there is not written to: the kernel would copy its page for the child.
    if that_was_set_aside().is_some() {
        SET_ASIDE.store(null_mut(), Relaxed);
    }
}
