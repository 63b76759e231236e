// What a thread costs: `threads create WARM TURNS` prints the median nanoseconds of creating and joining one, of TURNS after
// WARM that are not counted; `threads memory THREADS PAIRS` the most memory in KiB that the process had in use with so
// many threads alive, each of which has locked and unlocked a mutex PAIRS times. Either is followed by the peak memory.
#include "figures.h"

static pthread_barrier_t all_done, measured;
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
    pthread_barrier_wait(&measured);
    return argument;
}

static int compare(const void *left, const void *right) {
    long a = *(const long *)left, b = *(const long *)right;
    return (a > b) - (a < b);
}

static long median_of_turns(long warm, long turns) {
    long *took = calloc(turns, sizeof *took);
    for (long turn = -warm; turn < turns; turn++) {
        pthread_t thread;
        long began = nanoseconds();
        start(&thread, NULL, nothing, NULL);
        pthread_join(thread, NULL);
        if (turn >= 0)
            took[turn] = nanoseconds() - began;
    }
    qsort(took, turns, sizeof *took, compare);
    return took[turns / 2];
}

static long peak_of(long threads) {
    pthread_attr_t attribute;
    pthread_attr_init(&attribute);
    pthread_attr_setstacksize(&attribute, 64 * 1024);
    pthread_barrier_init(&all_done, NULL, threads + 1);
    pthread_barrier_init(&measured, NULL, threads + 1);
    pthread_t *ids = calloc(threads, sizeof *ids);
    for (long i = 0; i < threads; i++)
        start(&ids[i], &attribute, live, NULL);
    pthread_barrier_wait(&all_done);
    long peak = peak_memory();
    pthread_barrier_wait(&measured);
    for (long i = 0; i < threads; i++)
        pthread_join(ids[i], NULL);
    return peak;
}

int main(int argc, char **argv) {
    long first = argc == 4 ? atol(argv[2]) : 0, second = argc == 4 ? atol(argv[3]) : 0;
    if (first > 0 && second > 0 && !strcmp(argv[1], "create")) {
        print_figures(median_of_turns(first, second), peak_memory());
    } else if (first > 0 && second > 0 && !strcmp(argv[1], "memory")) {
        pairs = second;
        long peak = peak_of(first);
        print_figures(peak, peak);
    } else {
        fprintf(stderr, "usage: threads create WARM TURNS | threads memory THREADS PAIRS\n");
        return 2;
    }
    return 0;
}
