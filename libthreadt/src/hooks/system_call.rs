//! `syscall(2)` where it makes a call that has a hook of its own, and where it clones. `futex` records its
//! calls of futex(2).

use core::arch::naked_asm;
use core::ffi::{c_int, c_long, c_uint};
use core::ptr::with_exposed_provenance;

use spec::id;

use crate::control::{CHANGES_OFFSET, CONTROL};
use crate::first_use::Origin;
use crate::glibc::next_functions::{self, NextFunction};
use crate::hooks::clone::{clone_by_number, make_child, prepare_for_clone_by_number};
use crate::hooks::futex::{SYS_FUTEX_REQUEUE, SYS_FUTEX_WAIT, SYS_FUTEX_WAITV, SYS_FUTEX_WAKE, futex_system_call};
use crate::hooks::sandbox::{SYS_LANDLOCK_RESTRICT_SELF, enter_namespace, leave_others, prepare_for_system_call};
use crate::hooks::unrecorded::{
    close_in_range, filtered, is_busy, new_file_size_limit, rename, restriction_by_prctl, with_limit,
};
use crate::hooks::user::new_user_by_system_call;
use crate::lifecycle::{Restriction, change_user, close_descriptor, replace_descriptor, restrict};
use crate::process_state::{PROCESS, Switch, switch_offset};
use crate::sys::stack_alignment::call_aligned;

/// How many numbers [`ACTIONS`] has. Calls with greater ones are the next function's.
const NUMBERS: usize = 512;

/// What the hook does, by the call's number: nothing for most.
static ACTIONS: [u8; NUMBERS] = {
    let mut actions = [0; NUMBERS];
    let mut at = 0;
    while at < KNOWN_NUMBERS.len() {
        actions[KNOWN_NUMBERS[at] as usize] = KNOWN;
        at += 1;
    }
    let mut at = 0;
    while at < FUTEX_NUMBERS.len() {
        actions[FUTEX_NUMBERS[at] as usize] = FUTEX;
        at += 1;
    }
    actions[libc::SYS_clone as usize] = CLONE;
    actions[libc::SYS_clone3 as usize] = CLONE;
    actions
};
/// [`known_system_call`] makes the call.
const KNOWN: u8 = 1;
/// [`futex_system_call`] makes the call if it is recorded.
const FUTEX: u8 = 2;
/// The child may begin in other namespaces, run beside this thread, or go on as this thread does: then [`known_system_call`] makes the call.
const CLONE: u8 = 3;

const KNOWN_NUMBERS: [c_long; 18] = [
    libc::SYS_fork,
    libc::SYS_prctl,
    libc::SYS_seccomp,
    libc::SYS_setns,
    libc::SYS_setrlimit,
    libc::SYS_prlimit64,
    libc::SYS_dup2,
    libc::SYS_dup3,
    libc::SYS_close,
    libc::SYS_close_range,
    libc::SYS_setuid,
    libc::SYS_setreuid,
    libc::SYS_setresuid,
    libc::SYS_setfsuid,
    libc::SYS_chroot,
    libc::SYS_pivot_root,
    libc::SYS_unshare,
    SYS_LANDLOCK_RESTRICT_SELF,
];

const FUTEX_NUMBERS: [c_long; 5] =
    [libc::SYS_futex, SYS_FUTEX_WAITV, SYS_FUTEX_WAKE, SYS_FUTEX_WAIT, SYS_FUTEX_REQUEUE];

// One comparison shows whether the switches of the three futex events, a byte each, are all off.
const _: () =
    assert!(id::FUTEX_WAKE.index() == id::FUTEX_WAIT.index() + 1 && id::FUTEX_OP.index() == id::FUTEX_WAIT.index() + 2);
const SWITCHES_OFF: u32 = Switch::OFF.bits() as u32 * 0x01_01_01;
const SWITCHES_MASK: u32 = Switch::OFF.with(Switch::ON).bits() as u32 * 0x01_01_01;

