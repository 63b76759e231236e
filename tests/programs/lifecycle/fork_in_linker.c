// A handler forks, time after time, while its thread looks through the list of loaded libraries, and so may have the linker's lock.
#define _GNU_SOURCE
#include "../check.h"
#include "calls.h"
#include <errno.h>
#include <link.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>

enum { FORKS = 100 };

static volatile sig_atomic_t forks;

static void fork_one(int signal) {
    (void)signal;
    int before = errno;
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    int status;
    CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
    forks++;
    errno = before;
}

static int stop_at_first(struct dl_phdr_info *library, size_t size, void *unused) {
    (void)library, (void)size, (void)unused;
    return 1;
}

int main(void) {
    struct sigaction action = {.sa_handler = fork_one, .sa_flags = SA_RESTART};
    CHECK(sigaction(SIGALRM, &action, NULL) == 0);
    pairs(1);
    while (forks < FORKS) {
        int before = forks;
        struct itimerval once = {.it_value = {0, 200 + 7 * before % 300}};
        CHECK(setitimer(ITIMER_REAL, &once, NULL) == 0);
        while (forks == before)
            dl_iterate_phdr(stop_at_first, NULL);
    }
    return 0;
}
