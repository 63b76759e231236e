// A library with a mutex of its own.

#include <pthread.h>

static struct {
    long uses;
    pthread_mutex_t lock;
} of_library = {0, PTHREAD_MUTEX_INITIALIZER};

void use_library(void);

void use_library(void) {
    pthread_mutex_lock(&of_library.lock); // use_library
    of_library.uses++;
    pthread_mutex_unlock(&of_library.lock);
}
