/* Prints the stack that the C library's unwinder finds, and makes a call that fails at the same place. */
#ifndef ADDRESSES_H
#define ADDRESSES_H

#include <dlfcn.h>
#include <execinfo.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* The calling thread holds it. */
static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;

/* Whether the address is in the library that records. */
static int is_recorder(void *address)
{
	Dl_info info;
	return dladdr(address, &info) && strstr(info.dli_fname, "libthreadt.so") != NULL;
}

/* Prints "shape: 0x... 0x..." without the address in this function, and tries to lock what is locked. */
__attribute__((noinline, unused)) static void fail_here(const char *shape)
{
	void *frames[200];
	int count = backtrace(frames, 200);
	printf("%s:", shape);
	for (int i = 1; i < count; i++)
		if (!is_recorder(frames[i]))
			printf(" %p", frames[i]);
	printf("\n");
	fflush(stdout);
	pthread_mutex_trylock(&held);
	/* Not the last thing that it does. */
	__asm__ volatile("" ::: "memory");
}

#endif
