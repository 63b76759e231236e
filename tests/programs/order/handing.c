// Eight threads pass locks of every kind to each other: `handing SEED ROUNDS TURNS`.
//
// A round is TURNS random operations of each thread, then a token that goes through all threads in turn (condition
// variables), then a barrier. Everything that a lock protects is checked here too: status 1 if it was not protected.

#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { THREADS = 8, EACH = 3, TOKENS = 3 };

static pthread_mutex_t mutexes[EACH], recursive[EACH];
static pthread_spinlock_t spins[EACH];
static pthread_rwlock_t rwlocks[EACH];
static sem_t semaphores[EACH];
static pthread_barrier_t barrier;

static pthread_mutex_t turn_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turn_conds[THREADS], everybody;
static int turn;

// Plain counters, each written under one lock only.
static long behind_mutex[EACH], behind_recursive[EACH], behind_spin[EACH], behind_rwlock[EACH];
static long done[4][THREADS][EACH];

static long rounds, turns;
static uint64_t seed;

static uint64_t next(uint64_t *state) {
    uint64_t word = *state += 0x9e3779b97f4a7c15;
    word = (word ^ word >> 30) * 0xbf58476d1ce4e5b9;
    word = (word ^ word >> 27) * 0x94d049bb133111eb;
    return word ^ word >> 31;
}

// What must not fail stops the program with the line's number.
static void must(int result, int line) {
    if (result) {
        fprintf(stderr, "line %d: %d\n", line, result);
        exit(2);
    }
}
#define MUST(call) must(call, __LINE__)

static struct timespec in_an_hour(clockid_t clock) {
    struct timespec limit;
    clock_gettime(clock, &limit);
    limit.tv_sec += 3600;
    return limit;
}

// Lets others run into the lock that is held.
static void hold(uint64_t bits) {
    if (bits % 8 == 0)
        sched_yield();
}

static void one_mutex(int self, uint64_t bits) {
    int at = bits >> 8 & 1 ? 0 : bits >> 16 & 1 ? 1 : 2;
    struct timespec limit;
    switch (bits >> 24 & 3) {
    case 0:
        if (pthread_mutex_trylock(&mutexes[at]))
            return;
        break;
    case 1:
        limit = in_an_hour(CLOCK_REALTIME);
        MUST(pthread_mutex_timedlock(&mutexes[at], &limit));
        break;
    default:
        MUST(pthread_mutex_lock(&mutexes[at]));
    }
    behind_mutex[at]++;
    done[0][self][at]++;
    hold(bits >> 32);
    MUST(pthread_mutex_unlock(&mutexes[at]));
}

static void one_recursive(int self, uint64_t bits) {
    int at = bits >> 8 & 1, depth = 1 + (bits >> 16 & 1) + (bits >> 17 & 1);
    for (int i = 0; i < depth; i++)
        MUST(i == 1 ? pthread_mutex_trylock(&recursive[at]) : pthread_mutex_lock(&recursive[at]));
    behind_recursive[at]++;
    done[1][self][at]++;
    hold(bits >> 32);
    for (int i = 0; i < depth; i++)
        MUST(pthread_mutex_unlock(&recursive[at]));
}

static void one_spin(int self, uint64_t bits) {
    int at = bits >> 8 & 1;
    if (bits >> 16 & 1) {
        if (pthread_spin_trylock(&spins[at]))
            return;
    } else {
        MUST(pthread_spin_lock(&spins[at]));
    }
    behind_spin[at]++;
    done[2][self][at]++;
    MUST(pthread_spin_unlock(&spins[at]));
}

static void one_rwlock(int self, uint64_t bits) {
    int at = bits >> 8 & 1, write = 0;
    struct timespec limit;
    switch (bits >> 16 & 7) {
    case 0:
        if (pthread_rwlock_tryrdlock(&rwlocks[at]))
            return;
        break;
    case 1:
        if (pthread_rwlock_trywrlock(&rwlocks[at]))
            return;
        write = 1;
        break;
    case 2:
        limit = in_an_hour(CLOCK_REALTIME);
        MUST(pthread_rwlock_timedwrlock(&rwlocks[at], &limit));
        write = 1;
        break;
    case 3:
        limit = in_an_hour(CLOCK_REALTIME);
        MUST(pthread_rwlock_timedrdlock(&rwlocks[at], &limit));
        break;
    case 4:
        MUST(pthread_rwlock_wrlock(&rwlocks[at]));
        write = 1;
        break;
    default:
        MUST(pthread_rwlock_rdlock(&rwlocks[at]));
    }
    if (write) {
        behind_rwlock[at]++;
        done[3][self][at]++;
    }
    hold(bits >> 32);
    MUST(pthread_rwlock_unlock(&rwlocks[at]));
}

