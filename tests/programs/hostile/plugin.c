// A library for `loader`: starts a thread when it is loaded, and joins it when it is unloaded.

#include <stdlib.h>
#include <pthread.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;
static pthread_t thread;

static void plugin_pairs(pthread_mutex_t *which, int count) {
    for (int i = 0; i < count; i++)
        if (pthread_mutex_lock(which) || pthread_mutex_unlock(which))
            abort();
}

static void *work(void *argument) {
    plugin_pairs(&mutex, 100);
    plugin_pairs(&own, 10);
    return argument;
}

void plugin_call(void) {
    plugin_pairs(&mutex, 50);
}

__attribute__((constructor)) static void begin(void) {
    plugin_pairs(&mutex, 1);
    if (pthread_create(&thread, NULL, work, NULL))
        abort();
}

__attribute__((destructor)) static void end(void) {
    if (pthread_join(thread, NULL))
        abort();
    plugin_pairs(&mutex, 2);
}
