/*
 * Calls that a cancellation ends: each gets its second record, with ECANCELED, and the thread its end.
 *
 * Nothing that is the thread's own runs then: no cleanup handler and no destructor.
 */
#include "worker.h"
#include <semaphore.h>
#include <threads.h>

#pragma weak pthread_cond_clockwait
#pragma weak sem_clockwait
#pragma weak pthread_clockjoin_np
int pthread_cond_clockwait(pthread_cond_t *, pthread_mutex_t *, clockid_t, const struct timespec *);
int sem_clockwait(sem_t *, clockid_t, const struct timespec *);
int pthread_clockjoin_np(pthread_t, void **, clockid_t, const struct timespec *);

static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static cnd_t cnd;
static sem_t sem;

/* Each thread has a mutex of its own, because it dies holding it. */
static _Thread_local pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static mtx_t mtx;

/* A thread that never ends of itself, to be joined. */
static struct worker endless;

static void *never_ends(void *argument) {
    expect("-", "thr_exit", 0, "x", PTHREAD_CANCELED);
    about_to_block();
    while (pause() == -1) continue;
    return argument;
}

/* The call's second record, and the end. */
static void ends_with(const char *symbol, const char *event, const char *form, unsigned long first) {
    if (form[1])
        expect(symbol, event, 2, form, first, 0L, ECANCELED);
    else
        expect(symbol, event, 2, form, ECANCELED);
    expect("-", "thr_exit", 0, "x", PTHREAD_CANCELED);
    about_to_block();
}

static void lock(void) {
    expect("pthread_mutex_lock", "mutex_lock", 1, "x", &mutex);
    int rval = pthread_mutex_lock(&mutex);
    expect("pthread_mutex_lock", "mutex_lock", 2, "dd", rval, 0);
    check(rval == 0);
}

static void *in_cond_wait(void *argument) {
    lock();
    expect("pthread_cond_wait", "cond_wait", 1, "xx", &cond, &mutex);
    ends_with("pthread_cond_wait", "cond_wait", "d", 0);
    pthread_cond_wait(&cond, &mutex);
    return argument;
}

static void *in_cond_timedwait(void *argument) {
    lock();
    expect("pthread_cond_timedwait", "cond_timedwait", 1, "xxll", &cond, &mutex, future.tv_sec, future.tv_nsec);
    ends_with("pthread_cond_timedwait", "cond_timedwait", "d", 0);
    pthread_cond_timedwait(&cond, &mutex, &future);
    return argument;
}

static void *in_cond_clockwait(void *argument) {
    lock();
    expect("pthread_cond_clockwait", "cond_clockwait", 1, "xxdl", &cond, &mutex, CLOCK_MONOTONIC, FUTURE_NS);
    ends_with("pthread_cond_clockwait", "cond_clockwait", "d", 0);
    pthread_cond_clockwait(&cond, &mutex, CLOCK_MONOTONIC, &future);
    return argument;
}

static void *in_cnd_wait(void *argument) {
    expect("mtx_lock", "mutex_lock", 1, "x", &mtx);
    check(mtx_lock(&mtx) == thrd_success);
    expect("mtx_lock", "mutex_lock", 2, "dd", 0, 0);
    expect("cnd_wait", "cond_wait", 1, "xx", &cnd, &mtx);
    ends_with("cnd_wait", "cond_wait", "d", 0);
    cnd_wait(&cnd, &mtx);
    return argument;
}

static void *in_sem_wait(void *argument) {
    expect("sem_wait", "sema_wait", 1, "xu", &sem, 0);
    ends_with("sem_wait", "sema_wait", "d", 0);
    sem_wait(&sem);
    return argument;
}

static void cancel(struct worker *worker) {
    int rval = pthread_cancel(worker->thread);
    expect("pthread_cancel", "thr_cancel", 0, "td", worker->thread, rval);
    check(rval == 0);
}

/* A cancellation that is pending goes before a token that is there. */
static void *before_sem_wait(void *argument) {
    int rval = sem_post(&sem);
    expect("sem_post", "sema_post", 0, "xdu", &sem, rval, 0);
    self->thread = (pthread_t)own_tid();
    cancel(self);
    expect("sem_wait", "sema_wait", 1, "xu", &sem, 1);
    ends_with("sem_wait", "sema_wait", "d", 0);
    sem_wait(&sem);
    return argument;
}

