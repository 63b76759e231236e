// A timer's handler that tries to run a program which does not exist: `failing_exec SIGNALS`.
//
// Meanwhile the thread posts a semaphore at full speed. Prints how many posts it made, and how often the handler ran.

#define _GNU_SOURCE
#include <errno.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include "../lifecycle/calls.h"

static volatile long handled;

static void handle(int signal) {
    (void)signal;
    int before = errno;
    char *arguments[] = {"/nonexistent/program", NULL};
    execve(arguments[0], arguments, arguments + 1);
    handled++;
    errno = before;
}

int main(int argc, char **argv) {
    if (argc != 2)
        return 2;
    long wanted = atol(argv[1]), posts = 0;
    sem_t semaphore;
    sem_init(&semaphore, 0, 0);
    struct sigaction action = {.sa_handler = handle, .sa_flags = SA_RESTART};
    sigaction(SIGALRM, &action, NULL);
    struct itimerval timer = {{0, 300}, {0, 300}}, none = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &timer, NULL);
    while (handled < wanted) {
        sem_post(&semaphore);
        posts++;
    }
    setitimer(ITIMER_REAL, &none, NULL);
    printf("%ld %ld\n", posts, handled);
    return 0;
}
