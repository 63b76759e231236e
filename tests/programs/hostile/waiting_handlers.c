// Threads post, each with a timer whose handler makes a call that waits for what other threads are just writing:
// `waiting_handlers close|exec CALLS MICROSECONDS`.
//
// The call closes all descriptors but the standard ones, or executes a program that does not exist. Each thread goes on until its handler has
// been called CALLS times, each MICROSECONDS. Prints how many posts they made, and how often the handlers have slept.

#define _GNU_SOURCE
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "../check.h"
#include "sleeps.h"

enum { THREADS = 3 };

static atomic_long posts, slept;
static long period;
static int executes;
static _Thread_local volatile long calls;

static void call(int signal) {
    (void)signal;
    char *arguments[] = {"none", NULL};
    long before = sleeps();
    if (executes)
        CHECK(execv("/nonexistent", arguments) == -1 && errno == ENOENT);
    else
        CHECK(close_range(3, ~0U, 0) == 0);
    atomic_fetch_add(&slept, sleeps() - before);
    calls++;
}

static void *post(void *wanted) {
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGALRM};
    struct itimerspec each = {{0, 1000 * period}, {0, 1000 * period}};
    timer_t timer;
    sem_t semaphore;
    CHECK(sem_init(&semaphore, 0, 0) == 0);
    event._sigev_un._tid = gettid();
    CHECK(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0 && timer_settime(timer, 0, &each, NULL) == 0);
    long made = 0;
    while (calls < (long)wanted && ++made)
        CHECK(sem_post(&semaphore) == 0);
    CHECK(timer_delete(timer) == 0);
    atomic_fetch_add(&posts, made);
    return NULL;
}

int main(int argc, char **argv) {
    CHECK(argc == 4);
    period = atol(argv[3]);
    executes = argv[1][0] == 'e';
    struct sigaction action = {.sa_handler = call, .sa_flags = SA_RESTART};
    CHECK(sigaction(SIGALRM, &action, NULL) == 0);
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, post, (void *)atol(argv[2])) == 0);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    printf("%ld %ld\n", posts, slept);
    return 7;
}
