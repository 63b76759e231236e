//! The functions that the host calls in the place of libc's.
//!
//! A hook is thin: it checks whether its event is recorded, calls the next function, and passes what it knows to
//! [`crate::recorder`]. It holds nothing during that call, and its frame has nothing to drop, because the call may
//! never return: `pthread_exit`, cancellation and exceptions unwind through it, `siglongjmp` jumps over it.
//!
//! `build.rs` generates most hooks from `functions.tsv`. A generated hook writes one record or two, or it calls a function
//! in this folder that has the name of its event. The other hooks are written by hand in this folder.
//!
//! With `THR_TRACE_LEVEL=blocked` the switch of an event may be selective
//! ([`crate::process_state::Switch::is_selective`]): then only calls that waited, failed, or found a waiter are recorded.
//! The hook determines which, and passes the others on without reading the clock.

/// Defines a hook: `fn symbol(parameters; caller) -> result { … }`, where `caller` is the call's return address.
///
/// What the host calls is a stub that passes the return address on in the register of a sixth argument and jumps to the
/// hook, or on the stack if the function has six arguments. The address is right also if the host made a tail call. Where the
/// host's stack is not aligned, the stub aligns it ([`crate::sys::stack_alignment`]).
///
/// With `; caller at place` the hook has at `place` where on the stack the return address is, for [`call_next_in_place`]. This is for up to
/// five arguments.
///
/// With `[EVENT next]` behind the result's type the stub jumps to the next function where nothing of the event is
/// recorded, and nobody has changed anything: so a call costs two comparisons and jumps more, and touches neither stack nor
/// registers that have a meaning.
/// With `[EVENT next empty]` it returns then if the next function is libc's, which does nothing.
/// With `[EVENT]` it returns then: what a program calls to record (`threadt.h`) has no next function.
///
/// The stub is exported as `symbol`, which stands for every version of the function; or, with
/// `fn ident = "symbol@VERSION" …(…)`, under just these versions.
macro_rules! hook {
    ($(#[$meta:meta])* fn $symbol:ident $(= $($export:literal)+)? ($($name:ident: $kind:ty),*; $caller:ident $(at $place:ident)?)
        -> $result:ty $([$event:ident $($next:ident $($empty:ident)?)?])? $body:block) => {
        hook! {
            @pad [[$(#[$meta])* $symbol $($($export)+)?] [$($event $($next $($empty)?)?)?]] [$($name: $kind,)*] [$caller $($place)?] [$result] $body
            [$($name)*] [_a _b _c _d _e]
        }
    };
    // Each parameter of the function takes the place of one unused parameter.
    (@pad $stub:tt $parameters:tt $caller:tt $result:tt $body:block
        [$name:ident $($names:ident)*] [$padding:ident $($paddings:ident)*]) => {
        hook! { @pad $stub $parameters $caller $result $body [$($names)*] [$($paddings)*] }
    };
    (@pad $stub:tt [$($name:ident: $kind:ty,)*] [$caller:ident] [$result:ty] $body:block [] [$($padding:ident)*]) => {
        const _: () = {
            unsafe extern "C-unwind" fn hook($($name: $kind,)* $($padding: u64,)* $caller: u64) -> $result $body

            hook! { @sixth "mov r9, qword ptr [rsp]" $stub }
        };
    };
    (@pad $stub:tt [$($name:ident: $kind:ty,)*] [$caller:ident $place:ident] [$result:ty] $body:block
        [] [$($padding:ident)*]) => {
        const _: () = {
            unsafe extern "C-unwind" fn hook($($name: $kind,)* $($padding: u64,)* $place: *const u64) -> $result {
                // SAFETY: the stub below passes where the return address is.
                let $caller = unsafe { $place.read() };
                $body
            }

            hook! { @sixth "mov r9, rsp" $stub }
        };
    };
    (@sixth $instruction:literal $stub:tt) => {
        hook! {
            @stub $stub
            $instruction
            "test spl, 8"
            "jz 7f"
            "jmp {hook}"
            "7: call {hook}"
            "ret"
        }
    };
    (@pad $stub:tt [$($name:ident: $kind:ty,)*] [$caller:ident] [$result:ty] $body:block [$sixth:ident] []) => {
        const _: () = {
            unsafe extern "C-unwind" fn hook($($name: $kind,)* $caller: u64) -> $result $body

            hook! {
                @stub $stub
                "test spl, 8"
                "jz 7f"
                "push qword ptr [rsp]"
                ".cfi_def_cfa_offset 16"
                "call {hook}"
                "add rsp, 8"
                ".cfi_def_cfa_offset 8"
                "ret"
                "7: sub rsp, 8"
                ".cfi_def_cfa_offset 16"
                "push qword ptr [rsp + 8]"
                ".cfi_def_cfa_offset 24"
                "call {hook}"
                "add rsp, 16"
                ".cfi_def_cfa_offset 8"
                "ret"
            }
        };
    };
    (@stub [$names:tt []] $($instruction:literal)+) => {
        hook! { @export $names [] $($instruction)+ }
    };
    (@stub [$names:tt [$event:ident]] $($instruction:literal)+) => {
        hook! {
            @export $names [
                switches = sym crate::process_state::PROCESS,
                switch = const crate::process_state::switch_offset(spec::id::$event),
                off = const crate::process_state::Switch::OFF.bits(),
                control = sym crate::control::CONTROL,
                changes = const crate::control::CHANGES_OFFSET,
            ]
            "cmp byte ptr [rip + {switches} + {switch}], {off}"
            "je 3f"
            "2:"
            $($instruction)+
            "3: cmp dword ptr [rip + {control} + {changes}], 0"
            "jne 2b"
            "ret"
        }
    };
    (@stub [$names:tt [$event:ident $next:ident]] $($instruction:literal)+) => {
        hook! { @passing [$names $event $next] [] [] $($instruction)+ }
    };
    (@stub [$names:tt [$event:ident $next:ident empty]] $($instruction:literal)+) => {
        hook! {
            @passing [$names $event $next]
            [is_libc = const crate::glibc::next_functions::NextFunction::IS_LIBC_OFFSET,]
            ["cmp byte ptr [rip + {next} + {is_libc}], 0" "je 8f" "ret" "8:"]
            $($instruction)+
        }
    };
    (@passing [$names:tt $event:ident $next:ident] [$($operand:tt)*] [$($ending:literal)*] $($instruction:literal)+) => {
        hook! {
            @export $names [
                $($operand)*
                switches = sym crate::process_state::PROCESS,
                switch = const crate::process_state::switch_offset(spec::id::$event),
                off = const crate::process_state::Switch::OFF.bits(),
                next = sym crate::glibc::next_functions::$next,
                address = const crate::glibc::next_functions::NextFunction::ADDRESS_OFFSET,
                control = sym crate::control::CONTROL,
                changes = const crate::control::CHANGES_OFFSET,
                changes_seen = const crate::storage::CHANGES_SEEN_OFFSET,
                own_switch = const crate::storage::OWN_SWITCHES_OFFSET + spec::id::$event.index(),
                on = const crate::process_state::Switch::ON.with(crate::process_state::Switch::ON_RECURSIVE).bits(),
            ]
            // What is passed on does not jump on its way here.
            "cmp byte ptr [rip + {switches} + {switch}], {off}"
            "jne 3f"
            "cmp dword ptr [rip + {control} + {changes}], 0"
            "jne 5f"
            "6:"
            $($ending)*
            "mov r11, qword ptr [rip + {next} + {address}]"
            "test r11, r11"
            // The hook looks it up.
            "jz 2f"
            "jmp r11"
            "3: cmp dword ptr [rip + {control} + {changes}], 0"
            "jne 4f"
            "2:"
            $($instruction)+
            // Somebody has changed something. A process that is not initialised may have its parent's slot.
            "4: cmp byte ptr [rip + {switches} + {switch}], 0"
            "je 2b"
            // The thread's own table, if the thread has noticed. The hook looks again.
            "5: mov r10, qword ptr [rip + threadt_word@gottpoff]"
            "mov r10, qword ptr fs:[r10]"
            "test r10, r10"
            "jle 2b"
            "mov r11d, dword ptr [rip + {control} + {changes}]"
            "cmp r11d, dword ptr [r10 + {changes_seen}]"
            "jne 2b"
            "test byte ptr [r10 + {own_switch}], {on}"
            "jnz 2b"
            "jmp 6b"
        }
    };
    (@export [$(#[$meta:meta])* $symbol:ident] [$($operand:tt)*] $($instruction:literal)+) => {
        $(#[$meta])*
        #[cfg_attr(not(test), unsafe(no_mangle))]
        #[unsafe(naked)]
        unsafe extern "C-unwind" fn $symbol() {
            // Described for the unwinder: asynchronous cancellation may interrupt these instructions.
            core::arch::naked_asm!(
                ".cfi_startproc",
                $($instruction,)+
                ".cfi_endproc",
                $($operand)*
                hook = sym hook
            )
        }
    };
    (@export [$(#[$meta:meta])* $symbol:ident $($export:literal)+] [$($operand:tt)*] $($instruction:literal)+) => {
        $(#[$meta])*
        #[cfg(not(test))]
        #[unsafe(naked)]
        unsafe extern "C-unwind" fn $symbol() {
            // The label is the linker's handle: the compiler's list of exports, which has only names, leaves it out.
            core::arch::naked_asm!(
                concat!(".globl threadt_", stringify!($symbol)),
                concat!(".type threadt_", stringify!($symbol), ", @function"),
                $(concat!(".symver threadt_", stringify!($symbol), ", ", $export),)+
                concat!("threadt_", stringify!($symbol), ":"),
                ".cfi_startproc",
                $($instruction,)+
                ".cfi_endproc",
                concat!(".size threadt_", stringify!($symbol), ", . - threadt_", stringify!($symbol)),
                $($operand)*
                hook = sym hook
            )
        }

        // Nothing in the crate calls the stub.
        #[cfg(not(test))]
        #[used]
        static KEPT: unsafe extern "C-unwind" fn() = $symbol;
    };
}

/// Calls the next function of this name, whose prototype is given, with these arguments. Unsafe as that function is.
macro_rules! call_next {
    ($function:ident($($argument:ident: $kind:ty),*) -> $result:ty) => {{
        let function: unsafe extern "C-unwind" fn($($kind),*) -> $result =
            core::mem::transmute(crate::glibc::next_functions::$function.address());
        function($($argument),*)
    }};
}

/// As [`call_next`], for a next function of up to four arguments that calls functions of the program: they find the stack at the place, modulo
/// 128, where it would be without the hook ([`crate::sys::stack_alignment::call_in_place`]).
macro_rules! call_next_in_place {
    ($place:ident, $function:ident($($argument:ident: $kind:ty),*) -> $result:ty) => {{
        let arguments: &[u64] = &[$($argument as u64),*];
        let function = crate::glibc::next_functions::$function.address();
        let argument = |index: usize| arguments.get(index).copied().unwrap_or(0);
        let [a, b, c, d] = core::array::from_fn(argument);
        crate::sys::stack_alignment::call_in_place(function, $place, a, b, c, d) as $result
    }};
}

/// Calls the next function as [`call_next`] does, as the last thing that a hook does. The compiler makes it a jump: no
/// frame of the library is on the stack then, so that the next function's caller is the host, and nothing unwinds through
/// the hook. An `extern "C-unwind"` call would keep a frame for its landing pad, which no unwinder enters.
macro_rules! jump_to_next {
    ($function:ident($($argument:ident: $kind:ty),*) -> $result:ty) => {{
        let function: unsafe extern "C" fn($($kind),*) -> $result =
            core::mem::transmute(crate::glibc::next_functions::$function.address());
        function($($argument),*)
    }};
}

/// Saves the registers that have a meaning at a function's beginning, rax for the vector registers of a variadic one; the stack is
/// aligned for a call then.
macro_rules! save_registers {
    () => {
        concat!(
            "push rdi\n",
            "push rsi\n",
            "push rdx\n",
            "push rcx\n",
            "push r8\n",
            "push r9\n",
            "push rax\n",
            ".cfi_adjust_cfa_offset 56\n",
        )
    };
}

/// Restores what [`save_registers`] has saved.
macro_rules! restore_registers {
    () => {
        concat!(
            "pop rax\n",
            "pop r9\n",
            "pop r8\n",
            "pop rcx\n",
            "pop rdx\n",
            "pop rsi\n",
            "pop rdi\n",
            ".cfi_adjust_cfa_offset -56\n",
        )
    };
}

/// As [`jump_to_next`], in assembly, with registers and stack as they are. `next` is the next function, `address` where it has
/// its address, and `look_up` a function that returns it.
macro_rules! jump_to_next_with_registers {
    () => {
        concat!(
            "mov r11, qword ptr [rip + {next} + {address}]\n",
            "test r11, r11\n",
            "jnz 2f\n",
            // A constructor that runs before this library's.
            save_registers!(),
            crate::sys::stack_alignment::call_aligned!("{look_up}"),
            "mov r11, rax\n",
            restore_registers!(),
            "2: jmp r11\n",
        )
    };
}

mod clone;
mod create;
mod exec;
mod exit;
mod fork;
mod functions;
mod futex;
mod join;
mod libraries;
mod mutex;
mod once;
mod program_main;
mod result;
mod rwlock;
mod sandbox;
mod sem_open;
mod spawn;
mod spin;
mod streams;
mod system_call;
mod unrecorded;
mod user;
mod user_events;
mod vfork;

/// The hooks that `functions.tsv` describes.
#[allow(
    clippy::let_unit_value,
    clippy::unnecessary_cast,
    clippy::unused_unit,
    non_snake_case,
    unused_variables,
    reason = "one template serves all, also functions without a result, and records without room for the caller"
)]
mod table {
    use core::ffi::{c_int, c_uint};

    use spec::id;

    use super::exec::proc_exec;
    use super::fork::proc_fork;
    use super::mutex::{mutex_lock, mutex_timedlock};
    use super::once::thr_once;
    use super::result::{CallResult, SemStatus, ThrdStatus, stored};
    use super::rwlock::{rw_rdlock, rw_timedrdlock, rw_timedwrlock, rw_wrlock};
    use super::spin::spin_lock;
    use crate::clock;
    use crate::config::detail;
    use crate::glibc::call_arguments::*;
    use crate::glibc::next_functions;
    use crate::glibc::object_words::*;
    use crate::recorder::{self, ReturnRecord, switch};

    include!(concat!(env!("OUT_DIR"), "/hooks.rs"));
}
