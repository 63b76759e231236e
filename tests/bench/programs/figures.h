// What the programs of the benchmark print: a figure, and the most memory that the process had in use.
#ifndef FIGURES_H
#define FIGURES_H
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static inline long nanoseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000L + now.tv_nsec;
}

// In KiB. The kernel's figure for a child that has ended would be of use only above what its parent had at the fork.
static inline long peak_memory(void) {
    long peak = 0;
    char line[256];
    FILE *status = fopen("/proc/self/status", "r");
    while (status && fgets(line, sizeof line, status))
        sscanf(line, "VmHWM: %ld kB", &peak);
    return peak;
}

// One line: the figure, the peak in KiB.
static inline void print_figures(double figure, long peak) {
    printf("%.2f\t%ld\n", figure, peak);
}

static inline void start(pthread_t *thread, const pthread_attr_t *attribute, void *(*routine)(void *), void *argument) {
    int error = pthread_create(thread, attribute, routine, argument);
    if (error) {
        fprintf(stderr, "pthread_create: %s\n", strerror(error));
        exit(1);
    }
}
#endif
