// A library for `closed_workers`: a thread of its own executes WORKER, which calls a local function.

#include <pthread.h>

__attribute__((noinline)) static void LOCAL(void) {
    __asm__ volatile("");
}

static void *WORKER(void *unused) {
    LOCAL();
    __asm__ volatile("");
    return unused;
}

int work(void) {
    pthread_t thread;
    return pthread_create(&thread, NULL, WORKER, NULL) || pthread_join(thread, NULL);
}