static void one_semaphore(uint64_t bits) {
    int at = bits >> 8 & 1;
    struct timespec limit;
    switch (bits >> 16 & 3) {
    case 0:
        if (sem_trywait(&semaphores[at]))
            return;
        break;
    case 1:
        limit = in_an_hour(CLOCK_REALTIME);
        MUST(sem_timedwait(&semaphores[at], &limit));
        break;
    default:
        MUST(sem_wait(&semaphores[at]));
    }
    hold(bits >> 32);
    MUST(sem_post(&semaphores[at]));
}

// Takes the token when it comes and hands it on. The turn changes, and the signal is sent, under the mutex; so who
// finds its turn come after waits was signalled after the first of them began, whatever woke it in between.
static void pass_token(int self, uint64_t bits) {
    pthread_cond_t *mine = &turn_conds[self];
    MUST(pthread_mutex_lock(&turn_mutex));
    while (turn != self) {
        struct timespec limit;
        switch (bits % 3) {
        case 0:
            limit = in_an_hour(CLOCK_REALTIME);
            MUST(pthread_cond_timedwait(mine, &turn_mutex, &limit));
            break;
        case 1:
            MUST(pthread_cond_wait(&everybody, &turn_mutex));
            break;
        default:
            MUST(pthread_cond_wait(mine, &turn_mutex));
        }
    }
    turn = (self + 1) % THREADS;
    MUST(pthread_cond_signal(&turn_conds[turn]));
    MUST(pthread_cond_broadcast(&everybody));
    MUST(pthread_mutex_unlock(&turn_mutex));
}

static void *work(void *argument) {
    int self = (int)(intptr_t)argument;
    uint64_t state = seed * THREADS + self;
    for (long round = 0; round < rounds; round++) {
        for (long i = 0; i < turns; i++) {
            uint64_t bits = next(&state);
            switch (bits % 5) {
            case 0: one_mutex(self, bits); break;
            case 1: one_recursive(self, bits); break;
            case 2: one_spin(self, bits); break;
            case 3: one_rwlock(self, bits); break;
            case 4: one_semaphore(bits); break;
            }
        }
        pass_token(self, next(&state));
        int result = pthread_barrier_wait(&barrier);
        MUST(result == PTHREAD_BARRIER_SERIAL_THREAD ? 0 : result);
    }
    return argument;
}

int main(int argc, char **argv) {
    if (argc != 4)
        return 2;
    seed = strtoull(argv[1], NULL, 10);
    rounds = atol(argv[2]);
    turns = atol(argv[3]);

    pthread_mutexattr_t attributes;
    MUST(pthread_mutexattr_init(&attributes));
    MUST(pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE));
    for (int i = 0; i < EACH; i++) {
        MUST(pthread_mutex_init(&mutexes[i], NULL));
        MUST(pthread_mutex_init(&recursive[i], &attributes));
        MUST(pthread_spin_init(&spins[i], 0));
        MUST(pthread_rwlock_init(&rwlocks[i], NULL));
        MUST(sem_init(&semaphores[i], 0, TOKENS));
    }
    for (int i = 0; i < THREADS; i++)
        MUST(pthread_cond_init(&turn_conds[i], NULL));
    MUST(pthread_cond_init(&everybody, NULL));
    MUST(pthread_barrier_init(&barrier, NULL, THREADS));

    pthread_t threads[THREADS];
    for (intptr_t i = 0; i < THREADS; i++)
        MUST(pthread_create(&threads[i], NULL, work, (void *)i));
    for (intptr_t i = 0; i < THREADS; i++) {
        void *result;
        MUST(pthread_join(threads[i], &result));
        MUST(result != (void *)i);
    }

    for (int at = 0; at < EACH; at++) {
        long kinds[4] = {behind_mutex[at], behind_recursive[at], behind_spin[at], behind_rwlock[at]};
        for (int kind = 0; kind < 4; kind++) {
            for (int i = 0; i < THREADS; i++)
                kinds[kind] -= done[kind][i][at];
            if (kinds[kind]) {
                fprintf(stderr, "kind %d, lock %d: %ld updates lost\n", kind, at, kinds[kind]);
                return 1;
            }
        }
    }
    return 0;
}
