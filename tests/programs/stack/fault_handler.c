/* A thread serves the page faults of another one, 16 of them, and fails to lock a mutex in between, with a fault's address on its stack.
 * It prints how many it has served. Prints "none" where the kernel does not give it a userfaultfd.
 *
 * This file is compiled with frame pointers and without unwind information. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { FAULTS = 16, PAGE = 4096 };

static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
static int faults;
static volatile int failures;

__attribute__((noinline)) static int serve_one(char *contents)
{
	struct uffd_msg message;
	if (read(faults, &message, sizeof message) != sizeof message)
		return 0;
	failures += pthread_mutex_trylock(&held) != 0;
	struct uffdio_copy copy = {
		.dst = message.arg.pagefault.address & -PAGE,
		.src = (unsigned long)contents,
		.len = PAGE,
	};
	return ioctl(faults, UFFDIO_COPY, &copy) == 0;
}

static void *serve(void *contents)
{
	while (serve_one(contents))
		;
	return contents;
}

int main(void)
{
	faults = syscall(SYS_userfaultfd, O_CLOEXEC);
	struct uffdio_api api = {.api = UFFD_API};
	if (faults < 0 || ioctl(faults, UFFDIO_API, &api) != 0) {
		puts("none");
		return 0;
	}
	pthread_mutex_lock(&held);
	char *memory = mmap(NULL, (FAULTS + 1) * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *contents = memory + FAULTS * PAGE;
	memset(contents, 1, PAGE);
	struct uffdio_register missing = {
		.range = {(unsigned long)memory, FAULTS * PAGE},
		.mode = UFFDIO_REGISTER_MODE_MISSING,
	};
	if (ioctl(faults, UFFDIO_REGISTER, &missing) != 0)
		return 1;
	pthread_t thread;
	pthread_create(&thread, NULL, serve, contents);
	int sum = 0;
	for (int i = 0; i < FAULTS; i++)
		sum += ((volatile char *)memory)[i * PAGE];
	printf("%d %d\n", sum, failures);
	return 0;
}
