/* A second thread, which does one thing after another while the first watches it. */
#ifndef WORKER_H
#define WORKER_H

#include "expect.h"

struct worker {
    pthread_t thread;
    void *(*body)(void *);
    void *argument;
    atomic_long lwp;
    /* Set by the worker just before a call that will block. */
    atomic_int about;
};

static __thread struct worker *self;

static inline void *worker_main(void *argument) {
    self = argument;
    self->lwp = own_lwp();
    expect("-", "thr_begin", 0, "xx", worker_main, argument);
    void *result = self->body(self->argument);
    expect("-", "thr_exit", 0, "x", result);
    return result;
}

/* Starts a worker. */
static inline void begin(struct worker *worker, void *(*body)(void *), void *argument) {
    memset(worker, 0, sizeof *worker);
    worker->body = body;
    worker->argument = argument;
    expect("pthread_create", "thr_create", 1, "xxxx", &worker->thread, NULL, worker_main, worker);
    int rval = pthread_create(&worker->thread, NULL, worker_main, worker);
    expect("pthread_create", "thr_create", 2, "dt", rval, worker->thread);
    check(rval == 0);
}

/* Waits for a worker's end, and wants this result. */
static inline void finish(struct worker *worker, void *wanted) {
    void *result;
    expect("pthread_join", "thr_join", 1, "t", worker->thread);
    int rval = pthread_join(worker->thread, &result);
    expect("pthread_join", "thr_join", 2, "txd", worker->thread, result, rval);
    check(rval == 0 && result == wanted);
}

/* Waits until the kernel knows a worker's thread no more. */
static inline void until_ended(struct worker *worker) {
    while (!worker->lwp) pause_briefly();
    until_gone(worker->lwp);
}

/* For the worker: the next call will block. */
static inline void about_to_block(void) { self->about = 1; }

/* Waits until the worker is about to make a call. */
static inline void until_about(struct worker *worker) {
    while (!atomic_exchange(&worker->about, 0)) pause_briefly();
}

/* Waits until the worker sleeps in the call that it was about to make. */
static inline void until_blocked(struct worker *worker) {
    until_about(worker);
    while (!is_waiting(worker->lwp)) pause_briefly();
}

/* Waits until the worker has spun for a while, in terms of its own CPU time, in the call that it was about to make. */
static inline void until_spinning(struct worker *worker) {
    until_about(worker);
    clockid_t clock;
    struct timespec start, now;
    check(pthread_getcpuclockid(worker->thread, &clock) == 0);
    clock_gettime(clock, &start);
    do {
        pause_briefly();
        clock_gettime(clock, &now);
    } while ((now.tv_sec - start.tv_sec) * 1000000000 + now.tv_nsec - start.tv_nsec < 20000000);
}

#endif
