// Prints how often the preloaded allocator is called: in the first pairs of a process, in many more of them, and while
// threads are created, record and end.

#include <semaphore.h>

#include "../lifecycle/calls.h"

extern unsigned long allocations(void) __attribute__((weak));

static void *work(void *argument) {
    pairs(3000);
    return argument;
}

int main(void) {
    if (!allocations)
        return 2;
    unsigned long counts[4];
    sem_t sem;
    counts[0] = allocations();
    pairs(1);
    counts[1] = allocations();
    pairs(5000);
    sem_init(&sem, 0, 0);
    sem_post(&sem);
    sem_wait(&sem);
    counts[2] = allocations();
    // What glibc keeps for a thread's stack is used again: the first thread allocates, natively too.
    for (int i = 0; i < 20; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, work, NULL) || pthread_join(thread, NULL))
            return 3;
    }
    counts[3] = allocations();
    printf("first %lu, more %lu, threads %lu\n", counts[1] - counts[0], counts[2] - counts[1], counts[3] - counts[2]);
    return 0;
}
