/* Opens a library where another one was, before the `dlclose` of that has returned: `closing CASE SMALL LARGE`. Compiled as a shared
 * object that is preloaded behind the recorder: a `dlclose` that lets the program do something as soon as the library is unmapped, as
 * another thread might.
 *
 * within  LARGE is opened and called within the closing of SMALL, and SMALL within the closing of that
 * read    within the closing of SMALL a library is closed that stays open; after it LARGE is opened and called */
#define _GNU_SOURCE
#include "addresses.h"

typedef void callback(void);
void call_when_unmapped(callback *function);

#ifdef INTERPOSER
static callback *when_unmapped;

void call_when_unmapped(callback *function)
{
	when_unmapped = function;
}

int dlclose(void *library)
{
	int (*next)(void *) = (int (*)(void *))dlsym(RTLD_NEXT, "dlclose");
	int result = next(library);
	callback *function = when_unmapped;
	when_unmapped = NULL;
	if (function)
		function();
	return result;
}
#else
static void (*set)(callback *function);
static char **libraries;
static void *other;

static void *open_and_call(int number)
{
	void *library = dlopen(libraries[number], RTLD_NOW);
	void (*call)(void (*)(const char *)) = (void (*)(void (*)(const char *)))dlsym(library, "call_back");
	call(fail_here);
	return library;
}

static void call_small(void)
{
	dlclose(open_and_call(0));
}

static void call_large(void)
{
	void *large = open_and_call(1);
	set(call_small);
	dlclose(large);
}

static void close_other(void)
{
	dlclose(other);
}

int main(int argc, char **argv)
{
	set = (void (*)(callback *))dlsym(RTLD_DEFAULT, "call_when_unmapped");
	if (argc != 4 || set == NULL)
		return 1;
	libraries = argv + 2;
	pthread_mutex_lock(&held);
	int reads = strcmp(argv[1], "read") == 0;
	/* Twice, so that it stays when it is closed once. */
	dlopen("libm.so.6", RTLD_NOW);
	other = dlopen("libm.so.6", RTLD_NOW);
	void *small = open_and_call(0);
	set(reads ? close_other : call_large);
	dlclose(small);
	dlclose(open_and_call(1));
	dlclose(open_and_call(0));
	return 0;
}
#endif
