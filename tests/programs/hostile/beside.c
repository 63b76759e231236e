// A task that runs beside the one that has made it, in the same memory with the same thread-local variables:
// `beside HOW PAIRS`.
//
// HOW is `clone`, `__clone`, `syscall` (of clone) or `clone3` (by syscall), of a child process, or `thread`, of a task of the
// same process. Both lock and unlock a mutex of their own PAIRS times, the parent once before. The child ends without exit.

#define _GNU_SOURCE
#include <linux/sched.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "../check.h"

extern int __clone(int (*)(void *), void *, int, void *, ...);

enum { STACK = 1 << 20 };
static long pairs;
static atomic_int begun, ended;

static void lock(long times) {
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    for (long i = 0; i < times; i++) {
        pthread_mutex_lock(&mutex);
        pthread_mutex_unlock(&mutex);
    }
}

static int child(void *argument) {
    atomic_store(&begun, 1);
    lock(pairs);
    atomic_store(&ended, 1);
    return argument != NULL;
}

// Where the system call returns to on the child's stack.
static void child_of_system_call(void) {
    child(NULL);
    syscall(SYS_exit, 0);
}

int main(int argc, char **argv) {
    CHECK(argc == 3);
    const char *how = argv[1];
    pairs = strtol(argv[2], NULL, 10);
    lock(1);
    char *stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(stack != MAP_FAILED);
    // A function begins with its return address at a multiple of 16 and 8.
    uintptr_t *top = (uintptr_t *)(stack + STACK - 32);
    *top = (uintptr_t)child_of_system_call;
    struct clone_args arguments = {.flags = CLONE_VM, .exit_signal = SIGCHLD, .stack = (uintptr_t)stack, .stack_size = STACK - 32};
    int flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD;
    pid_t pid = strcmp(how, "clone") == 0     ? clone(child, stack + STACK, CLONE_VM | SIGCHLD, NULL)
                : strcmp(how, "__clone") == 0 ? __clone(child, stack + STACK, CLONE_VM | SIGCHLD, NULL)
                : strcmp(how, "thread") == 0  ? clone(child, stack + STACK, flags, NULL)
                : strcmp(how, "syscall") == 0 ? (pid_t)syscall(SYS_clone, CLONE_VM | SIGCHLD, top, 0, 0, 0)
                                              : (pid_t)syscall(SYS_clone3, &arguments, sizeof arguments);
    CHECK(pid > 0);
    while (!atomic_load(&begun))
        ;
    lock(pairs);
    if (strcmp(how, "thread") == 0) {
        while (!atomic_load(&ended))
            sched_yield();
        usleep(10000);
    } else {
        int status;
        CHECK(waitpid(pid, &status, 0) == pid && status == 0);
    }
    lock(1);
    return 7;
}
