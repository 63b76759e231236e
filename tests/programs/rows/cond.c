/* Condition variables. */
#include "worker.h"

#pragma weak pthread_cond_clockwait
int pthread_cond_clockwait(pthread_cond_t *, pthread_mutex_t *, clockid_t, const struct timespec *);

/* Error-checking, because a wait then fails if its caller does not hold the mutex. */
static pthread_mutex_t mutex = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
static pthread_cond_t cond;

static void lock(void) {
    expect("pthread_mutex_lock", "mutex_lock", 1, "x", &mutex);
    int rval = pthread_mutex_lock(&mutex);
    expect("pthread_mutex_lock", "mutex_lock", 2, "d?", rval);
    check(rval == 0);
}

static void unlock(void) {
    int rval = pthread_mutex_unlock(&mutex);
    expect("pthread_mutex_unlock", "mutex_unlock", 0, "xd?", &mutex, rval);
    check(rval == 0);
}

static void wait_on(int wanted) {
    expect("pthread_cond_wait", "cond_wait", 1, "xx", &cond, &mutex);
    int rval = pthread_cond_wait(&cond, &mutex);
    expect("pthread_cond_wait", "cond_wait", 2, "d", rval);
    check(rval == wanted);
}

static void timedwait(const struct timespec *limit, int wanted) {
    expect("pthread_cond_timedwait", "cond_timedwait", 1, "xxll", &cond, &mutex, limit->tv_sec, limit->tv_nsec);
    int rval = pthread_cond_timedwait(&cond, &mutex, limit);
    expect("pthread_cond_timedwait", "cond_timedwait", 2, "d", rval);
    check(rval == wanted);
}

static void clockwait(clockid_t clock, const struct timespec *limit, int64_t limit_ns, int wanted) {
    expect("pthread_cond_clockwait", "cond_clockwait", 1, "xxdl", &cond, &mutex, clock, limit_ns);
    int rval = pthread_cond_clockwait(&cond, &mutex, clock, limit);
    expect("pthread_cond_clockwait", "cond_clockwait", 2, "d", rval);
    check(rval == wanted);
}

/* A worker of each kind waits; it holds the mutex again when it is woken. */

static void *waits(void *argument) {
    lock();
    about_to_block();
    wait_on(0);
    unlock();
    return argument;
}

static void *waits_timed(void *argument) {
    lock();
    about_to_block();
    timedwait(&future, 0);
    unlock();
    return argument;
}

static void *waits_clock(void *argument) {
    lock();
    about_to_block();
    clockwait(CLOCK_MONOTONIC, &future, FUTURE_NS, 0);
    unlock();
    return argument;
}

static void signal_one(int waiters) {
    int rval = pthread_cond_signal(&cond);
    expect("pthread_cond_signal", "cond_signal", 0, "xdd", &cond, rval, waiters);
    check(rval == 0);
}

static void broadcast(int waiters) {
    int rval = pthread_cond_broadcast(&cond);
    expect("pthread_cond_broadcast", "cond_broadcast", 0, "xdd", &cond, rval, waiters);
    check(rval == 0);
}

static void wake_each_kind(void) {
    void *(*kinds[])(void *) = {waits, waits_timed, waits_clock};
    int count = available("pthread_cond_clockwait") ? 3 : 2;
    struct worker workers[3];
    for (int kind = 0; kind < count; kind++) {
        begin(&workers[kind], kinds[kind], NULL);
        until_blocked(&workers[kind]);
        signal_one(1);
        finish(&workers[kind], NULL);
        signal_one(0);
    }
    for (int kind = 0; kind < count; kind++) {
        begin(&workers[kind], kinds[kind], NULL);
        until_blocked(&workers[kind]);
    }
    broadcast(1);
    for (int kind = 0; kind < count; kind++) finish(&workers[kind], NULL);
    broadcast(0);
}

static void init(const pthread_condattr_t *attr, int clock) {
    int rval = pthread_cond_init(&cond, attr);
    expect("pthread_cond_init", "cond_init", 0, "xxdd", &cond, attr, clock, rval);
    check(rval == 0);
}

static void destroy(void) {
    int rval = pthread_cond_destroy(&cond);
    expect("pthread_cond_destroy", "cond_destroy", 0, "xd", &cond, rval);
    check(rval == 0);
}

int main(void) {
    pthread_condattr_t attr;
    struct timespec before = {-2, 7}, negative = {5, -1};

    init(NULL, 0);
    signal_one(0);
    broadcast(0);
    wake_each_kind();
    lock();
    timedwait(&past, ETIMEDOUT);
    timedwait(&before, ETIMEDOUT);
    timedwait(&bad_nanoseconds, EINVAL);
    timedwait(&negative, EINVAL);
    if (available("pthread_cond_clockwait")) {
        clockwait(CLOCK_REALTIME, &past, PAST_NS, ETIMEDOUT);
        clockwait(CLOCK_MONOTONIC, &past, PAST_NS, ETIMEDOUT);
        clockwait(CLOCK_MONOTONIC, &bad_nanoseconds, BAD_NANOSECONDS_NS, EINVAL);
        clockwait(BAD_CLOCK, &future, FUTURE_NS, EINVAL);
    }
    unlock();
    /* The mutex is not the caller's. */
    wait_on(EPERM);
    timedwait(&future, EPERM);
    if (available("pthread_cond_clockwait")) clockwait(CLOCK_REALTIME, &future, FUTURE_NS, EPERM);
    destroy();

    /* The word that holds the clock also shows waiters. */
    check(pthread_condattr_init(&attr) == 0 && pthread_condattr_setclock(&attr, CLOCK_MONOTONIC) == 0);
    init(&attr, CLOCK_MONOTONIC);
    signal_one(0);
    broadcast(0);
    wake_each_kind();
    destroy();
    check(pthread_condattr_setclock(&attr, CLOCK_REALTIME) == 0);
    check(pthread_condattr_setpshared(&attr, PTHREAD_PROCESS_SHARED) == 0);
    init(&attr, CLOCK_REALTIME);
    signal_one(0);
    wake_each_kind();
    destroy();
    return done();
}
