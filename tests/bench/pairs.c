/* pairs THREADS PAIRS PAUSE [POSTS]: each thread locks and unlocks a mutex of its own PAIRS times, with PAUSE microseconds between
 * two hundreds of pairs, and with a post of a semaphore after each POSTS of them. Writes to standard error how much CPU time the process took for a pair, in nanoseconds, and, behind a tab,
 * the wall time of all of it in milliseconds. */
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static long pairs, pause_us, posts;

static void *work(void *unused)
{
    pthread_mutex_t *mutex = aligned_alloc(256, 256);
    sem_t semaphore;

    (void)unused;
    if (!mutex)
        abort();
    pthread_mutex_init(mutex, NULL);
    sem_init(&semaphore, 0, 0);
    for (long pair = 0; pair < pairs; pair++) {
        if (pause_us && pair % 100 == 0)
            usleep(pause_us);
        pthread_mutex_lock(mutex);
        pthread_mutex_unlock(mutex);
        if (posts && pair % posts == 0)
            sem_post(&semaphore);
    }
    free(mutex);
    return NULL;
}

static double now(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return time.tv_sec * 1e9 + time.tv_nsec;
}

int main(int argc, char **argv)
{
    pthread_t threads[64];
    int count = argc > 3 ? atoi(argv[1]) : 0;
    double start;

    if (count < 1 || count > 64)
        return 2;
    pairs = atol(argv[2]);
    pause_us = atol(argv[3]);
    posts = argc > 4 ? atol(argv[4]) : 0;
    start = now(CLOCK_MONOTONIC);
    for (int i = 0; i < count; i++)
        if (pthread_create(&threads[i], NULL, work, NULL))
            abort();
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    fprintf(stderr, "%.1f\t%.1f\n", now(CLOCK_PROCESS_CPUTIME_ID) / pairs / count, (now(CLOCK_MONOTONIC) - start) / 1e6);
    return 0;
}
