// Takes locks in orders that the report's test knows, but comes to no deadlock: one thread goes on after the other. Argument:
//
// crossed: two threads, which both live, take two mutexes in different orders.
// three: three threads take three mutexes, each two of them.
// alone: one thread does both orders.
// gate: as crossed, and both hold a third mutex.
// joined: the first thread has ended when main creates the second.
// barrier: a barrier, at which both wait, is between the two.
// try: as crossed, but the second thread tries to lock its inner mutex.
// timed: as crossed, but the second thread locks its inner mutex with a time limit.
// readers: as crossed, with rwlocks that both threads take for reading.
// writer: as readers, but the second thread writes to its inner one, and the first to its own.
// preferring: as readers, and the locks prefer writers.
// between: four threads come to a deadlock, print `ready` before that, and stay. Two hold such a lock each for reading, a writer waits
//     for each lock, and then each reader wants the other lock, too.
// philosophers: they come to a deadlock, print `ready` before that, and stay.

#define _GNU_SOURCE
#include <pthread.h>
#include <semaphore.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../check.h"

#define PHILOSOPHERS 5

static pthread_mutex_t locks[PHILOSOPHERS] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER,
                                              PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER,
                                              PTHREAD_MUTEX_INITIALIZER};
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t shared[2] = {PTHREAD_RWLOCK_INITIALIZER, PTHREAD_RWLOCK_INITIALIZER};
static pthread_barrier_t barrier;
static sem_t turns[4];
static const char *mode;

static int is(const char *name) { return !strcmp(mode, name); }

static void take(int outer, int inner, int is_second) {
    struct timespec limit = {.tv_sec = 4000000000};
    if (is("readers") || is("writer") || is("preferring")) {
        CHECK(!pthread_rwlock_rdlock(&shared[outer]));
        CHECK(!(is("writer") ? pthread_rwlock_wrlock : pthread_rwlock_rdlock)(&shared[inner]));
        CHECK(!pthread_rwlock_unlock(&shared[inner]) && !pthread_rwlock_unlock(&shared[outer]));
        return;
    }
    CHECK(!is("gate") || !pthread_mutex_lock(&gate));
    CHECK(!pthread_mutex_lock(&locks[outer]));
    if (is_second && is("try"))
        CHECK(!pthread_mutex_trylock(&locks[inner]));
    else if (is_second && is("timed"))
        CHECK(!pthread_mutex_timedlock(&locks[inner], &limit));
    else
        CHECK(!pthread_mutex_lock(&locks[inner]));
    CHECK(!pthread_mutex_unlock(&locks[inner]) && !pthread_mutex_unlock(&locks[outer]));
    CHECK(!is("gate") || !pthread_mutex_unlock(&gate));
}

// Thread N waits for its turn, which a semaphore gives it: that is no order that the report may rely on.
static void *crosses(void *argument) {
    long number = (long)argument;
    int count = is("three") ? 3 : 2;
    CHECK(!sem_wait(&turns[number]));
    take(number, (number + 1) % count, number == 1);
    if (is("alone") && number == 0)
        take(1, 0, 1);
    CHECK(!sem_post(&turns[number + 1]));
    return NULL;
}

static void *meets(void *argument) {
    if (!argument)
        take(0, 1, 0);
    pthread_barrier_wait(&barrier);
    if (argument)
        take(1, 0, 1);
    return NULL;
}

static void *dines(void *argument) {
    long number = (long)argument;
    CHECK(!pthread_mutex_lock(&locks[number]));
    pthread_barrier_wait(&barrier);
    pthread_mutex_lock(&locks[(number + 1) % PHILOSOPHERS]);
    return NULL;
}

// Threads 0 and 1 read, 2 and 3 write. A waiting writer is preferred as soon as a try to read fails.
static void *reads_or_writes(void *argument) {
    long number = (long)argument;
    int is_reader = number < 2;
    CHECK(!is_reader || !pthread_rwlock_rdlock(&shared[number]));
    pthread_barrier_wait(&barrier);
    while (is_reader && !pthread_rwlock_tryrdlock(&shared[1 - number])) {
        CHECK(!pthread_rwlock_unlock(&shared[1 - number]));
        usleep(1000);
    }
    (is_reader ? pthread_rwlock_rdlock : pthread_rwlock_wrlock)(&shared[is_reader ? 1 - number : number - 2]);
    return NULL;
}

static void prefer_writers(void) {
    pthread_rwlockattr_t attributes;
    CHECK(!pthread_rwlockattr_init(&attributes));
    CHECK(!pthread_rwlockattr_setkind_np(&attributes, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP));
    CHECK(!pthread_rwlock_init(&shared[0], &attributes) && !pthread_rwlock_init(&shared[1], &attributes));
}

int main(int count, char **arguments) {
    pthread_t threads[PHILOSOPHERS];
    CHECK(count == 2);
    mode = arguments[1];
    int number = is("philosophers") ? PHILOSOPHERS : is("between") ? 4 : is("three") ? 3 : is("alone") ? 1 : 2;
    if (is("preferring") || is("between"))
        prefer_writers();
    for (int turn = 0; turn < 4; turn++)
        CHECK(!sem_init(&turns[turn], 0, turn == 0));
    CHECK(!pthread_barrier_init(&barrier, NULL, number));
    void *(*start)(void *) = crosses;
    start = is("philosophers") ? dines : is("barrier") ? meets : is("between") ? reads_or_writes : start;
    for (long thread = 0; thread < number; thread++) {
        CHECK(!pthread_create(&threads[thread], NULL, start, (void *)thread));
        if (is("joined"))
            CHECK(!pthread_join(threads[thread], NULL));
    }
    if (is("philosophers") || is("between")) {
        CHECK(write(1, "ready\n", 6) == 6);
        for (;;)
            pause();
    }
    for (int thread = 0; thread < number && !is("joined"); thread++)
        CHECK(!pthread_join(threads[thread], NULL));
    return 0;
}
