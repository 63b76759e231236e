/* Creating, ending, joining and detaching. */
#include "worker.h"

#pragma weak pthread_clockjoin_np
int pthread_clockjoin_np(pthread_t, void **, clockid_t, const struct timespec *);

/* Lets a worker go on. */
static atomic_int gate;

static void pass_gate(void) {
    while (!atomic_exchange(&gate, 0)) pause_briefly();
}

static void *returns(void *argument) { return argument; }

static void *exits(void *argument) {
    expect("pthread_exit", "thr_exit", 0, "x", argument);
    pthread_exit(argument);
}

static void *waits_for_gate(void *argument) {
    pass_gate();
    return argument;
}

/* A worker whose result nobody asks for; the trace has it all the same. */
static void join_without_result(struct worker *worker, void *status) {
    expect("pthread_join", "thr_join", 1, "t", worker->thread);
    int rval = pthread_join(worker->thread, NULL);
    expect("pthread_join", "thr_join", 2, "txd", worker->thread, status, rval);
    check(rval == 0);
}

static void fail_to_join(pthread_t thread, int wanted) {
    void *result = &gate;
    expect("pthread_join", "thr_join", 1, "t", thread);
    int rval = pthread_join(thread, &result);
    expect("pthread_join", "thr_join", 2, "txd", thread, NULL, rval);
    check(rval == wanted && result == &gate);
}

/* `wanted` is what the call returns, `status` the exit status that it stores. */

static void tryjoin(pthread_t thread, void **result, void *status, int wanted) {
    int rval = pthread_tryjoin_np(thread, result);
    expect("pthread_tryjoin_np", "thr_tryjoin", 0, "txd", thread, status, rval);
    check(rval == wanted);
}

static void timedjoin(
    pthread_t thread, void **result, const struct timespec *limit, int64_t limit_ns, void *status, int wanted
) {
    expect("pthread_timedjoin_np", "thr_timedjoin", 1, "tdl", thread, 0, limit_ns);
    int rval = pthread_timedjoin_np(thread, result, limit);
    expect("pthread_timedjoin_np", "thr_timedjoin", 2, "txd", thread, status, rval);
    check(rval == wanted && (!result || rval || *result == status));
}

static void clockjoin(
    pthread_t thread, void **result, clockid_t clock, const struct timespec *limit, int64_t limit_ns, void *status,
    int wanted
) {
    expect("pthread_clockjoin_np", "thr_timedjoin", 1, "tdl", thread, clock, limit_ns);
    int rval = pthread_clockjoin_np(thread, result, clock, limit);
    expect("pthread_clockjoin_np", "thr_timedjoin", 2, "txd", thread, status, rval);
    check(rval == wanted && (!result || rval || *result == status));
}

static void detach(pthread_t thread, int wanted) {
    int rval = pthread_detach(thread);
    expect("pthread_detach", "thr_detach", 0, "td", thread, rval);
    check(rval == wanted);
}

static void *joins_itself(void *argument) {
    fail_to_join((pthread_t)own_tid(), EDEADLK);
    tryjoin((pthread_t)own_tid(), NULL, NULL, EBUSY);
    return argument;
}

/* A thread that nobody joins. */
static void detached(void) {
    struct worker worker;
    begin(&worker, waits_for_gate, &gate);
    detach(worker.thread, 0);
    detach(worker.thread, EINVAL);
    fail_to_join(worker.thread, EINVAL);
    tryjoin(worker.thread, NULL, NULL, EBUSY);
    timedjoin(worker.thread, NULL, &past, PAST_NS, NULL, EINVAL);
    gate = 1;
    until_ended(&worker);
}

/* A stack that no address space holds. */
static void fail_to_create(void) {
    pthread_attr_t attr;
    pthread_t thread = 0;
    check(pthread_attr_init(&attr) == 0 && pthread_attr_setstacksize(&attr, (size_t)1 << 47) == 0);
    expect("pthread_create", "thr_create", 1, "xxxx", &thread, &attr, returns, &gate);
    int rval = pthread_create(&thread, &attr, returns, &gate);
    expect("pthread_create", "thr_create", 2, "dt", rval, 0L);
    check(rval == EAGAIN);
}

static void *with_attributes(void *argument) {
    expect("-", "thr_begin", 0, "xx", with_attributes, argument);
    expect("-", "thr_exit", 0, "x", -1L);
    return (void *)-1L;
}

static void create_with_attributes(void) {
    pthread_attr_t attr;
    pthread_t thread;
    check(pthread_attr_init(&attr) == 0 && pthread_attr_setstacksize(&attr, PTHREAD_STACK_MIN) == 0);
    expect("pthread_create", "thr_create", 1, "xxxx", &thread, &attr, with_attributes, &gate);
    int rval = pthread_create(&thread, &attr, with_attributes, &gate);
    expect("pthread_create", "thr_create", 2, "dt", rval, thread);
    check(rval == 0);
    void *result;
    expect("pthread_join", "thr_join", 1, "t", thread);
    rval = pthread_join(thread, &result);
    expect("pthread_join", "thr_join", 2, "txd", thread, -1L, rval);
    check(rval == 0 && result == (void *)-1L);
}

static void timed(void) {
    struct worker worker;
    void *result, *status = (void *)0x5eed;
    const struct timespec *volatile none = NULL;

    begin(&worker, waits_for_gate, status);
    tryjoin(worker.thread, &result, NULL, EBUSY);
    timedjoin(worker.thread, &result, &past, PAST_NS, NULL, ETIMEDOUT);
    if (available("pthread_clockjoin_np")) {
        clockjoin(worker.thread, &result, CLOCK_MONOTONIC, &past, PAST_NS, NULL, ETIMEDOUT);
        /* Older ones wait by any clock. */
        if (!is_older_than("2.34"))
            clockjoin(worker.thread, &result, BAD_CLOCK, &future, FUTURE_NS, NULL, EINVAL);
    }
    gate = 1;
    until_ended(&worker);
    tryjoin(worker.thread, &result, status, 0);
    check(result == status);

    begin(&worker, exits, status);
    until_ended(&worker);
    tryjoin(worker.thread, NULL, status, 0);

    begin(&worker, exits, status);
    timedjoin(worker.thread, &result, &future, FUTURE_NS, status, 0);
    begin(&worker, returns, status);
    timedjoin(worker.thread, NULL, &future, FUTURE_NS, status, 0);
    begin(&worker, returns, status);
    timedjoin(worker.thread, &result, none, 0, status, 0);
    if (available("pthread_clockjoin_np")) {
        begin(&worker, returns, status);
        clockjoin(worker.thread, &result, CLOCK_MONOTONIC, &future, FUTURE_NS, status, 0);
        begin(&worker, exits, status);
        clockjoin(worker.thread, NULL, CLOCK_REALTIME, &future, FUTURE_NS, status, 0);
    }
}

int main(void) {
    struct worker worker;
    fail_to_create();
    begin(&worker, returns, &gate);
    finish(&worker, &gate);
    begin(&worker, exits, &worker);
    finish(&worker, &worker);
    begin(&worker, returns, &gate);
    join_without_result(&worker, &gate);
    begin(&worker, exits, (void *)7);
    join_without_result(&worker, (void *)7);
    begin(&worker, joins_itself, NULL);
    finish(&worker, NULL);
    create_with_attributes();
    timed();
    detached();
    return done();
}
