/* One thread closes and opens the plugin $PLUGIN, again and again; another one, in code without unwind information, fails to lock
 * a mutex 50000 times: `reloads CASE`. It uses nothing of the plugin but addresses.
 *
 * table     they are between its stack pointer and its frame pointer
 * pointer   its frame pointer points to a struct that has one where a return address would be
 * filtered  as pointer; a seccomp filter that forbids nothing is in force */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

enum { CALLS = 50000, FUNCTIONS = 64 };

extern void *plugin;
void reload(void);

static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
static volatile int has_ended;
static void *functions[FUNCTIONS];

static void *reload_again_and_again(void *nothing)
{
	while (!has_ended)
		reload();
	return nothing;
}

/* This file is compiled with frame pointers and without unwind information. */
__attribute__((noinline)) static int fail_with_table(void)
{
	void *volatile table[FUNCTIONS];
	memcpy((void *)table, functions, sizeof functions);
	return pthread_mutex_trylock(&held) + (table[0] == NULL);
}

int fail_with_pointer(pthread_mutex_t *mutex, void *function);
__asm__(".text\n"
	".globl fail_with_pointer\n.type fail_with_pointer, @function\n"
	"fail_with_pointer:\n"
	"push %rbp\n"
	"sub $32, %rsp\n"
	"movq $0, (%rsp)\n"
	"mov %rsi, 8(%rsp)\n"
	"movq $0, 16(%rsp)\n"
	"mov %rsp, %rbp\n"
	"call pthread_mutex_trylock@PLT\n"
	"add $32, %rsp\n"
	"pop %rbp\n"
	"ret\n"
	".size fail_with_pointer, .-fail_with_pointer\n");

static void *hold(void *nothing)
{
	pthread_mutex_lock(&held);
	return nothing;
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "";
	if (strcmp(name, "filtered") == 0) {
		struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
		struct sock_fprog filter = {1, &allow};
		if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0)
			return 1;
	}
	pthread_t thread;
	pthread_create(&thread, NULL, hold, NULL);
	pthread_join(thread, NULL);
	for (int i = 0; i < FUNCTIONS; i++)
		functions[i] = dlsym(plugin, i % 2 == 0 ? "reloaded" : "reloaded_first");
	void *function = functions[0];
	if (function == NULL)
		return 1;
	pthread_create(&thread, NULL, reload_again_and_again, NULL);
	int failures = 0;
	for (int i = 0; i < CALLS; i++)
		failures += (strcmp(name, "table") == 0 ? fail_with_table() : fail_with_pointer(&held, function)) != 0;
	has_ended = 1;
	pthread_join(thread, NULL);
	printf("%d\n", failures);
	return 0;
}
