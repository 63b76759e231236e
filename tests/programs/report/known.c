// Does what the report's test knows. Arguments: what to do, and how often.
//
// waits: main holds a mutex until another thread waits for it, N times.
// crossed: two threads take a mutex each, and then each wants the other's. They print `ready` and stay.
// crossed_by_main: the same of main and another thread, so that there is no third one.
// own: a thread locks its mutex twice, another one joins it, and a third wants a mutex of the second.
// fork: a thread has a mutex, main forks, and the child waits for the mutex.
// read: main holds an rwlock for reading, and so does another thread, until a third waits to write; N times.

#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../check.h"

static pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER, second = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t shared = PTHREAD_RWLOCK_INITIALIZER;
static pthread_barrier_t barrier;
static int rounds;

// glibc's own words show that a thread waits.
static int is_waited_for(void) { return __atomic_load_n(&first.__data.__lock, __ATOMIC_RELAXED) == 2; }
static int writer_waits(void) { return (__atomic_load_n(&shared.__data.__readers, __ATOMIC_RELAXED) & 2) != 0; }

static void *locks(void *argument) {
    for (int round = 0; round < rounds; round++) {
        pthread_barrier_wait(&barrier);
        pthread_mutex_lock(&first);
        pthread_mutex_unlock(&first);
        pthread_barrier_wait(&barrier);
    }
    return argument;
}

static void waits(void) {
    pthread_t thread;
    CHECK(!pthread_barrier_init(&barrier, NULL, 2));
    CHECK(!pthread_create(&thread, NULL, locks, NULL));
    for (int round = 0; round < rounds; round++) {
        pthread_mutex_lock(&first);
        pthread_barrier_wait(&barrier);
        while (!is_waited_for())
            sched_yield();
        pthread_mutex_unlock(&first);
        pthread_barrier_wait(&barrier);
    }
    pthread_join(thread, NULL);
}

static void *reads(void *argument) {
    for (int round = 0; round < rounds; round++) {
        pthread_rwlock_rdlock(&shared);
        pthread_barrier_wait(&barrier);
        while (!writer_waits())
            sched_yield();
        pthread_rwlock_unlock(&shared);
        pthread_barrier_wait(&barrier);
    }
    return argument;
}

static void *writes(void *argument) {
    for (int round = 0; round < rounds; round++) {
        pthread_barrier_wait(&barrier);
        pthread_rwlock_wrlock(&shared);
        pthread_rwlock_unlock(&shared);
        pthread_barrier_wait(&barrier);
    }
    return argument;
}

static void read_and_write(void) {
    pthread_t threads[2];
    CHECK(!pthread_barrier_init(&barrier, NULL, 3));
    CHECK(!pthread_create(&threads[0], NULL, reads, NULL) && !pthread_create(&threads[1], NULL, writes, NULL));
    reads(NULL);
    CHECK(!pthread_join(threads[0], NULL) && !pthread_join(threads[1], NULL));
}

static void *crosses(void *argument) {
    pthread_mutex_t *own = argument, *other = own == &first ? &second : &first;
    pthread_mutex_lock(own);
    pthread_barrier_wait(&barrier);
    pthread_mutex_lock(other);
    return argument;
}

static void *locks_twice(void *argument) {
    pthread_mutex_lock(&first);
    pthread_mutex_lock(&first);
    return argument;
}

static void *joins(void *argument) {
    pthread_mutex_lock(&second);
    pthread_barrier_wait(&barrier);
    pthread_join(*(pthread_t *)argument, NULL);
    return argument;
}

static void *wants_second(void *argument) {
    pthread_barrier_wait(&barrier);
    pthread_mutex_lock(&second);
    return argument;
}

/* The child forks while another thread has the mutex, and waits for it. */
static void fork_beside_a_holder(void) {
    pthread_t thread;
    CHECK(!pthread_create(&thread, NULL, locks_twice, NULL));
    while (!is_waited_for())
        sched_yield();
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        pthread_mutex_lock(&first);
        _exit(0);
    }
    CHECK(waitpid(child, NULL, 0) == child);
}

int main(int count, char **arguments) {
    pthread_t threads[3];
    CHECK(count == 3);
    rounds = atoi(arguments[2]);
    if (!strcmp(arguments[1], "waits")) {
        waits();
    } else if (!strcmp(arguments[1], "read")) {
        read_and_write();
    } else if (!strcmp(arguments[1], "fork")) {
        fork_beside_a_holder();
    } else {
        CHECK(!pthread_barrier_init(&barrier, NULL, 2));
        if (!strcmp(arguments[1], "crossed_by_main")) {
            CHECK(!pthread_create(&threads[0], NULL, crosses, &second));
            CHECK(write(1, "ready\n", 6) == 6);
            crosses(&first);
        }
        if (!strcmp(arguments[1], "crossed")) {
            CHECK(!pthread_create(&threads[0], NULL, crosses, &first));
            CHECK(!pthread_create(&threads[1], NULL, crosses, &second));
        } else {
            CHECK(!pthread_create(&threads[0], NULL, locks_twice, NULL));
            CHECK(!pthread_create(&threads[1], NULL, joins, &threads[0]));
            CHECK(!pthread_create(&threads[2], NULL, wants_second, NULL));
        }
        CHECK(write(1, "ready\n", 6) == 6);
        for (;;)
            pause();
    }
    return 0;
}
