/* A coroutine whose stack begins at the very end of touched memory, as its function never returns: what a walk finds above that is no part of
 * the stack. It fails to lock a mutex, by itself and in generated code that has the frame pointer there. Prints whether the kernel has a page
 * there then, after each. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "endless_coroutine.h"

enum { SIZE = 65536 };

static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
static void (*volatile called)(void);

__attribute__((noinline)) static void try(void)
{
	pthread_mutex_trylock(&held);
	__asm__ volatile("" ::: "memory");
}

__attribute__((noinline)) static void fail(void)
{
	called();
	__asm__ volatile("" ::: "memory");
}

/* push %rbp; mov $frame, %rbp; mov $try, %rax; call *%rax; pop %rbp; ret */
static void (*generate(uintptr_t frame))(void)
{
	unsigned char code[] = {0x55, 0x48, 0xbd, 0, 0, 0, 0, 0, 0, 0, 0, 0x48, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xd0, 0x5d, 0xc3};
	uintptr_t function = (uintptr_t)try;
	memcpy(code + 3, &frame, 8);
	memcpy(code + 13, &function, 8);
	void *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memcpy(memory, code, sizeof code);
	return (void (*)(void))memory;
}

int main(void)
{
	pthread_mutex_lock(&held);
	char *memory = mmap(NULL, 2 * SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *above = memory + SIZE;
	/* A page of its own, and no part of a huge one. */
	madvise(memory, 2 * SIZE, MADV_NOHUGEPAGE);
	uintptr_t *top = (uintptr_t *)above;
	*--top = (uintptr_t)coroutine;
	own_stack = top - 6;
	void (*functions[])(void) = {try, generate((uintptr_t)above + 512)};
	for (int i = 0; i < 2; i++) {
		unsigned char is_there = 9;
		called = functions[i];
		switch_stack(&main_stack, own_stack);
		mincore(above, 4096, &is_there);
		printf("%d\n", is_there & 1);
		madvise(above, SIZE, MADV_DONTNEED);
	}
	return 0;
}
