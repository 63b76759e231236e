/*
 * Mutexes with a priority ceiling.
 *
 *     ceiling plain | recursive
 *
 * Locking one needs a real-time thread, and so a privilege; without it the calls fail, and are recorded so.
 */
#include "mutex.h"

static void *wait_lock(void *argument) {
    struct subject *subject = argument;
    about_to_block();
    LOCK(pthread_mutex_lock, subject, 1, 1, 0);
    UNLOCK(pthread_mutex_unlock, subject, PERHAPS, 0);
    return NULL;
}

/* Makes this thread real-time; 0 if it may. */
static int real_time(int priority) {
    struct sched_param param = {.sched_priority = priority};
    int policy = priority ? SCHED_FIFO : SCHED_OTHER;
    int rval = pthread_setschedparam((pthread_t)own_tid(), policy, &param);
    expect("pthread_setschedparam", "thr_setscheduler", 0, "tddd", own_tid(), policy, priority, rval);
    return rval;
}

int main(int argc, char **argv) {
    check(argc == 2);
    int type = strcmp(argv[1], "recursive") == 0 ? PTHREAD_MUTEX_RECURSIVE : PTHREAD_MUTEX_NORMAL;
    struct subject subject;
    make(&subject, type, 0, PTHREAD_PRIO_PROTECT, 7);
    GETCEILING(&subject, 7, 0);
    int old = -1, *volatile none = NULL;
    SETCEILING(&subject, 9, &old, 7, 0);
    check(old == 7);
    SETCEILING(&subject, 8, none, 0, 0);
    GETCEILING(&subject, 8, 0);
    old = -1;
    SETCEILING(&subject, 1000, &old, 0, EINVAL);
    check(old == -1);

    if (real_time(3) == 0) {
        struct worker worker;
        LOCK(pthread_mutex_lock, &subject, 0, 1, 0);
        begin(&worker, wait_lock, &subject);
        until_blocked(&worker);
        UNLOCK(pthread_mutex_unlock, &subject, 1, 0);
        finish(&worker, NULL);
        LOCK(pthread_mutex_lock, &subject, 0, 1, 0);
        if (subject.recursive) {
            LOCK(pthread_mutex_lock, &subject, 0, 2, 0);
            TIMEDLOCK(&subject, &past, PAST_NS, 0, 3, 0);
            UNLOCK(pthread_mutex_unlock, &subject, 0, 0);
            UNLOCK(pthread_mutex_unlock, &subject, 0, 0);
        }
        UNLOCK(pthread_mutex_unlock, &subject, 0, 0);
        TRYLOCK(pthread_mutex_trylock, &subject, 0);
        UNLOCK(pthread_mutex_unlock, &subject, 0, 0);
        TIMEDLOCK(&subject, &future, FUTURE_NS, 0, 1, 0);
        UNLOCK(pthread_mutex_unlock, &subject, 0, 0);
        /* Above the ceiling. */
        check(real_time(20) == 0);
        LOCK(pthread_mutex_lock, &subject, 0, 0, EINVAL);
        TRYLOCK(pthread_mutex_trylock, &subject, EINVAL);
        TIMEDLOCK(&subject, &future, FUTURE_NS, 0, 0, EINVAL);
        check(real_time(0) == 0);
    }
    DESTROY(pthread_mutex_destroy, &subject, 0);
    return done();
}
