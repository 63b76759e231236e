/* A thread that no function of libthreadt's makes, and a futex call that no function makes. */
#define _GNU_SOURCE
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "../instruction.h"

static char stack[65536] __attribute__((aligned(16)));
static int word;

static int run(void *argument) {
    (void)argument;
    return (int)by_instruction(SYS_futex, (long)&word, FUTEX_WAKE, 1);
}

int main(void) {
    int status;
    int child = clone(run, stack + sizeof stack, CLONE_VM | SIGCHLD, 0);
    return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
