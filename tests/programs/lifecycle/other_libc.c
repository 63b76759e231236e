// A program of another C library, with a thread.
#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void *thread(void *argument) {
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
    return argument;
}

int main(void) {
    pthread_t other;
    if (pthread_create(&other, NULL, thread, NULL) || pthread_join(other, NULL))
        return 1;
    puts("ended");
    return 7;
}
