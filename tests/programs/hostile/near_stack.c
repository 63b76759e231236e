// Children whose stack begins right below the caller's frame, as CRIU's do: `near_stack`.
//
// The memory is copied, so that nobody else uses what is there. The first call of `clone` is the first one that is hooked. Each child
// locks and unlocks a mutex, and ends with a status that shows its argument. Prints how many there were.

#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
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

int main(void) {
    int ended = 0;
    for (long bytes = 0; bytes <= 40000; bytes = 2 * bytes + 16) {
        int status;
        pid_t child = clone_below(bytes, bytes & 63);
        CHECK(child > 0 && waitpid(child, &status, 0) == child);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == (bytes & 63));
        ended++;
    }
    printf("%d\n", ended);
    return 0;
}
