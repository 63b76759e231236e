// Children whose stack begins right below the caller's frame, as CRIU's do, and children with a stack of their own of a thread whose stack
// is shared memory: `near_stack`.
//
// Of the first ones the memory is copied, so that nobody else uses what is there. The first call of `clone` is the first one that is hooked.
// Each child locks and unlocks a mutex, and ends with a status that shows its argument. The others only do that, while the thread
// goes on. Prints how many of the first ones there were.

#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "../check.h"
#include "../lifecycle/calls.h"

static int run(void *argument) {
    pairs(1);
    return (int)(long)argument;
}

// Where the red zone of this function's ends, the stack of the child may begin.
static pid_t clone_below(long bytes, long argument) {
    char *here = __builtin_frame_address(0);
    return clone(run, here - 256 - bytes, SIGCHLD, (void *)argument);
}

enum { STACK = 1 << 18 };

static char *memory(int sharing) {
    char *memory = mmap(NULL, STACK, PROT_READ | PROT_WRITE, sharing | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED);
    return memory;
}

// Its thread-local variables are shared memory, too.
static int do_nothing(void *argument) { return (int)(long)argument; }

static void *make_children(void *argument) {
    char *stack = memory(MAP_PRIVATE);
    for (int i = 0; i < 100; i++) {
        int status;
        pid_t child = clone(do_nothing, stack + STACK, SIGCHLD, (void *)(long)(i & 63));
        volatile long sum = 0;
        for (int k = 0; k < 1000; k++)
            sum += k;
        CHECK(child > 0 && waitpid(child, &status, 0) == child);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == (i & 63));
    }
    return argument;
}

int main(void) {
    int ended = 0;
    for (long bytes = 0; bytes <= 40000; bytes = 2 * bytes + 16) {
        int status;
        pid_t child = clone_below(bytes, bytes & 63);
        CHECK(child > 0 && waitpid(child, &status, 0) == child);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == (bytes & 63));
        ended++;
    }
    pthread_attr_t attributes;
    pthread_t thread;
    CHECK(pthread_attr_init(&attributes) == 0);
    CHECK(pthread_attr_setstack(&attributes, memory(MAP_SHARED), STACK) == 0);
    CHECK(pthread_create(&thread, &attributes, make_children, NULL) == 0 && pthread_join(thread, NULL) == 0);
    printf("%d\n", ended);
    return 0;
}
