/* C11 threads. Their results have numbers of their own; the trace gives the errno value that means the same. */
#include "worker.h"
#include <threads.h>

/* What the trace calls rval. */
static int errno_of(int result) {
    switch (result) {
    case thrd_success: return 0;
    case thrd_busy: return EBUSY;
    case thrd_timedout: return ETIMEDOUT;
    case thrd_nomem: return ENOMEM;
    default: return -1;
    }
}

/* Lets the running thread go on. */
static atomic_int gate;

static void create(thrd_t *thread, thrd_start_t routine, void *argument) {
    expect("thrd_create", "thr_create", 1, "x-xx", thread, routine, argument);
    int result = thrd_create(thread, routine, argument);
    expect("thrd_create", "thr_create", 2, "dt", errno_of(result), *thread);
    check(result == thrd_success);
}

/* An int is a status of 64 bits with its sign. */
static void join(thrd_t thread, int wanted, int ask) {
    int status = 12345;
    expect("thrd_join", "thr_join", 1, "t", thread);
    int result = thrd_join(thread, ask ? &status : NULL);
    expect("thrd_join", "thr_join", 2, "txd", thread, (long)wanted, errno_of(result));
    check(result == thrd_success && status == (ask ? wanted : 12345));
}

static int exits(void *argument) {
    expect("-", "thr_begin", 0, "xx", exits, argument);
    thrd_t own = thrd_current();
    expect("thrd_current", "thr_self", 0, "");
    check(own == own_tid());
    expect("thrd_exit", "thr_exit", 0, "x", -5L);
    thrd_exit(-5);
}

static int returns(void *argument) {
    expect("-", "thr_begin", 0, "xx", returns, argument);
    expect("-", "thr_exit", 0, "x", -7L);
    return -7;
}

static atomic_long detached_lwp;

static int is_detached(void *argument) {
    expect("-", "thr_begin", 0, "xx", is_detached, argument);
    detached_lwp = own_lwp();
    while (!gate) pause_briefly();
    expect("-", "thr_exit", 0, "x", 3L);
    return 3;
}

static void threads(void) {
    thrd_t thread = 0;
    pthread_attr_t attr, normal;

    create(&thread, exits, &gate);
    join(thread, -5, 1);
    create(&thread, returns, NULL);
    join(thread, -7, 1);
    create(&thread, returns, &thread);
    join(thread, -7, 0);

    create(&thread, is_detached, NULL);
    while (!detached_lwp) pause_briefly();
    int result = thrd_detach(thread);
    expect("thrd_detach", "thr_detach", 0, "td", thread, errno_of(result));
    check(result == thrd_success);
    result = thrd_detach(thread);
    expect("thrd_detach", "thr_detach", 0, "td", thread, errno_of(result));
    check(result == thrd_error);
    expect("thrd_join", "thr_join", 1, "t", thread);
    result = thrd_join(thread, NULL);
    expect("thrd_join", "thr_join", 2, "txd", thread, NULL, errno_of(result));
    check(result == thrd_error);
    gate = 1;
    until_gone(detached_lwp);

    /* A stack that no address space holds. */
    check(pthread_getattr_default_np(&normal) == 0 && pthread_getattr_default_np(&attr) == 0);
    check(pthread_attr_setstacksize(&attr, (size_t)1 << 47) == 0 && pthread_setattr_default_np(&attr) == 0);
    expect("thrd_create", "thr_create", 1, "x-xx", &thread, returns, NULL);
    result = thrd_create(&thread, returns, NULL);
    expect("thrd_create", "thr_create", 2, "dt", errno_of(result), 0L);
    check(result != thrd_success);
    check(pthread_setattr_default_np(&normal) == 0);

    expect("thrd_yield", "thr_yield", 0, "");
    thrd_yield();

    expect("thrd_sleep", "thr_sleep", 1, "l", 2000L);
    result = thrd_sleep(&(struct timespec){0, 2000}, NULL);
    expect("thrd_sleep", "thr_sleep", 2, "d", result);
    check(result == 0);
    expect("thrd_sleep", "thr_sleep", 1, "l", BAD_NANOSECONDS_NS);
    result = thrd_sleep(&bad_nanoseconds, NULL);
    expect("thrd_sleep", "thr_sleep", 2, "d", result);
    check(result < -1);
    /* The kernel reads the duration, or does not. */
    expect("thrd_sleep", "thr_sleep", 1, "l", 0L);
    result = thrd_sleep((struct timespec *)8, NULL);
    expect("thrd_sleep", "thr_sleep", 2, "d", result);
    check(result < -1);
}

static mtx_t mutex;
static int recursive;

/* `mutex_lock` or `rmutex_lock`. */
static const char *event_of(const char *recursive_name) { return recursive ? recursive_name : recursive_name + 1; }

static void init(int type, int recorded_type) {
    int result = mtx_init(&mutex, type);
    expect("mtx_init", event_of("rmutex_init"), 0, "x-dd", &mutex, recorded_type, errno_of(result));
    check(result == thrd_success);
}

static void lock_result(const char *symbol, const char *event, int result, int block, unsigned depth) {
    if (recursive)
        expect(symbol, event, 2, "ddu", errno_of(result), block, depth);
    else
        expect(symbol, event, 2, "dd", errno_of(result), block);
}

static void lock(int block, unsigned depth, int wanted) {
    expect("mtx_lock", event_of("rmutex_lock"), 1, "x", &mutex);
    int result = mtx_lock(&mutex);
    lock_result("mtx_lock", event_of("rmutex_lock"), result, block, depth);
    check(result == wanted);
}

