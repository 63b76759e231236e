/* A crash handler that fails to lock a mutex: `faults CASE [alternate]`, on an alternate signal stack or not.
 *
 * first  the first instruction of a function faults */
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
static sigjmp_buf before;
static int *volatile nowhere;

static void handle(int signal)
{
	(void)signal;
	pthread_mutex_trylock(&held);
	siglongjmp(before, 1);
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

__attribute__((noinline)) static void call_first_faults(void)
{
	first_faults(nowhere);
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
	if (argc > 1 && strcmp(argv[1], "first") == 0)
		call_first_faults();
	return 1;
}
