/* Semaphores. Where they return -1 the trace has errno. */
#include "worker.h"
#include <semaphore.h>
#include <signal.h>
#include <sys/stat.h>

#pragma weak sem_clockwait
int sem_clockwait(sem_t *, clockid_t, const struct timespec *);

static sem_t sem;

/* What the trace calls rval; `wanted` likewise. */
static int errno_of(int result, int wanted) {
    int rval = result == 0 ? 0 : errno;
    check((result == 0 || result == -1) && rval == wanted);
    return rval;
}

static void init(int pshared, unsigned value, int wanted) {
    int rval = errno_of(sem_init(&sem, pshared, value), wanted);
    expect("sem_init", "sema_init", 0, "xdu-d", &sem, pshared, value, rval);
}

static void wait_for(unsigned before, int wanted) {
    expect("sem_wait", "sema_wait", 1, "xu", &sem, before);
    int rval = errno_of(sem_wait(&sem), wanted);
    expect("sem_wait", "sema_wait", 2, "d", rval);
}

static void trywait(int wanted) {
    int rval = errno_of(sem_trywait(&sem), wanted);
    expect("sem_trywait", "sema_trywait", 0, "xd", &sem, rval);
}

static void post(unsigned before, int wanted) {
    int rval = errno_of(sem_post(&sem), wanted);
    expect("sem_post", "sema_post", 0, "xdu", &sem, rval, before);
}

static void destroy(void) {
    int rval = errno_of(sem_destroy(&sem), 0);
    expect("sem_destroy", "sema_destroy", 0, "xd", &sem, rval);
}

static void timedwait(unsigned before, const struct timespec *limit, int64_t limit_ns, int wanted) {
    expect("sem_timedwait", "sema_timedwait", 1, "xudl", &sem, before, 0, limit_ns);
    int rval = errno_of(sem_timedwait(&sem, limit), wanted);
    expect("sem_timedwait", "sema_timedwait", 2, "d", rval);
}

static void clockwait(unsigned before, clockid_t clock, const struct timespec *limit, int64_t limit_ns, int wanted) {
    expect("sem_clockwait", "sema_timedwait", 1, "xudl", &sem, before, clock, limit_ns);
    int rval = errno_of(sem_clockwait(&sem, clock, limit), wanted);
    expect("sem_clockwait", "sema_timedwait", 2, "d", rval);
}

static void getvalue(int wanted) {
    int value = -1;
    int rval = errno_of(sem_getvalue(&sem, &value), 0);
    expect("sem_getvalue", "sema_getvalue", 0, "xdd", &sem, value, rval);
    check(value == wanted);
}

static void *waits(void *argument) {
    about_to_block();
    wait_for(0, 0);
    return argument;
}

static void *waits_timed(void *argument) {
    about_to_block();
    timedwait(0, &future, FUTURE_NS, 0);
    return argument;
}

static void *waits_clock(void *argument) {
    about_to_block();
    clockwait(0, CLOCK_MONOTONIC, &future, FUTURE_NS, 0);
    return argument;
}

static void *is_interrupted(void *argument) {
    about_to_block();
    wait_for(0, EINTR);
    about_to_block();
    timedwait(0, &future, FUTURE_NS, EINTR);
    return argument;
}

static void on_signal(int signal) {
    /* A record within the one that waits. */
    if (signal == SIGUSR2) post(0, 0);
}

static void interrupt(struct worker *worker, int signal) {
    until_blocked(worker);
    int rval = pthread_kill(worker->thread, signal);
    expect("pthread_kill", "thr_kill", 0, "tdd", worker->thread, signal, rval);
    check(rval == 0);
}

static void interrupts(void) {
    struct sigaction action = {.sa_handler = on_signal};
    struct worker worker;
    check(sigaction(SIGUSR1, &action, NULL) == 0);
    begin(&worker, is_interrupted, NULL);
    interrupt(&worker, SIGUSR1);
    interrupt(&worker, SIGUSR1);
    finish(&worker, NULL);
    action.sa_flags = SA_RESTART;
    check(sigaction(SIGUSR2, &action, NULL) == 0);
    begin(&worker, waits, NULL);
    interrupt(&worker, SIGUSR2);
    finish(&worker, NULL);
}

