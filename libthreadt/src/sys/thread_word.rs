//! The library's one thread-local variable: a word that has the address of the thread's slot and three flags.
//!
//! One flag is set in a thread that the kernel kills for every system call that this library could make (strict
//! seccomp): no system call is made in such a thread. Another one is set while the thread is in the handler of
//! `THR_TRACE_HANDLER`. The third one is set when the thread makes a task that runs beside it and has its memory, this variable
//! included. With any of them the word is negative, so that whoever wants the slot sees with one comparison that
//! there is none to be used.
//!
//! The variable is of the initial-exec model, which needs no `__tls_get_addr` (that may allocate).

use core::arch::{asm, global_asm};
use core::ptr::{NonNull, null_mut};

global_asm!(
    ".pushsection .tbss.threadt_word,\"awT\",@nobits",
    ".balign 8",
    ".globl threadt_word",
    ".hidden threadt_word",
    ".type threadt_word,@object",
    ".size threadt_word, 8",
    "threadt_word:",
    ".zero 8",
    ".popsection",
);

/// The sign bit, which no address of a process has; set with any of the flags below.
const UNUSABLE: usize = 1 << (usize::BITS - 1);
/// Bits that are 0 in the address of a slot's control.
const MUTED: usize = 1;
const HANDLING: usize = 2;
const SHARED: usize = 4;
const FLAGS: usize = UNUSABLE | MUTED | HANDLING | SHARED;

#[inline(always)]
fn load() -> *mut u8 {
    let word: *mut u8;
    // SAFETY: reads this thread's variable.
    unsafe {
        asm!(
            "mov {0}, qword ptr [rip + threadt_word@gottpoff]",
            "mov {0}, qword ptr fs:[{0}]",
            out(reg) word,
            options(nostack, readonly, preserves_flags, pure),
        );
    }
    word
}

fn store(word: *mut u8) {
    // SAFETY: writes this thread's variable.
    unsafe {
        asm!(
            "mov {1}, qword ptr [rip + threadt_word@gottpoff]",
            "mov qword ptr fs:[{1}], {0}",
            in(reg) word,
            out(reg) _,
            options(nostack, preserves_flags),
        );
    }
}

/// Stores `new` if the variable is `old`, by one instruction: no signal handler of this thread comes between.
fn compare_exchange(old: *mut u8, new: *mut u8) -> bool {
    let is_stored: u8;
    // SAFETY: writes this thread's variable, if at all.
    unsafe {
        asm!(
            "mov {1}, qword ptr [rip + threadt_word@gottpoff]",
            "cmpxchg qword ptr fs:[{1}], {0}",
            "sete {2}",
            in(reg) new,
            out(reg) _,
            out(reg_byte) is_stored,
            inout("rax") old => _,
            options(nostack),
        );
    }
    is_stored != 0
}

/// The address that was set; `None` if none was, and in a thread that makes no system calls.
#[inline(always)]
pub fn address() -> Option<NonNull<u8>> {
    let word = load();
    // SAFETY: what is greater than 0 is not null.
    (word.addr() as isize > 0).then(|| unsafe { NonNull::new_unchecked(word) })
}

/// The address that was set, if any, also in a thread that makes no system calls.
pub fn address_in_any_thread() -> Option<NonNull<u8>> {
    NonNull::new(load().map_addr(|word| word & !FLAGS))
}

/// Sets the address, or removes it. A thread that makes no system calls remains one.
pub fn set_address(address: Option<NonNull<u8>>) {
    let address = address.map_or(null_mut(), NonNull::as_ptr);
    store(address.map_addr(|new| new | load().addr() & FLAGS));
}

/// Sets the address if it is still `old`, in one step for the thread's signal handlers: `false` if it is another one.
pub fn replace_address(old: Option<NonNull<u8>>, new: NonNull<u8>) -> bool {
    loop {
        let word = load();
        if NonNull::new(word.map_addr(|word| word & !FLAGS)) != old {
            return false;
        }
        if compare_exchange(word, new.as_ptr().map_addr(|new| new | word.addr() & FLAGS)) {
            return true;
        }
    }
}

/// Whether this thread makes no system calls.
#[inline]
pub fn is_muted() -> bool {
    load().addr() & MUTED != 0
}

/// From now on this thread makes no system calls, or makes them again.
pub fn set_muted(muted: bool) {
    set_flag(MUTED, muted);
}

/// Whether this thread is in the handler.
#[inline]
pub fn is_handling() -> bool {
    load().addr() & HANDLING != 0
}

/// From now on this thread is in the handler, or not.
pub fn set_handling(handling: bool) {
    set_flag(HANDLING, handling);
}

fn set_flag(flag: usize, is_set: bool) {
    store(load().map_addr(|word| {
        let word = if is_set { word | flag } else { word & !flag };
        if word & (MUTED | HANDLING | SHARED) == 0 { word & !UNUSABLE } else { word | UNUSABLE }
    }));
}

/// Whether another task may use this variable at the same time.
#[inline]
pub fn is_shared() -> bool {
    load().addr() & SHARED != 0
}

/// From now on another task may use this variable, or not any more: a forked child has its own.
pub fn set_shared(shared: bool) {
    set_flag(SHARED, shared);
}

/// Where the calling thread's structure is, which no other living thread shares.
pub fn thread_pointer() -> usize {
    let thread: usize;
    // SAFETY: the x86-64 TLS ABI keeps the thread pointer at fs:0.
    unsafe { asm!("mov {}, qword ptr fs:[0]", out(reg) thread, options(nostack, readonly, preserves_flags, pure)) };
    thread
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_muted_thread_keeps_its_address() {
        let place = NonNull::new(core::ptr::without_provenance_mut::<u8>(0x7fff_ffff_f000));
        set_address(place);
        assert_eq!((address(), is_muted()), (place, false));
        set_muted(true);
        assert_eq!((address(), address_in_any_thread(), is_muted()), (None, place, true));
        assert!(!std::thread::spawn(is_muted).join().unwrap());
        set_address(None);
        assert_eq!((address(), address_in_any_thread(), is_muted()), (None, None, true));
        set_muted(false);
        assert_eq!((address(), is_muted()), (None, false));
    }

    #[test]
    fn an_address_is_replaced_only_if_it_is_the_old_one() {
        let at = |address| NonNull::new(core::ptr::without_provenance_mut::<u8>(address)).unwrap();
        let (first, second) = (at(0x7fff_ffff_f000), at(0x7fff_ffff_e000));
        assert!(!replace_address(Some(first), second));
        set_muted(true);
        assert!(replace_address(None, first));
        assert!(!replace_address(None, second));
        assert_eq!((address(), address_in_any_thread(), is_muted()), (None, Some(first), true));
        set_muted(false);
        assert!(replace_address(Some(first), second));
        assert_eq!(address(), Some(second));
        set_address(None);
    }

    #[test]
    fn a_thread_keeps_its_address_and_its_other_flags() {
        let place = NonNull::new(core::ptr::without_provenance_mut::<u8>(0x7fff_ffff_f008));
        set_address(place);
        set_handling(true);
        assert_eq!((address(), address_in_any_thread(), is_handling(), is_muted()), (None, place, true, false));
        set_muted(true);
        set_handling(false);
        assert_eq!((address(), address_in_any_thread(), is_handling(), is_muted()), (None, place, false, true));
        set_shared(true);
        set_muted(false);
        assert_eq!((address(), address_in_any_thread(), is_shared(), is_muted()), (None, place, true, false));
        set_shared(false);
        assert_eq!((address(), is_handling(), is_shared()), (place, false, false));
        set_address(None);
    }
}
