// A thread that locks and unlocks at full speed until `ended`.

#pragma once
#include <pthread.h>

static volatile int ended;

static void *work(void *argument) {
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    while (!ended) {
        pthread_mutex_lock(&mutex);
        pthread_mutex_unlock(&mutex);
    }
    return argument;
}