static void timedlock(const struct timespec *limit, int64_t limit_ns, int block, unsigned depth, int wanted) {
    expect("mtx_timedlock", event_of("rmutex_timedlock"), 1, "xdl", &mutex, 0, limit_ns);
    int result = mtx_timedlock(&mutex, limit);
    lock_result("mtx_timedlock", event_of("rmutex_timedlock"), result, block, depth);
    check(result == wanted);
}

static void trylock(int wanted) {
    int result = mtx_trylock(&mutex);
    expect("mtx_trylock", event_of("rmutex_trylock"), 0, "xd", &mutex, errno_of(result));
    check(result == wanted);
}

/* For `waiters`: the program cannot know. A wait for a condition leaves glibc's word so. */
#define PERHAPS (-1)

static void unlock(int waiters, int wanted) {
    const char *event = event_of("rmutex_unlock");
    int result = mtx_unlock(&mutex);
    if (recursive)
        expect("mtx_unlock", event, 0, "xd", &mutex, errno_of(result));
    else
        expect("mtx_unlock", event, 0, waiters < 0 ? "xd?" : "xdd", &mutex, errno_of(result), waiters);
    check(result == wanted);
}

static void destroy(void) {
    const char *event = event_of("rmutex_destroy");
    mtx_destroy(&mutex);
    expect("mtx_destroy", event, 0, "xd", &mutex, 0);
}

static void *meets_holder(void *argument) {
    trylock(thrd_busy);
    timedlock(&past, PAST_NS, 1, 0, thrd_timedout);
    timedlock(&bad_nanoseconds, BAD_NANOSECONDS_NS, 0, 0, thrd_error);
    about_to_block();
    lock(1, 1, thrd_success);
    unlock(1, thrd_success);
    return argument;
}

static void *waits_timed(void *argument) {
    about_to_block();
    timedlock(&future, FUTURE_NS, 1, 1, thrd_success);
    unlock(1, thrd_success);
    return argument;
}

static void hold_against(void *(*body)(void *)) {
    struct worker worker;
    lock(0, 1, thrd_success);
    begin(&worker, body, NULL);
    until_blocked(&worker);
    unlock(1, thrd_success);
    finish(&worker, NULL);
}

static void mutexes(int type, int recorded_type) {
    recursive = recorded_type == PTHREAD_MUTEX_RECURSIVE;
    init(type, recorded_type);
    lock(0, 1, thrd_success);
    if (recursive) {
        lock(0, 2, thrd_success);
        timedlock(&past, PAST_NS, 0, 3, thrd_success);
        unlock(0, thrd_success);
        unlock(0, thrd_success);
    }
    unlock(0, thrd_success);
    if (recursive) unlock(0, thrd_error);
    trylock(thrd_success);
    unlock(0, thrd_success);
    timedlock(&past, PAST_NS, 0, 1, thrd_success);
    unlock(0, thrd_success);
    hold_against(meets_holder);
    hold_against(waits_timed);
    destroy();
    recursive = 0;
}

static cnd_t cond;

static void wait_on(void) {
    expect("cnd_wait", "cond_wait", 1, "xx", &cond, &mutex);
    int result = cnd_wait(&cond, &mutex);
    expect("cnd_wait", "cond_wait", 2, "d", errno_of(result));
    check(result == thrd_success);
}

static void timedwait(const struct timespec *limit, int wanted) {
    expect("cnd_timedwait", "cond_timedwait", 1, "xxll", &cond, &mutex, limit->tv_sec, limit->tv_nsec);
    int result = cnd_timedwait(&cond, &mutex, limit);
    expect("cnd_timedwait", "cond_timedwait", 2, "d", errno_of(result));
    check(result == wanted);
}

static void *waits_on_cond(void *argument) {
    lock(0, 1, thrd_success);
    about_to_block();
    wait_on();
    about_to_block();
    timedwait(&future, thrd_success);
    unlock(PERHAPS, thrd_success);
    return argument;
}

static void conds(void) {
    struct worker worker;
    int result = cnd_init(&cond);
    expect("cnd_init", "cond_init", 0, "x--d", &cond, errno_of(result));
    init(mtx_plain, PTHREAD_MUTEX_NORMAL);
    lock(0, 1, thrd_success);
    timedwait(&past, thrd_timedout);
    timedwait(&bad_nanoseconds, thrd_error);
    unlock(PERHAPS, thrd_success);

    begin(&worker, waits_on_cond, NULL);
    until_blocked(&worker);
    result = cnd_signal(&cond);
    expect("cnd_signal", "cond_signal", 0, "xdd", &cond, errno_of(result), 1);
    until_blocked(&worker);
    result = cnd_broadcast(&cond);
    expect("cnd_broadcast", "cond_broadcast", 0, "xdd", &cond, errno_of(result), 1);
    finish(&worker, NULL);
    result = cnd_signal(&cond);
    expect("cnd_signal", "cond_signal", 0, "xdd", &cond, errno_of(result), 0);
    result = cnd_broadcast(&cond);
    expect("cnd_broadcast", "cond_broadcast", 0, "xdd", &cond, errno_of(result), 0);

    cnd_destroy(&cond);
    expect("cnd_destroy", "cond_destroy", 0, "xd", &cond, 0);
    destroy();
}

int main(void) {
    threads();
    mutexes(mtx_plain, PTHREAD_MUTEX_NORMAL);
    mutexes(mtx_timed, PTHREAD_MUTEX_NORMAL);
    mutexes(mtx_plain | mtx_recursive, PTHREAD_MUTEX_RECURSIVE);
    mutexes(mtx_timed | mtx_recursive, PTHREAD_MUTEX_RECURSIVE);
    conds();
    return done();
}
