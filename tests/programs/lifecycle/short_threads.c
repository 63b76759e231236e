// A thousand threads, ten at a time, each with one pair of calls.

#include "calls.h"

enum { THREADS = 1000, AT_ONCE = 10 };

static void *work(void *argument) {
    pairs(1);
    return argument;
}

int main(void) {
    pthread_t threads[AT_ONCE];
    for (int round = 0; round < THREADS / AT_ONCE; round++) {
        for (int i = 0; i < AT_ONCE; i++)
            if (pthread_create(&threads[i], NULL, work, NULL))
                return 2;
        for (int i = 0; i < AT_ONCE; i++)
            if (pthread_join(threads[i], NULL))
                return 2;
    }
    return 0;
}
