/* A coroutine whose stack begins at the very end of its mapping, as its function never returns; another thread unmaps and maps what is
 * above it again and again. It fails to lock a mutex 200000 times. `neighbours below`: what is above that is the stack of the thread that
 * runs the coroutine, memory of the program's without guard pages. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "endless_coroutine.h"

enum { CALLS = 200000, SIZE = 65536, THREAD_SIZE = 4 * SIZE };

static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
static volatile int has_ended;
static char *above;
static int failures;

__attribute__((noinline)) static void fail(void)
{
	for (int i = 0; i < CALLS / 2; i++)
		failures += pthread_mutex_trylock(&held) != 0;
	__asm__ volatile("" ::: "memory");
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
