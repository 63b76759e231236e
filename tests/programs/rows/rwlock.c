/* Reader-writer locks. */
#include "worker.h"

#pragma weak pthread_rwlock_clockrdlock
#pragma weak pthread_rwlock_clockwrlock
int pthread_rwlock_clockrdlock(pthread_rwlock_t *, clockid_t, const struct timespec *);
int pthread_rwlock_clockwrlock(pthread_rwlock_t *, clockid_t, const struct timespec *);

/* Old names, to which programs are no longer linked but still refer. */
int __pthread_rwlock_init(pthread_rwlock_t *, const pthread_rwlockattr_t *);
int __pthread_rwlock_rdlock(pthread_rwlock_t *);
int __pthread_rwlock_wrlock(pthread_rwlock_t *);
int __pthread_rwlock_tryrdlock(pthread_rwlock_t *);
int __pthread_rwlock_trywrlock(pthread_rwlock_t *);
int __pthread_rwlock_unlock(pthread_rwlock_t *);
int __pthread_rwlock_destroy(pthread_rwlock_t *);
__asm__(".symver __pthread_rwlock_init, __pthread_rwlock_init@GLIBC_2.2.5");
__asm__(".symver __pthread_rwlock_rdlock, __pthread_rwlock_rdlock@GLIBC_2.2.5");
__asm__(".symver __pthread_rwlock_wrlock, __pthread_rwlock_wrlock@GLIBC_2.2.5");
__asm__(".symver __pthread_rwlock_tryrdlock, __pthread_rwlock_tryrdlock@GLIBC_2.2.5");
__asm__(".symver __pthread_rwlock_trywrlock, __pthread_rwlock_trywrlock@GLIBC_2.2.5");
__asm__(".symver __pthread_rwlock_unlock, __pthread_rwlock_unlock@GLIBC_2.2.5");
__asm__(".symver __pthread_rwlock_destroy, __pthread_rwlock_destroy@GLIBC_2.2.5");

static pthread_rwlock_t rwlock;

/* Each of these is one call: made by `function`, it must return `wanted`. */

