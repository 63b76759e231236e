//! `clone`, by libc's function or by `syscall`. These hooks record nothing. They prepare for children in other namespaces, for those
//! that run beside this thread in its memory, and for those that use its table of descriptors. A child that has a copy of the
//! memory is initialised before it runs code of the program's: it has inherited the files that are just open.

use core::arch::naked_asm;
use core::ffi::{c_int, c_long};
use core::mem::offset_of;
use core::ptr::with_exposed_provenance;

use super::sandbox::prepare_for_namespaces;
use crate::config::CONFIG;
use crate::first_use::{Origin, after_fork_in_child, have_children_own_variables};
use crate::glibc::next_functions::{self, NextFunction};
use crate::lifecycle::share_thread;
use crate::process_state::{ORIGIN_OFFSET, PROCESS, is_initialised};
use crate::sys::stack::{RED_ZONE, is_on_own_stack};
use crate::sys::stack_alignment::call_aligned;
use crate::sys::{self, IMPOSSIBLE_HOW, SET_SIZE, descriptor_table, is_readable};

/// Flags with which a child does not go on with a copy of the thread.
const SHARES_OR_REPLACES: c_int = libc::CLONE_VM | libc::CLONE_SETTLS;

/// Defines hooks of `int clone(int (*fn)(void *), void *stack, int flags, void *arg, ...);`
///
/// The next function finds registers and stack as the caller left them, so that nothing of the hook is on a stack that the child may
/// use, too: also one that gets a copy of the memory may have its stack right below the caller's frame. Such a child begins with
/// [`run_child`]. What that needs is where the child's stack begins, as what `clone` itself puts there.
macro_rules! clone_functions {
    ($($name:ident, $look_up:ident;)+) => {$(
        #[cfg_attr(not(test), unsafe(no_mangle))]
        #[unsafe(naked)]
        unsafe extern "C-unwind" fn $name() {
            naked_asm!(
                ".cfi_startproc",
                save_registers!(),
                "mov edi, edx",
                "lea rdx, [rsp + 56]",
                call_aligned!("{prepare}"),
                "mov r10, rax",
                restore_registers!(),
                "test r10, r10",
                "jz 3f",
                // Without a function or a stack it fails.
                "test rdi, rdi",
                "jz 3f",
                "mov r11, rsi",
                "and r11, -16",
                "jz 3f",
                "sub r11, {start}",
                "mov qword ptr [r11 + {function}], rdi",
                "mov qword ptr [r11 + {argument}], rcx",
                "mov qword ptr [r11 + {parents_rsp}], rsp",
                "mov qword ptr [r11 + {knowledge}], r10",
                "mov rsi, r11",
                "mov rcx, r11",
                "lea rdi, [rip + {run_child}]",
                "3:",
                jump_to_next_with_registers!(),
                ".cfi_endproc",
                prepare = sym prepare_for_clone_function,
                start = const size_of::<ChildStart>(),
                function = const offset_of!(ChildStart, function),
                argument = const offset_of!(ChildStart, argument),
                parents_rsp = const offset_of!(ChildStart, parents_rsp),
                knowledge = const offset_of!(ChildStart, knowledge),
                run_child = sym run_child,
                next = sym next_functions::$name,
                address = const NextFunction::ADDRESS_OFFSET,
                look_up = sym $look_up,
            )
        }

        extern "C" fn $look_up() -> *const () {
            next_functions::$name.address()
        }
    )+};
}

clone_functions! {
    clone, look_up_clone;
    __clone, look_up_old_name;
}

/// What a child of `clone` is to run, on its stack.
#[repr(C)]
struct ChildStart {
    function: u64,
    argument: u64,
    /// The stack pointer with which the parent called `clone`.
    parents_rsp: u64,
    /// The bits of the child's [`Origin`], and [`INITIALISE`]. The function's return address is here without this library.
    knowledge: u64,
}

/// The child is to be initialised before it runs the function.
const INITIALISE: u64 = 1 << 32;

/// What the initialisation may use of the stack, bytes.
const ROOM: usize = 4096;

