/* Spin locks. */
#include "worker.h"

static pthread_spinlock_t spin;

static void init(int pshared) {
    int rval = pthread_spin_init(&spin, pshared);
    expect("pthread_spin_init", "spin_init", 0, "xdd", &spin, pshared, rval);
    check(rval == 0);
}

static void lock(int block) {
    expect("pthread_spin_lock", "spin_lock", 1, "x", &spin);
    int rval = pthread_spin_lock(&spin);
    expect("pthread_spin_lock", "spin_lock", 2, "d", block);
    check(rval == 0);
}

static void trylock(int wanted) {
    int rval = pthread_spin_trylock(&spin);
    expect("pthread_spin_trylock", "spin_trylock", 0, "xd", &spin, rval);
    check(rval == wanted);
}

static void unlock(void) {
    int rval = pthread_spin_unlock(&spin);
    expect("pthread_spin_unlock", "spin_unlock", 0, "x", &spin);
    check(rval == 0);
}

static void destroy(void) {
    int rval = pthread_spin_destroy(&spin);
    expect("pthread_spin_destroy", "spin_destroy", 0, "xd", &spin, rval);
    check(rval == 0);
}

static void *spins(void *argument) {
    trylock(EBUSY);
    about_to_block();
    lock(1);
    unlock();
    return argument;
}

int main(void) {
    struct worker worker;
    init(PTHREAD_PROCESS_PRIVATE);
    lock(0);
    trylock(EBUSY);
    unlock();
    trylock(0);
    unlock();
    lock(0);
    begin(&worker, spins, NULL);
    until_spinning(&worker);
    unlock();
    finish(&worker, NULL);
    destroy();
    init(PTHREAD_PROCESS_SHARED);
    lock(0);
    unlock();
    destroy();
    return done();
}
