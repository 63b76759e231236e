/* A coroutine whose stack is an array on the thread's own stack; as its function never returns, there is no room for a return address, and
 * the word there is the address of a plugin's function. Another thread closes and opens the plugin $PLUGIN again and again. The coroutine
 * fails to lock a mutex 100000 times. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "endless_coroutine.h"

enum { CALLS = 100000, SIZE = 65536 };

extern void *plugin;
void reload(void);

static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
static volatile int has_ended;
static int failures;

struct task {
	_Alignas(16) char stack[SIZE];
	void *function;
};

__attribute__((noinline)) static void fail(void)
{
	for (int i = 0; i < CALLS; i++)
		failures += pthread_mutex_trylock(&held) != 0;
	__asm__ volatile("" ::: "memory");
}

static void *reload_again_and_again(void *nothing)
{
	while (!has_ended)
		reload();
	return nothing;
}

__attribute__((noinline)) static void run_task(void *function)
{
	struct task task;
	task.function = function;
	uintptr_t *top = (uintptr_t *)(task.stack + SIZE);
	*--top = (uintptr_t)coroutine;
	for (int i = 0; i < 6; i++)
		*--top = 0;
	__asm__ volatile("" ::"r"(&task) : "memory");
	switch_stack(&main_stack, top);
}

int main(void)
{
	pthread_mutex_lock(&held);
	void *function = dlsym(plugin, "reloaded");
	if (function == NULL)
		return 1;
	pthread_t thread;
	pthread_create(&thread, NULL, reload_again_and_again, NULL);
	run_task(function);
	has_ended = 1;
	pthread_join(thread, NULL);
	printf("%d\n", failures);
	return 0;
}
