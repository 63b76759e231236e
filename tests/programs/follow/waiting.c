// A thread, "gatekeeper", waits for a semaphore, while the main thread posts another one and waits for a third one for 10 ms, again
// and again. When the file `go` appears in the working directory, the thread may go on.

#define _GNU_SOURCE
#include <pthread.h>
#include <semaphore.h>
#include <time.h>
#include <unistd.h>

#include "../check.h"

static sem_t gate, ticks, never;

static void *wait_at_the_gate(void *unused) {
    (void)unused;
    CHECK(sem_wait(&gate) == 0);
    return NULL;
}

int main(void) {
    pthread_t thread;
    CHECK(sem_init(&gate, 0, 0) == 0 && sem_init(&ticks, 0, 0) == 0 && sem_init(&never, 0, 0) == 0);
    CHECK(pthread_create(&thread, NULL, wait_at_the_gate, NULL) == 0);
    CHECK(pthread_setname_np(thread, "gatekeeper") == 0);
    while (access("go", F_OK) != 0) {
        CHECK(sem_post(&ticks) == 0);
        struct timespec soon;
        CHECK(clock_gettime(CLOCK_REALTIME, &soon) == 0);
        soon.tv_sec += (soon.tv_nsec += 10000000) / 1000000000;
        soon.tv_nsec %= 1000000000;
        CHECK(sem_timedwait(&never, &soon) == -1 && errno == ETIMEDOUT);
    }
    CHECK(sem_post(&gate) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    return 0;
}
