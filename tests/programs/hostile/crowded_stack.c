// Children with a small stack between data that they need and the stack on which their parent runs: `crowded_stack HOW`.
//
// The parent's stack is an alternate signal stack (`alternate`, or `alternate-array` in an array on the thread's own stack), or that of a
// coroutine (`coroutine`). Each child examines its data, and ends by an instruction. Prints how many found other data.

#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>

#include "../check.h"
#include "../instruction.h"
#include "../lifecycle/calls.h"

enum { DATA = 8192, CHILDREN = 20 };
struct memory {
    unsigned char data[DATA];
    _Alignas(16) char child[1024];
    char parent[16384];
};
static struct memory lasting, *memory;
static int bad;

static int look(void *unused) {
    int found = unused != NULL;
    for (int i = 0; i < DATA; i++)
        found |= memory->data[i] != (unsigned char)(i * 7);
    by_instruction(SYS_exit_group, found, 0, 0);
    return found;
}

static void make_child(void) {
    int status;
    pid_t child = clone(look, memory->child + sizeof memory->child, SIGCHLD, NULL);
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    bad += status != 0;
}

static void handle(int number) {
    (void)number;
    make_child();
}

static void make_children(const char *how) {
    for (int i = 0; i < DATA; i++)
        memory->data[i] = (unsigned char)(i * 7);
    if (strcmp(how, "coroutine") == 0) {
        for (int i = 0; i < CHILDREN; i++) {
            ucontext_t back, coroutine;
            CHECK(getcontext(&coroutine) == 0);
            coroutine.uc_stack.ss_sp = memory->parent;
            coroutine.uc_stack.ss_size = 12288;
            coroutine.uc_link = &back;
            makecontext(&coroutine, make_child, 0);
            CHECK(swapcontext(&back, &coroutine) == 0);
        }
        return;
    }
    stack_t stack = {.ss_sp = memory->parent, .ss_size = sizeof memory->parent};
    struct sigaction action = {.sa_handler = handle, .sa_flags = SA_ONSTACK};
    CHECK(sigaltstack(&stack, NULL) == 0 && sigaction(SIGUSR1, &action, NULL) == 0);
    for (int i = 0; i < CHILDREN; i++)
        raise(SIGUSR1);
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    struct memory array;
    memory = strcmp(argv[1], "alternate-array") == 0 ? &array : &lasting;
    pairs(1);
    make_children(argv[1]);
    printf("%d\n", bad);
    return 0;
}
