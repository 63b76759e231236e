// Tries calls anew until they return in time: `tried_on_stack MICROSECONDS SIZE`.
//
// A thread that uses SIZE bytes of its stack tries to lock a mutex, again and again. A timer comes every so many microseconds, and its handler
// leaves the call by siglongjmp. Prints how many calls it has begun and how many have returned. Ends with 7.

#define _GNU_SOURCE
#include <alloca.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "../check.h"

enum { CALLS = 50000 };

static sigjmp_buf before;
static volatile sig_atomic_t armed;
static long period, size;
static volatile long begun, returned;

static void leave(int signal) {
    (void)signal;
    if (armed)
        siglongjmp(before, 1);
}

static __attribute__((noinline)) void try_until_done(void) {
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGALRM};
    event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
    struct itimerspec times = {{0, period}, {0, period}};
    timer_t timer;
    CHECK(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0 && timer_settime(timer, 0, &times, NULL) == 0);
    while (returned < CALLS) {
        sigsetjmp(before, 1);
        begun++;
        armed = 1;
        pthread_mutex_trylock(&mutex);
        armed = 0;
        returned++;
    }
    CHECK(timer_delete(timer) == 0);
}

static void *run(void *argument) {
    volatile char *used = alloca((size_t)size);
    for (long i = 0; i < size; i += 64)
        used[i] = 1;
    try_until_done();
    used[0] = 2;
    return argument;
}

int main(int count, char **arguments) {
    CHECK(count == 3);
    period = 1000 * atol(arguments[1]);
    size = atol(arguments[2]);
    struct sigaction action = {.sa_handler = leave};
    CHECK(sigaction(SIGALRM, &action, NULL) == 0);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, run, NULL) == 0 && pthread_join(thread, NULL) == 0);
    printf("%ld %ld\n", begun, returned);
    return 7;
}
