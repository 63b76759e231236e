/* Fails to lock a mutex where the stack cannot be followed, or must not. Prints what it prints natively. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "addresses.h"

#define PAGE 4096

static void fail(void)
{
	errno = 0;
	int result = pthread_mutex_trylock(&held);
	printf("%d %d\n", result, errno);
	fflush(stdout);
}

typedef void caller(void (*function)(void));

/* Code without unwind information that calls its argument. */
static caller *generated(const unsigned char *code, size_t size)
{
	unsigned char *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memcpy(page, code, size);
	mprotect(page, PAGE, PROT_READ | PROT_EXEC);
	return (caller *)(uintptr_t)page;
}

static void generated_code(void)
{
	/* push rbp; mov rbp, rsp; call rdi; pop rbp; ret */
	static const unsigned char with_frame[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3};
	/* push rbp; xor ebp, ebp; not rbp; call rdi; pop rbp; ret */
	static const unsigned char without_frame[] = {0x55, 0x31, 0xed, 0x48, 0xf7, 0xd5, 0xff, 0xd7, 0x5d, 0xc3};
	generated(with_frame, sizeof with_frame)(fail);
	generated(without_frame, sizeof without_frame)(fail);
}

/* Code that is made and removed again, one after the other, most of it at the same address. */
static void removed_code(void)
{
	static const unsigned char with_frame[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3};
	for (int i = 0; i < 3; i++) {
		caller *code = generated(with_frame, sizeof with_frame);
		code(fail);
		code(fail);
		munmap((void *)(uintptr_t)code, PAGE);
	}
}

/* Files with such code, which the program maps by itself, one after the other at the same address: `count` of them in turn. */
static void mapped_files(int count)
{
	static const unsigned char with_frame[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3};
	void *address = NULL;
	for (int i = 0; i < count; i++) {
		int file = open(i % 2 ? "second" : "first", O_RDWR | O_CREAT, 0600);
		if (pwrite(file, with_frame, sizeof with_frame, PAGE) != sizeof with_frame || ftruncate(file, 2 * PAGE))
			exit(1);
		int flags = MAP_PRIVATE | (address ? MAP_FIXED : 0);
		address = mmap(address, PAGE, PROT_READ | PROT_EXEC, flags, file, PAGE);
		close(file);
		((caller *)(uintptr_t)address)(fail);
		((caller *)(uintptr_t)address)(fail);
	}
}

/* Calls `function` on another stack that ends at `top`, with this rbp; the frame says nothing about it. */
void call_on(void (*function)(void), void *top, void *rbp);
__asm__(".text\n"
	"call_on:\n"
	"push %rbp\n"
	"push %rbx\n"
	"mov %rsp, %rbx\n"
	"mov %rsi, %rsp\n"
	"mov %rdx, %rbp\n"
	"call *%rdi\n"
	"mov %rbx, %rsp\n"
	"pop %rbx\n"
	"pop %rbp\n"
	"ret\n");

/* A stack at the end of what is mapped. */
static void edge(void)
{
	char *memory = mmap(NULL, 17 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *top = memory + 16 * PAGE;
	munmap(top, PAGE);
	call_on(fail, top, NULL);
	call_on(fail, top, top - 16);
	call_on(fail, top, top);
	call_on(fail, top, top + 64 * PAGE);
	call_on(fail, top, (void *)-16);
	call_on(fail, top, (void *)16);
	/* Frames that lead to each other, and to places that are no code. */
	uintptr_t *words = (uintptr_t *)(top - 512);
	for (int i = 0; i < 64; i++)
		words[i] = i % 2 ? (uintptr_t)fail : (uintptr_t)(words + (i + 2) % 64);
	call_on(fail, top - 512, words);
	for (int i = 0; i < 64; i++)
		words[i] = 0x4141414141414141;
	call_on(fail, top - 512, words);
}

/* Two stacks in one mapping, and a page between them that cannot be read: that of a coroutine, and above it its thread's. */
#define STACK_PAGES 64
static char *two_stacks;

static void *run_coroutine(void *argument)
{
	(void)argument;
	/* Frames that lead to one another: what has been called, on the other stack, by what has been called here. */
	call_on(fail, two_stacks + STACK_PAGES * PAGE, __builtin_frame_address(0));
	__asm__ volatile("" ::: "memory");
	return NULL;
}

static void coroutine(void)
{
	size_t size = (2 * STACK_PAGES + 1) * PAGE;
	two_stacks = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	mprotect(two_stacks + STACK_PAGES * PAGE, PAGE, PROT_NONE);
	pthread_attr_t attributes;
	pthread_attr_init(&attributes);
	pthread_attr_setstack(&attributes, two_stacks + (STACK_PAGES + 1) * PAGE, STACK_PAGES * PAGE);
	pthread_t thread;
	pthread_create(&thread, &attributes, run_coroutine, NULL);
	pthread_join(thread, NULL);
}

/* A handler on an alternate stack has interrupted code whose stack pointer leads nowhere. */
static void handle_there(int signal, siginfo_t *info, void *context)
{
	(void)signal;
	(void)info;
	greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
	greg_t kept = registers[REG_RSP];
	uintptr_t own = (uintptr_t)__builtin_frame_address(0);
	uintptr_t places[] = {0, 8, 7, PAGE, own, own - PAGE, (uintptr_t)context, (uintptr_t)two_stacks, -(uintptr_t)8, 1ul << 62};
	for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
		registers[REG_RSP] = (greg_t)places[i];
		fail();
	}
	registers[REG_RSP] = kept;
}

