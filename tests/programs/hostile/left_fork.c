// A signal handler leaves by siglongjmp what a forked child does first, in fork: `left_fork STEP`.
//
// The signal comes when the child has made STEP system calls since a handler of pthread_atfork: its parent stops it there as a
// debugger does. Then the child ends. Prints the child's ID, and 1 if the child was still in fork, else 0. Ends with 7, with 77
// where no process may be stopped.

#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../check.h"
#include "interrupt.h"

static sigjmp_buf before;
static volatile sig_atomic_t is_late;
static int *was_left;

static void leave(int number) {
    (void)number;
    if (is_late)
        return;
    *was_left = 1;
    siglongjmp(before, 1);
}

static void begin_child(void) {
    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
        syscall(SYS_exit_group, 77);
    CHECK(syscall(SYS_kill, (pid_t)syscall(SYS_getpid), SIGSTOP) == 0);
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    was_left = mmap(NULL, sizeof *was_left, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(was_left != MAP_FAILED && signal(SIGALRM, leave) != SIG_ERR && pthread_atfork(NULL, NULL, begin_child) == 0);
    if (sigsetjmp(before, 1) != 0)
        exit(0);
    pid_t child = fork();
    is_late = 1;
    CHECK(child >= 0);
    if (child == 0)
        exit(0);
    int status = interrupt(child, atoi(argv[1]), 0);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    printf("%d\n%d\n", child, *was_left);
    fflush(stdout);
    return 7;
}
