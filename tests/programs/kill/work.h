// Workers that count their finished calls in shared memory, for counting.c and storm.c.
//
// Every worker has a semaphore and a mutex of its own and repeats: sem_post (whose s_count is thus the turn's number),
// lock, unlock. The shared file is an array of 64-bit numbers: how many calls each worker has returned from.

#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

enum { WORKERS = 16384 };

// How many run at the same time.
#ifndef AT_ONCE
#define AT_ONCE 4
#endif

static sem_t semaphores[WORKERS];
static pthread_mutex_t mutexes[WORKERS];
static _Atomic uint64_t *finished;
static long turns;

// How many calls a worker makes, unless it has made its turns before. On a busy machine one may be a hundred times as fast as another.
static uint64_t most = UINT64_MAX;

static void *work(void *argument) {
    intptr_t self = (intptr_t)argument;
    uint64_t calls = 0;
    for (long turn = 0; turn < turns; turn++) {
        sem_post(&semaphores[self]);
        finished[self] = ++calls;
        pthread_mutex_lock(&mutexes[self]);
        finished[self] = ++calls;
        pthread_mutex_unlock(&mutexes[self]);
        finished[self] = ++calls;
        while (calls >= most)
            pause();
    }
    return NULL;
}

// Maps the counts and prints the address of the first semaphore and the size of one; 0 if that worked.
static int announce(const char *file) {
    int fd = open(file, O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (fd < 0 || ftruncate(fd, WORKERS * sizeof *finished))
        return -1;
    finished = mmap(NULL, WORKERS * sizeof *finished, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (finished == MAP_FAILED)
        return -1;
    printf("semaphores %p %zu\n", (void *)semaphores, sizeof *semaphores);
    return fflush(stdout);
}
