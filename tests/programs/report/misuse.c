// Misuses mutexes and threads in each way that the report's test knows and that glibc survives, once; or does with argument `well`
// what looks similar and is right.

#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "../check.h"

static pthread_mutex_t unlocked = PTHREAD_MUTEX_INITIALIZER, left = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t locked_twice = PTHREAD_MUTEX_INITIALIZER, destroyed = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t robust, checking;
static pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER, second = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER, other_cond = PTHREAD_COND_INITIALIZER;
static int is_waiting, may_go;

static void *unlocks(void *argument) { return pthread_mutex_unlock(&unlocked) ? &unlocked : argument; }
static void *ends_with_lock(void *mutex) { return pthread_mutex_lock(mutex) ? mutex : NULL; }

static void *ends(void *number) {
    __atomic_store_n((pid_t *)number, (pid_t)syscall(SYS_gettid), __ATOMIC_SEQ_CST);
    return NULL;
}

static void *waits(void *argument) {
    CHECK(!pthread_mutex_lock(argument));
    is_waiting++;
    pthread_cond_t *own = argument == &second && may_go ? &other_cond : &cond;
    CHECK(!pthread_cond_wait(own, argument));
    return pthread_mutex_unlock(argument) ? argument : NULL;
}

static void run(void *(*start)(void *), void *argument) {
    pthread_t thread;
    CHECK(!pthread_create(&thread, NULL, start, argument));
    CHECK(!pthread_join(thread, NULL));
}

// Waits until one more thread waits for a condition with the mutex.
static void await(pthread_mutex_t *mutex, int count) {
    for (int is_there = 0; !is_there;) {
        CHECK(!pthread_mutex_lock(mutex));
        is_there = is_waiting >= count;
        CHECK(!pthread_mutex_unlock(mutex));
    }
}

int main(int count, char **arguments) {
    int well = count > 1 && !strcmp(arguments[1], "well");
    pthread_t threads[2];
    pthread_mutexattr_t attributes;
    struct timespec past = {0};
    CHECK(!pthread_mutexattr_init(&attributes));
    CHECK(!pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST));
    CHECK(!pthread_mutex_init(&robust, &attributes));
    CHECK(!pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ERRORCHECK));
    CHECK(!pthread_mutex_init(&checking, &attributes));
    if (!well) {
        CHECK(!pthread_mutex_lock(&unlocked));
        run(unlocks, NULL);
        run(ends_with_lock, &left);
        CHECK(!pthread_mutex_lock(&locked_twice));
        CHECK(pthread_mutex_timedlock(&locked_twice, &past) == ETIMEDOUT);
        CHECK(!pthread_mutex_lock(&destroyed));
        CHECK(pthread_mutex_destroy(&destroyed) == EBUSY);
        CHECK(!pthread_mutex_lock(&checking));
        CHECK(pthread_mutex_lock(&checking) == EDEADLK);
    } else {
        CHECK(!pthread_mutex_lock(&unlocked) && !pthread_mutex_unlock(&unlocked));
        run(ends_with_lock, &robust);
        CHECK(pthread_mutex_lock(&robust) == EOWNERDEAD);
        CHECK(!pthread_mutex_consistent(&robust) && !pthread_mutex_unlock(&robust));
        CHECK(pthread_mutex_trylock(&unlocked) == 0 && pthread_mutex_trylock(&unlocked) == EBUSY);
        CHECK(!pthread_mutex_unlock(&unlocked) && !pthread_mutex_destroy(&unlocked));
    }
    may_go = well;
    CHECK(!pthread_create(&threads[0], NULL, waits, &first));
    await(&first, 1);
    CHECK(!pthread_create(&threads[1], NULL, waits, &second));
    await(&second, 2);
    CHECK(!pthread_cond_broadcast(&cond) && !pthread_cond_broadcast(&other_cond));
    CHECK(!pthread_join(threads[0], NULL) && !pthread_join(threads[1], NULL));
    pid_t number = 0;
    CHECK(!pthread_create(&threads[0], NULL, ends, &number));
    if (well)
        CHECK(!pthread_detach(threads[0]));
    while (!__atomic_load_n(&number, __ATOMIC_SEQ_CST) || !syscall(SYS_tgkill, getpid(), number, 0))
        usleep(1000);
    return 0;
}
