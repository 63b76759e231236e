/* A coroutine that a signal handler on an alternate stack has begun, as libraries make them that know only C: the handler has returned.
 * It fails to lock a mutex. */
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>

static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
static sigjmp_buf coroutine, resumed;

__attribute__((noinline)) static void fail(void)
{
	pthread_mutex_trylock(&held);
	__asm__ volatile("" ::: "memory");
}

static void begin(int signal)
{
	(void)signal;
	if (sigsetjmp(coroutine, 1) == 0)
		return;
	fail();
	siglongjmp(resumed, 1);
}

__attribute__((noinline)) static void make(void)
{
	stack_t stack = {.ss_sp = malloc(65536), .ss_size = 65536}, none = {.ss_flags = SS_DISABLE};
	struct sigaction action = {.sa_handler = begin, .sa_flags = SA_ONSTACK};
	sigaction(SIGUSR1, &action, NULL);
	sigaltstack(&stack, NULL);
	raise(SIGUSR1);
	sigaltstack(&none, NULL);
	__asm__ volatile("" ::: "memory");
}

__attribute__((noinline)) static void resume(void)
{
	if (sigsetjmp(resumed, 1) == 0)
		siglongjmp(coroutine, 1);
}

int main(void)
{
	pthread_mutex_lock(&held);
	make();
	resume();
	return 0;
}