/// `long syscall(long number, ...);`
///
/// A call that is none of this library's business finds registers and stack as the caller left them: it may be a `vfork`,
/// which returns twice, or a `clone` on another stack. r11 is free: a system call overwrites it.
///
/// In C the function is variadic. Its arguments are in registers whether they are there or not, and the seventh is on the stack.
#[cfg_attr(not(test), unsafe(no_mangle))]
#[unsafe(naked)]
pub unsafe extern "C-unwind" fn syscall() {
    naked_asm!(
        ".cfi_startproc",
        "cmp rdi, {futex_number}",
        "je 5f",
        "cmp rdi, {numbers}",
        "jae 3f",
        "lea r11, [rip + {actions}]",
        "movzx r11d, byte ptr [r11 + rdi]",
        "test r11d, r11d",
        "jnz 4f",
        "3:",
        jump_to_next_with_registers!(),
        "4:",
        "cmp r11d, {futex}",
        "je 5f",
        "cmp r11d, {clone}",
        "jne 8f",
        save_registers!(),
        call_aligned!("{prepare}"),
        "mov r11d, eax",
        restore_registers!(),
        "test r11b, r11b",
        "jz 3b",
        "jmp 8f",
        "5:",
        "mov r11d, dword ptr [rip + {switches} + {switch}]",
        "and r11d, {mask}",
        "cmp r11d, {off}",
        "jne 6f",
        "cmp dword ptr [rip + {control} + {changes}], 0",
        "je 3b",
        "6:",
        "test spl, 8",
        "jz 7f",
        // The word that aligns the stack, this function's return address and the caller's seventh argument are the
        // arguments that the function takes from the stack.
        "push rax",
        ".cfi_adjust_cfa_offset 8",
        "call {futex_system_call}",
        "add rsp, 8",
        ".cfi_adjust_cfa_offset -8",
        "ret",
        // The same on a stack that is not aligned, with copies of these three.
        "7:",
        "sub rsp, 8",
        ".cfi_adjust_cfa_offset 8",
        "push qword ptr [rsp + 16]",
        ".cfi_adjust_cfa_offset 8",
        "push qword ptr [rsp + 16]",
        ".cfi_adjust_cfa_offset 8",
        "push rax",
        ".cfi_adjust_cfa_offset 8",
        "call {futex_system_call}",
        "add rsp, 32",
        ".cfi_adjust_cfa_offset -32",
        "ret",
        "8:",
        "test spl, 8",
        "jz 9f",
        "jmp {known_system_call}",
        // The seventh argument again, below a word that aligns the stack.
        "9:",
        "sub rsp, 8",
        ".cfi_adjust_cfa_offset 8",
        "push qword ptr [rsp + 16]",
        ".cfi_adjust_cfa_offset 8",
        "call {known_system_call}",
        "add rsp, 16",
        ".cfi_adjust_cfa_offset -16",
        "ret",
        ".cfi_endproc",
        futex_number = const libc::SYS_futex,
        numbers = const NUMBERS,
        actions = sym ACTIONS,
        futex = const FUTEX,
        clone = const CLONE,
        known_system_call = sym known_system_call,
        prepare = sym prepare_for_clone_by_number,
        switches = sym PROCESS,
        switch = const switch_offset(id::FUTEX_WAIT),
        mask = const SWITCHES_MASK,
        off = const SWITCHES_OFF,
        control = sym CONTROL,
        changes = const CHANGES_OFFSET,
        futex_system_call = sym futex_system_call,
        next = sym next_functions::syscall,
        address = const NextFunction::ADDRESS_OFFSET,
        look_up = sym look_up_syscall,
    )
}

extern "C" fn look_up_syscall() -> *const () {
    next_functions::syscall.address()
}

/// `syscall` with one of [`KNOWN_NUMBERS`], or one that makes a child.
unsafe extern "C-unwind" fn known_system_call(
    number: c_long,
    a: u64,
    b: u64,
    c: u64,
    d: u64,
    e: u64,
    f: u64,
) -> c_long {
    // SAFETY: the next function with the host's arguments.
    let call_next =
        || unsafe { call_next!(syscall(number: c_long, a: u64, b: u64, c: u64, d: u64, e: u64, f: u64) -> c_long) };
    if let Some(new) = new_user_by_system_call(number, [a, b, c]) {
        return change_user(new, call_next);
    }
    if prepare_for_system_call(number) {
        return call_next();
    }
    let restriction = match number {
        libc::SYS_fork => return make_child(Origin::FORK, call_next),
        libc::SYS_clone | libc::SYS_clone3 => return clone_by_number(number, a, call_next),
        libc::SYS_unshare => return leave_others(a as c_int, call_next),
        libc::SYS_setns => return enter_namespace(b as c_int, call_next),
        libc::SYS_dup2 | libc::SYS_dup3 => return replace_descriptor(b as c_int, call_next, is_busy),
        libc::SYS_close => return close_descriptor(a as c_int, call_next),
        libc::SYS_close_range => return close_in_range(a as c_uint, c as c_int, call_next),
        libc::SYS_setrlimit => {
            return with_limit(new_file_size_limit(a as c_int, with_exposed_provenance(b as usize)), call_next);
        }
        libc::SYS_prlimit64 => {
            return with_limit(new_file_size_limit(b as c_int, with_exposed_provenance(c as usize)), call_next);
        }
        libc::SYS_prctl if [libc::PR_SET_NAME, libc::PR_SET_MM].contains(&(a as c_int)) => {
            return rename(a as c_int, call_next);
        }
        libc::SYS_prctl => restriction_by_prctl(a as c_int, [b, c, d, e]),
        _ if a as u32 == libc::SECCOMP_SET_MODE_STRICT => Some(Restriction::SystemCalls),
        _ if a as u32 == libc::SECCOMP_SET_MODE_FILTER => Some(filtered(c, b)),
        _ => None,
    };
    match restriction {
        None => call_next(),
        Some(restriction) => restrict(restriction, call_next),
    }
}