static void *in_sem_timedwait(void *argument) {
    expect("sem_timedwait", "sema_timedwait", 1, "xudl", &sem, 0, 0, FUTURE_NS);
    ends_with("sem_timedwait", "sema_timedwait", "d", 0);
    sem_timedwait(&sem, &future);
    return argument;
}

static void *in_sem_clockwait(void *argument) {
    expect("sem_clockwait", "sema_timedwait", 1, "xudl", &sem, 0, CLOCK_MONOTONIC, FUTURE_NS);
    ends_with("sem_clockwait", "sema_timedwait", "d", 0);
    sem_clockwait(&sem, CLOCK_MONOTONIC, &future);
    return argument;
}

static void *in_join(void *argument) {
    expect("pthread_join", "thr_join", 1, "t", endless.thread);
    ends_with("pthread_join", "thr_join", "txd", endless.thread);
    pthread_join(endless.thread, NULL);
    return argument;
}

static void *in_thrd_join(void *argument) {
    expect("thrd_join", "thr_join", 1, "t", endless.thread);
    ends_with("thrd_join", "thr_join", "txd", endless.thread);
    thrd_join((thrd_t)endless.thread, NULL);
    return argument;
}

static void *in_timedjoin(void *argument) {
    expect("pthread_timedjoin_np", "thr_timedjoin", 1, "tdl", endless.thread, 0, FUTURE_NS);
    ends_with("pthread_timedjoin_np", "thr_timedjoin", "txd", endless.thread);
    pthread_timedjoin_np(endless.thread, NULL, &future);
    return argument;
}

static void *in_clockjoin(void *argument) {
    expect("pthread_clockjoin_np", "thr_timedjoin", 1, "tdl", endless.thread, CLOCK_MONOTONIC, FUTURE_NS);
    ends_with("pthread_clockjoin_np", "thr_timedjoin", "txd", endless.thread);
    pthread_clockjoin_np(endless.thread, NULL, CLOCK_MONOTONIC, &future);
    return argument;
}

static void *in_testcancel(void *argument) {
    about_to_block();
    /* No cancellation point before this one, so the thread certainly ends there. */
    while (self->argument == argument) __asm__ volatile("pause" ::: "memory");
    expect("pthread_testcancel", "thr_testcancel", 0, "");
    expect("-", "thr_exit", 0, "x", PTHREAD_CANCELED);
    pthread_testcancel();
    return argument;
}

static void interrupt(void *(*body)(void *)) {
    struct worker worker;
    begin(&worker, body, NULL);
    until_blocked(&worker);
    cancel(&worker);
    finish(&worker, PTHREAD_CANCELED);
}

int main(void) {
    check(sem_init(&sem, 0, 0) == 0);
    expect("sem_init", "sema_init", 0, "xdu-d", &sem, 0, 0, 0);
    check(cnd_init(&cnd) == thrd_success);
    expect("cnd_init", "cond_init", 0, "xxdd", &cnd, NULL, 0, 0);
    check(mtx_init(&mtx, mtx_plain) == thrd_success);
    expect("mtx_init", "mutex_init", 0, "xxdd", &mtx, NULL, 0, 0);
    begin(&endless, never_ends, NULL);
    until_blocked(&endless);

    interrupt(in_cond_wait);
    interrupt(in_cond_timedwait);
    if (available("pthread_cond_clockwait")) interrupt(in_cond_clockwait);
    interrupt(in_cnd_wait);
    interrupt(in_sem_wait);
    interrupt(in_sem_timedwait);
    if (available("sem_clockwait")) interrupt(in_sem_clockwait);
    interrupt(in_join);
    interrupt(in_thrd_join);
    interrupt(in_timedjoin);
    if (available("pthread_clockjoin_np")) interrupt(in_clockjoin);

    struct worker worker;
    begin(&worker, before_sem_wait, NULL);
    finish(&worker, PTHREAD_CANCELED);
    int value;
    check(sem_getvalue(&sem, &value) == 0 && value == 1);
    expect("sem_getvalue", "sema_getvalue", 0, "xdd", &sem, 1, 0);

    begin(&worker, in_testcancel, NULL);
    until_about(&worker);
    cancel(&worker);
    worker.argument = &worker;
    finish(&worker, PTHREAD_CANCELED);

    cancel(&endless);
    finish(&endless, PTHREAD_CANCELED);
    return done();
}
