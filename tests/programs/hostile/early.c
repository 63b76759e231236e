// A library that is preloaded beside libthreadt: it locks in its constructor, which may run before libthreadt's, in its
// destructor, and in a thread that both its constructor starts and its destructor joins.

#include <stdio.h>
#include <stdlib.h>
#include <pthread.h>

pthread_mutex_t early_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_t thread;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static int over;

static void early_pairs(int count) {
    for (int i = 0; i < count; i++)
        if (pthread_mutex_lock(&early_mutex) || pthread_mutex_unlock(&early_mutex))
            abort();
}

static void *work(void *argument) {
    early_pairs(3);
    pthread_mutex_lock(&early_mutex);
    while (!over)
        pthread_cond_wait(&cond, &early_mutex);
    pthread_mutex_unlock(&early_mutex);
    early_pairs(5);
    return argument;
}

__attribute__((constructor)) static void begin(void) {
    early_pairs(7);
    if (pthread_create(&thread, NULL, work, NULL))
        abort();
}

__attribute__((destructor)) static void end(void) {
    early_pairs(11);
    pthread_mutex_lock(&early_mutex);
    over = 1;
    pthread_cond_signal(&cond);
    pthread_mutex_unlock(&early_mutex);
    if (pthread_join(thread, NULL))
        abort();
    early_pairs(13);
}
