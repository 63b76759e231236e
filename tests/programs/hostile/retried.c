// Tries calls anew until they return in time: `retried FIRST STEP ROUNDS`.
//
// Each of ROUNDS posts has STEP system calls for its time: then a signal comes, whose handler leaves it by siglongjmp, and the program tries
// it anew. Natively a post makes no system call. With FIRST the process posts so often before. Prints how many posts it has begun and how many
// have returned. Ends with 7, with 77 where no process may be stopped. Without a STEP nothing interrupts it.

#define _GNU_SOURCE
#include <semaphore.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>

#include "../check.h"
#include "interrupt.h"

enum { BEGIN = 1, END = 2 };

static sigjmp_buf before;
static sem_t semaphore;
static long begun, returned;

static void leave(int signal) {
    (void)signal;
    siglongjmp(before, 1);
}

// A system call that does nothing, and that nobody else makes.
static void mark(long what) { syscall(SYS_getpgid, -what); }

static void post(void) {
    begun++;
    CHECK(sem_post(&semaphore) == 0);
    returned++;
}

static int run(int first, int rounds) {
    for (int i = 0; i < first; i++)
        post();
    struct sigaction action = {.sa_handler = leave, .sa_flags = SA_NODEFER};
    CHECK(sigaction(SIGALRM, &action, NULL) == 0);
    for (volatile int round = 0; round < rounds;) {
        if (sigsetjmp(before, 1) == 0) {
            mark(BEGIN);
            post();
            mark(END);
            round++;
        }
    }
    for (int i = 0; i < 20; i++)
        post();
    printf("%ld %ld\n", begun, returned);
    return 7;
}

int main(int count, char **arguments) {
    CHECK(count == 4 && sem_init(&semaphore, 0, 0) == 0);
    int step = atoi(arguments[2]), status;
    if (step == 0)
        return run(atoi(arguments[1]), atoi(arguments[3]));
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
            _exit(77);
        // The library begins anew in it, and makes no files before its first post. It stops behind the exec.
        execv("/proc/self/exe", (char *[]){arguments[0], arguments[1], "0", arguments[3], NULL});
        _exit(99);
    }
    CHECK(waitpid(child, &status, 0) == child);
    if (WIFEXITED(status))
        return WEXITSTATUS(status);
    CHECK(ptrace(PTRACE_SETOPTIONS, child, NULL, (void *)(PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL)) == 0);
    // Two stops for each system call; below 0 outside the posts that have a time.
    long stops = -1;
    for (;;) {
        CHECK(ptrace(PTRACE_SYSCALL, child, NULL, NULL) == 0 && waitpid(child, &status, 0) == child);
        if (WIFEXITED(status))
            break;
        // It comes where nothing blocks it.
        while (WIFSTOPPED(status) && WSTOPSIG(status) == SIGALRM) {
            CHECK(ptrace(PTRACE_SYSCALL, child, NULL, (void *)SIGALRM) == 0);
            CHECK(waitpid(child, &status, 0) == child);
        }
        CHECK(WIFSTOPPED(status) && WSTOPSIG(status) == (SIGTRAP | 0x80));
        struct user_regs_struct registers;
        CHECK(ptrace(PTRACE_GETREGS, child, NULL, &registers) == 0);
        if (registers.orig_rax == SYS_getpgid)
            stops = (int)registers.rdi == -BEGIN ? 0 : -1;
        else if (stops >= 0 && ++stops == 2 * step) {
            stops = -1;
            CHECK(syscall(SYS_tgkill, child, child, SIGALRM) == 0);
        }
    }
    return WEXITSTATUS(status);
}