/// Lets the child know how it was made, initialises it, and runs its function as `clone` would.
///
/// The host's stack for the child may be small. So the initialisation runs on the copy of the parent's, below its frame, where the child
/// needs nothing. The program may have advised the kernel to give children no copy (`MADV_DONTFORK`): the kernel tries to read it.
#[unsafe(naked)]
unsafe extern "C-unwind" fn run_child() {
    naked_asm!(
        ".cfi_startproc",
        ".cfi_undefined rip",
        "push rbx",
        "mov rbx, rdi",
        "mov rax, qword ptr [rbx + {knowledge}]",
        "mov dword ptr [rip + {page} + {origin}], eax",
        "shr rax, {initialise_bit}",
        "jz 3f",
        "mov rsi, qword ptr [rbx + {parents_rsp}]",
        "sub rsi, {red_zone} + {room}",
        "mov edi, {impossible_how}",
        "xor edx, edx",
        "mov r10d, {set_size}",
        "mov eax, {rt_sigprocmask}",
        "syscall",
        "cmp rax, -{einval}",
        "jne 3f",
        "add rsi, {room}",
        "mov eax, {rt_sigprocmask}",
        "syscall",
        "cmp rax, -{einval}",
        "jne 3f",
        "mov rsp, rsi",
        "and rsp, -16",
        "mov rdi, rbx",
        "call {initialise}",
        "3:",
        // The two words below the start: the return address, and what was in rbx.
        "mov rax, qword ptr [rbx - 8]",
        "mov qword ptr [rbx + {knowledge}], rax",
        "mov rax, qword ptr [rbx + {function}]",
        "mov rdi, qword ptr [rbx + {argument}]",
        "lea rsp, [rbx + {knowledge}]",
        "mov rbx, qword ptr [rbx - 16]",
        "jmp rax",
        ".cfi_endproc",
        page = sym PROCESS,
        origin = const ORIGIN_OFFSET,
        initialise_bit = const INITIALISE.trailing_zeros(),
        parents_rsp = const offset_of!(ChildStart, parents_rsp),
        red_zone = const RED_ZONE,
        room = const ROOM,
        impossible_how = const IMPOSSIBLE_HOW,
        set_size = const SET_SIZE,
        rt_sigprocmask = const libc::SYS_rt_sigprocmask,
        einval = const libc::EINVAL,
        initialise = sym initialise_child,
        knowledge = const offset_of!(ChildStart, knowledge),
        function = const offset_of!(ChildStart, function),
        argument = const offset_of!(ChildStart, argument),
    )
}

/// The child does not go on where its parent was.
extern "C" fn initialise_child(start: &ChildStart) {
    after_fork_in_child(Origin::from_bits(start.knowledge as u32));
}

/// Prepares for `clone` by libc's function, called with the stack at `rsp`. Returns what the child is to know ([`ChildStart::knowledge`]); 0
/// if that is nothing, because it has no memory of its own, or its parent is not recorded.
extern "C" fn prepare_for_clone_function(flags: c_int, stack: usize, rsp: usize) -> u64 {
    prepare_for_clone(flags);
    if flags & SHARES_OR_REPLACES != 0 || !is_initialised() || !CONFIG.get().may_record() {
        return 0;
    }
    let initialise = if can_be_initialised(stack, rsp) { INITIALISE } else { 0 };
    u64::from(Origin::of_function(flags).bits()) | initialise
}

/// Whether a child with this stack can be initialised on a copy of its parent's, which is at `rsp`: not where that may be shared memory, nor
/// where it may have too little room above what else the program has there, or has the child's stack in it. Then the child is
/// initialised at its first hook.
fn can_be_initialised(stack: usize, rsp: usize) -> bool {
    let needed = RED_ZONE + ROOM;
    let begins_above_or_below = rsp.wrapping_sub(stack & !15) >= needed;
    // It cannot be read, either, where a filter forbids the question.
    begins_above_or_below
        && have_children_own_variables()
        && is_on_own_stack(rsp)
        && is_readable(rsp.wrapping_sub(needed) & !7)
}

fn prepare_for_clone(flags: c_int) {
    descriptor_table::note_clone(flags);
    prepare_for_namespaces(flags);
    // A vfork child's parent waits for it, and a thread has thread-local variables of its own.
    if flags & (libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_SETTLS) == libc::CLONE_VM {
        share_thread();
    }
}

/// Makes a child by `call_next`. It returns here, and is initialised at once: it may return into a record of its parent's that a signal
/// handler has interrupted, whose buffer is its own memory then.
pub fn make_child(origin: Origin, call_next: impl Fn() -> c_long) -> c_long {
    let child = call_next();
    if child == 0 {
        after_fork_in_child(origin);
    }
    child
}

/// Makes a child that goes on as this thread by `call_next`, `clone` or `clone3` by `syscall`.
pub fn clone_by_number(number: c_long, first: u64, call_next: impl Fn() -> c_long) -> c_long {
    make_child(Origin::of_copy(flags_and_stack(number, first, 0).0), call_next)
}

/// Prepares for `clone` or `clone3` by `syscall`. Returns whether the child goes on as this thread, with a copy of its memory.
pub extern "C" fn prepare_for_clone_by_number(number: c_long, first: u64, second: u64) -> bool {
    let (flags, stack) = flags_and_stack(number, first, second);
    prepare_for_clone(flags);
    flags & SHARES_OR_REPLACES == 0 && stack == 0
}

/// The flags of such a call, and the child's stack, 0 if that is the parent's. The first argument is the flags, or the address of a
/// structure that begins with them.
fn flags_and_stack(number: c_long, first: u64, second: u64) -> (c_int, u64) {
    /// Where the structure has the address of the child's stack.
    const STACK: usize = 40;
    let word = |offset| sys::read_pair(with_exposed_provenance(first as usize + offset)).map_or(0, |[word, _]| word);
    // Flags that only clone3 has are above these.
    match number {
        libc::SYS_clone3 => (word(0) as c_int, word(STACK)),
        _ => (first as c_int, second),
    }
}
