// A child ends twice: libc writes the last of a stream after all handlers of `exit`, and what writes it calls `_exit`. In between its
// parent forks the next child, which locks a mutex 500 times before the first one has ended, and 500 times after. Prints that one's PID.

#define _GNU_SOURCE
#include <sys/wait.h>
#include <unistd.h>

#include "calls.h"

static int is_ending[2], may_end[2];

static void pass(int *ends) {
    if (write(ends[1], "", 1) != 1)
        abort();
}

static void wait_for(int *ends) {
    char byte;
    if (read(ends[0], &byte, 1) != 1)
        abort();
}

static ssize_t end(void *cookie, const char *text, size_t length) {
    (void)cookie, (void)text, (void)length;
    pass(is_ending);
    wait_for(may_end);
    _exit(0);
}

static void end_twice(void) {
    FILE *last = fopencookie(NULL, "w", (cookie_io_functions_t){.write = end});
    if (!last || fputs("last", last) < 0)
        abort();
    pairs(10);
    exit(1);
}

int main(void) {
    int status;
    if (pipe(is_ending) || pipe(may_end))
        abort();
    pairs(1);
    pid_t first = fork();
    if (first == 0)
        end_twice();
    wait_for(is_ending);
    int half_done[2], goes_on[2];
    if (pipe(half_done) || pipe(goes_on))
        abort();
    pid_t second = fork();
    if (second == 0) {
        pairs(500);
        pass(half_done);
        wait_for(goes_on);
        pairs(500);
        _exit(0);
    }
    wait_for(half_done);
    pass(may_end);
    if (waitpid(first, &status, 0) != first || status != 0)
        return 3;
    pass(goes_on);
    if (waitpid(second, &status, 0) != second || status != 0)
        return 4;
    printf("%d\n", second);
    return 0;
}
