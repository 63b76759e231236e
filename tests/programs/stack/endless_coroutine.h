/* A coroutine that never returns: it calls `fail` and switches back, again and again. */

/* Switches to another stack, with unwind information as compilers write it: the registers that functions keep, and the return address, are on
 * the stack of who does not run. `own` gets where they are; `other` is where those of the next one are. */
void switch_stack(void **own, void *other);
__asm__(".text\n.globl switch_stack\n.type switch_stack, @function\n"
	"switch_stack:\n"
	".cfi_startproc\n"
	"push %rbp\n.cfi_adjust_cfa_offset 8\n"
	"push %rbx\n.cfi_adjust_cfa_offset 8\n"
	"push %r12\n.cfi_adjust_cfa_offset 8\n"
	"push %r13\n.cfi_adjust_cfa_offset 8\n"
	"push %r14\n.cfi_adjust_cfa_offset 8\n"
	"push %r15\n.cfi_adjust_cfa_offset 8\n"
	"mov %rsp, (%rdi)\n"
	"mov %rsi, %rsp\n"
	"pop %r15\n"
	"pop %r14\n"
	"pop %r13\n"
	"pop %r12\n"
	"pop %rbx\n"
	"pop %rbp\n"
	"ret\n"
	".cfi_endproc\n"
	".size switch_stack, .-switch_stack\n");

static void *main_stack, *own_stack;

static void fail(void);

__attribute__((noreturn)) static void coroutine(void)
{
	for (;;) {
		fail();
		switch_stack(&own_stack, main_stack);
	}
}
