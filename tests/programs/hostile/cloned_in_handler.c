// Children of `clone` that a signal handler makes while its thread writes records: `cloned_in_handler CHILDREN LOCKS`.
//
// The thread locks and unlocks at full speed. A timer's handler makes a child, with a stack of its own, which locks and unlocks LOCKS times
// and then counts what is open that was not at the start. Prints how many of the children found something.

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "../check.h"
#include "../lifecycle/calls.h"

enum { KNOWN = 256 };
static char known[KNOWN];
static _Alignas(16) char stack[65536];
static int locks;
static volatile int made, with;

static int look(void *unused) {
    (void)unused;
    signal(SIGALRM, SIG_IGN);
    pairs(locks);
    int found = 0;
    for (int fd = 0; fd < KNOWN; fd++)
        found += !known[fd] && fcntl(fd, F_GETFD) >= 0;
    return found != 0;
}

static void handle(int number) {
    int status, before = errno;
    (void)number;
    pid_t child = clone(look, stack + sizeof stack, SIGCHLD, NULL);
    CHECK(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status));
    with += WEXITSTATUS(status);
    made++;
    errno = before;
}

int main(int argc, char **argv) {
    CHECK(argc == 3);
    locks = atoi(argv[2]);
    for (int fd = 0; fd < KNOWN; fd++)
        known[fd] = fcntl(fd, F_GETFD) >= 0;
    pairs(1);
    struct sigaction action = {.sa_handler = handle, .sa_flags = SA_RESTART};
    struct itimerval timer = {{0, 1700}, {0, 1700}}, none = {{0, 0}, {0, 0}};
    CHECK(sigaction(SIGALRM, &action, NULL) == 0 && setitimer(ITIMER_REAL, &timer, NULL) == 0);
    // Not the children's mutex: a handler may interrupt the thread while it has it.
    pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;
    while (made < atoi(argv[1])) {
        pthread_mutex_lock(&own);
        pthread_mutex_unlock(&own);
    }
    CHECK(setitimer(ITIMER_REAL, &none, NULL) == 0);
    printf("%d\n", with);
    return 0;
}
