/* A coroutine whose stack is an array on the thread's own stack; as its function never returns, there is no room for a return address, and
 * the word there is the address of a plugin's function. Another thread closes and opens the plugin $PLUGIN again and again. The coroutine
 * fails to lock a mutex 100000 times. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { CALLS = 100000, SIZE = 65536 };

extern void *plugin;
void reload(void);

static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
static volatile int has_ended;
static int failures;

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

__attribute__((noreturn)) static void coroutine(void)
{
	for (;;) {
		fail();
		switch_stack(&own_stack, main_stack);
	}
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
