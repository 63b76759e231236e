// Lowers and raises the limit on the size of files at full speed while locks are recorded: `limiting WAY ROUNDS PAIRS`.
//
//   threads    the main thread changes the limit in every way that libc has; two others lock and unlock PAIRS times, or
//              until it is done
//   handler    a signal handler lowers it, whatever it has interrupted; the thread raises it, and locks and unlocks PAIRS
//              times in each round
//
// Prints how many pairs there were, for each a lock and an unlock, and ends with 7.

#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <ulimit.h>
#include <unistd.h>

#include "../check.h"

static atomic_int done;
static atomic_long made;
static atomic_int begun;

static void limit(int way, rlim_t bytes) {
    struct rlimit old, new = {bytes, RLIM_INFINITY};
    struct rlimit64 wide = {bytes, RLIM64_INFINITY};
    switch (way % 6) {
    case 0:
        CHECK(setrlimit(RLIMIT_FSIZE, &new) == 0);
        break;
    case 1:
        CHECK(setrlimit64(RLIMIT_FSIZE, &wide) == 0);
        break;
    case 2:
        CHECK(prlimit(0, RLIMIT_FSIZE, &new, &old) == 0);
        break;
    case 3:
        CHECK(prlimit64(getpid(), RLIMIT_FSIZE, &wide, NULL) == 0);
        break;
    case 4:
        CHECK(syscall(SYS_setrlimit, RLIMIT_FSIZE, &new) == 0);
        break;
    case 5:
        CHECK(syscall(SYS_prlimit64, 0, RLIMIT_FSIZE, &new, &old) == 0);
        break;
    }
}

static void pairs(long count) {
    pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;
    long turn = 0;
    for (; turn < count && !atomic_load(&done); turn++)
        CHECK(pthread_mutex_lock(&own) == 0 && pthread_mutex_unlock(&own) == 0);
    atomic_fetch_add(&made, turn);
}

static void *work(void *count) {
    // Without room for them no files are made, for good.
    pairs(1);
    atomic_fetch_add(&begun, 1);
    pairs((long)count);
    return NULL;
}

static void lower(int signal) {
    static int way;
    (void)signal;
    limit(way++, 1);
}

int main(int argc, char **argv) {
    CHECK(argc == 4);
    long rounds = atol(argv[2]), count = atol(argv[3]);
    if (strcmp(argv[1], "threads") == 0) {
        pthread_t threads[2];
        for (int i = 0; i < 2; i++)
            CHECK(pthread_create(&threads[i], NULL, work, (void *)count) == 0);
        while (atomic_load(&begun) < 2)
            usleep(1000);
        for (long round = 0; round < rounds; round++) {
            usleep(200);
            limit(round, round % 2);
            usleep(50);
            limit(round + 1, RLIM_INFINITY);
        }
        atomic_store(&done, 1);
        for (int i = 0; i < 2; i++)
            CHECK(pthread_join(threads[i], NULL) == 0);
        // The last way, and limits that the kernel refuses.
        CHECK(ulimit(UL_SETFSIZE, 1L << 40) == 1L << 40 && ulimit(UL_GETFSIZE) == 1L << 40);
        CHECK(setrlimit(RLIMIT_FSIZE, (void *)1) == -1 && prlimit(0, RLIMIT_FSIZE, (void *)1, NULL) == -1);
    } else {
        // As in `work`.
        pairs(1);
        signal(SIGALRM, lower);
        struct itimerval often = {{0, 300}, {0, 300}};
        CHECK(setitimer(ITIMER_REAL, &often, NULL) == 0);
        for (long round = 0; round < rounds; round++) {
            pairs(count);
            limit(round, RLIM_INFINITY);
        }
        signal(SIGALRM, SIG_IGN);
        limit(0, RLIM_INFINITY);
        pairs(1);
    }
    printf("%ld\n", atomic_load(&made));
    return 7;
}
