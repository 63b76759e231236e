// A library for `libraries`, with the function NAME, which takes a mutex, or only tries to.

#include <pthread.h>

int NAME(pthread_mutex_t *mutex, int tries) {
    if (tries) {
        int error = pthread_mutex_trylock(mutex);
        // Not a jump to the call.
        __asm__ volatile("" ::: "memory");
        return error;
    }
    int error = pthread_mutex_lock(mutex);
    if (!error)
        pthread_mutex_unlock(mutex);
    __asm__ volatile("" ::: "memory");
    return error;
}
