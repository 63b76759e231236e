// Two threads count under a lock of the program's own, which is not recorded, and record what they have counted.

#include "../../../threadt/include/threadt.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

// Ends after so many times that the other thread had the lock before, or so many locks: threads that one processor runs in turn
// change seldom.
#define CHANGES 5000
#define LOCKS 20000000
// A thread that has the lock alone for longer records nothing.
#define RECORDED_IN_A_ROW 50

static _Alignas(64) atomic_int lock;
static _Alignas(64) struct {
    int64_t counted, changes, locks;
    int owner, in_a_row;
} shared = {.owner = 1};
static atomic_int begun;
static atomic_int is_enough;

static void count(int thread)
{
    shared.in_a_row = shared.owner == thread ? shared.in_a_row + 1 : 0;
    shared.changes += shared.owner != thread;
    shared.owner = thread;
    if (shared.in_a_row < RECORDED_IN_A_ROW) {
        ++shared.counted;
        threadt_event(1, shared.counted, 0, 0, 0, 0);
        threadt_counter("counted", shared.counted);
    }
    if (shared.changes >= CHANGES || ++shared.locks >= LOCKS)
        is_enough = 1;
}

static void *run(void *argument)
{
    unsigned random = 1 + (argument != NULL);
    for (++begun; begun < 2;) {
    }
    while (!is_enough) {
        // One instruction takes the lock, so that the processor can execute what is behind it before it has the lock.
        if (atomic_exchange_explicit(&lock, 1, memory_order_acquire) == 0) {
            count(argument != NULL);
            atomic_store_explicit(&lock, 0, memory_order_release);
        }
        random = random * 1103515245 + 12345;
        for (volatile unsigned rounds = (random >> 16) % 120; rounds > 0; rounds--) {
        }
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[2];
    for (long i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, run, (void *)i);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    printf("%ld\n", (long)shared.counted);
}
