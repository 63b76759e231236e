/* Code without unwind information fails to lock a mutex, called by functions with frame pointers: `frame_pointers CASE`.
 *
 * frame              it has set up a frame, in which there are addresses of code
 * no_frame           it has left rbp alone
 * handler_frame      it is a signal handler that has set up a frame
 * handler_no_frame   and one that has not
 * interrupted        a signal has interrupted it before it sets up its frame
 * generated          it was generated, and has left rbp alone
 * generated_caller   so was its caller, which has set up a frame
 * far                as generated_caller, and the two are far from each other
 * calls_module       generated code that has set up a frame calls no_frame
 * jumped             it has set up a frame, and was jumped to by the function that was called
 * behind_abort       rbp points to where the return address would be a function's beginning, behind one that calls abort
 * behind_call        the same, behind one that ends in another call
 * restorer           it is what a handler returns to */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;

void fail(void);
void fail(void)
{
	pthread_mutex_trylock(&held);
	__asm__ volatile("" ::: "memory");
}

typedef void caller(void (*function)(void));
caller frame, no_frame, interrupted, jumped, points_behind_abort, points_behind_call;
void restorer(void);
void handler_frame(int), handler_no_frame(int);
#define FUNCTION(name, body) \
	".globl " #name "\n.type " #name ", @function\n" #name ":\n" body ".size " #name ", .-" #name "\n"
__asm__(".text\n"
	FUNCTION(frame, "push %rbp\n"
			"mov %rsp, %rbp\n"
			"sub $48, %rsp\n"
			"mov %rdi, -8(%rbp)\n"
			"lea main(%rip), %rax\n"
			"mov %rax, -16(%rbp)\n"
			"lea 1f(%rip), %rax\n"
			"mov %rax, -24(%rbp)\n"
			"movq $0, -32(%rbp)\n"
			"movq $-1, -40(%rbp)\n"
			"mov %rsp, -48(%rbp)\n"
			"1:\n"
			"call *%rdi\n"
			"leave\n"
			"ret\n")
	FUNCTION(no_frame, "sub $8, %rsp\n"
			   "call *%rdi\n"
			   "add $8, %rsp\n"
			   "ret\n")
	FUNCTION(handler_frame, "push %rbp\n"
				"mov %rsp, %rbp\n"
				"call fail\n"
				"pop %rbp\n"
				"ret\n")
	FUNCTION(handler_no_frame, "sub $8, %rsp\n"
				   "call fail\n"
				   "add $8, %rsp\n"
				   "ret\n")
	FUNCTION(jumped, "jmp frame\n")
	FUNCTION(ends_in_abort, ".cfi_startproc\n"
				"sub $8, %rsp\n"
				".cfi_adjust_cfa_offset 8\n"
				"call abort@PLT\n"
				".cfi_endproc\n")
	FUNCTION(ends_in_call, ".cfi_startproc\n"
			       "sub $8, %rsp\n"
			       ".cfi_adjust_cfa_offset 8\n"
			       "call *%rax\n"
			       ".cfi_endproc\n")
	FUNCTION(behind_call, "ret\n")
	FUNCTION(points_behind_abort, "lea ends_in_call(%rip), %rax\n"
				      "jmp points_to\n")
	FUNCTION(points_behind_call, "lea behind_call(%rip), %rax\n"
				     "jmp points_to\n")
	FUNCTION(points_to, "push %rbp\n"
			    "sub $32, %rsp\n"
			    "movq $0, (%rsp)\n"
			    "mov %rax, 8(%rsp)\n"
			    "movq $0, 16(%rsp)\n"
			    "mov %rsp, %rbp\n"
			    "call *%rdi\n"
			    "add $32, %rsp\n"
			    "pop %rbp\n"
			    "ret\n")
	FUNCTION(restorer, "nop\n"
			   "mov $15, %rax\n"
			   "syscall\n")
	FUNCTION(interrupted, "ud2\n"
			      "push %rbp\n"
			      "mov %rsp, %rbp\n"
			      "pop %rbp\n"
			      "ret\n"));

