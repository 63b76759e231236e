// Threads leave their writes by siglongjmp, and end: `left_by_threads ROUNDS THREADS MICROSECONDS BUFFERS`.
//
// In each round so many threads lock and unlock; a timer of each has a handler that leaves whatever it interrupts. Then the program opens a
// file. It may have 64 descriptors. At last it makes records enough for a write. Prints how many descriptors were open before and are
// after that, how often it could open no file, how many jumps there were, and how many MiB the file has whose name begins with BUFFERS.

#define _GNU_SOURCE
#include <fcntl.h>
#include <glob.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "../check.h"
#include "open_descriptors.h"

enum { LIMIT = 64, THREADS_MAX = 16, CALLS = 20000 };

static __thread sigjmp_buf back;
static __thread volatile sig_atomic_t armed;
static long period, jumps;

static void leave(int signal) {
    (void)signal;
    if (armed) {
        __atomic_fetch_add(&jumps, 1, __ATOMIC_RELAXED);
        siglongjmp(back, 1);
    }
}

static void lock_often(int count) {
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    for (volatile int i = 0; i < count; i++) {
        if (sigsetjmp(back, 1) == 0) {
            armed = 1;
            pthread_mutex_trylock(&mutex);
        }
        armed = 0;
    }
}

static void *run(void *argument) {
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGALRM};
    event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
    struct itimerspec times = {{0, period}, {0, period}};
    timer_t timer;
    CHECK(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0 && timer_settime(timer, 0, &times, NULL) == 0);
    lock_often(CALLS);
    CHECK(timer_delete(timer) == 0);
    return argument;
}

static long mebibytes(const char *start) {
    char pattern[4096];
    glob_t names;
    struct stat status = {.st_size = 0};
    snprintf(pattern, sizeof pattern, "%s*", start);
    if (glob(pattern, 0, NULL, &names) == 0) {
        CHECK(stat(names.gl_pathv[0], &status) == 0);
        globfree(&names);
    }
    return status.st_size >> 20;
}

int main(int count, char **arguments) {
    CHECK(count == 5);
    int threads = atoi(arguments[2]), failed = 0;
    CHECK(threads <= THREADS_MAX);
    period = 1000 * atol(arguments[3]);
    struct rlimit limit = {LIMIT, LIMIT};
    CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    struct sigaction action = {.sa_handler = leave};
    CHECK(sigaction(SIGALRM, &action, NULL) == 0);
    lock_often(1);
    int before = open_descriptors();
    for (int round = 0; round < atoi(arguments[1]); round++) {
        pthread_t thread[THREADS_MAX];
        for (int i = 0; i < threads; i++)
            CHECK(pthread_create(&thread[i], NULL, run, NULL) == 0);
        for (int i = 0; i < threads; i++)
            CHECK(pthread_join(thread[i], NULL) == 0);
        int file = open("/dev/null", O_RDONLY | O_CLOEXEC);
        failed += file < 0;
        close(file);
    }
    lock_often(CALLS);
    printf("%d %d %d %ld %ld\n", before, open_descriptors(), failed, jumps, mebibytes(arguments[4]));
    return 0;
}
