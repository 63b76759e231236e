//! The thread-local variable: the slot of the calling thread.
//!
//! It is one pointer in the initial-exec model, which needs no `__tls_get_addr` (that may allocate).

use core::arch::{asm, global_asm};
use core::ptr::{NonNull, null_mut};

use super::slot::Slot;
use super::slot_control::SlotControl;

global_asm!(
    ".pushsection .tbss.threadt_slot,\"awT\",@nobits",
    ".balign 8",
    ".globl threadt_slot",
    ".hidden threadt_slot",
    ".type threadt_slot,@object",
    ".size threadt_slot, 8",
    "threadt_slot:",
    ".zero 8",
    ".popsection",
);

#[inline(always)]
pub fn current() -> Option<Slot> {
    let control: *mut SlotControl;
    // SAFETY: reads this thread's variable.
    unsafe {
        asm!(
            "mov {0}, qword ptr [rip + threadt_slot@gottpoff]",
            "mov {0}, qword ptr fs:[{0}]",
            out(reg) control,
            options(nostack, readonly, preserves_flags, pure),
        );
    }
    // SAFETY: the variable holds null or the control of a slot.
    NonNull::new(control).map(|control| unsafe { Slot::at(control) })
}

pub fn set_current(slot: Option<Slot>) {
    let control = slot.map_or(null_mut(), |slot| slot.control().as_ptr());
    // SAFETY: writes this thread's variable.
    unsafe {
        asm!(
            "mov {1}, qword ptr [rip + threadt_slot@gottpoff]",
            "mov qword ptr fs:[{1}], {0}",
            in(reg) control,
            out(reg) _,
            options(nostack, preserves_flags),
        );
    }
}
