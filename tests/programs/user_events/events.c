// Makes each of the calls of threadt.h, and prints whether errno is what it was.

#include "../../../threadt/include/threadt.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>

#define WORK "work"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t unnamed = PTHREAD_MUTEX_INITIALIZER;

static void mark(const char *name)
{
    threadt_mark(name, -5);
}

int main(int count, char **arguments)
{
    errno = 77;
    threadt_name(&lock, "queue \"lock\"\n");
    for (int round = 0; round < 2; round++) {
        threadt_begin(WORK);
        pthread_mutex_lock(&lock);
        threadt_counter("depth", round);
        pthread_mutex_unlock(&lock);
        if (round)
            mark(arguments[count - 1]);
        else
            mark("first");
        threadt_end("wo" "rk");
    }
    pthread_mutex_lock(&unnamed);
    pthread_mutex_unlock(&unnamed);
    threadt_event(5, 1, -2, INT64_MIN, 0, (int64_t)1 << 40);
    threadt_event_entry(89, 1, 0, 0, 0, 0);
    threadt_event_return(89, 9, 0, 0, 0, 0);
    threadt_event(90, 1, 0, 0, 0, 0);
    threadt_barrier_spin_init(&lock, NULL, 3, 0);
    threadt_barrier_spin_wait(&lock, 3);
    threadt_barrier_spin_return(-1);
    threadt_barrier_spin_destroy(&lock, 16);
    printf("%d\n", errno == 77);
    return 0;
}