static void lost(void)
{
	static char memory[64 * 1024];
	stack_t stack = {.ss_sp = memory, .ss_size = sizeof memory};
	sigaltstack(&stack, NULL);
	two_stacks = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct sigaction action = {.sa_sigaction = handle_there, .sa_flags = SA_ONSTACK | SA_SIGINFO};
	sigaction(SIGUSR1, &action, NULL);
	raise(SIGUSR1);
}

static void overwritten(void)
{
	/* What would return to main returns nowhere, while the call lasts. */
	void *volatile *frame = __builtin_frame_address(0);
	void *kept[2] = {frame[0], frame[1]};
	frame[0] = (void *)0x4242424242424242;
	frame[1] = (void *)0x4141414141414141;
	fail();
	frame[0] = (void *)frame;
	frame[1] = (void *)(uintptr_t)fail;
	fail();
	frame[0] = kept[0];
	frame[1] = kept[1];
}

static void handle(int signal)
{
	(void)signal;
	fail();
}

static void alternate(void)
{
	static char memory[64 * 1024];
	stack_t stack = {.ss_sp = memory, .ss_size = sizeof memory};
	sigaltstack(&stack, NULL);
	struct sigaction action = {.sa_handler = handle, .sa_flags = SA_ONSTACK};
	sigaction(SIGUSR1, &action, NULL);
	raise(SIGUSR1);
}

static void child(void)
{
	pid_t pid = vfork();
	if (pid == 0) {
		pthread_mutex_trylock(&held);
		_exit(3);
	}
	int status;
	waitpid(pid, &status, 0);
	printf("%d\n", WEXITSTATUS(status));
	fail();
}

static void clean_up(void *argument)
{
	(void)argument;
	puts("cleaned up");
}

static void *wait_in_condition(void *argument)
{
	(void)argument;
	pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
	pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
	pthread_mutex_lock(&mutex);
	pthread_cleanup_push(clean_up, NULL);
	pthread_cond_wait(&condition, &mutex);
	pthread_cleanup_pop(0);
	return NULL;
}

static void cancelled(void)
{
	pthread_t thread;
	void *status;
	pthread_create(&thread, NULL, wait_in_condition, NULL);
	usleep(20000);
	pthread_cancel(thread);
	pthread_join(thread, &status);
	printf("%d\n", status == PTHREAD_CANCELED);
}

/* Two libraries, one after the other, at one place. */
static void closed(char **libraries)
{
	for (int turn = 0; turn < 4; turn++) {
		void *library = dlopen(libraries[turn % 2], RTLD_NOW);
		if (library == NULL) {
			printf("%s\n", dlerror());
			return;
		}
		void (*call)(void (*)(const char *)) = (void (*)(void (*)(const char *)))dlsym(library, "call_back");
		call(fail_here);
		dlclose(library);
	}
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "";
	pthread_mutex_lock(&held);
	if (strcmp(name, "generated") == 0)
		generated_code();
	else if (strcmp(name, "removed") == 0)
		removed_code();
	else if (strcmp(name, "mapped") == 0 && argc == 3)
		mapped_files(atoi(argv[2]));
	else if (strcmp(name, "edge") == 0)
		edge();
	else if (strcmp(name, "coroutine") == 0)
		coroutine();
	else if (strcmp(name, "lost") == 0)
		lost();
	else if (strcmp(name, "overwritten") == 0)
		overwritten();
	else if (strcmp(name, "alternate") == 0)
		alternate();
	else if (strcmp(name, "child") == 0)
		child();
	else if (strcmp(name, "cancelled") == 0)
		cancelled();
	else if (strcmp(name, "closed") == 0 && argc == 4)
		closed(argv + 2);
	else
		return 1;
	puts("done");
	return 0;
}
