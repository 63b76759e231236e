/* A crash handler that fails to lock a mutex: `faults CASE [alternate]`, on an alternate signal stack or not.
 *
 * first     the first instruction of a function faults
 * epilogue  a function has restored rbp, which its unwind information has on the stack still, below rsp
 * kept      a function has its caller's stack pointer in its frame
 * null      a null pointer is called
 * ones      a pointer of which all bits are set, as functions return it that have failed
 * wild      a pointer to where no code is
 * returned  a function returns to 0, and what is above its stack is no return address
 * handler   the handler of another signal is where no code is */
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
static sigjmp_buf before;
static int *volatile nowhere;
static void (*volatile called)(void);

static void handle(int signal)
{
	(void)signal;
	pthread_mutex_trylock(&held);
	siglongjmp(before, 1);
}

#define CALLER_OF(function)                                          \
	__attribute__((noinline)) static void call_##function(void)  \
	{                                                            \
		function(nowhere);                                   \
		__asm__ volatile("" ::: "memory");                   \
	}

/* The function before the one that faults, without room between them. */
void last_before(void);
int first_faults(int *);
__asm__(".text\n"
	".type last_before, @function\n"
	"last_before:\n"
	".cfi_startproc\n"
	"ret\n"
	".cfi_endproc\n"
	".size last_before, .-last_before\n"
	".type first_faults, @function\n"
	"first_faults:\n"
	".cfi_startproc\n"
	"mov (%rdi), %eax\n"
	"ret\n"
	".cfi_endproc\n"
	".size first_faults, .-first_faults\n");

/* GCC describes epilogues so. What is below rsp there stays, as in any function that uses it. */
int epilogue_faults(int *);
__asm__(".text\n"
	".type epilogue_faults, @function\n"
	"epilogue_faults:\n"
	".cfi_startproc\n"
	"push %rbp\n"
	".cfi_def_cfa_offset 16\n"
	".cfi_offset %rbp, -16\n"
	"xor %ebp, %ebp\n"
	"pop %rbp\n"
	".cfi_def_cfa_offset 8\n"
	"mov (%rdi), %eax\n"
	"ret\n"
	".cfi_endproc\n"
	".size epilogue_faults, .-epilogue_faults\n");

CALLER_OF(epilogue_faults)

/* As OpenSSL's functions do: the canonical frame address is what is at 24(%rsp), and 8. */
int kept_faults(int *);
__asm__(".text\n"
	".type kept_faults, @function\n"
	"kept_faults:\n"
	".cfi_startproc\n"
	"mov %rsp, %rax\n"
	".cfi_def_cfa_register %rax\n"
	"sub $64, %rsp\n"
	"and $-64, %rsp\n"
	"mov %rax, 24(%rsp)\n"
	".cfi_escape 0x0f, 5, 0x77, 24, 0x06, 0x23, 8\n"
	"mov (%rdi), %eax\n"
	"mov 24(%rsp), %rsp\n"
	".cfi_def_cfa %rsp, 8\n"
	"ret\n"
	".cfi_endproc\n"
	".size kept_faults, .-kept_faults\n");

CALLER_OF(kept_faults)

CALLER_OF(first_faults)

__attribute__((noinline)) static void call_pointer(void *function)
{
	called = (void (*)(void))function;
	called();
	__asm__ volatile("" ::: "memory");
}

/* Returns to 0, to a stack whose uppermost word is the address of a function. */
__attribute__((noinline)) static void return_to_nowhere(void)
{
	__asm__ volatile("push %0\n\tpush $0\n\tret" : : "r"(call_pointer));
}

__attribute__((noinline)) static void raise_other(void)
{
	struct sigaction action = {.sa_handler = (void (*)(int))4096};
	sigaction(SIGUSR1, &action, NULL);
	raise(SIGUSR1);
	__asm__ volatile("" ::: "memory");
}

int main(int argc, char **argv)
{
	static char memory[64 * 1024];
	stack_t stack = {.ss_sp = memory, .ss_size = sizeof memory};
	sigaltstack(&stack, NULL);
	struct sigaction action = {.sa_handler = handle, .sa_flags = SA_NODEFER | (argc > 2 ? SA_ONSTACK : 0)};
	sigaction(SIGSEGV, &action, NULL);
	pthread_mutex_lock(&held);
	last_before();
	if (sigsetjmp(before, 1))
		return 0;
	const char *name = argc > 1 ? argv[1] : "";
	if (strcmp(name, "first") == 0)
		call_first_faults();
	else if (strcmp(name, "epilogue") == 0)
		call_epilogue_faults();
	else if (strcmp(name, "kept") == 0)
		call_kept_faults();
	else if (strcmp(name, "null") == 0)
		call_pointer(NULL);
	else if (strcmp(name, "ones") == 0)
		call_pointer((void *)-1);
	else if (strcmp(name, "wild") == 0)
		call_pointer((void *)0x123450);
	else if (strcmp(name, "returned") == 0)
		return_to_nowhere();
	else if (strcmp(name, "handler") == 0)
		raise_other();
	return 1;
}
