/* Prints the stack that the C library's unwinder finds, and makes a call that fails at the same place. */
#ifndef ADDRESSES_H
#define ADDRESSES_H

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unwind.h>

/* The calling thread holds it. */
static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;

/* Whether the address is in the library that records. */
static int is_recorder(void *address)
{
	Dl_info info;
	return dladdr(address, &info) && strstr(info.dli_fname, "libthreadt.so") != NULL;
}

struct frames {
	int count;
	void *addresses[200];
};

/* Of a frame that a signal has interrupted the next address is noted, so that the one before each is in the code that was in progress. */
static _Unwind_Reason_Code note_frame(struct _Unwind_Context *context, void *argument)
{
	struct frames *frames = (struct frames *)argument;
	int is_interrupted;
	char *address = (char *)_Unwind_GetIPInfo(context, &is_interrupted);
	if (address == NULL || frames->count == 200)
		return _URC_END_OF_STACK;
	frames->addresses[frames->count++] = address + is_interrupted;
	return _URC_NO_REASON;
}

/* Prints "shape: 0x... 0x..." without the address in this function, and tries to lock what is locked. */
__attribute__((noinline, unused)) static void fail_here(const char *shape)
{
	struct frames frames;
	frames.count = 0;
	_Unwind_Backtrace(note_frame, &frames);
	printf("%s:", shape);
	for (int i = 1; i < frames.count; i++)
		if (!is_recorder(frames.addresses[i]))
			printf(" %p", frames.addresses[i]);
	printf("\n");
	fflush(stdout);
	pthread_mutex_trylock(&held);
	/* Not the last thing that it does. */
	__asm__ volatile("" ::: "memory");
}

#endif
