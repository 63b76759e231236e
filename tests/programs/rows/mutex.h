/* Mutex calls with their expectations. `R` before an event's name where the mutex is recursive. */
#ifndef MUTEX_H
#define MUTEX_H

#include "worker.h"

#pragma weak pthread_mutex_clocklock
int pthread_mutex_clocklock(pthread_mutex_t *, clockid_t, const struct timespec *);

/* Old names, to which programs are no longer linked but still refer. */
int __pthread_mutex_init(pthread_mutex_t *, const pthread_mutexattr_t *);
int __pthread_mutex_lock(pthread_mutex_t *);
int __pthread_mutex_trylock(pthread_mutex_t *);
int __pthread_mutex_unlock(pthread_mutex_t *);
int __pthread_mutex_destroy(pthread_mutex_t *);
__asm__(".symver __pthread_mutex_init, __pthread_mutex_init@GLIBC_2.2.5");
__asm__(".symver __pthread_mutex_lock, __pthread_mutex_lock@GLIBC_2.2.5");
__asm__(".symver __pthread_mutex_trylock, __pthread_mutex_trylock@GLIBC_2.2.5");
__asm__(".symver __pthread_mutex_unlock, __pthread_mutex_unlock@GLIBC_2.2.5");
__asm__(".symver __pthread_mutex_destroy, __pthread_mutex_destroy@GLIBC_2.2.5");

/* A mutex and what the program knows of it. */
struct subject {
    pthread_mutex_t mutex;
    int recursive;
};

/* `mutex_lock` or `rmutex_lock`. */
static inline const char *event_of(struct subject *subject, const char *recursive_name) {
    return subject->recursive ? recursive_name : recursive_name + 1;
}

static inline void lock_result(
    struct subject *subject, const char *symbol, const char *event, int rval, int block, unsigned depth
) {
    if (subject->recursive)
        expect(symbol, event_of(subject, event), 2, "ddu", rval, block, depth);
    else
        expect(symbol, event_of(subject, event), 2, "dd", rval, block);
}

/* Each of these is one call: made by `function`, it must return `wanted`. */

#define INIT(function, subject, attr, type, wanted) \
    do { \
        int rval_ = function(&(subject)->mutex, attr); \
        expect(#function, event_of(subject, "rmutex_init"), 0, "xxdd", &(subject)->mutex, attr, type, rval_); \
        check(rval_ == wanted); \
    } while (0)

#define LOCK(function, subject, block, depth, wanted) \
    do { \
        expect(#function, event_of(subject, "rmutex_lock"), 1, "x", &(subject)->mutex); \
        int rval_ = function(&(subject)->mutex); \
        lock_result(subject, #function, "rmutex_lock", rval_, block, depth); \
        check(rval_ == wanted); \
    } while (0)

#define TRYLOCK(function, subject, wanted) \
    do { \
        int rval_ = function(&(subject)->mutex); \
        expect(#function, event_of(subject, "rmutex_trylock"), 0, "xd", &(subject)->mutex, rval_); \
        check(rval_ == wanted); \
    } while (0)

/* For `waiters`: the program cannot know. */
#define PERHAPS (-1)

#define UNLOCK(function, subject, waiters, wanted) \
    do { \
        const char *event_ = event_of(subject, "rmutex_unlock"); \
        int rval_ = function(&(subject)->mutex); \
        if ((subject)->recursive) \
            expect(#function, event_, 0, "xd", &(subject)->mutex, rval_); \
        else \
            expect(#function, event_, 0, (waiters) < 0 ? "xd?" : "xdd", &(subject)->mutex, rval_, waiters); \
        check(rval_ == wanted); \
    } while (0)

#define DESTROY(function, subject, wanted) \
    do { \
        int rval_ = function(&(subject)->mutex); \
        expect(#function, event_of(subject, "rmutex_destroy"), 0, "xd", &(subject)->mutex, rval_); \
        check(rval_ == wanted); \
    } while (0)

#define TIMEDLOCK(subject, limit, limit_ns, block, depth, wanted) \
    do { \
        const char *event_ = event_of(subject, "rmutex_timedlock"); \
        expect("pthread_mutex_timedlock", event_, 1, "xdl", &(subject)->mutex, 0, limit_ns); \
        int rval_ = pthread_mutex_timedlock(&(subject)->mutex, limit); \
        lock_result(subject, "pthread_mutex_timedlock", "rmutex_timedlock", rval_, block, depth); \
        check(rval_ == wanted); \
    } while (0)

#define CLOCKLOCK(subject, clock, limit, limit_ns, block, depth, wanted) \
    do { \
        const char *event_ = event_of(subject, "rmutex_timedlock"); \
        expect("pthread_mutex_clocklock", event_, 1, "xdl", &(subject)->mutex, clock, limit_ns); \
        int rval_ = pthread_mutex_clocklock(&(subject)->mutex, clock, limit); \
        lock_result(subject, "pthread_mutex_clocklock", "rmutex_timedlock", rval_, block, depth); \
        check(rval_ == wanted); \
    } while (0)

#define CONSISTENT(subject, wanted) \
    do { \
        int rval_ = pthread_mutex_consistent(&(subject)->mutex); \
        const char *event_ = event_of(subject, "rmutex_consistent"); \
        expect("pthread_mutex_consistent", event_, 0, "xd", &(subject)->mutex, rval_); \
        check(rval_ == wanted); \
    } while (0)

#define SETCEILING(subject, ceiling, old, old_value, wanted) \
    do { \
        int rval_ = pthread_mutex_setprioceiling(&(subject)->mutex, ceiling, old); \
        const char *event_ = event_of(subject, "rmutex_setprioceiling"); \
        expect("pthread_mutex_setprioceiling", event_, 0, "xddd", &(subject)->mutex, ceiling, old_value, rval_); \
        check(rval_ == wanted); \
    } while (0)

#define GETCEILING(subject, ceiling, wanted) \
    do { \
        int value_ = -7; \
        int rval_ = pthread_mutex_getprioceiling(&(subject)->mutex, &value_); \
        const char *event_ = event_of(subject, "rmutex_getprioceiling"); \
        expect("pthread_mutex_getprioceiling", event_, 0, "xdd", &(subject)->mutex, ceiling, rval_); \
        check(rval_ == wanted && value_ == (wanted ? -7 : ceiling)); \
    } while (0)

/*
 * Makes a mutex of a type, robust or not, with a protocol and a ceiling (0: the default). A robust one is shared between
 * processes, as most are.
 */
static inline void make(struct subject *subject, int type, int robust, int protocol, int ceiling) {
    pthread_mutexattr_t attr;
    check(pthread_mutexattr_init(&attr) == 0);
    check(pthread_mutexattr_settype(&attr, type) == 0);
    if (robust) {
        check(pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST) == 0);
        check(pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED) == 0);
    }
    check(pthread_mutexattr_setprotocol(&attr, protocol) == 0);
    if (ceiling) check(pthread_mutexattr_setprioceiling(&attr, ceiling) == 0);
    memset(subject, 0, sizeof *subject);
    subject->recursive = type == PTHREAD_MUTEX_RECURSIVE;
    INIT(pthread_mutex_init, subject, &attr, type, 0);
    check(pthread_mutexattr_destroy(&attr) == 0);
}

#endif
