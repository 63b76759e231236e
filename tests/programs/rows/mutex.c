/*
 * Mutexes of the type that the argument names: calls that succeed, that fail, and that block.
 *
 *     mutex normal | recursive | errorcheck | adaptive
 */
#include "mutex.h"

/* The trace numbers the types as glibc does. */
_Static_assert(PTHREAD_MUTEX_NORMAL == 0 && PTHREAD_MUTEX_RECURSIVE == 1, "types");
_Static_assert(PTHREAD_MUTEX_ERRORCHECK == 2 && PTHREAD_MUTEX_ADAPTIVE_NP == 3, "types");

/* What the worker does about a mutex that another thread holds. */

static void *fail(void *argument) {
    struct subject *subject = argument;
    TRYLOCK(pthread_mutex_trylock, subject, EBUSY);
    TRYLOCK(__pthread_mutex_trylock, subject, EBUSY);
    TIMEDLOCK(subject, &past, PAST_NS, 1, 0, ETIMEDOUT);
    TIMEDLOCK(subject, &bad_nanoseconds, BAD_NANOSECONDS_NS, 0, 0, EINVAL);
    if (available("pthread_mutex_clocklock")) {
        CLOCKLOCK(subject, CLOCK_REALTIME, &past, PAST_NS, 1, 0, ETIMEDOUT);
        CLOCKLOCK(subject, CLOCK_MONOTONIC, &past, PAST_NS, 1, 0, ETIMEDOUT);
        CLOCKLOCK(subject, CLOCK_MONOTONIC, &bad_nanoseconds, BAD_NANOSECONDS_NS, 0, 0, EINVAL);
        CLOCKLOCK(subject, BAD_CLOCK, &future, FUTURE_NS, 0, 0, EINVAL);
    }
    return NULL;
}

static void *unlock_of_another(void *argument) {
    struct subject *subject = argument;
    UNLOCK(pthread_mutex_unlock, subject, 0, EPERM);
    UNLOCK(__pthread_mutex_unlock, subject, 0, EPERM);
    return NULL;
}

/* Each of these waits. It then holds a mutex whose word shows that others may wait. */

static void *wait_lock(void *argument) {
    struct subject *subject = argument;
    about_to_block();
    LOCK(pthread_mutex_lock, subject, 1, 1, 0);
    UNLOCK(pthread_mutex_unlock, subject, 1, 0);
    return subject;
}

static void *wait_old_lock(void *argument) {
    struct subject *subject = argument;
    about_to_block();
    LOCK(__pthread_mutex_lock, subject, 1, 1, 0);
    UNLOCK(__pthread_mutex_unlock, subject, 1, 0);
    return subject;
}

static void *wait_timedlock(void *argument) {
    struct subject *subject = argument;
    about_to_block();
    TIMEDLOCK(subject, &future, FUTURE_NS, 1, 1, 0);
    UNLOCK(pthread_mutex_unlock, subject, 1, 0);
    return subject;
}

static void *wait_clocklock(void *argument) {
    struct subject *subject = argument;
    about_to_block();
    CLOCKLOCK(subject, CLOCK_MONOTONIC, &future, FUTURE_NS, 1, 1, 0);
    UNLOCK(pthread_mutex_unlock, subject, 1, 0);
    return subject;
}

/* Holds the mutex until a worker waits for it. */
static void contend(struct subject *subject, void *(*waiting)(void *)) {
    struct worker worker;
    LOCK(pthread_mutex_lock, subject, 0, 1, 0);
    begin(&worker, waiting, subject);
    until_blocked(&worker);
    UNLOCK(pthread_mutex_unlock, subject, 1, 0);
    finish(&worker, subject);
}

/* The limit of a call on a free mutex is recorded, and is not checked if the call itself does not check it. */
static void free_with_limits(struct subject *subject) {
    const struct timespec *volatile none = NULL, *volatile wild = (void *)1;
    struct timespec late = {INT64_MAX, 999999999}, early = {INT64_MIN, 0}, before = {-1, 0}, odd = {5, -1};
    TIMEDLOCK(subject, &future, FUTURE_NS, 0, 1, 0);
    UNLOCK(pthread_mutex_unlock, subject, 0, 0);
    TIMEDLOCK(subject, &late, INT64_MAX, 0, 1, 0);
    UNLOCK(pthread_mutex_unlock, subject, 0, 0);
    TIMEDLOCK(subject, &early, INT64_MIN, 0, 1, 0);
    UNLOCK(pthread_mutex_unlock, subject, 0, 0);
    TIMEDLOCK(subject, &before, INT64_C(-1000000000), 0, 1, 0);
    UNLOCK(pthread_mutex_unlock, subject, 0, 0);
    TIMEDLOCK(subject, &odd, INT64_C(4999999999), 0, 1, 0);
    UNLOCK(pthread_mutex_unlock, subject, 0, 0);
    TIMEDLOCK(subject, none, INT64_C(0), 0, 1, 0);
    UNLOCK(pthread_mutex_unlock, subject, 0, 0);
    TIMEDLOCK(subject, wild, INT64_C(0), 0, 1, 0);
    UNLOCK(pthread_mutex_unlock, subject, 0, 0);
    if (available("pthread_mutex_clocklock")) {
        CLOCKLOCK(subject, CLOCK_REALTIME, &future, FUTURE_NS, 0, 1, 0);
        UNLOCK(pthread_mutex_unlock, subject, 0, 0);
        CLOCKLOCK(subject, CLOCK_MONOTONIC, wild, INT64_C(0), 0, 1, 0);
        UNLOCK(pthread_mutex_unlock, subject, 0, 0);
        CLOCKLOCK(subject, BAD_CLOCK, &future, FUTURE_NS, 0, 0, EINVAL);
    }
}

