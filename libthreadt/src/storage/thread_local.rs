//! The slot of the calling thread: the address in the library's thread-local variable.

use core::ptr::NonNull;

use super::slot::Slot;
use super::slot_control::SlotControl;
use crate::sys::thread_word;

/// The slot that this thread appends to; `None` if it has none, or may make no system calls.
#[inline(always)]
pub fn current() -> Option<Slot> {
    thread_word::address().map(slot_at)
}

/// The slot of this thread, also if it may make no system calls.
pub fn slot_of_any_thread() -> Option<Slot> {
    thread_word::address_in_any_thread().map(slot_at)
}

#[inline(always)]
fn slot_at(control: NonNull<u8>) -> Slot {
    // SAFETY: `set_current` has stored the control of a slot.
    unsafe { Slot::at(control.cast::<SlotControl>()) }
}

/// Makes `new` this thread's slot if its slot is still `old`: `false` if a signal handler has given it another one.
pub fn replace_current(old: Option<Slot>, new: Slot) -> bool {
    thread_word::replace_address(old.map(|slot| slot.control().cast()), new.control().cast())
}

pub fn set_current(slot: Option<Slot>) {
    thread_word::set_address(slot.map(|slot| slot.control().cast()));
}
