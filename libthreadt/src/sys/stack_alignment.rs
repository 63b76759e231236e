//! Calls from code whose stack pointer is not where the ABI wants it.
//!
//! A function may rely on a stack that is aligned to 16 bytes where it is called, and the compiler stores whole SSE registers
//! there. Code that is compiled with `-mpreferred-stack-boundary=3`, and some assembly, calls libc with 8 bytes more on the stack.
//! libc's functions mostly do without such stores, so that the program works; this library's functions would raise SIGSEGV. So
//! what the host calls are stubs, which align the stack.

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

pub(crate) use {call_aligned, enter_aligned};
