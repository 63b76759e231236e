/* Barriers. Threads arrive one after another, so that each knows how many are still missing. */
#include "worker.h"

static pthread_barrier_t barrier;

static void init(const pthread_barrierattr_t *attr, unsigned count, int wanted) {
    int rval = pthread_barrier_init(&barrier, attr, count);
    expect("pthread_barrier_init", "barrier_init", 0, "xxu-d", &barrier, attr, count, rval);
    check(rval == wanted);
}

static void destroy(void) {
    int rval = pthread_barrier_destroy(&barrier);
    expect("pthread_barrier_destroy", "barrier_destroy", 0, "xd", &barrier, rval);
    check(rval == 0);
}

/* To how many threads pthread_barrier_wait returned PTHREAD_BARRIER_SERIAL_THREAD. */
static atomic_int serial;

static void wait_for(unsigned missing) {
    expect("pthread_barrier_wait", "barrier_wait", 1, "xu", &barrier, missing);
    int rval = pthread_barrier_wait(&barrier);
    expect("pthread_barrier_wait", "barrier_wait", 2, "d", rval);
    check(rval == 0 || rval == PTHREAD_BARRIER_SERIAL_THREAD);
    serial += rval == PTHREAD_BARRIER_SERIAL_THREAD;
}

/* The argument is the number of threads that are missing, this one included. */
static void *arrives(void *argument) {
    about_to_block();
    wait_for((uintptr_t)argument);
    return argument;
}

static void meet(unsigned count) {
    struct worker workers[8];
    serial = 0;
    for (unsigned missing = count; missing > 1; missing--) {
        begin(&workers[missing], arrives, (void *)(uintptr_t)missing);
        until_blocked(&workers[missing]);
    }
    wait_for(1);
    for (unsigned missing = count; missing > 1; missing--) finish(&workers[missing], (void *)(uintptr_t)missing);
    check(serial == 1);
}

int main(void) {
    pthread_barrierattr_t attr;
    init(NULL, 0, EINVAL);
    init(NULL, UINT_MAX, EINVAL);
    init(NULL, 4, 0);
    meet(4);
    /* A barrier starts anew when all threads have arrived. */
    meet(4);
    destroy();
    check(pthread_barrierattr_init(&attr) == 0);
    check(pthread_barrierattr_setpshared(&attr, PTHREAD_PROCESS_SHARED) == 0);
    init(&attr, 1, 0);
    meet(1);
    meet(1);
    destroy();
    return done();
}
