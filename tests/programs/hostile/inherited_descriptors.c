// What forked children inherit: `inherited_descriptors FORKS HOW`.
//
// Three threads lock and unlock at full speed. The main thread forks FORKS times, by HOW: `fork`, `_Fork`, `function` (libc's clone),
// `syscall` (of clone), `clone3` (by syscall), or `instruction` (of clone), which no hook sees. Each child reads which descriptors it has
// that were not open at the start; only one of `instruction` makes a hooked call before. Prints how many of the children had one
// that the program did not open, and the last one's name.

#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../instruction.h"
#include "../lifecycle/calls.h"
#include "busy.h"
#include "foreign.h"

// What each child does: the first hooked call of most is the exit.
static int look(void *output) {
    int end = *(int *)output;
    char target[4096] = "";
    int found = foreign(target, sizeof target);
    if (found && write(end, target, strlen(target)) < 0)
        _exit(3);
    _exit(found > 0);
}

static pid_t fork_by(const char *how, int *output) {
    static char stack[65536] __attribute__((aligned(16)));
    unsigned long arguments[8] = {[4] = SIGCHLD};
    pid_t child;
    if (strcmp(how, "fork") == 0)
        child = fork();
    else if (strcmp(how, "_Fork") == 0)
        child = _Fork();
    else if (strcmp(how, "function") == 0)
        child = clone(look, stack + sizeof stack, SIGCHLD, output);
    else if (strcmp(how, "syscall") == 0)
        child = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    else if (strcmp(how, "clone3") == 0)
        child = (pid_t)syscall(SYS_clone3, arguments, sizeof arguments);
    else {
        child = (pid_t)by_instruction(SYS_clone, SIGCHLD, 0, 0);
        if (child == 0)
            pairs(1);
    }
    if (child == 0)
        look(output);
    return child;
}

int main(int argc, char **argv) {
    if (argc != 3)
        return 2;
    note_known();
    pthread_t thread;
    for (int i = 0; i < 3; i++)
        if (pthread_create(&thread, NULL, work, NULL))
            return 2;
    int forks = atoi(argv[1]), with = 0;
    char last[4096] = "";
    for (int i = 0; i < forks; i++) {
        int ends[2];
        if (pipe2(ends, O_CLOEXEC))
            return 2;
        // Standard descriptors that are closed stay free.
        for (int end = 0; end < 2; end++) {
            int low = ends[end];
            ends[end] = fcntl(low, F_DUPFD_CLOEXEC, 10);
            close(low);
        }
        usleep(2000);
        known[ends[0]] = known[ends[1]] = 1;
        pid_t child = fork_by(argv[2], &ends[1]);
        char target[4096];
        close(ends[1]);
        ssize_t length = read(ends[0], target, sizeof target - 1);
        close(ends[0]);
        int status;
        if (child < 0 || waitpid(child, &status, 0) < 0 || !WIFEXITED(status))
            return 3;
        if (WEXITSTATUS(status)) {
            with++;
            target[length < 0 ? 0 : length] = 0;
            strcpy(last, target);
        }
    }
    printf("%d %s\n", with, last);
    fflush(stdout);
    _exit(0);
}
