//! Calls from code whose stack pointer is not where the ABI wants it.
//!
//! A function may rely on a stack that is aligned to 16 bytes where it is called, and the compiler stores whole SSE registers
//! there. Code that is compiled with `-mpreferred-stack-boundary=3`, and some assembly, calls libc with 8 bytes more on the stack.
//! libc's functions mostly do without such stores, so that the program works; this library's functions would raise SIGSEGV. So
//! what the host calls are stubs, which align the stack.
//!
//! Other code counts on more than the ABI promises (`-mpreferred-stack-boundary=5` for the sake of AVX). It finds it where all that
//! calls it keeps the stack so, by luck also libc. So where libc calls the program's functions, the frames of this library between are
//! a multiple of 128 bytes.

use core::arch::naked_asm;

/// Instructions, as the last ones of a stub with the stack and the arguments as the caller left them: jump to a function whose
/// arguments are in registers. Where the stack is not aligned, the return address of a call aligns it.
macro_rules! enter_aligned {
    ($function:literal) => {
        concat!("test spl, 8\n", "jz 7f\n", "jmp ", $function, "\n", "7: call ", $function, "\n", "ret\n")
    };
}

/// Instructions: call a function whose arguments are in registers, wherever the stack pointer is. They are described for the
/// unwinder, where the stub describes its frame from `rsp`.
macro_rules! call_aligned {
    ($function:literal) => {
        concat!(
            "push rbp\n",
            ".cfi_adjust_cfa_offset 8\n",
            ".cfi_rel_offset rbp, 0\n",
            "mov rbp, rsp\n",
            ".cfi_def_cfa_register rbp\n",
            "and rsp, -16\n",
            "call ",
            $function,
            "\n",
            "mov rsp, rbp\n",
            ".cfi_def_cfa_register rsp\n",
            "pop rbp\n",
            ".cfi_adjust_cfa_offset -8\n",
            ".cfi_restore rbp\n",
        )
    };
}

/// Instructions: the third to sixth argument of a call become the first to fourth of another one.
macro_rules! shift_arguments {
    () => {
        "mov rdi, rdx\nmov rsi, rcx\nmov rdx, r8\nmov rcx, r9\n"
    };
}

pub(crate) use {call_aligned, enter_aligned, shift_arguments};

/// Calls `function(a, b, c, d)` and returns its result. The function finds the stack a multiple of 128 bytes below `place`, where it
/// would find it if the host, whose call has put the return address at `place`, had called it.
///
/// # Safety
/// `function` must be callable with these arguments, integers or pointers.
#[unsafe(naked)]
pub unsafe extern "C-unwind" fn call_in_place(
    function: *const (),
    place: *const u64,
    a: u64,
    b: u64,
    c: u64,
    d: u64,
) -> u64 {
    naked_asm!(
        ".cfi_startproc",
        "push rbp",
        ".cfi_def_cfa_offset 16",
        ".cfi_offset rbp, -16",
        "mov rbp, rsp",
        ".cfi_def_cfa_register rbp",
        // The call puts its return address below rsp. From 1 to 128 bytes are left out.
        "add rsi, 8",
        "sub rsi, rsp",
        "or rsi, -128",
        "add rsp, rsi",
        "mov rax, rdi",
        shift_arguments!(),
        "call rax",
        "leave",
        ".cfi_def_cfa rsp, 8",
        ".cfi_restore rbp",
        "ret",
        ".cfi_endproc",
    )
}
