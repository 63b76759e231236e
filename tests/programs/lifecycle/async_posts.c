// Threads that may be cancelled at any instruction, and are, while they post to a semaphore of their own. Prints the
// semaphores' address, their size and their final values.

#include <semaphore.h>
#include <unistd.h>

#include "calls.h"

enum { THREADS = 64 };

static sem_t semaphores[THREADS];

static void *work(void *semaphore) {
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
    // As often as main may give it time for; on a busy machine main may be away for seconds.
    for (int i = 0; i < 100000; i++)
        sem_post(semaphore);
    for (;;)
        ;
    return NULL;
}

int main(void) {
    printf("%p %zu\n", (void *)semaphores, sizeof *semaphores);
    for (int i = 0; i < THREADS; i++) {
        pthread_t thread;
        void *result;
        int value = 0;
        sem_init(&semaphores[i], 0, 0);
        if (pthread_create(&thread, NULL, work, &semaphores[i]))
            return 2;
        // Not by a call of the thread's: the last one before its cancellation may go unrecorded.
        while (value == 0) {
            usleep(20);
            sem_getvalue(&semaphores[i], &value);
        }
        usleep(100 * (i % 8));
        if (pthread_cancel(thread) || pthread_join(thread, &result) || result != PTHREAD_CANCELED)
            return 2;
        sem_getvalue(&semaphores[i], &value);
        printf("%d\n", value);
    }
    return 0;
}
