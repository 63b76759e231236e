// Two live threads whose LWP IDs end in the same three hex digits: `shared_number PAIRS`.
//
// One stays while others are made that end at once, until there is one with such an ID; then both make PAIRS pairs, each
// on a mutex of its own, at the same time. Prints both IDs.

#define _GNU_SOURCE
#include <stdatomic.h>
#include <unistd.h>

#include "../lifecycle/calls.h"

// The IDs come around every 4096 threads; other processes take some of them.
enum { TRIES = 40 * 4096 };

static int count;
static atomic_int first, second;

static void record(void) {
    pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;
    for (int i = 0; i < count; i++)
        if (pthread_mutex_lock(&own) || pthread_mutex_unlock(&own))
            abort();
}

static void *stay(void *argument) {
    atomic_store(&first, gettid());
    while (!atomic_load(&second))
        usleep(1000);
    record();
    return argument;
}

static void *match(void *argument) {
    pid_t id = gettid();
    if ((id & 0xfff) == (first & 0xfff)) {
        atomic_store(&second, id);
        record();
    }
    return argument;
}

int main(int argc, char **argv) {
    if (argc != 2)
        return 2;
    count = atoi(argv[1]);
    pthread_t staying, other;
    if (pthread_create(&staying, NULL, stay, NULL))
        return 2;
    while (!atomic_load(&first))
        usleep(1000);
    for (int i = 0; i < TRIES && !atomic_load(&second); i++)
        if (pthread_create(&other, NULL, match, NULL) || pthread_join(other, NULL))
            return 2;
    if (!atomic_load(&second))
        return 3;
    pthread_join(staying, NULL);
    printf("%d %d\n", first, second);
    return 0;
}
