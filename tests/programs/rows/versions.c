/* The old versions of functions, which programs call that were linked with an old C library. */
#include "worker.h"

#include <sched.h>
#include <signal.h>

/* Declares `old_NAME`, which is `NAME` of that version. */
#define OLD(name, version, parameters) \
    int old_##name parameters; \
    __asm__(".symver old_" #name "," #name "@" version)

OLD(pthread_kill, "GLIBC_2.2.5", (pthread_t thread, int signal));
OLD(pthread_setaffinity_np, "GLIBC_2.3.4", (pthread_t thread, size_t size, const cpu_set_t *cpus));
OLD(pthread_cond_init, "GLIBC_2.2.5", (void *cond, const pthread_condattr_t *attr));
OLD(pthread_cond_destroy, "GLIBC_2.2.5", (void *cond));
OLD(pthread_cond_signal, "GLIBC_2.2.5", (void *cond));
OLD(pthread_cond_broadcast, "GLIBC_2.2.5", (void *cond));
OLD(pthread_cond_wait, "GLIBC_2.2.5", (void *cond, pthread_mutex_t *mutex));
OLD(pthread_cond_timedwait, "GLIBC_2.2.5", (void *cond, pthread_mutex_t *mutex, const struct timespec *limit));

/* The first version takes no size: its sets had 1024 bits. */
int oldest_setaffinity(pthread_t thread, const cpu_set_t *cpus);
__asm__(".symver oldest_setaffinity,pthread_setaffinity_np@GLIBC_2.3.3");

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

/*
 * A condition variable of the first version is a pointer to one of today's. What lies behind it is the program's: a
 * function of another version would take it for a part of the variable, and change it or wait for ever.
 */
static struct {
    void *pointer;
    unsigned char behind[64];
} cond;

static void check_behind(void) {
    for (unsigned index = 0; index < sizeof cond.behind; index++) check(cond.behind[index] == 0xa5);
}

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

static void *waits(void *argument) {
    lock();
    about_to_block();
    expect("pthread_cond_wait@GLIBC_2.2.5", "cond_wait", 1, "xx", &cond, &mutex);
    int rval = old_pthread_cond_wait(&cond, &mutex);
    expect("pthread_cond_wait@GLIBC_2.2.5", "cond_wait", 2, "d", rval);
    check(rval == 0);
    unlock();
    return argument;
}

static void conditions(void) {
    struct worker worker;
    memset(cond.behind, 0xa5, sizeof cond.behind);
    int rval = old_pthread_cond_init(&cond, NULL);
    expect("pthread_cond_init@GLIBC_2.2.5", "cond_init", 0, "xxdd", &cond, NULL, 0, rval);
    check(rval == 0 && cond.pointer == NULL);
    for (int turn = 0; turn < 2; turn++) {
        begin(&worker, waits, NULL);
        until_blocked(&worker);
        if (turn == 0) {
            rval = old_pthread_cond_signal(&cond);
            expect("pthread_cond_signal@GLIBC_2.2.5", "cond_signal", 0, "xdd", &cond, rval, 0);
        } else {
            rval = old_pthread_cond_broadcast(&cond);
            expect("pthread_cond_broadcast@GLIBC_2.2.5", "cond_broadcast", 0, "xdd", &cond, rval, 0);
        }
        check(rval == 0 && cond.pointer);
        finish(&worker, NULL);
    }
    lock();
    expect("pthread_cond_timedwait@GLIBC_2.2.5", "cond_timedwait", 1, "xxll", &cond, &mutex, past.tv_sec, past.tv_nsec);
    rval = old_pthread_cond_timedwait(&cond, &mutex, &past);
    expect("pthread_cond_timedwait@GLIBC_2.2.5", "cond_timedwait", 2, "d", rval);
    check(rval == ETIMEDOUT);
    unlock();
    rval = old_pthread_cond_destroy(&cond);
    expect("pthread_cond_destroy@GLIBC_2.2.5", "cond_destroy", 0, "xd", &cond, rval);
    check(rval == 0);
    check_behind();
}

static void *returns(void *argument) { return argument; }

/* A thread that has ended and is not yet joined: the version of glibc 2.34 returns 0, the first one an error. */
static void signals(void) {
    struct worker worker;
    begin(&worker, returns, NULL);
    until_ended(&worker);
    int rval = old_pthread_kill(worker.thread, 0);
    expect("pthread_kill@GLIBC_2.2.5", "thr_kill", 0, "tdd", worker.thread, 0, rval);
    check(rval == ESRCH);
    finish(&worker, NULL);
}

static void affinity(void) {
    cpu_set_t set;
    unsigned long word;
    check(sched_getaffinity(0, sizeof set, &set) == 0);
    memcpy(&word, &set, sizeof word);
    int rval = old_pthread_setaffinity_np(own_tid(), sizeof set, &set);
    expect("pthread_setaffinity_np@GLIBC_2.3.4", "thr_setaffinity", 0, "tzxd", own_tid(), sizeof set, word, rval);
    check(rval == 0);
    rval = oldest_setaffinity(own_tid(), &set);
    expect("pthread_setaffinity_np@GLIBC_2.3.3", "thr_setaffinity", 0, "tzxd", own_tid(), sizeof set, word, rval);
    check(rval == 0);
}

int main(void) {
    conditions();
    signals();
    affinity();
    return done();
}
