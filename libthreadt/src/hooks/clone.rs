//! `clone`, by libc's function or by `syscall`. These hooks record nothing. They prepare for children in other namespaces, for those
//! that run beside this thread in its memory, and for those that use its table of descriptors. A child that has a copy of the
//! memory is initialised before it runs code of the program's: it has inherited the files that are just open.

use core::arch::naked_asm;
use core::ffi::{c_int, c_long};
use core::mem::offset_of;
use core::ptr::with_exposed_provenance;

use super::sandbox::MOVES_FILES;
use crate::first_use::{Origin, after_fork_in_child};
use crate::glibc::next_functions::{self, NextFunction};
use crate::lifecycle::{prepare_for_sandbox, share_thread};
use crate::process_state::{ORIGIN_OFFSET, PROCESS};
use crate::sys::stack::RED_ZONE;
use crate::sys::stack_alignment::call_aligned;
use crate::sys::{self, PAGE, descriptor_table, seccomp};

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
                call_aligned!("{prepare}"),
                "mov r10, rax",
                restore_registers!(),
                "test edx, {shares_or_replaces}",
                "jnz 3f",
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
                shares_or_replaces = const SHARES_OR_REPLACES,
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
    /// The bits of the child's [`Origin`], and [`MAY_ASK`]. The function's return address is here without this library.
    knowledge: u64,
}

/// No filter may kill for a system call.
const MAY_ASK: u64 = 1 << 32;

/// If the child's stack begins by less than this below the parent's frame, it has as much room as that.
const NEAR: usize = 16 << 10;

/// Initialises the child, and runs its function as `clone` would.
///
/// The host's stack for the child may be small. So the initialisation runs on the copy of the parent's, below its frame, where the child
/// needs nothing; unless the child's stack is there. If the parent's is memory that it shares with its children, so are perhaps its
/// thread-local variables, and the child is initialised at its first hook.
#[unsafe(naked)]
unsafe extern "C-unwind" fn run_child() {
    naked_asm!(
        ".cfi_startproc",
        ".cfi_undefined rip",
        "push rbx",
        "mov rbx, rdi",
        "mov rax, qword ptr [rbx + {knowledge}]",
        "mov dword ptr [rip + {page} + {origin}], eax",
        "shr rax, {may_ask}",
        "jz 2f",
        // Only private memory may be wiped at a fork, so that the answer shows what it is. It is taken back at once.
        "mov rdi, qword ptr [rbx + {parents_rsp}]",
        "sub rdi, {red_zone}",
        "and rdi, -{page_size}",
        "mov esi, {page_size}",
        "mov edx, {wipe_on_fork}",
        "mov eax, {madvise}",
        "syscall",
        "mov r8, rax",
        "mov edx, {keep_on_fork}",
        "mov eax, {madvise}",
        "syscall",
        "test r8, r8",
        "jnz 3f",
        "2:",
        "mov rax, qword ptr [rbx + {parents_rsp}]",
        "mov rcx, rax",
        "sub rcx, rbx",
        "sub rax, {red_zone}",
        "cmp rcx, {near}",
        "cmovb rax, rsp",
        "and rax, -16",
        "mov rsp, rax",
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
        parents_rsp = const offset_of!(ChildStart, parents_rsp),
        red_zone = const RED_ZONE,
        page_size = const PAGE,
        page = sym PROCESS,
        origin = const ORIGIN_OFFSET,
        may_ask = const MAY_ASK.trailing_zeros(),
        wipe_on_fork = const libc::MADV_WIPEONFORK,
        keep_on_fork = const libc::MADV_KEEPONFORK,
        madvise = const libc::SYS_madvise,
        near = const NEAR,
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

/// Prepares for `clone` by libc's function. Returns what the child is to know ([`ChildStart::knowledge`]).
extern "C" fn prepare_for_clone_function(flags: c_int) -> u64 {
    prepare_for_clone(flags);
    let may_ask = if flags & SHARES_OR_REPLACES == 0 && !seccomp::has_filter() { MAY_ASK } else { 0 };
    u64::from(Origin::of_function(flags).bits()) | may_ask
}

fn prepare_for_clone(flags: c_int) {
    descriptor_table::note_clone(flags);
    if flags & MOVES_FILES != 0 {
        prepare_for_sandbox();
    }
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
