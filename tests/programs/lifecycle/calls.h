// Calls that a test can count: pairs of lock and unlock on one mutex.

#pragma once
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static pthread_mutex_t counted = PTHREAD_MUTEX_INITIALIZER;

static inline void pairs(int count) {
    for (int i = 0; i < count; i++) {
        if (pthread_mutex_lock(&counted) || pthread_mutex_unlock(&counted))
            abort();
    }
}
