// Four threads that allocate, and lock between: prints the mutex's address.

#include <string.h>

#include "calls.h"

static void *work(void *argument) {
    unsigned state = (unsigned)(long)argument;
    void *blocks[64] = {0};
    for (int i = 0; i < 5000; i++) {
        state = state * 1664525 + 1013904223;
        void **block = &blocks[state >> 26];
        free(*block);
        size_t size = 1 + (state >> 8) % 5000;
        *block = malloc(size);
        memset(*block, (int)state, size);
        if (i % 10 == 0)
            pairs(1);
    }
    for (int i = 0; i < 64; i++)
        free(blocks[i]);
    return NULL;
}

int main(void) {
    pthread_t threads[4];
    for (long i = 0; i < 4; i++)
        if (pthread_create(&threads[i], NULL, work, (void *)i))
            return 2;
    for (int i = 0; i < 4; i++)
        if (pthread_join(threads[i], NULL))
            return 2;
    printf("%p\n", (void *)&counted);
    return 0;
}
