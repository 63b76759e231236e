// What a thread costs: `threads create WARM TURNS` prints the median nanoseconds of creating and joining one, of TURNS after
// WARM that are not counted; `threads memory THREADS PAIRS` the most memory in KiB that the process had in use with so
// many threads alive, each of which has locked and unlocked a mutex PAIRS times.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static pthread_barrier_t all_done, told;
static long pairs;

static void *nothing(void *argument) {
    return argument;
}

static void *live(void *argument) {
    pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;
    for (long i = 0; i < pairs; i++) {
        pthread_mutex_lock(&own);
        pthread_mutex_unlock(&own);
    }
    pthread_barrier_wait(&all_done);
    pthread_barrier_wait(&told);
    return argument;
}

static void create(pthread_t *thread, const pthread_attr_t *attribute, void *(*routine)(void *)) {
    int error = pthread_create(thread, attribute, routine, NULL);
    if (error) {
        fprintf(stderr, "threads: pthread_create: %s\n", strerror(error));
        exit(1);
    }
}

static int compare(const void *left, const void *right) {
    long a = *(const long *)left, b = *(const long *)right;
    return (a > b) - (a < b);
}

static long median_of_turns(long warm, long turns) {
    long *took = calloc(turns, sizeof *took);
    for (long turn = -warm; turn < turns; turn++) {
        pthread_t thread;
        struct timespec before, after;
        clock_gettime(CLOCK_MONOTONIC, &before);
        create(&thread, NULL, nothing);
        pthread_join(thread, NULL);
        clock_gettime(CLOCK_MONOTONIC, &after);
        if (turn >= 0)
            took[turn] = (after.tv_sec - before.tv_sec) * 1000000000 + after.tv_nsec - before.tv_nsec;
    }
    qsort(took, turns, sizeof *took, compare);
    return took[turns / 2];
}

static long peak_of(long threads) {
    pthread_attr_t attribute;
    pthread_attr_init(&attribute);
    pthread_attr_setstacksize(&attribute, 64 * 1024);
    pthread_barrier_init(&all_done, NULL, threads + 1);
    pthread_barrier_init(&told, NULL, threads + 1);
    pthread_t *ids = calloc(threads, sizeof *ids);
    for (long i = 0; i < threads; i++)
        create(&ids[i], &attribute, live);
    pthread_barrier_wait(&all_done);
    long peak = 0;
    char line[256];
    FILE *status = fopen("/proc/self/status", "r");
    while (status && fgets(line, sizeof line, status))
        sscanf(line, "VmHWM: %ld kB", &peak);
    pthread_barrier_wait(&told);
    for (long i = 0; i < threads; i++)
        pthread_join(ids[i], NULL);
    return peak;
}

int main(int argc, char **argv) {
    long first = argc == 4 ? atol(argv[2]) : 0, second = argc == 4 ? atol(argv[3]) : 0;
    if (first > 0 && second > 0 && !strcmp(argv[1], "create")) {
        printf("%ld\n", median_of_turns(first, second));
    } else if (first > 0 && second > 0 && !strcmp(argv[1], "memory")) {
        pairs = second;
        printf("%ld\n", peak_of(first));
    } else {
        fprintf(stderr, "usage: threads create WARM TURNS | threads memory THREADS PAIRS\n");
        return 2;
    }
    return 0;
}