static void fail_and_end(int signal)
{
	(void)signal;
	fail();
	_exit(0);
}

__attribute__((noinline)) static void raise_with(void (*handler)(int))
{
	signal(SIGUSR1, handler);
	raise(SIGUSR1);
	__asm__ volatile("" ::: "memory");
}

/* Generated code: the caller, with a frame, and at 64 the code that it calls, without. */
static caller *generated(size_t at)
{
	/* push rbp; mov rbp, rsp; lea rax, [rip + 53]; call rax; pop rbp; ret */
	static const unsigned char with_frame[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0x8d, 0x05, 53, 0, 0, 0, 0xff, 0xd0, 0x5d, 0xc3};
	/* sub rsp, 8; call rdi; add rsp, 8; ret */
	static const unsigned char without[] = {0x48, 0x83, 0xec, 8, 0xff, 0xd7, 0x48, 0x83, 0xc4, 8, 0xc3};
	unsigned char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memcpy(page, with_frame, sizeof with_frame);
	memcpy(page + 64, without, sizeof without);
	mprotect(page, 4096, PROT_READ | PROT_EXEC);
	return (caller *)(page + at);
}

/* Generated code with a frame, which calls other code; if that is null, code without a frame that is far away from it. */
static caller *generated_call(caller *called)
{
	enum { FAR = 32 << 20 };
	/* push rbp; mov rbp, rsp; mov rax, called; call rax; pop rbp; ret */
	static const unsigned char before[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0xb8}, behind[] = {0xff, 0xd0, 0x5d, 0xc3};
	unsigned char *page = mmap(NULL, 2 * FAR, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (called == NULL) {
		memcpy(page + FAR, (unsigned char *)generated(64), 16);
		called = (caller *)(page + FAR);
	}
	memcpy(page, before, sizeof before);
	memcpy(page + sizeof before, &called, sizeof called);
	memcpy(page + sizeof before + sizeof called, behind, sizeof behind);
	mprotect(page, 2 * FAR, PROT_READ | PROT_EXEC);
	return (caller *)page;
}

/* The kernel gets the restorer only without libc. */
__attribute__((noinline)) static void raise_with_restorer(void)
{
	struct {
		void (*handler)(int);
		unsigned long flags;
		void (*restorer)(void);
		unsigned long mask;
	} action = {fail_and_end, 0x04000000, (void (*)(void))((char *)restorer + 1), 0};
	syscall(SYS_rt_sigaction, SIGILL, &action, NULL, 8);
	__asm__ volatile("ud2");
}

__attribute__((noinline)) static void inner(const char *name)
{
	if (strcmp(name, "frame") == 0)
		frame(fail);
	else if (strcmp(name, "no_frame") == 0)
		no_frame(fail);
	else if (strcmp(name, "handler_frame") == 0)
		raise_with(handler_frame);
	else if (strcmp(name, "handler_no_frame") == 0)
		raise_with(handler_no_frame);
	else if (strcmp(name, "interrupted") == 0)
		interrupted(fail);
	else if (strcmp(name, "generated") == 0)
		generated(64)(fail);
	else if (strcmp(name, "generated_caller") == 0)
		generated(0)(fail);
	else if (strcmp(name, "far") == 0)
		generated_call(NULL)(fail);
	else if (strcmp(name, "calls_module") == 0)
		generated_call(no_frame)(fail);
	else if (strcmp(name, "jumped") == 0)
		jumped(fail);
	else if (strcmp(name, "behind_abort") == 0)
		points_behind_abort(fail);
	else if (strcmp(name, "behind_call") == 0)
		points_behind_call(fail);
	else if (strcmp(name, "restorer") == 0)
		raise_with_restorer();
	else
		exit(1);
	__asm__ volatile("" ::: "memory");
}

__attribute__((noinline)) static void outer(const char *name)
{
	inner(name);
	__asm__ volatile("" ::: "memory");
}

int main(int argc, char **argv)
{
	signal(SIGILL, fail_and_end);
	pthread_mutex_lock(&held);
	outer(argc > 1 ? argv[1] : "");
	return 0;
}
