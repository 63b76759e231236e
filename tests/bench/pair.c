// Times one kind of call: `pair KIND THREADS TURNS` prints nanoseconds a turn, of wall time.
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static long turns;
static const char *kind;
static pthread_mutex_t shared = PTHREAD_MUTEX_INITIALIZER;

static void lock_and_unlock(pthread_mutex_t *mutex) {
    for (long i = 0; i < turns; i++) {
        pthread_mutex_lock(mutex);
        pthread_mutex_unlock(mutex);
    }
}

static void *work(void *argument) {
    if (!strcmp(kind, "private")) {
        pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
        lock_and_unlock(&mutex);
    } else if (!strcmp(kind, "shared")) {
        lock_and_unlock(&shared);
    } else if (!strcmp(kind, "recursive")) {
        pthread_mutexattr_t attribute;
        pthread_mutex_t mutex;
        pthread_mutexattr_init(&attribute);
        pthread_mutexattr_settype(&attribute, PTHREAD_MUTEX_RECURSIVE);
        pthread_mutex_init(&mutex, &attribute);
        lock_and_unlock(&mutex);
    } else if (!strcmp(kind, "rwlock")) {
        pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
        for (long i = 0; i < turns; i++) {
            pthread_rwlock_rdlock(&rwlock);
            pthread_rwlock_unlock(&rwlock);
        }
    } else if (!strcmp(kind, "sem")) {
        sem_t sem;
        sem_init(&sem, 0, 0);
        for (long i = 0; i < turns; i++) {
            sem_post(&sem);
            sem_wait(&sem);
        }
    } else {
        fprintf(stderr, "pair: unknown kind '%s'\n", kind);
        exit(2);
    }
    return argument;
}

int main(int argc, char **argv) {
    if (argc != 4) {
        fprintf(stderr, "usage: pair private|shared|recursive|rwlock|sem THREADS TURNS\n");
        return 2;
    }
    kind = argv[1];
    int threads = atoi(argv[2]);
    turns = atol(argv[3]);
    pthread_t ids[64];
    struct timespec before, after;
    clock_gettime(CLOCK_MONOTONIC, &before);
    for (int i = 0; i < threads && i < 64; i++)
        pthread_create(&ids[i], NULL, work, NULL);
    for (int i = 0; i < threads && i < 64; i++)
        pthread_join(ids[i], NULL);
    clock_gettime(CLOCK_MONOTONIC, &after);
    printf("%.1f\n", ((after.tv_sec - before.tv_sec) * 1e9 + (after.tv_nsec - before.tv_nsec)) / turns);
    return 0;
}
