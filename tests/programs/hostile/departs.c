// One thread leaves the others: `departs HOW PAIRS DIRECTORY`.
//
// HOW is `setfsuid` or `syscall`, by which it becomes nobody as far as files are concerned, or `chroot`, by which it alone goes into
// the empty DIRECTORY. Then it is the first one that locks and unlocks a mutex, PAIRS times; afterwards two others do so 1,000
// times. A fourth one does nothing. Prints the LWP of the first one.

#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/fsuid.h>
#include <sys/syscall.h>

#include "../check.h"

enum { NOBODY = 65534 };

static void lock(long pairs) {
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    while (pairs--) {
        pthread_mutex_lock(&mutex);
        pthread_mutex_unlock(&mutex);
    }
}

static void *depart(void *arguments) {
    char **argv = arguments;
    if (strcmp(argv[1], "setfsuid") == 0) {
        CHECK(setfsuid(NOBODY) == 0 && setfsuid(-1) == NOBODY);
    } else if (strcmp(argv[1], "syscall") == 0) {
        CHECK(syscall(SYS_setfsuid, NOBODY) == 0);
    } else {
        CHECK(unshare(CLONE_FS) == 0 && chroot(argv[3]) == 0 && chdir("/") == 0);
    }
    lock(strtol(argv[2], NULL, 10));
    printf("%ld\n", syscall(SYS_gettid));
    return NULL;
}

static void *stay(void *argument) {
    lock(1000);
    return argument;
}

static void *wait_for_end(void *argument) {
    pause();
    return argument;
}

int main(int argc, char **argv) {
    CHECK(argc == 4);
    pthread_t threads[4];
    CHECK(pthread_create(&threads[3], NULL, wait_for_end, NULL) == 0);
    CHECK(pthread_create(&threads[0], NULL, depart, argv) == 0 && pthread_join(threads[0], NULL) == 0);
    for (int i = 1; i < 3; i++)
        CHECK(pthread_create(&threads[i], NULL, stay, NULL) == 0);
    for (int i = 1; i < 3; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    return 7;
}
