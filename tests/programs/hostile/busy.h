// A thread that locks and unlocks at full speed until `ended`, and how often such threads have done so.

#pragma once
#include <pthread.h>

static volatile int ended;
static long busy_pairs;

static void *work(void *argument) {
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    while (!ended) {
        pthread_mutex_lock(&mutex);
        pthread_mutex_unlock(&mutex);
        __atomic_fetch_add(&busy_pairs, 1, __ATOMIC_RELAXED);
    }
    return argument;
}
