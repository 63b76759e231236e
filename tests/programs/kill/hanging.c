// Hangs: a thread waits for a mutex that main never gives back. Prints `ready` when the thread is about to lock it.

#include <pthread.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void *waits(void *argument) {
    if (write(1, "ready\n", 6) != 6)
        return argument;
    pthread_mutex_lock(&mutex);
    return argument;
}

int main(void) {
    pthread_t thread;
    pthread_mutex_lock(&mutex);
    if (pthread_create(&thread, NULL, waits, NULL))
        return 1;
    for (;;)
        pause();
}