#define INIT(function, attr) \
    do { \
        int rval_ = function(&rwlock, attr); \
        expect(#function, "rwlock_init", 0, "xx-d", &rwlock, attr, rval_); \
        check(rval_ == 0); \
    } while (0)

#define RDLOCK(function, block, readers, wanted) \
    do { \
        expect(#function, "rw_rdlock", 1, "x", &rwlock); \
        int rval_ = function(&rwlock); \
        expect(#function, "rw_rdlock", 2, "ddu", rval_, block, readers); \
        check(rval_ == wanted); \
    } while (0)

#define WRLOCK(function, block, wanted) \
    do { \
        expect(#function, "rw_wrlock", 1, "x", &rwlock); \
        int rval_ = function(&rwlock); \
        expect(#function, "rw_wrlock", 2, "dd", rval_, block); \
        check(rval_ == wanted); \
    } while (0)

#define TRY(function, event, wanted) \
    do { \
        int rval_ = function(&rwlock); \
        expect(#function, event, 0, "xd", &rwlock, rval_); \
        check(rval_ == wanted); \
    } while (0)

/* For `waiters`: the program cannot know. */
#define PERHAPS (-1)

#define UNLOCK(function, waiters) \
    do { \
        int rval_ = function(&rwlock); \
        expect(#function, "rw_unlock", 0, (waiters) < 0 ? "xd?" : "xdd", &rwlock, rval_, waiters); \
        check(rval_ == 0); \
    } while (0)

#define DESTROY(function) \
    do { \
        int rval_ = function(&rwlock); \
        expect(#function, "rwlock_destroy", 0, "xd", &rwlock, rval_); \
        check(rval_ == 0); \
    } while (0)

static void timedrdlock(const struct timespec *limit, int64_t limit_ns, int block, unsigned readers, int wanted) {
    expect("pthread_rwlock_timedrdlock", "rw_timedrdlock", 1, "xdl", &rwlock, 0, limit_ns);
    int rval = pthread_rwlock_timedrdlock(&rwlock, limit);
    expect("pthread_rwlock_timedrdlock", "rw_timedrdlock", 2, "ddu", rval, block, readers);
    check(rval == wanted);
}

static void timedwrlock(const struct timespec *limit, int64_t limit_ns, int block, int wanted) {
    expect("pthread_rwlock_timedwrlock", "rw_timedwrlock", 1, "xdl", &rwlock, 0, limit_ns);
    int rval = pthread_rwlock_timedwrlock(&rwlock, limit);
    expect("pthread_rwlock_timedwrlock", "rw_timedwrlock", 2, "dd", rval, block);
    check(rval == wanted);
}

static void clockrdlock(
    clockid_t clock, const struct timespec *limit, int64_t limit_ns, int block, unsigned readers, int wanted
) {
    expect("pthread_rwlock_clockrdlock", "rw_timedrdlock", 1, "xdl", &rwlock, clock, limit_ns);
    int rval = pthread_rwlock_clockrdlock(&rwlock, clock, limit);
    expect("pthread_rwlock_clockrdlock", "rw_timedrdlock", 2, "ddu", rval, block, readers);
    check(rval == wanted);
}

static void clockwrlock(clockid_t clock, const struct timespec *limit, int64_t limit_ns, int block, int wanted) {
    expect("pthread_rwlock_clockwrlock", "rw_timedwrlock", 1, "xdl", &rwlock, clock, limit_ns);
    int rval = pthread_rwlock_clockwrlock(&rwlock, clock, limit);
    expect("pthread_rwlock_clockwrlock", "rw_timedwrlock", 2, "dd", rval, block);
    check(rval == wanted);
}

static int clocks(void) { return available("pthread_rwlock_clockrdlock") & available("pthread_rwlock_clockwrlock"); }

/* What a worker meets while the first thread writes. */
static void *fail_against_writer(void *argument) {
    TRY(pthread_rwlock_tryrdlock, "rw_tryrdlock", EBUSY);
    TRY(__pthread_rwlock_tryrdlock, "rw_tryrdlock", EBUSY);
    TRY(pthread_rwlock_trywrlock, "rw_trywrlock", EBUSY);
    TRY(__pthread_rwlock_trywrlock, "rw_trywrlock", EBUSY);
    timedrdlock(&past, PAST_NS, 1, 0, ETIMEDOUT);
    timedwrlock(&past, PAST_NS, 1, ETIMEDOUT);
    timedrdlock(&bad_nanoseconds, BAD_NANOSECONDS_NS, 0, 0, EINVAL);
    timedwrlock(&bad_nanoseconds, BAD_NANOSECONDS_NS, 0, EINVAL);
    if (clocks()) {
        clockrdlock(CLOCK_MONOTONIC, &past, PAST_NS, 1, 0, ETIMEDOUT);
        clockwrlock(CLOCK_MONOTONIC, &past, PAST_NS, 1, ETIMEDOUT);
        clockrdlock(BAD_CLOCK, &future, FUTURE_NS, 0, 0, EINVAL);
        clockwrlock(BAD_CLOCK, &future, FUTURE_NS, 0, EINVAL);
    }
    return argument;
}

/* What it meets, and gets, beside a reader. */
static void *beside_reader(void *argument) {
    TRY(pthread_rwlock_trywrlock, "rw_trywrlock", EBUSY);
    RDLOCK(pthread_rwlock_rdlock, 0, 2, 0);
    UNLOCK(pthread_rwlock_unlock, 0);
    timedrdlock(&past, PAST_NS, 0, 2, 0);
    UNLOCK(pthread_rwlock_unlock, 0);
    timedwrlock(&past, PAST_NS, 1, ETIMEDOUT);
    return argument;
}

/* Each of these waits for the first thread to let go. */

static void *waits_rd(void *argument) {
    about_to_block();
    RDLOCK(pthread_rwlock_rdlock, 1, 1, 0);
    UNLOCK(pthread_rwlock_unlock, PERHAPS);
    return argument;
}

static void *waits_old_rd(void *argument) {
    about_to_block();
    RDLOCK(__pthread_rwlock_rdlock, 1, 1, 0);
    UNLOCK(__pthread_rwlock_unlock, PERHAPS);
    return argument;
}

static void *waits_wr(void *argument) {
    about_to_block();
    WRLOCK(pthread_rwlock_wrlock, 1, 0);
    UNLOCK(pthread_rwlock_unlock, PERHAPS);
    return argument;
}

static void *waits_old_wr(void *argument) {
    about_to_block();
    WRLOCK(__pthread_rwlock_wrlock, 1, 0);
    UNLOCK(__pthread_rwlock_unlock, PERHAPS);
    return argument;
}

static void *waits_timed(void *argument) {
    about_to_block();
    timedrdlock(&future, FUTURE_NS, 1, 1, 0);
    UNLOCK(pthread_rwlock_unlock, PERHAPS);
    return argument;
}

static void *waits_timed_wr(void *argument) {
    about_to_block();
    timedwrlock(&future, FUTURE_NS, 1, 0);
    UNLOCK(pthread_rwlock_unlock, PERHAPS);
    return argument;
}

static void *waits_clock(void *argument) {
    about_to_block();
    clockrdlock(CLOCK_MONOTONIC, &future, FUTURE_NS, 1, 1, 0);
    UNLOCK(pthread_rwlock_unlock, PERHAPS);
    return argument;
}

static void *waits_clock_wr(void *argument) {
    about_to_block();
    clockwrlock(CLOCK_MONOTONIC, &future, FUTURE_NS, 1, 0);
    UNLOCK(pthread_rwlock_unlock, PERHAPS);
    return argument;
}

static void wait_for_writer(void *(*waits)(void *)) {
    struct worker worker;
    WRLOCK(pthread_rwlock_wrlock, 0, 0);
    begin(&worker, waits, NULL);
    until_blocked(&worker);
    UNLOCK(pthread_rwlock_unlock, 1);
    finish(&worker, NULL);
}

static void wait_for_reader(void *(*waits)(void *)) {
    struct worker worker;
    RDLOCK(pthread_rwlock_rdlock, 0, 1, 0);
    begin(&worker, waits, NULL);
    until_blocked(&worker);
    UNLOCK(pthread_rwlock_unlock, 1);
    finish(&worker, NULL);
}

/* Where writers are preferred, one that waits keeps readers out although others read. */
static void *kept_out_by_waiting_writer(void *argument) {
    TRY(pthread_rwlock_tryrdlock, "rw_tryrdlock", EBUSY);
    timedrdlock(&past, PAST_NS, 1, 0, ETIMEDOUT);
    about_to_block();
    RDLOCK(pthread_rwlock_rdlock, 1, 1, 0);
    UNLOCK(pthread_rwlock_unlock, PERHAPS);
    return argument;
}

static void writers_first(void) {
    struct worker writer, reader;
    RDLOCK(pthread_rwlock_rdlock, 0, 1, 0);
    begin(&writer, waits_wr, NULL);
    until_blocked(&writer);
    begin(&reader, kept_out_by_waiting_writer, NULL);
    until_blocked(&reader);
    UNLOCK(pthread_rwlock_unlock, 1);
    finish(&writer, NULL);
    finish(&reader, NULL);
}

/* Nobody else is there. */
static void alone(void) {
    const struct timespec *volatile none = NULL;
    RDLOCK(pthread_rwlock_rdlock, 0, 1, 0);
    RDLOCK(__pthread_rwlock_rdlock, 0, 2, 0);
    timedrdlock(&future, FUTURE_NS, 0, 3, 0);
    TRY(pthread_rwlock_tryrdlock, "rw_tryrdlock", 0);
    TRY(__pthread_rwlock_tryrdlock, "rw_tryrdlock", 0);
    RDLOCK(pthread_rwlock_rdlock, 0, 6, 0);
    for (int readers = 6; readers > 0; readers--) UNLOCK(pthread_rwlock_unlock, 0);
    WRLOCK(pthread_rwlock_wrlock, 0, 0);
    RDLOCK(pthread_rwlock_rdlock, 0, 0, EDEADLK);
    WRLOCK(pthread_rwlock_wrlock, 0, EDEADLK);
    timedrdlock(&future, FUTURE_NS, 0, 0, EDEADLK);
    timedwrlock(&future, FUTURE_NS, 0, EDEADLK);
    UNLOCK(pthread_rwlock_unlock, 0);
    WRLOCK(__pthread_rwlock_wrlock, 0, 0);
    UNLOCK(__pthread_rwlock_unlock, 0);
    TRY(pthread_rwlock_trywrlock, "rw_trywrlock", 0);
    UNLOCK(pthread_rwlock_unlock, 0);
    TRY(__pthread_rwlock_trywrlock, "rw_trywrlock", 0);
    UNLOCK(pthread_rwlock_unlock, 0);
    timedwrlock(&past, PAST_NS, 0, 0);
    UNLOCK(pthread_rwlock_unlock, 0);
    timedwrlock(none, INT64_C(0), 0, 0);
    UNLOCK(pthread_rwlock_unlock, 0);
    timedrdlock(none, INT64_C(0), 0, 1, 0);
    UNLOCK(pthread_rwlock_unlock, 0);
    /* These look at the limit even if the lock is free. */
    timedrdlock(&bad_nanoseconds, BAD_NANOSECONDS_NS, 0, 0, EINVAL);
    timedwrlock(&bad_nanoseconds, BAD_NANOSECONDS_NS, 0, EINVAL);
    if (clocks()) {
        clockrdlock(CLOCK_MONOTONIC, &past, PAST_NS, 0, 1, 0);
        UNLOCK(pthread_rwlock_unlock, 0);
        clockwrlock(CLOCK_REALTIME, &past, PAST_NS, 0, 0);
        UNLOCK(pthread_rwlock_unlock, 0);
        clockrdlock(BAD_CLOCK, &future, FUTURE_NS, 0, 0, EINVAL);
        clockwrlock(BAD_CLOCK, &future, FUTURE_NS, 0, EINVAL);
    }
}

int main(void) {
    struct worker worker;
    pthread_rwlockattr_t attr;
    INIT(pthread_rwlock_init, NULL);
    alone();

    RDLOCK(pthread_rwlock_rdlock, 0, 1, 0);
    begin(&worker, beside_reader, NULL);
    finish(&worker, NULL);
    UNLOCK(pthread_rwlock_unlock, PERHAPS);
    WRLOCK(pthread_rwlock_wrlock, 0, 0);
    begin(&worker, fail_against_writer, NULL);
    finish(&worker, NULL);
    UNLOCK(pthread_rwlock_unlock, PERHAPS);

    wait_for_writer(waits_rd);
    wait_for_writer(waits_old_rd);
    wait_for_writer(waits_wr);
    wait_for_writer(waits_timed);
    wait_for_writer(waits_timed_wr);
    wait_for_reader(waits_wr);
    wait_for_reader(waits_old_wr);
    wait_for_reader(waits_timed_wr);
    if (clocks()) {
        wait_for_writer(waits_clock);
        wait_for_writer(waits_clock_wr);
        wait_for_reader(waits_clock_wr);
    }
    DESTROY(pthread_rwlock_destroy);

    /* Writers may be preferred, which changes how they wait. */
    check(pthread_rwlockattr_init(&attr) == 0);
    check(pthread_rwlockattr_setkind_np(&attr, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP) == 0);
    INIT(__pthread_rwlock_init, &attr);
    alone();
    wait_for_reader(waits_wr);
    wait_for_writer(waits_rd);
    wait_for_writer(waits_wr);
    writers_first();
    DESTROY(__pthread_rwlock_destroy);
    return done();
}