/* What the owner itself gets when it locks once more. */
static void again(struct subject *subject, int type) {
    LOCK(pthread_mutex_lock, subject, 0, 1, 0);
    switch (type) {
    case PTHREAD_MUTEX_RECURSIVE:
        LOCK(pthread_mutex_lock, subject, 0, 2, 0);
        LOCK(__pthread_mutex_lock, subject, 0, 3, 0);
        TRYLOCK(pthread_mutex_trylock, subject, 0);
        TIMEDLOCK(subject, &past, PAST_NS, 0, 5, 0);
        if (available("pthread_mutex_clocklock")) {
            CLOCKLOCK(subject, CLOCK_MONOTONIC, &past, PAST_NS, 0, 6, 0);
            UNLOCK(pthread_mutex_unlock, subject, 0, 0);
        }
        for (int depth = 5; depth > 1; depth--) UNLOCK(pthread_mutex_unlock, subject, 0, 0);
        /* As deep as a mutex gets. */
        subject->mutex.__data.__count = UINT_MAX;
        LOCK(pthread_mutex_lock, subject, 0, 0, EAGAIN);
        TIMEDLOCK(subject, &future, FUTURE_NS, 0, 0, EAGAIN);
        TRYLOCK(pthread_mutex_trylock, subject, EAGAIN);
        subject->mutex.__data.__count = 1;
        break;
    case PTHREAD_MUTEX_ERRORCHECK:
        LOCK(pthread_mutex_lock, subject, 0, 0, EDEADLK);
        TRYLOCK(pthread_mutex_trylock, subject, EBUSY);
        TIMEDLOCK(subject, &future, FUTURE_NS, 0, 0, EDEADLK);
        break;
    default:
        TRYLOCK(pthread_mutex_trylock, subject, EBUSY);
        TIMEDLOCK(subject, &past, PAST_NS, 1, 0, ETIMEDOUT);
        /* It was its own waiter. */
        UNLOCK(pthread_mutex_unlock, subject, 1, 0);
        return;
    }
    UNLOCK(pthread_mutex_unlock, subject, 0, 0);
}

int main(int argc, char **argv) {
    const char *names[] = {"normal", "recursive", "errorcheck", "adaptive"};
    int type = 0;
    check(argc == 2);
    while (strcmp(names[type], argv[1]) != 0) check(++type < 4);

    struct subject subject;
    struct worker worker;
    make(&subject, type, 0, PTHREAD_PRIO_NONE, 0);
    LOCK(pthread_mutex_lock, &subject, 0, 1, 0);
    UNLOCK(pthread_mutex_unlock, &subject, 0, 0);
    LOCK(__pthread_mutex_lock, &subject, 0, 1, 0);
    UNLOCK(__pthread_mutex_unlock, &subject, 0, 0);
    TRYLOCK(pthread_mutex_trylock, &subject, 0);
    UNLOCK(pthread_mutex_unlock, &subject, 0, 0);
    TRYLOCK(__pthread_mutex_trylock, &subject, 0);
    UNLOCK(pthread_mutex_unlock, &subject, 0, 0);
    free_with_limits(&subject);
    again(&subject, type);

    LOCK(pthread_mutex_lock, &subject, 0, 1, 0);
    if (type == PTHREAD_MUTEX_RECURSIVE || type == PTHREAD_MUTEX_ERRORCHECK) {
        begin(&worker, unlock_of_another, &subject);
        finish(&worker, NULL);
    }
    begin(&worker, fail, &subject);
    finish(&worker, NULL);
    DESTROY(pthread_mutex_destroy, &subject, EBUSY);
    DESTROY(__pthread_mutex_destroy, &subject, EBUSY);
    /* Limits that passed while it was held have left their mark in its word. */
    UNLOCK(pthread_mutex_unlock, &subject, 1, 0);

    contend(&subject, wait_lock);
    contend(&subject, wait_old_lock);
    contend(&subject, wait_timedlock);
    if (available("pthread_mutex_clocklock")) contend(&subject, wait_clocklock);

    if (type == PTHREAD_MUTEX_ERRORCHECK || type == PTHREAD_MUTEX_RECURSIVE)
        UNLOCK(pthread_mutex_unlock, &subject, 0, EPERM);
    CONSISTENT(&subject, EINVAL);
    GETCEILING(&subject, 0, EINVAL);
    int old = -1;
    SETCEILING(&subject, 10, &old, 0, EINVAL);
    DESTROY(pthread_mutex_destroy, &subject, 0);

    if (type == PTHREAD_MUTEX_NORMAL) {
        INIT(pthread_mutex_init, &subject, NULL, 0, 0);
        DESTROY(__pthread_mutex_destroy, &subject, 0);
        INIT(__pthread_mutex_init, &subject, NULL, 0, 0);
        DESTROY(pthread_mutex_destroy, &subject, 0);
        /* glibc marks what it has destroyed. */
        LOCK(pthread_mutex_lock, &subject, 0, 0, EINVAL);
        TRYLOCK(pthread_mutex_trylock, &subject, EINVAL);
    }
    return done();
}
