// A daemon that gives up its rights: threads record before, during and after the change, and others are made after it.
//
//   drops_root WAY UID PAIRS    WAY: setuid, setreuid, setresuid; `syscall`, by which the other threads stay root; `back`,
//                               which becomes root again and then gives up for good; or `capset`, which first gives up all
//                               capabilities of root but those to become another user and to give files away
//
// Four threads make PAIRS pairs of lock and unlock each, of which the second half begins when all have made the first, and
// meanwhile the main thread becomes the user UID; then four further threads make as many. The main thread makes 10 pairs
// first and 10 at last. Each thread has a mutex of its own. Ends with 7.

#define _GNU_SOURCE
#include <grp.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../check.h"
#include "../lifecycle/calls.h"

enum { THREADS = 4 };

static pthread_barrier_t half;

static void lock_and_unlock(pthread_mutex_t *mutex, int count) {
    for (int i = 0; i < count; i++)
        if (pthread_mutex_lock(mutex) || pthread_mutex_unlock(mutex))
            abort();
}

static void *work(void *count) {
    pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;
    lock_and_unlock(&own, (int)(long)count / 2);
    pthread_barrier_wait(&half);
    lock_and_unlock(&own, (int)(long)count / 2);
    return NULL;
}

static void become(const char *way, uid_t uid) {
    CHECK(setgroups(0, NULL) == 0 && setgid(uid) == 0);
    if (strcmp(way, "back") == 0) {
        CHECK(seteuid(uid) == 0 && seteuid(0) == 0 && seteuid(uid) == 0);
        pairs(10);
        CHECK(setresuid(uid, uid, uid) == 0);
    } else if (strcmp(way, "syscall") == 0) {
        CHECK(syscall(SYS_setresuid, uid, uid, uid) == 0 && syscall(SYS_setuid, 0) == -1);
        return;
    } else if (strcmp(way, "capset") == 0) {
        struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
        struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3] = {0};
        sets[0].effective = sets[0].permitted = 1u << CAP_SETUID | 1u << CAP_CHOWN;
        CHECK(syscall(SYS_capset, &header, sets) == 0 && setuid(uid) == 0);
    } else if (strcmp(way, "setreuid") == 0)
        CHECK(setreuid(uid, uid) == 0);
    else if (strcmp(way, "setresuid") == 0)
        CHECK(setresuid(uid, uid, uid) == 0);
    else
        CHECK(setuid(uid) == 0);
    CHECK(setuid(0) == -1 && getuid() == uid && geteuid() == uid);
}

int main(int argc, char **arguments) {
    CHECK(argc == 4);
    uid_t uid = (uid_t)atoi(arguments[2]);
    long count = atol(arguments[3]);
    pthread_t threads[THREADS];
    pairs(10);
    for (int round = 0; round < 2; round++) {
        CHECK(pthread_barrier_init(&half, NULL, THREADS + 1) == 0);
        for (int i = 0; i < THREADS; i++)
            CHECK(pthread_create(&threads[i], NULL, work, (void *)count) == 0);
        pthread_barrier_wait(&half);
        if (round == 0)
            become(arguments[1], uid);
        for (int i = 0; i < THREADS; i++)
            CHECK(pthread_join(threads[i], NULL) == 0);
        CHECK(pthread_barrier_destroy(&half) == 0);
    }
    pairs(10);
    return 7;
}
