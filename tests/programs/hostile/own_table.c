// Threads that leave the table of descriptors of the others: `own_table THREADS HOW`.
//
// Two threads lock and unlock at full speed. One thread after the other leaves their table, HOW: by `unshare` or
// `close_range`, as functions or with `-syscall`. It then looks what it has open that was not at the start, makes 100 pairs of
// calls, and looks again. Prints how many of the threads found something, and how many pairs there were.

#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../lifecycle/calls.h"
#include "busy.h"

enum { KNOWN = 256, OWN_PAIRS = 100, UNSHARE = 2 };
static char known[KNOWN];
static const char *how;
static int with;

static int leave(void) {
    if (strcmp(how, "unshare") == 0)
        return unshare(CLONE_FILES);
    if (strcmp(how, "unshare-syscall") == 0)
        return (int)syscall(SYS_unshare, CLONE_FILES);
    if (strcmp(how, "close_range") == 0)
        return close_range(200, ~0U, UNSHARE);
    return (int)syscall(SYS_close_range, 200, ~0U, UNSHARE);
}

static int foreign(void) {
    int found = 0;
    for (int fd = 0; fd < KNOWN; fd++)
        found += !known[fd] && fcntl(fd, F_GETFD) >= 0;
    return found;
}

static void *leaver(void *unused) {
    if (leave())
        return leaver;
    int found = foreign();
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    for (int i = 0; i < OWN_PAIRS; i++) {
        pthread_mutex_lock(&mutex);
        pthread_mutex_unlock(&mutex);
    }
    with += found + foreign() > 0;
    return unused;
}

int main(int argc, char **argv) {
    if (argc != 3)
        return 2;
    int leavers = atoi(argv[1]);
    how = argv[2];
    for (int fd = 0; fd < KNOWN; fd++)
        known[fd] = fcntl(fd, F_GETFD) >= 0;
    pthread_t threads[2], thread;
    for (int i = 0; i < 2; i++)
        if (pthread_create(&threads[i], NULL, work, NULL))
            return 2;
    while (__atomic_load_n(&busy_pairs, __ATOMIC_RELAXED) < 1000)
        sched_yield();
    for (int i = 0; i < leavers; i++) {
        void *failed;
        if (pthread_create(&thread, NULL, leaver, NULL) || pthread_join(thread, &failed) || failed)
            return 3;
    }
    ended = 1;
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    printf("%d %ld\n", with, busy_pairs + (long)leavers * OWN_PAIRS);
    return foreign();
}
