// Children of a thread whose stack is shared memory, and so its thread-local variables: `shared_stack HOW`.
//
// Each child has a stack of its own and a copy of the other memory. HOW: by `function`, `syscall` (of clone), `clone3` (by syscall) or
// `instruction`. The thread locks and unlocks at the same time, 100 times beside each child. Prints how often it has done so.

#define _GNU_SOURCE
#include <linux/sched.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "../check.h"
#include "../instruction.h"
#include "../lifecycle/calls.h"

enum { STACK = 1 << 18, PAIRS = 100, ROUNDS = 10 };
enum act { NOTHING, LEAVE, LOCK, RETURN, CHILD, EXECUTE, ACTS };

static const char *how;
static int act;
static int beside;

static pid_t make_child(int (*function)(void *));

static void __attribute__((noreturn)) end(int status) {
    by_instruction(SYS_exit_group, status, 0, 0);
    __builtin_unreachable();
}

static void lock(int times) {
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    for (int i = 0; i < times; i++) {
        CHECK(pthread_mutex_lock(&mutex) == 0);
        CHECK(pthread_mutex_unlock(&mutex) == 0);
    }
}

static int lock_and_end(void *argument) {
    lock(PAIRS);
    end(7);
    return argument != NULL;
}

static int run(void *argument) {
    int status;
    switch (act) {
    case NOTHING:
        end(7);
    case LEAVE:
        _exit(7);
    case LOCK:
        return lock_and_end(argument);
    case RETURN:
        lock(PAIRS);
        return 7;
    case CHILD:
        CHECK(waitpid(make_child(lock_and_end), &status, 0) > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 7);
        lock(PAIRS);
        end(7);
    default:
        lock(PAIRS);
        execl("/bin/sh", "sh", "-c", "exit 7", NULL);
    }
    return 8;
}

static int (*function_of_child)(void *);

// Where the system call returns to on the child's stack.
static void begin(void) {
    end(function_of_child(NULL));
}

static pid_t make_child(int (*function)(void *)) {
    static _Alignas(16) char stacks[2][STACK];
    // A child's child does not use the same.
    char *stack = stacks[function == run];
    function_of_child = function;
    // A function begins with its return address at a multiple of 16 and 8.
    uintptr_t *top = (uintptr_t *)(stack + STACK - 32);
    *top = (uintptr_t)begin;
    if (strcmp(how, "function") == 0)
        return clone(function, stack + STACK, SIGCHLD, NULL);
    if (strcmp(how, "syscall") == 0)
        return (pid_t)syscall(SYS_clone, SIGCHLD, top, 0, 0, 0);
    if (strcmp(how, "clone3") == 0) {
        struct clone_args arguments = {.exit_signal = SIGCHLD, .stack = (uintptr_t)stack, .stack_size = STACK - 32};
        return (pid_t)syscall(SYS_clone3, &arguments, sizeof arguments);
    }
    long result = SYS_clone;
    register long fourth __asm__("r10") = 0;
    register long fifth __asm__("r8") = 0;
    __asm__ volatile("syscall\n"
                     "test %%rax, %%rax\n"
                     "jnz 1f\n"
                     "ret\n"
                     "1:\n"
                     : "+a"(result)
                     : "D"(SIGCHLD), "S"(top), "d"(0), "r"(fourth), "r"(fifth)
                     : "rcx", "r11", "memory");
    return (pid_t)result;
}

static void *make_children(void *argument) {
    for (int round = 0; round < ROUNDS; round++) {
        for (act = 0; act < ACTS; act++) {
            int status;
            pid_t child = make_child(run);
            lock(PAIRS);
            beside += PAIRS;
            CHECK(child > 0 && waitpid(child, &status, 0) == child);
            CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
        }
    }
    return argument;
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    how = argv[1];
    char *memory = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED);
    pthread_attr_t attributes;
    pthread_t thread;
    CHECK(pthread_attr_init(&attributes) == 0 && pthread_attr_setstack(&attributes, memory, STACK) == 0);
    CHECK(pthread_create(&thread, &attributes, make_children, NULL) == 0 && pthread_join(thread, NULL) == 0);
    printf("%d\n", beside);
    return 0;
}