static void unnamed(void) {
    init(0, SEM_VALUE_MAX + 1u, EINVAL);
    init(1, 0, 0);
    destroy();
    init(0, 3, 0);
    getvalue(3);
    wait_for(3, 0);
    trywait(0);
    getvalue(1);
    timedwait(1, &past, PAST_NS, 0);
    trywait(EAGAIN);
    timedwait(0, &past, PAST_NS, ETIMEDOUT);
    timedwait(0, &bad_nanoseconds, BAD_NANOSECONDS_NS, EINVAL);
    post(0, 0);
    post(1, 0);
    timedwait(2, &bad_nanoseconds, BAD_NANOSECONDS_NS, EINVAL);
    if (available("sem_clockwait")) {
        clockwait(2, BAD_CLOCK, &future, FUTURE_NS, EINVAL);
        clockwait(2, CLOCK_MONOTONIC, &future, FUTURE_NS, 0);
        clockwait(1, CLOCK_REALTIME, &past, PAST_NS, 0);
        clockwait(0, CLOCK_MONOTONIC, &past, PAST_NS, ETIMEDOUT);
    } else {
        wait_for(2, 0);
        wait_for(1, 0);
    }

    void *(*kinds[])(void *) = {waits, waits_timed, waits_clock};
    struct worker worker;
    for (int kind = 0; kind < (available("sem_clockwait") ? 3 : 2); kind++) {
        begin(&worker, kinds[kind], &sem);
        until_blocked(&worker);
        post(0, 0);
        finish(&worker, &sem);
    }

    interrupts();
    destroy();

    init(0, SEM_VALUE_MAX, 0);
    post(SEM_VALUE_MAX, EOVERFLOW);
    wait_for(SEM_VALUE_MAX, 0);
    destroy();
}

static sem_t *opened(sem_t *result, const char *name, int oflag, mode_t mode, unsigned value, int wanted) {
    (void)name;
    int rval = result == SEM_FAILED ? errno : 0;
    check(rval == wanted);
    expect("sem_open", "sema_open", 0, "xXXud", result, oflag, mode, value, rval);
    return result;
}

static void unlink_named(const char *name, int wanted) {
    int rval = errno_of(sem_unlink(name), wanted);
    expect("sem_unlink", "sema_unlink", 0, "xd", name, rval);
}

static void named(void) {
    char name[64];
    snprintf(name, sizeof name, "/threadt-rows-%ld", (long)getpid());
    int create = O_CREAT | O_EXCL;
    opened(sem_open(name, 0), name, 0, 0, 0, ENOENT);
    /* Without O_CREAT nothing stands where mode and value are looked for. */
    opened(sem_open(name, O_EXCL, 0777, 5), name, O_EXCL, 0, 0, ENOENT);
    opened(sem_open("/", O_CREAT, 0600, 1), "/", O_CREAT, 0600, 1, EINVAL);
    opened(sem_open(name, O_CREAT, 0600, SEM_VALUE_MAX + 1u), name, O_CREAT, 0600, SEM_VALUE_MAX + 1u, EINVAL);
    sem_t *first = opened(sem_open(name, create, 0640, 2), name, create, 0640, 2, 0);
    opened(sem_open(name, create, 0600, 1), name, create, 0600, 1, EEXIST);
    sem_t *second = opened(sem_open(name, 0), name, 0, 0, 0, 0);
    check(first == second);
    int value;
    check(sem_getvalue(first, &value) == 0 && value == 2);
    expect("sem_getvalue", "sema_getvalue", 0, "xdd", first, 2, 0);

    unlink_named(name, 0);
    unlink_named(name, ENOENT);
    for (int users = 2; users > 0; users--) {
        int rval = errno_of(sem_close(first), 0);
        expect("sem_close", "sema_close", 0, "xd", first, rval);
    }
    int rval = errno_of(sem_close(first), EINVAL);
    expect("sem_close", "sema_close", 0, "xd", first, rval);
}

int main(void) {
    unnamed();
    named();
    return done();
}
