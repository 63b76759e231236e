/* A coroutine whose stack begins at the very end of its mapping, as its function never returns; another thread unmaps and maps what is
 * above it again and again. It fails to lock a mutex 200000 times. `neighbours below`: what is above that is the stack of the thread that
 * runs the coroutine, memory of the program's without guard pages. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { CALLS = 200000, SIZE = 65536, THREAD_SIZE = 4 * SIZE };

static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
static volatile int has_ended;
static char *above;
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

__attribute__((noinline)) static void fail(void)
{
	for (int i = 0; i < CALLS / 2; i++)
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

static void *unmap_again_and_again(void *nothing)
{
	while (!has_ended) {
		munmap(above, SIZE);
		mmap(above, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
		above[0] = 0;
	}
	return nothing;
}

static void *run_coroutine(void *nothing)
{
	uintptr_t *top = (uintptr_t *)above;
	*--top = (uintptr_t)coroutine;
	top -= 6;
	switch_stack(&main_stack, top);
	pthread_t thread;
	pthread_create(&thread, NULL, unmap_again_and_again, NULL);
	switch_stack(&main_stack, own_stack);
	has_ended = 1;
	pthread_join(thread, NULL);
	return nothing;
}

int main(int argc, char **argv)
{
	(void)argv;
	pthread_mutex_lock(&held);
	char *memory = mmap(NULL, 2 * SIZE + THREAD_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	above = memory + SIZE;
	if (argc > 1) {
		pthread_attr_t attributes;
		pthread_t thread;
		pthread_attr_init(&attributes);
		pthread_attr_setstack(&attributes, above + SIZE, THREAD_SIZE);
		pthread_create(&thread, &attributes, run_coroutine, NULL);
		pthread_join(thread, NULL);
	} else
		run_coroutine(NULL);
	printf("%d\n", failures);
	return 0;
}
