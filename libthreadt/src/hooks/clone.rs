//! `clone`, by libc's function or by `syscall`. These hooks record nothing. They prepare for children in other namespaces, for those
//! that run beside this thread in its memory, and for those that use its table of descriptors. A child that has a copy of the
//! memory is initialised before it runs code of the program's: it has inherited the files that are just open.

use core::arch::naked_asm;
use core::ffi::{c_int, c_long, c_void};
use core::ptr::with_exposed_provenance;

use super::sandbox::MOVES_FILES;
use crate::first_use::after_fork_in_child;
use crate::glibc::next_functions::{self, NextFunction};
use crate::lifecycle::{prepare_for_sandbox, share_thread};
use crate::sys::stack_alignment::call_aligned;
use crate::sys::{self, descriptor_table};

/// Flags with which a child does not go on with a copy of the thread.
const SHARES_OR_REPLACES: c_int = libc::CLONE_VM | libc::CLONE_SETTLS;

/// What a child of `clone` runs.
type ChildFunction = extern "C-unwind" fn(*mut c_void) -> c_int;

/// Defines hooks of `int clone(int (*fn)(void *), void *stack, int flags, void *arg, ...);`
///
/// Where the child shares the memory, the next function finds registers and stack as the caller left them, so that nothing of the
/// hook is on a stack that the child may use, too. The arguments that may be missing are in registers whether they are there or
/// not, and the seventh is on the stack.
macro_rules! clone_functions {
    ($($name:ident, $clone_process:ident, $look_up:ident;)+) => {$(
        #[cfg_attr(not(test), unsafe(no_mangle))]
        #[unsafe(naked)]
        unsafe extern "C-unwind" fn $name() {
            naked_asm!(
                ".cfi_startproc",
                "test edx, {shares_or_replaces}",
                "jz 4f",
                save_registers!(),
                "mov edi, edx",
                call_aligned!("{prepare}"),
                restore_registers!(),
                jump_to_next_with_registers!(),
                "4:",
                "test spl, 8",
                "jz 5f",
                "jmp {clone_process}",
                // The seventh argument again, below a word that aligns the stack.
                "5:",
                "sub rsp, 8",
                ".cfi_adjust_cfa_offset 8",
                "push qword ptr [rsp + 16]",
                ".cfi_adjust_cfa_offset 8",
                "call {clone_process}",
                "add rsp, 16",
                ".cfi_adjust_cfa_offset -16",
                "ret",
                ".cfi_endproc",
                shares_or_replaces = const SHARES_OR_REPLACES,
                prepare = sym prepare_for_clone,
                clone_process = sym $clone_process,
                next = sym next_functions::$name,
                address = const NextFunction::ADDRESS_OFFSET,
                look_up = sym $look_up,
            )
        }

        /// `clone` of a child that gets a copy of the memory.
        unsafe extern "C-unwind" fn $clone_process(
            function: Option<ChildFunction>,
            stack: *mut c_void,
            flags: c_int,
            argument: *mut c_void,
            parent_tid: u64,
            thread_area: u64,
            child_tid: u64,
        ) -> c_int {
            let start = ChildStart { function, argument };
            let (function, argument) = start.arguments();
            prepare_for_clone(flags);
            make_child(|| {
                // SAFETY: the next function with the host's arguments; the child's function runs the host's one.
                let child = unsafe {
                    call_next!($name(function: Option<ChildFunction>, stack: *mut c_void, flags: c_int, argument: *mut c_void, parent_tid: u64, thread_area: u64, child_tid: u64) -> c_int)
                };
                child.into()
            }) as c_int
        }

        extern "C" fn $look_up() -> *const () {
            next_functions::$name.address()
        }
    )+};
}

clone_functions! {
    clone, clone_process, look_up_clone;
    __clone, clone_process_by_old_name, look_up_old_name;
}

/// What a child runs, on its parent's stack. The child has a copy of it.
#[repr(C, align(16))]
struct ChildStart {
    function: Option<ChildFunction>,
    argument: *mut c_void,
}

impl ChildStart {
    /// What `clone` is called with for it.
    fn arguments(&self) -> (Option<ChildFunction>, *mut c_void) {
        match self.function {
            Some(_) => (Some(run_child), core::ptr::from_ref(self).cast_mut().cast()),
            // That fails.
            None => (None, self.argument),
        }
    }
}

/// Initialises the child, and runs its function as `clone` would.
///
/// The host's stack for the child may be small. So the initialisation runs on the copy of the parent's, below the [`ChildStart`], where
/// the child needs nothing.
#[unsafe(naked)]
extern "C-unwind" fn run_child(start: *mut c_void) -> c_int {
    naked_asm!(
        ".cfi_startproc",
        ".cfi_undefined rip",
        "push rbx",
        "push rbp",
        "mov rbx, rdi",
        "mov rbp, rsp",
        "mov rsp, rdi",
        "call {after_fork}",
        "mov rsp, rbp",
        "mov rax, qword ptr [rbx + {function}]",
        "mov rdi, qword ptr [rbx + {argument}]",
        "pop rbp",
        "pop rbx",
        "jmp rax",
        ".cfi_endproc",
        after_fork = sym initialise_child,
        function = const core::mem::offset_of!(ChildStart, function),
        argument = const core::mem::offset_of!(ChildStart, argument),
    )
}

extern "C" fn initialise_child() {
    after_fork_in_child();
}

extern "C" fn prepare_for_clone(flags: c_int) {
    descriptor_table::note_clone(flags);
    if flags & MOVES_FILES != 0 {
        prepare_for_sandbox();
    }
    // A vfork child's parent waits for it, and a thread has thread-local variables of its own.
    if flags & (libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_SETTLS) == libc::CLONE_VM {
        share_thread();
    }
}

/// Forks by `call_next`, which is not recorded.
pub fn fork_by_number(call_next: impl Fn() -> c_long) -> c_long {
    descriptor_table::note_fork();
    make_child(call_next)
}

/// Makes a child by `call_next`, after it has been noted. If the child returns here, it is initialised at once: it may return into a record
/// of its parent's that a signal handler has interrupted, whose buffer is its own memory then.
pub fn make_child(call_next: impl Fn() -> c_long) -> c_long {
    let child = call_next();
    if child == 0 {
        after_fork_in_child();
    } else {
        descriptor_table::forget_noted();
    }
    child
}

/// Prepares for `clone` or `clone3` by `syscall`. The first argument is the flags, or the address of a structure that begins with them.
/// Returns whether the child goes on as this thread, with a copy of its memory.
pub extern "C" fn prepare_for_clone_by_number(number: c_long, first: u64, second: u64) -> bool {
    /// Where the structure has the address of the child's stack.
    const STACK: usize = 40;
    let pair = |offset| sys::read_pair(with_exposed_provenance(first as usize + offset)).map_or(0, |[word, _]| word);
    let (flags, stack) = match number {
        libc::SYS_clone3 => (pair(0), pair(STACK)),
        _ => (first, second),
    };
    // Flags that only clone3 has are above these.
    let flags = flags as c_int;
    prepare_for_clone(flags);
    flags & SHARES_OR_REPLACES == 0 && stack == 0
}
